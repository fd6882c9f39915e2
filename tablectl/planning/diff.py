"""The differences between a policy and a live table, and the state of a live table relative to a change. One rule for
that state serves fresh runs, resumed runs and verification (docs/plan-file.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum

from tablectl.attributes.policy import ATTRIBUTES, Policy, attribute, changed_values, needs_of
from tablectl.delta.dialects import DEFAULT_DIALECT
from tablectl.delta.names import parse_column
from tablectl.model.plan import Change, Value
from tablectl.model.safe_text import value_text
from tablectl.model.table import Depth, LiveTable
from tablectl.policies.declared_tables import TableSpec
from tablectl.support.differences import Path, differences


def diff(policy: Policy, live: LiveTable, dialect: str = DEFAULT_DIALECT) -> tuple[Change, ...]:
    """The changes that a policy requires in a dialect, in the order of the attributes. Attributes that it does not name
    are not read. What the product does by itself, and what has to wait for another apply, is left out.
    """
    changes: list[Change] = []
    for name, declared in policy.declared.items():  # in the order of the attributes
        entry = attribute(name)
        if live.unknown and not entry.in_clear:
            continue
        changes.extend(entry.diff(entry.normalized(declared, live, dialect), live))
    return tuple(change for change in changes if not _left_out(change, policy, live))


def depth_for(spec: TableSpec, look_back: int) -> Callable[[LiveTable], Depth]:
    """How deep to read a table, depending on its policy: the history of tables that change, and vectors and files if
    their number matters.
    """
    policy, options = spec.policy, spec.options

    def depth(live: LiveTable) -> Depth:
        declared = needs_of(policy.values(), options, live)
        if declared.entry and live.entry is None:
            return Depth(entry=True, partly=True)
        changes = diff(policy, live)
        changed = needs_of(changed_values(changes), options)
        counts = declared.vectors and live.vectors is None
        sized = changed.size and None in {live.files, live.bytes}
        truncation = declared.truncation & live.protocol.features
        marks = options.optimize if declared.clustering else None
        deeper = counts or bool(truncation) or marks is not None or bool(changes)
        looked = look_back if look_back and deeper else 0
        rows = changed.row_counts and not live.protocol.has("rowTracking")  # with it, files have ids
        return Depth(looked, counts or sized, row_counts=rows, truncation=truncation, marks=marks, partly=True)

    return depth


def _left_out(change: Change, policy: Policy, live: LiveTable) -> bool:
    kinds = {(change.id, None), (change.id, change.after)}
    deciding = (entry for entry in ATTRIBUTES if not kinds.isdisjoint(entry.may_leave_out))
    return any(entry.leaves_out(getattr(policy, entry.name), live) for entry in deciding)


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


def unlike(changes: Sequence[Change], live: LiveTable) -> list[tuple[Change, Value]]:
    """The changes whose new value a table does not have, each with the value that it has instead."""
    by_id = {change.id: change for change in changes}

    def same(path: Path, found: Value, declared: Value) -> bool:
        change = by_id[str(path[0])]
        return attribute(change.attribute).agrees(found, declared, change.key)

    found = {name: found_value(change, live) for name, change in by_id.items()}
    expected = {name: change.after for name, change in by_id.items()}
    return [(by_id[str(each.path[0])], each.before) for each in differences(found, expected, same)]


def found_value(change: Change, live: LiveTable) -> Value:
    """The live value of a change's attribute."""
    return attribute(change.attribute).read(live, change.key)


def _columns_hold(change: Change, live: LiveTable) -> bool:
    for fact in change.columns:
        found = live.schema.find(parse_column(fact.column))
        if found is None or found[1].type != fact.type:
            return False
    return True
