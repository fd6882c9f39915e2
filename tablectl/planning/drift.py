"""Drift: what differs between policies and live tables, and which commit brought each difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tablectl.attributes.deletion_vectors import FEATURE, DeletionVectors
from tablectl.attributes.features import PROTECTION
from tablectl.attributes.policy import CLUSTERED_DATA, attribute
from tablectl.log.blame import BlameQuestion, Origin
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Change, TableFailure, Value
from tablectl.model.table import Commit, LiveTable
from tablectl.policies.adopt import AdoptableValue
from tablectl.policies.spec import TableSpec
from tablectl.policies.yaml_nodes import SourceFile

_ADDED = "numDeletionVectorsAdded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One attribute or property that is not as declared."""

    change: Change
    """``before`` is what the table has, ``after`` what its policy declares."""
    source: SourceFile
    """The place that declares it."""
    origin: Origin
    """Since when the table has what it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDrift:
    """A table that is not as declared."""

    spec: TableSpec
    live: LiveTable
    differences: tuple[Difference, ...]
    applied: Commit | None = None
    """The newest commit that an apply of tablectl made, among those that were looked through."""
    trouble: str = ""
    """Why the table's history could not be read, if it could not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Which tables are not as declared, and since when."""

    tables: tuple[TableDrift, ...] = ()
    """Those that differ, by name."""
    failures: tuple[TableFailure, ...] = ()
    """Those that cannot be read."""
    as_declared: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    """Patterns that match no live table."""
    look_back: int = 0
    """How many commits of a table were looked through at most."""
    env: str = ""
    """The environment of `tablectl.yaml` that was looked at; empty where none was named."""

    @property
    def exit_code(self) -> ExitCode:
        """1 with tables that cannot be read, 2 where something differs, else 0."""
        codes = [ExitCode.ERROR] if self.failures or any(table.trouble for table in self.tables) else []
        return ExitCode.worst(*codes, *([ExitCode.CHANGES] if self.tables else []))


def questions(changes: Sequence[Change]) -> tuple[BlameQuestion, ...]:
    """Since when a table differs, change by change."""
    return tuple(map(_question, changes))


def _question(change: Change) -> BlameQuestion:
    # Data is outdated since the columns are what they are.
    entry, key = attribute(change.attribute), "" if change.id == CLUSTERED_DATA else change.key

    def same(one: Value, other: Value) -> bool:
        return entry.agrees(one, other, key) and entry.agrees(other, one, key)

    if change.attribute != DeletionVectors.name:
        return BlameQuestion(lambda live: entry.read(live, key), same)
    if change.after == "dropped" and change.before != "enabled":
        return BlameQuestion(_feature, same)
    if change.before == "enabled" or change.after == "enabled":
        return BlameQuestion(_switch, same)
    # Off, but not purged: the last commit that wrote a vector is to blame.
    return BlameQuestion(_switch, same, lambda commit: commit.metrics.get(_ADDED, "0") not in {"", "0"})


def _feature(live: LiveTable) -> Value:
    """Which feature there is to drop: the one itself, or what an earlier drop left in its stead."""
    return next((each for each in (FEATURE, PROTECTION) if live.protocol.has(each)), "")


def _switch(live: LiveTable) -> Value:
    """Whether new vectors are written; how many old ones are left was not recorded with every version."""
    return "enabled" if DeletionVectors().read(live, "") == "enabled" else "disabled"


def table_drift(
    spec: TableSpec,
    live: LiveTable,
    changes: Sequence[Change],
    origins: Sequence[Origin],
    *,
    applied: Commit | None = None,
    trouble: str = "",
) -> TableDrift:
    """The record of one table: each change with the place that declares it and the commit that brought it."""
    pairs = zip(changes, origins, strict=True)
    differences = (
        Difference(change=change, source=spec.sources.get(change.id, spec.declared), origin=origin)
        for change, origin in pairs
    )
    return TableDrift(spec=spec, live=live, differences=tuple(differences), applied=applied, trouble=trouble)


def wishes(drift: Drift) -> tuple[AdoptableValue, ...]:
    """What the policies would have to say for nothing to differ."""
    return tuple(
        AdoptableValue(table.spec.name, each.change.attribute, each.change.key, _declarable(each.change), each.source)
        for table in drift.tables
        for each in table.differences
        if each.change.id != CLUSTERED_DATA
    )


def _declarable(change: Change) -> Value:
    """What is live, in a word of the attribute that it satisfies where it has none of its own."""
    entry, found = attribute(change.attribute), change.before
    if change.key or entry.shape.admits(found):
        return found
    return next((word for word in entry.shape.words if entry.agrees(found, word, "")), found)
