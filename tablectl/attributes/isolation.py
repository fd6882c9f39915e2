"""``isolation``: the level that decides which concurrent writes conflict, stored as ``delta.isolationLevel``.

If the property is not set, open-source Delta uses Serializable and Databricks uses WriteSerializable (delta-1.2, D6). A
declared level is therefore always written to the table and never assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from tablectl.attributes.base import Action, ChangeTarget, Step, put_back
from tablectl.attributes.value_types import ValueType
from tablectl.delta.dialects import dialect_of
from tablectl.model.operations import Operation, SetProperties, UnsetProperties
from tablectl.model.plan import Basis, Change, Refusal, Value
from tablectl.model.table import LiveTable

IsolationValue = Literal["Serializable", "WriteSerializable", "default"]

KEY = "delta.isolationLevel"


class Isolation:
    """The attribute ``isolation``."""

    name = "isolation"
    shape = ValueType(
        name=name,
        description="Isolation level of writes, pinned as delta.isolationLevel; `default` leaves it unset.",
        words=get_args(IsolationValue),
    )

    def read(self, live: LiveTable, key: str) -> Value:
        """The stored level in its usual spelling; ``default`` if none is stored."""
        stored = live.property(KEY)
        if stored is None:
            return "default"
        return next(
            (level for level in ("Serializable", "WriteSerializable") if level.lower() == stored.lower()), stored
        )

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """Compares the levels. Delta accepts them in any letter case and stores them as typed; ``read`` normalises
        them.
        """
        return found == declared

    def diff(self, declared: Value | Mapping[str, str | None], live: LiveTable) -> Iterable[Change]:
        """Yields at most one change."""
        found = self.read(live, "")
        if isinstance(declared, str) and not self.agrees(found, declared, ""):
            yield Change(attribute=self.name, before=found, after=declared)

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Refusal | None:
        """Open-source Delta honours a stored WriteSerializable but rejects setting it (delta-1.2)."""
        dialect = dialect_of(target.dialect)
        if change.after not in {*dialect.settable_levels, "default"}:
            return Refusal(
                change=change.id,
                reason=f"{dialect.title} can set only the isolation level Serializable; "
                f"it honours a {change.after} that another engine stored",
                fix="declare `isolation: Serializable` or `default`; "
                "or set the level from Databricks, after which this policy holds",
            )
        return None

    def act(self, change: Change, basis: Basis) -> Action:
        """Sets or unsets one property."""
        lost = change.before not in {"Serializable", "default"}
        note = f"the new level: open-source Delta cannot set {change.before} again" if lost else ""
        undo = None if lost else put_back(KEY, basis)
        return Action(change, (Step(_operation(change.after), undo=undo, undo_note=note),))


def _operation(level: Value) -> Operation:
    return UnsetProperties((KEY,)) if level == "default" else SetProperties(((KEY, str(level)),))
