"""Drift: the differences between policies and live tables, and the commit that caused each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import computed_field

from tablectl.attributes.clustering import CLUSTERED_DATA
from tablectl.attributes.deletion_vectors import FEATURE, DeletionVectors
from tablectl.attributes.policy import attribute
from tablectl.delta.protocol import PROTECTION
from tablectl.log.blame import BlameQuestion, Origin
from tablectl.model.altering_job import AlteringJob
from tablectl.model.commit import Commit
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Change, TableFailure, Value
from tablectl.model.report_methods import ReportMethods
from tablectl.model.table import CatalogDifference, LiveTable
from tablectl.policies.declared_tables import TableSpec
from tablectl.policies.write_live_values import AdoptableValue, Adoption
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.support.typed_json import Omitted, Unwritten

_ADDED = "numDeletionVectorsAdded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One attribute or property that differs from its declaration."""

    change: Change
    """``before`` is the table's value, ``after`` the policy's."""
    source: SourceFile
    """The position of the declaration."""
    origin: Origin
    """The commit that caused the difference, if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlippedTable:
    """A table that was created since the last apply, and not as a policy declares."""

    table: str
    created_at: int | None
    """Its first commit, in milliseconds since the epoch."""
    created_by: str
    command: str
    """What adopts or changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDrift:
    """A table that differs from its policy, or its catalog from its log."""

    spec: Unwritten[TableSpec]
    live: Unwritten[LiveTable]
    differences: tuple[Difference, ...]
    applied: Commit | None = None
    """The newest commit that a tablectl apply made, among the commits that were searched."""
    catalog: tuple[CatalogDifference, ...] = ()
    """Where the table's catalog disagrees with its log."""
    rivals: Omitted[tuple[AlteringJob, ...]] = ()
    """Who alters the table, and which writers that is expected to fail."""
    trouble: str = ""
    """Why the table's history could not be read; empty if it could."""

    @computed_field
    @property
    def name(self) -> str:
        """Its name for people."""
        return self.spec.name.text

    @computed_field
    @property
    def location(self) -> str:
        """Where it lies."""
        return self.live.location

    @computed_field
    @property
    def version(self) -> int:
        """The version that was read."""
        return self.live.version

    @computed_field
    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags, by its policy."""
        return tuple(self.spec.tags)

    @computed_field
    @property
    def owner(self) -> str:
        """Who is responsible for it, by its policy; empty if no policy says."""
        return self.spec.owner


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Drift(ReportMethods):
    """The tables that differ from their policies, and since when."""

    tables: tuple[TableDrift, ...] = ()
    """Tables with differences, by name."""
    failures: tuple[TableFailure, ...] = ()
    """Tables that cannot be read."""
    as_declared: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    """Patterns that match no live table."""
    look_back: int = 0
    """The maximum number of commits that were searched per table."""
    env: str = ""
    """The selected environment of `tablectl.yaml`; empty if none was selected."""
    slipped: Omitted[tuple[SlippedTable, ...]] = ()
    """With `--all` or `--fail-on unmanaged`: tables that were created since the last apply, and not as declared."""
    fails_on_slipped: Unwritten[bool] = False
    adoption: Adoption | None = None
    """The result of `--adopt`; null without it."""
    format: int = 2

    @computed_field
    @property
    def exit_code(self) -> ExitCode:
        """Without `--adopt`: 1 if a table or a history cannot be read, else 2 if a table differs, else 0."""
        codes = [ExitCode.ERROR] if self.failures or any(table.trouble for table in self.tables) else []
        differs = self.tables or (self.fails_on_slipped and self.slipped)
        return ExitCode.worst(*codes, *([ExitCode.CHANGES] if differs else []))


def questions(changes: Sequence[Change]) -> tuple[BlameQuestion, ...]:
    """One blame question per change: since when the table differs."""
    return tuple(map(_question, changes))


def _question(change: Change) -> BlameQuestion:
    # Data is outdated since the commit that set the columns.
    entry, key = attribute(change.attribute), "" if change.id == CLUSTERED_DATA else change.key

    def same(one: Value, other: Value) -> bool:
        return entry.agrees(one, other, key) and entry.agrees(other, one, key)

    if change.attribute != DeletionVectors.name:
        return BlameQuestion(lambda live: entry.read(live, key), same)
    if change.after == "dropped" and change.before != "enabled":
        return BlameQuestion(_feature, same)
    if change.before == "enabled" or change.after == "enabled":
        return BlameQuestion(_switch, same)
    # Disabled, but not purged: the last commit that wrote a vector is to blame.
    return BlameQuestion(_switch, same, lambda commit: commit.metrics.get(_ADDED, "0") not in {"", "0"})


def _feature(live: LiveTable) -> Value:
    """The feature to drop: deletion vectors, or the protection that an earlier drop left behind; empty if neither
    exists.
    """
    return next((each for each in (FEATURE, PROTECTION) if live.protocol.has(each)), "")


def _switch(live: LiveTable) -> Value:
    """Whether new vectors are written. The number of old ones is not recorded with every version."""
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
    """The drift of one table: each change with the position of its declaration and the commit that caused it."""
    pairs = zip(changes, origins, strict=True)
    differences = (
        Difference(change=change, source=spec.sources.get(change.id, spec.declared), origin=origin)
        for change, origin in pairs
    )
    found = live.catalog.differences if live.catalog else ()
    return TableDrift(
        spec=spec, live=live, differences=tuple(differences), applied=applied, catalog=found, trouble=trouble
    )


def adoptable_values(drift: Drift) -> tuple[AdoptableValue, ...]:
    """The values that the policies would have to declare for no table to differ."""
    return tuple(
        AdoptableValue(
            table.spec.name,
            each.change.attribute,
            each.change.key,
            declarable(each.change.attribute, each.change.key, each.change.before),
            each.source,
        )
        for table in drift.tables
        for each in table.differences
        if each.change.id != CLUSTERED_DATA
    )


def declarable(name: str, key: str, found: Value) -> Value:
    """A live value, in the text that every client reads. If no policy can declare it, a declarable word that it
    satisfies.
    """
    entry = attribute(name)
    named = entry.value_type.named
    if named and found is not None and not entry.value_type.admits({key: found}):
        return next((word for word in named.words if entry.agrees(found, word, key)), found)
    if key or entry.value_type.admits(found):
        return entry.value_type.written(key, found)
    return next((word for word in entry.value_type.words if entry.agrees(found, word, "")), found)
