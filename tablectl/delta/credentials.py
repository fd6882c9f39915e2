"""Finds credentials in locations, and removes them from text and from locations.

Azure writes a container before the host (``abfss://container@account/path``), so for Azure a name before the ``@`` is
not a credential, but a name with a colon is. Signed queries are recognised by the parameters that the clouds document:
AWS Signature Version 4 and 2, Azure shared access signatures, Google V4 signed URLs.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

HIDDEN = "…"
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_USER = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<user>[^\s'\"`/@]*:(?!\d{1,5}(?:/|$))[^\s'\"`@]*|[^\s'\"`/@:]+)@"
)
"""The password can contain slashes that should have been encoded. A port is followed by a path."""
_NAMES = (
    r"sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|awsaccesskeyid|x-goog-signature|"
    r"x-goog-credential|googleaccessid|access[-_]?key(?:[-_]?id)?|secret(?:[-_]?(?:access[-_]?)?key)?|account[-_]?key|"
    r"shared[-_]?access[-_]?signature|sas[-_]?token|(?:access|session|auth|security|id)?[-_]?token|"
    r"password|passwd|pwd|credential|api[-_]?key"
)
_PARAMETER = re.compile(rf"(?P<name>(?:[?&;]|%3[fb]|%26)(?:{_NAMES})(?:=|%3d))(?P<value>[^\s'\"`&;]*)", re.IGNORECASE)


def find_credentials(location: str) -> str:
    """The kind of credentials in a location, as a noun phrase; empty if there are none."""
    for text in (location, unquote(location)):
        if any(map(_is_secret, _USER.finditer(text))):
            return "a user name or a password before its host"
        parameter = _PARAMETER.search(text)
        if parameter and parameter["value"]:
            return f"the credential `{parameter['name'].lstrip('?&;')}`"
    return ""


def scrub(text: str) -> str:
    """The text with all credentials in its locations replaced."""
    if "://" in text:
        text = _USER.sub(_scrub_user, text)
    return _PARAMETER.sub(rf"\g<name>{HIDDEN}", text) if "=" in text or "%3" in text else text


def without_credentials(location: str) -> str:
    """The location without a user before the host and without a signed query. It can be shown, stored and opened."""
    found = _USER.match(location)
    if found and _is_secret(found):
        container = found["user"].partition(":")[0] + "@" if found["scheme"].lower() in _CONTAINERS else ""
        location = f"{found['scheme']}://{container}{location[found.end() :]}"
    path, mark, query = location.partition("?")
    return path if mark and _PARAMETER.search(mark + query) else _PARAMETER.sub("", location)


def server_text(url: str) -> str:
    """A server's address without its user and its parameters, which may contain tokens."""
    parts = urlsplit(scrub(url))
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else scrub(url)


def _is_secret(found: re.Match[str]) -> bool:
    return ":" in found["user"] or found["scheme"].lower() not in _CONTAINERS


def _scrub_user(found: re.Match[str]) -> str:
    return f"{found['scheme']}://{HIDDEN}@" if _is_secret(found) else found[0]
