"""What a handle keeps: a ``DeltaTable`` or DataFrame has the table's metadata as it was when it was made (delta-0)."""

from __future__ import annotations

from tablectl.model.plan import CommitEffect

_BREAKS = frozenset({("delta.enabledeletionvectors", "true"), ("delta.enablerowtracking", "true")})
"""The properties that add hidden columns to what a scan must give: one that was analysed before lacks them. Measured
with Delta Spark 4.4, where all other free changes leave older handles as they were."""


def stale_handles(effect: CommitEffect) -> str:
    """Which operations of an old ``DeltaTable`` object fail after a statement of this effect, or nothing."""
    if effect.repartitions:
        return "re-create `DeltaTable` and DataFrame objects after this change, inside the guard; old ones fail"
    if not any((key.lower(), value.lower()) in _BREAKS for key, value in effect.sets):
        return ""
    return "re-create `DeltaTable` objects after this change, inside the guard; old ones fail on merge/update/delete"
