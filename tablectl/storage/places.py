"""Names of places on a disk and in object stores."""

from __future__ import annotations

import os

from tablectl.delta.names import canonical_location


def real_place(location: str) -> str:
    """The canonical form of a place, with links on a local disk resolved, so that two names of one table do not count
    as two tables.
    """
    place = canonical_location(location)
    # Not `Path.resolve`, which raises where a link leads to itself: that table cannot be read, and all others can.
    return os.path.realpath(place) if place.startswith("/") else place
