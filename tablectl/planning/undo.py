"""The inverse of a run: the values that its commits replaced, as far as the table still has what the run left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tablectl.attributes.policy import ATTRIBUTES, attribute
from tablectl.frozen import frozen
from tablectl.model.plan import Change, Value
from tablectl.model.table import Commit, LiveTable
from tablectl.planning.drift import declarable
from tablectl.planning.import_table import values_of_table
from tablectl.policies.adopt import AdoptableValue
from tablectl.policies.spec import TableSpec


@frozen(kw_only=True)
class ValueUndo:
    """A value that a run changed. ``change`` leads from what the run found (``before``) to what it left (``after``)."""

    change: Change
    found: Value
    """The table's value now."""

    @property
    def undone(self) -> bool:
        """Whether the table already has the value from before the run."""
        return _agrees(self.change, self.found, self.change.before)

    @property
    def conflicts(self) -> bool:
        """Whether the value was changed after the run, so that an undo would discard another writer's change."""
        return not self.undone and not _agrees(self.change, self.found, self.change.after)


@frozen(kw_only=True)
class TableUndo:
    """What a run changed on one table, and what an undo makes of it."""

    spec: TableSpec
    commits: tuple[Commit, ...]
    """The run's commits, the oldest first."""
    values: tuple[ValueUndo, ...]
    stays: tuple[str, ...] = ()
    """What the run brought and no undo removes: protocol features."""
    trouble: str = ""
    """Why the values from before the run are unknown; empty if they are known."""

    @property
    def refusals(self) -> tuple[ValueUndo, ...]:
        """The values that were changed after the run. With one of them, no value of the table is undone."""
        return tuple(value for value in self.values if value.conflicts)

    @property
    def adoptable_values(self) -> tuple[AdoptableValue, ...]:
        """The values that the policy of the table must declare; none if a value was changed after the run."""
        if self.refusals or self.trouble:
            return ()
        return tuple(_adoptable_value(self.spec, value.change) for value in self.values)


def changes_between(before: LiveTable, after: LiveTable, dialect: str) -> tuple[Change, ...]:
    """The declarable values that differ between two versions of a table, in the order of attributes.

    Properties that Delta writes itself, and defaults, are not among them (see ``values_of_table``).
    """
    named = {(name, key) for table in (before, after) for name, key in _declared(table, dialect)}
    order = {entry.name: number for number, entry in enumerate(ATTRIBUTES)}
    changes = (
        Change(
            attribute=name, key=key, before=attribute(name).read(before, key), after=attribute(name).read(after, key)
        )
        for name, key in sorted(named, key=lambda each: (order[each[0]], each[1]))
    )
    return tuple(change for change in changes if not _agrees(change, change.before, change.after))


def combined(steps: Iterable[Sequence[Change]]) -> tuple[Change, ...]:
    """The changes of several commits, the oldest first, as one change of each value. A value that returns to where it
    began is none.
    """
    found: dict[str, Change] = {}
    for changes in steps:
        for change in changes:
            first = found.get(change.id, change)
            found[change.id] = replace(change, before=first.before)
    return tuple(change for change in found.values() if not _agrees(change, change.before, change.after))


def table_undo(
    spec: TableSpec, commits: Sequence[Commit], changes: Sequence[Change], before: LiveTable, now: LiveTable
) -> TableUndo:
    """The undo of a run on one table. ``before`` is the table before the run's first commit, ``now`` as it is."""
    values = (ValueUndo(change=change, found=attribute(change.attribute).read(now, change.key)) for change in changes)
    return TableUndo(
        spec=spec,
        commits=tuple(sorted(commits, key=lambda commit: commit.version)),
        values=tuple(values),
        stays=tuple(sorted(now.protocol.features - before.protocol.features)),
    )


def _declared(table: LiveTable, dialect: str) -> Iterator[tuple[str, str]]:
    yield from (found[:2] for found in values_of_table(table, dialect) if not isinstance(found, str))
    # No policy can declare a state between the commits of one statement, but the value before it is lost without it.
    for entry in ATTRIBUTES:
        yield from ((entry.name, found[0]) for found in entry.imported(table) if not isinstance(found, str))


def _agrees(change: Change, one: Value, other: Value) -> bool:
    """Whether two values mean the same. A policy declares no text that some client ignores, so an undo through policies
    leaves the text.
    """
    entry = attribute(change.attribute)
    one, other = (entry.value_type.written(change.key, each) for each in (one, other))
    return entry.agrees(one, other, change.key) and entry.agrees(other, one, change.key)


def _adoptable_value(spec: TableSpec, change: Change) -> AdoptableValue:
    source = spec.sources.get(change.id, spec.declared)
    value = declarable(change.attribute, change.key, change.before)
    return AdoptableValue(spec.name, change.attribute, change.key, value, source)
