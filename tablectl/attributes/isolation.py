"""``isolation``: the level that decides which concurrent writes conflict, stored as ``delta.isolationLevel``.

If the property is not set, open-source Delta uses Serializable and Databricks uses WriteSerializable (delta-1.2, D6). A
declared level is therefore always written to the table and never assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from tablectl.attributes.base import ChangeTarget, PlannedOperation, WordAttribute, put_back, set_or_unset
from tablectl.attributes.value_types import Declared, ValueType
from tablectl.delta import keys
from tablectl.delta.dialects import dialect_of
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.table import LiveTable

IsolationValue = Literal["Serializable", "WriteSerializable", "default"]


class Isolation(WordAttribute):
    """The attribute ``isolation``."""

    name = "isolation"
    value_type = ValueType(
        name=name,
        description="Isolation level of writes, pinned as delta.isolationLevel; `default` leaves it unset.",
        words=get_args(IsolationValue),
    )
    keys = (keys.ISOLATION_LEVEL,)

    def read(self, live: LiveTable, key: str) -> Value:
        """The stored level in its usual spelling; ``default`` if none is stored. Delta accepts a level in any letter
        case and stores it as typed.
        """
        stored = live.property(keys.ISOLATION_LEVEL)
        if stored is None:
            return "default"
        return next(
            (level for level in ("Serializable", "WriteSerializable") if level.lower() == stored.lower()), stored
        )

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        """Open-source Delta honours a stored WriteSerializable but rejects setting it (delta-1.2)."""
        dialect = dialect_of(target.dialect)
        if change.after not in {*dialect.settable_levels, "default"}:
            return Reason(
                reason=f"{dialect.title} can set only the isolation level Serializable; "
                f"it honours a {change.after} that another engine stored",
                fix="declare `isolation: Serializable` or `default`; "
                "or set the level from Databricks, after which this policy holds",
            )
        return None

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        operation = set_or_unset(keys.ISOLATION_LEVEL, None if change.after == "default" else change.after)
        return (PlannedOperation(change.id, operation, undo=put_back(keys.ISOLATION_LEVEL, basis)),)

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        return {keys.ISOLATION_LEVEL: None if declared == "default" else str(declared)}
