"""What a handle keeps: a ``DeltaTable`` or DataFrame has the table's metadata as it was when it was made (delta.md)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tablectl.model.plan import CommitEffect

_BREAKS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("delta.enabledeletionvectors", "true"): "merge, update and delete",
        ("delta.enablerowtracking", "true"): "merge and update",
    }
)
"""What fails through an older handle, by property and value; measured on Delta Spark 4.4."""


def old_handles(effect: CommitEffect) -> str:
    """What fails through a ``DeltaTable`` that was made before a statement of this effect, for people; or nothing."""
    broken = [_BREAKS[found] for key, value in effect.sets if (found := (key.lower(), value.lower())) in _BREAKS]
    if not broken:
        return ""
    what = max(broken, key=len)
    return f"{what} fail through a DeltaTable that was made before: make it anew, inside the guard"
