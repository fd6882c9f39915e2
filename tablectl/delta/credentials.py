"""Finds credentials in locations, and removes them from text and from locations.

Azure writes a container before the host (``abfss://container@account/path``), so for Azure a name before the ``@`` is
not a credential, but a name with a colon is. Signed queries are recognised by the parameters that the clouds document:
AWS Signature Version 4 and 2, Azure shared access signatures, Google V4 signed URLs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

HIDDEN = "…"
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_RUN = re.compile(r"(?<![^\s'\"`@])[^\s'\"`@]+@")
"""Text up to an ``@``. Only there are users looked for, so that each character is read a bounded number of times."""
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30})://")
_USER = re.compile(r"[^/@]*:(?!\d{1,5}/)|[^/@:]+@")
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
        if any(_is_secret(scheme, user) for _, _, scheme, user in _users(text)):
            return "a user name or a password before its host"
        parameter = _PARAMETER.search(text)
        if parameter and parameter["value"]:
            return f"the credential `{parameter['name'].lstrip('?&;')}`"
    return ""


def scrub(text: str) -> str:
    """The text with all credentials in its locations replaced."""
    if "://" in text:
        parts, last = list[str](), 0
        for start, end, scheme, user in _users(text):
            if _is_secret(scheme, user):
                parts += (text[last:start], HIDDEN)
                last = end
        text = "".join((*parts, text[last:]))
    return _PARAMETER.sub(rf"\g<name>{HIDDEN}", text) if "=" in text or "%3" in text else text


def without_credentials(location: str) -> str:
    """The location without a user before the host and without a signed query. It can be shown, stored and opened."""
    start, end, scheme, user = next(_users(location), (0, 0, "", ""))
    if start == len(scheme) + len("://") and _is_secret(scheme, user):
        container = user.partition(":")[0] + "@" if scheme.lower() in _CONTAINERS else ""
        location = f"{scheme}://{container}{location[end + 1 :]}"
    path, mark, query = location.partition("?")
    return path if mark and _PARAMETER.search(mark + query) else _PARAMETER.sub("", location)


def server_text(url: str) -> str:
    """A server's address without its user and its parameters, which may contain tokens."""
    parts = urlsplit(scrub(url))
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else scrub(url)


def _users(text: str) -> Iterator[tuple[int, int, str, str]]:
    """What stands before the host of each location: its start, its end, the scheme before it, and itself."""
    for run in _RUN.finditer(text):
        for found in _SCHEME.finditer(run[0]):
            if _USER.match(run[0], found.end()):
                yield run.start() + found.end(), run.end() - 1, found["scheme"], run[0][found.end() : -1]
                break


def _is_secret(scheme: str, user: str) -> bool:
    return ":" in user or scheme.lower() not in _CONTAINERS
