"""Stale handles: a ``DeltaTable`` or DataFrame keeps the table's metadata of the time when it was created (delta-0)."""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.delta import keys
from tablectl.model.commits import CommittedTransaction

_BREAKS = frozenset({(keys.DELETION_VECTORS.lower(), "true"), (keys.ROW_TRACKING.lower(), "true")})
"""Properties that add hidden columns to a scan. A scan that was analysed before the change lacks them. Measured with
Delta Spark 4.4; all other safe changes leave older handles intact."""


def stale_handles(made: Sequence[CommittedTransaction]) -> str:
    """Which operations of an old ``DeltaTable`` object fail after a statement with these commits, or nothing."""
    if any(each.repartitions for each in made):
        return "re-create `DeltaTable` and DataFrame objects after this change, inside the guard; old ones fail"
    sets = (pair for each in made if each.metadata for pair in each.metadata.sets)
    if not any((key.lower(), value.lower()) in _BREAKS for key, value in sets):
        return ""
    return "re-create `DeltaTable` objects after this change, inside the guard; old ones fail on merge/update/delete"
