"""Locations of tables: paths on a disk and URIs of stores, and the one spelling in which two of them are compared."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SLASHES = re.compile(r"/+")
_NO_PATH = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
LONGEST_LOCATION = 4096
"""The maximum length of a location in characters, as of a path on Linux (limits.h, ``PATH_MAX``)."""


def is_absolute(location: str) -> bool:
    """Whether a location is absolute: a path from the root, or a URI."""
    return location.startswith("/") or _SCHEME.match(location) is not None


def location_fault(location: str) -> str:
    """Why no table can lie in a location, as a clause; empty if one can."""
    if len(location) > LONGEST_LOCATION:
        return f"has {len(location):,} characters, more than {LONGEST_LOCATION:,}"
    if _NO_PATH.search(location):
        return "has a control character, or half of a character"
    return ""


def canonical_location(location: str) -> str:
    """The canonical form of a location: local paths without scheme, ``s3a`` and ``s3n`` as ``s3``, no trailing or
    doubled slash.
    """
    if location.startswith("/"):
        path = location if "//" not in location else _SLASHES.sub("/", location)
        return path.rstrip("/") or "/"
    if _SCHEME.match(location) is None:
        scheme, authority, path = "file", "", location
    else:
        # Not urlsplit: it ends the path at # and ?, and it rejects authorities that a store can accept.
        scheme, _, rest = location.partition(":")
        scheme, authority, path = scheme.lower(), "", rest
        if rest.startswith("//"):
            authority, slash, path = rest[2:].partition("/")
            path = slash + path
    path = _SLASHES.sub("/", path).rstrip("/")
    if scheme == "file":
        return path or "/"
    return f"{'s3' if scheme in {'s3a', 's3n'} else scheme}://{authority}{path}"


def is_local(location: str) -> bool:
    """Whether a location is on this machine's file system."""
    return location.startswith("/") or location[:5].lower() == "file:"
