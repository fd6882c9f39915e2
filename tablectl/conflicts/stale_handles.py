"""What a handle keeps: a ``DeltaTable`` or DataFrame has the table's metadata as it was when it was made (delta-0)."""

from __future__ import annotations

from tablectl.model.plan import CommitEffect

_BREAKS = frozenset({("delta.enabledeletionvectors", "true"), ("delta.enablerowtracking", "true")})
"""The properties that add hidden columns to what a scan must give: one that was analysed before lacks them. Measured
with Delta Spark 4.4, where all other free changes leave older handles as they were."""


def stale_handles(effect: CommitEffect) -> str:
    """What fails through a ``DeltaTable`` that was made before a statement of this effect, for people; or nothing."""
    if effect.repartitions:
        return "everything fails through a DeltaTable or DataFrame that was made before: make it anew, inside the guard"
    if not any((key.lower(), value.lower()) in _BREAKS for key, value in effect.sets):
        return ""
    return "merge, update and delete fail through a DeltaTable that was made before: make it anew, inside the guard"
