"""Fresh, resume and verify are one rule: where a live table stands towards a change (docs/plan-file.md)."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from tablectl.attributes.policy import attribute
from tablectl.delta.names import parse_column
from tablectl.model.plan import Change, Value
from tablectl.model.table import LiveTable
from tablectl.model.text import value_text


class ChangeState(Enum):
    """Where a live table stands towards one change."""

    PENDING = "pending"
    """It reads as before, or as one of the change's own statements leaves it: run what is missing."""
    DONE = "done"
    """It reads as after: no commit."""
    STALE = "stale"
    """It reads as neither: somebody else changed it."""


def change_state(change: Change, live: LiveTable) -> ChangeState:
    """The standing of one change. New data never matters: only what the change itself names is read."""
    entry = attribute(change.attribute)
    found = entry.read(live, change.key)
    if entry.agrees(found, change.after, change.key):
        return ChangeState.DONE
    if found == change.before or found in change.via or entry.agrees(found, change.before, change.key):
        return ChangeState.PENDING if _columns_hold(change, live) else ChangeState.STALE
    return ChangeState.STALE


def current(change: Change, live: LiveTable) -> Change:
    """The same change with the live value as its ``before``: what is still missing follows from it."""
    return replace(change, before=found_value(change, live))


def why_stale(change: Change, live: LiveTable) -> str:
    """For people: what the change found instead of what it was planned for."""
    for fact in change.columns:
        found = live.schema.find(parse_column(fact.column))
        if found is None:
            return f"column {fact.column} is gone"
        if found[1].type != fact.type:
            return f"column {fact.column} was {fact.type} and is {found[1].type}"
    return f"{change.id} was {value_text(change.before)} and is {value_text(found_value(change, live))}"


def found_value(change: Change, live: LiveTable) -> Value:
    """What a change's attribute reads now."""
    return attribute(change.attribute).read(live, change.key)


def _columns_hold(change: Change, live: LiveTable) -> bool:
    for fact in change.columns:
        found = live.schema.find(parse_column(fact.column))
        if found is None or found[1].type != fact.type:
            return False
    return True
