"""The state of a live table relative to a change. One rule serves fresh runs, resumed runs and verification
(docs/plan-file.md).
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from tablectl.attributes.policy import attribute
from tablectl.delta.names import parse_column
from tablectl.model.plan import Change, Value
from tablectl.model.table import LiveTable
from tablectl.model.text import value_text


class ChangeState(Enum):
    """The state of a live table relative to one change."""

    PENDING = "pending"
    """The value is the old one, or one that the change's own statements leave: run the missing statements."""
    DONE = "done"
    """The value is the new one: no commit is needed."""
    STALE = "stale"
    """The value is neither: another writer changed it."""


def change_state(change: Change, live: LiveTable) -> ChangeState:
    """The state of one change. Only what the change names is read, so new data does not matter."""
    entry = attribute(change.attribute)
    found = entry.read(live, change.key)
    if entry.agrees(found, change.after, change.key):
        return ChangeState.DONE
    if found == change.before or found in change.via or entry.agrees(found, change.before, change.key):
        return ChangeState.PENDING if _columns_hold(change, live) else ChangeState.STALE
    return ChangeState.STALE


def current(change: Change, live: LiveTable) -> Change:
    """The same change with the live value as its ``before``. The missing statements are derived from it."""
    return replace(change, before=found_value(change, live))


def why_stale(change: Change, live: LiveTable) -> str:
    """The unexpected value that makes a change stale, for people."""
    for fact in change.columns:
        found = live.schema.find(parse_column(fact.column))
        if found is None:
            return f"column {fact.column} is gone"
        if found[1].type != fact.type:
            return f"column {fact.column} was {fact.type} and is {found[1].type}"
    return f"{change.id} was {value_text(change.before)} and is {value_text(found_value(change, live))}"


def found_value(change: Change, live: LiveTable) -> Value:
    """The live value of a change's attribute."""
    return attribute(change.attribute).read(live, change.key)


def _columns_hold(change: Change, live: LiveTable) -> bool:
    for fact in change.columns:
        found = live.schema.find(parse_column(fact.column))
        if found is None or found[1].type != fact.type:
            return False
    return True
