"""``row_tracking``: whether every row keeps an id and the version that last changed it (delta-1.6).

``dropped`` also removes the feature from the protocol, and the row ids from the log. A table that has the feature and
does not use it reads ``supported``, which satisfies ``disabled``.

``suspended`` is the state after an interrupted DROP FEATURE: row tracking is off, and no file gets ids. No policy can
declare it. It satisfies ``disabled``, and it must be lifted before row tracking can be enabled again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args

from tablectl.attributes.base import (
    NO_NEEDS,
    SUPPORTED,
    ChangeTarget,
    Needs,
    PlannedOperation,
    WordAttribute,
    against_drop,
    against_uncounted,
    drop_step,
    is_true,
    put_back,
)
from tablectl.attributes.value_types import Declared, ValueType
from tablectl.delta import keys
from tablectl.model.operations import SetProperties, UnsetProperties
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

RowTrackingValue = Literal["enabled", "disabled", "dropped"]

_FEATURE = "rowTracking"
_STAYS = "the protocol features rowTracking and domainMetadata, and the row ids in the log"


class RowTracking(WordAttribute):
    """The attribute ``row_tracking``."""

    name = "row_tracking"
    value_type = ValueType(
        name=name,
        description="`enabled`: every row keeps an id, and the version that last changed it. `disabled`: it does not. "
        "`dropped`: nor does the protocol have the feature.",
        words=get_args(RowTrackingValue),
    )
    keys = (keys.ROW_TRACKING,)
    off = "disabled"

    def read(self, live: LiveTable, key: str) -> Value:
        """``enabled``, ``suspended``, ``supported`` or ``disabled``.

        Files that already have ids do not matter: Delta assigns ids to the others and then sets the property.
        """
        if is_true(live.property(keys.ROW_TRACKING)):
            return "enabled"
        if is_true(live.property(keys.ROW_TRACKING_SUSPENDED)):
            return "suspended"
        return SUPPORTED if live.protocol.has(_FEATURE) else "disabled"

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """``suspended`` and ``supported`` satisfy ``disabled``; a table without the feature satisfies ``dropped``."""
        off = {"disabled": {"suspended", SUPPORTED}, "dropped": {"disabled"}}
        return found == declared or found in off.get(str(declared), ())

    def between(self, found: Value, declared: str) -> tuple[Value, ...]:
        """A suspended table is disabled before it is enabled. A drop suspends it before it removes the feature."""
        if declared == "enabled" and found == "suspended":
            return ("disabled", SUPPORTED)
        return ("suspended", SUPPORTED) if declared == "dropped" else ()

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        """Iceberg compatibility V3 requires row tracking. Delta drops no feature that another one needs."""
        if change.after == "dropped" and (reason := next(against_drop(_FEATURE, live, target), None)):
            return reason
        if change.after == "enabled":
            return against_uncounted(live, "leave `row_tracking` out")
        if change.after == "disabled" and is_true(target.property(live, keys.iceberg_compat(3))):
            return Reason(
                reason="the table is kept compatible with Iceberg V3, which needs row tracking; "
                "Delta cannot turn that compatibility off again",
                fix="declare `row_tracking: enabled`, or drop it from the policy",
                condition="DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
            )
        return None

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        """One property. Before Delta sets it to true, it upgrades the protocol and commits again every file without
        ids.
        """
        on = SetProperties(((keys.ROW_TRACKING, "true"),))
        off = SetProperties(((keys.ROW_TRACKING, "false"),))
        if change.after == "dropped":
            note = "after the undo every row has a new id"
            return (drop_step(change.id, _FEATURE, basis, due=None, needs=(keys.ROW_TRACKING,), undo_note=note),)
        if change.after == "disabled":
            ids = "rows that were rewritten in between have new ids"
            note = f"{_STAYS}; after turning it on again, {ids}"
            return (PlannedOperation(change.id, off, undo=put_back(keys.ROW_TRACKING, basis), undo_note=note),)
        note = "" if basis.protocol.protocol().has(_FEATURE) else _STAYS
        enable = PlannedOperation(
            change.id, on, needs=(keys.ROW_TRACKING_SUSPENDED,), undo=put_back(keys.ROW_TRACKING, basis), undo_note=note
        )
        if change.before != "suspended":
            return (enable,)
        return (
            PlannedOperation(change.id, UnsetProperties((keys.ROW_TRACKING_SUSPENDED,)), undo_note=_SUSPENSION),
            enable,
        )

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        """``suspended`` counts as ``disabled``."""
        if live.property(keys.ROW_TRACKING) is not None:
            yield "", "enabled" if self.read(live, "") == "enabled" else "disabled"

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        return {keys.ROW_TRACKING: "true" if declared == "enabled" else "false"}

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        """Enabling and dropping commit every file again."""
        return Needs(size=True, row_counts=value == "enabled") if value in {"enabled", "dropped"} else NO_NEEDS


_SUSPENSION = "new files get row ids again"
