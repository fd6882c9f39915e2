"""``row_tracking``: whether every row keeps an id and the version that last changed it (delta-1.6).

``suspended`` is the state after an interrupted DROP FEATURE: row tracking is off, and no file gets ids. No policy can
declare it. It satisfies ``disabled``, and it must be lifted before row tracking can be enabled again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from tablectl.attributes.base import Action, ChangeTarget, Step, put_back
from tablectl.attributes.value_types import ValueType
from tablectl.model.operations import SetProperties, UnsetProperties
from tablectl.model.plan import Basis, Change, Refusal, Value
from tablectl.model.table import LiveTable

RowTrackingValue = Literal["enabled", "disabled"]

KEY = "delta.enableRowTracking"
SUSPENDED_KEY = "delta.rowTrackingSuspended"
_NEEDED_BY_KEY = "delta.enableIcebergCompatV3"
_FEATURE = "rowTracking"
_STAYS = "the protocol features rowTracking and domainMetadata, and the row ids in the log"


class RowTracking:
    """The attribute ``row_tracking``."""

    name = "row_tracking"
    shape = ValueType(
        name=name,
        description="`enabled`: every row keeps an id, and the version that last changed it. `disabled`: it does not.",
        words=get_args(RowTrackingValue),
    )

    def read(self, live: LiveTable, key: str) -> Value:
        """``enabled``, ``disabled`` or ``suspended``.

        Files that already have ids do not matter: Delta assigns ids to the others and then sets the property.
        """
        if _is_true(live.property(KEY)):
            return "enabled"
        return "suspended" if _is_true(live.property(SUSPENDED_KEY)) else "disabled"

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """``suspended`` satisfies ``disabled``."""
        return found == declared or (declared == "disabled" and found == "suspended")

    def diff(self, declared: Value | Mapping[str, str | None], live: LiveTable) -> Iterable[Change]:
        """Yields at most one change."""
        found = self.read(live, "")
        if isinstance(declared, str) and not self.agrees(found, declared, ""):
            via = ("disabled",) if found == "suspended" else ()
            yield Change(attribute=self.name, before=found, after=declared, via=via)

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Refusal | None:
        """Iceberg compatibility V3 requires row tracking."""
        if change.after == "disabled" and _is_true(target.property(live, _NEEDED_BY_KEY)):
            return Refusal(
                change=change.id,
                reason="the table is kept compatible with Iceberg V3, which needs row tracking; "
                "Delta cannot turn that compatibility off again",
                fix="declare `row_tracking: enabled`, or drop it from the policy",
                condition="DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
            )
        return None

    def act(self, change: Change, basis: Basis) -> Action:
        """One property. Before Delta sets it to true, it upgrades the protocol and commits again every file without
        ids.
        """
        on = SetProperties(((KEY, "true"),))
        off = SetProperties(((KEY, "false"),))
        if change.after == "disabled":
            ids = "rows that were rewritten in between have new ids"
            note = f"{_STAYS}; after turning it on again, {ids}"
            return Action(change, (Step(off, undo=put_back(KEY, basis), undo_note=note),))
        note = "" if basis.protocol.protocol().has(_FEATURE) else _STAYS
        enable = Step(on, needs=(SUSPENDED_KEY,), undo=put_back(KEY, basis), undo_note=note)
        if change.before != "suspended":
            return Action(change, (enable,))
        return Action(change, (Step(UnsetProperties((SUSPENDED_KEY,)), undo_note=_SUSPENSION), enable))


_SUSPENSION = "new files get row ids again"


def _is_true(value: str | None) -> bool:
    return (value or "false").lower() == "true"
