"""Earlier applies, from the stamps in the tables' logs, and the inverse of one: the values that its commits replaced,
as far as the table still has what the run left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import computed_field

from tablectl.attributes.features import dropped_features
from tablectl.attributes.policy import ATTRIBUTES, Policy, attribute
from tablectl.model.commit import Commit
from tablectl.model.plan import Change, TableFailure, Value
from tablectl.model.stamp import Stamp
from tablectl.model.table import LiveTable
from tablectl.planning.drift import declarable
from tablectl.planning.import_table import values_of_table
from tablectl.policies.declared_tables import TableSpec
from tablectl.policies.write_live_values import AdoptableValue
from tablectl.support.typed_json import Unwritten

Outcome = Literal["refused", "undo", "nothing"]
"""What an undo does to a table."""
_NO_POLICY = Policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOnTable:
    """The commits of a run on one table."""

    table: str
    commits: tuple[Commit, ...]
    """The oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """One apply, as far as its commits tell."""

    stamp: Stamp
    tables: tuple[RunOnTable, ...]
    """By name."""

    @property
    def commits(self) -> tuple[Commit, ...]:
        """The commits on all tables, the oldest first."""
        found = [commit for table in self.tables for commit in table.commits]
        return tuple(sorted(found, key=lambda commit: (commit.timestamp, commit.version)))

    @computed_field
    @property
    def began(self) -> int:
        """When the first commit was made, in milliseconds since the epoch; 0 if unknown."""
        return min((commit.timestamp for commit in self.commits if commit.timestamp), default=0)

    @computed_field
    @property
    def ended(self) -> int:
        """When the last commit was made, in milliseconds since the epoch; 0 if unknown."""
        return max((commit.timestamp for commit in self.commits), default=0)

    @computed_field
    @property
    def users(self) -> tuple[str, ...]:
        """The users of the commits; the clients of commits without a user."""
        return tuple(dict.fromkeys(commit.user or commit.client.text() for commit in self.commits))


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRuns:
    """The runs on some tables."""

    runs: tuple[PastRun, ...]
    """The newest first."""
    failures: tuple[TableFailure, ...] = ()
    """Tables whose history cannot be read."""
    unmatched: tuple[str, ...] = ()
    """Patterns that match no live table."""
    format: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueUndo:
    """A value that a run changed. ``change`` leads from what the run found (``before``) to what it left (``after``)."""

    change: Change
    found: Value
    """The table's value now."""
    outcome: Literal["undo", "already", "changed since"]
    """``already``: the table has the value from before the run. ``changed since``: the value was changed after the run,
    so that an undo would discard another writer's change.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUndo:
    """What a run changed on one table, and what an undo makes of it."""

    spec: Unwritten[TableSpec]
    commits: tuple[Commit, ...]
    """The run's commits, the oldest first."""
    values: tuple[ValueUndo, ...]
    stays: tuple[str, ...] = ()
    """What the run brought and no undo removes: protocol features."""
    outcome: Outcome
    """What an undo does to the table. If one value was changed after the run, it undoes none of them."""
    trouble: str = ""
    """Why the values from before the run are unknown; empty if they are known."""

    @computed_field
    @property
    def name(self) -> str:
        """The table."""
        return self.spec.name.text

    @property
    def adoptable_values(self) -> tuple[AdoptableValue, ...]:
        """The values that the policy of the table must declare; none if a value was changed after the run."""
        if self.outcome == "refused":
            return ()
        return tuple(_adoptable_value(self.spec, value.change) for value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUndo:
    """What a run changed, table by table, and what an undo makes of it."""

    run: PastRun
    tables: tuple[TableUndo, ...]
    """By name."""
    failures: tuple[TableFailure, ...]
    """Tables that cannot be read. The run may have changed them, too."""
    format: int = 2


def stamped(commits: Iterable[Commit]) -> dict[str, tuple[Stamp, tuple[Commit, ...]]]:
    """The commits of applies by run, each with its stamp, the oldest commit first."""
    found: dict[str, tuple[Stamp, tuple[Commit, ...]]] = {}
    for commit in sorted(commits, key=lambda each: each.version):
        if stamp := commit.stamp:
            first, earlier = found.get(stamp.run, (stamp, ()))
            found[stamp.run] = (first, (*earlier, commit))
    return found


def past_runs(commits: Mapping[str, Iterable[Commit]]) -> tuple[PastRun, ...]:
    """The runs in the commits of tables, by name. The newest run first."""
    stamps: dict[str, Stamp] = {}
    tables: dict[str, list[RunOnTable]] = {}
    for name in sorted(commits):
        for run, (stamp, made) in stamped(commits[name]).items():
            stamps.setdefault(run, stamp)
            tables.setdefault(run, []).append(RunOnTable(table=name, commits=made))
    found = (PastRun(stamp=stamps[run], tables=tuple(each)) for run, each in tables.items())
    return tuple(sorted(found, key=lambda each: (each.ended, each.stamp.run), reverse=True))


def changes_between(
    before: LiveTable, after: LiveTable, dialect: str, policy: Policy = _NO_POLICY
) -> tuple[Change, ...]:
    """The declarable values that differ between two versions of a table with this policy, in the order of attributes.

    Properties that Delta writes itself, and defaults, are not among them (see ``values_of_table``).
    """
    named = {(name, key) for table in (before, after) for name, key in _declared(table, dialect)}
    for entry in ATTRIBUTES:
        named |= {(entry.name, key) for key in entry.restored(before, after, getattr(policy, entry.name))}
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
    values = tuple(_value(change, attribute(change.attribute).read(now, change.key)) for change in changes)
    changed_since = any(value.outcome == "changed since" for value in values)
    going = {feature for change in changes for feature in _drops(change)}
    return TableUndo(
        spec=spec,
        commits=tuple(sorted(commits, key=lambda commit: commit.version)),
        values=values,
        outcome="refused" if changed_since else "undo" if values else "nothing",
        stays=tuple(sorted(now.protocol.features - before.protocol.features - going)),
    )


def _drops(change: Change) -> Iterator[str]:
    """The feature that the undo of a change drops."""
    if declarable(change.attribute, change.key, change.before) == "dropped":
        yield from dropped_features({change.attribute: {change.key: "dropped"} if change.key else "dropped"})


def _value(change: Change, found: Value) -> ValueUndo:
    if _agrees(change, found, change.before):
        return ValueUndo(change=change, found=found, outcome="already")
    same = _agrees(change, found, change.after)
    return ValueUndo(change=change, found=found, outcome="undo" if same else "changed since")


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
