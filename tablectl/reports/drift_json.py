"""Drift as JSON: what differs, where it is declared, and which commit caused it, as separate records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tablectl.frozen import frozen
from tablectl.json_text import OMITTED, json_form, write_json
from tablectl.model.plan import TableFailure, Value
from tablectl.model.stamp import read_stamp
from tablectl.model.table import Commit
from tablectl.planning.drift import Difference, Drift, TableDrift
from tablectl.policies.adopt import AdoptableValue, Adoption


@frozen(kw_only=True)
class CommitFact:
    """A commit, as far as its log describes it."""

    version: int
    timestamp: int
    """Milliseconds since the epoch; 0 if unknown."""
    operation: str
    parameters: Mapping[str, str]
    """The parameters of the operation; a truncated value ends with an ellipsis."""
    user: str
    engine: str
    """The client as it names itself."""
    client: str
    """The client and its version, as far as recognized."""
    job: Mapping[str, str]
    """The job, notebook and cluster of the commit, as recorded by Databricks."""
    run: str | None
    """The tablectl run that made it; null for other commits."""
    plan: str | None
    """The digest of that run's plan."""


@frozen(kw_only=True)
class PlaceFact:
    """A place in a policy file. Line and column start at 1."""

    file: str
    line: int
    column: int


@frozen(kw_only=True)
class DifferenceFact:
    """An attribute or a property that is not as declared."""

    attribute: str
    key: str
    """The property key for the attribute `properties`; else empty."""
    declared: Value
    found: Value
    policy: PlaceFact
    """The place that declares it."""
    since: CommitFact | None
    """The commit that caused it; null if none of the searched commits did."""
    before: int | None
    """If no such commit was found: the difference is older than this version."""
    was: Value
    """Its value before that commit, if `was_known`."""
    was_known: bool


@frozen(kw_only=True)
class CatalogFact:
    """One fact that a catalog and the log of its table tell differently. Null: not set."""

    what: str
    """`property KEY`, `schema`, `protocol`, `clustering` or `partition columns`."""
    catalog: str | None
    log: str | None


@frozen(kw_only=True)
class TableFact:
    """A table that is not as declared."""

    name: str
    location: str
    version: int
    """The version that was read."""
    tags: tuple[str, ...]
    differences: tuple[DifferenceFact, ...]
    applied: CommitFact | None
    """The newest commit of a tablectl apply among the searched commits."""
    trouble: str
    """Why its history could not be read; empty if it was read."""
    catalog: tuple[CatalogFact, ...] = ()
    """Where its catalog disagrees with its log."""
    owner: str = field(default="", metadata=OMITTED)
    """Who is responsible for the table, by its policy; empty if no policy says."""


@frozen(kw_only=True)
class WishFact:
    """A value of a table, for its policy."""

    table: str
    attribute: str
    key: str
    value: Value


@frozen(kw_only=True)
class LeftFact:
    """A value that was not adopted."""

    table: str
    attribute: str
    key: str
    value: Value
    reason: str


@frozen(kw_only=True)
class AdoptionFact:
    """The result of `--adopt`."""

    written: bool
    """Whether the files were written; else it is a preview."""
    files: tuple[str, ...]
    adopted: tuple[WishFact, ...]
    left: tuple[LeftFact, ...]


@frozen(kw_only=True)
class DriftReport:
    """What differs between policies and live tables, and since when."""

    env: str
    """The environment of `tablectl.yaml`; empty if none was named."""
    tables: tuple[TableFact, ...]
    """The tables that differ, by name."""
    failures: tuple[TableFailure, ...]
    """The tables that cannot be read."""
    as_declared: tuple[str, ...]
    unmatched: tuple[str, ...]
    """Patterns that match no live table."""
    look_back: int
    """The maximum number of commits searched per table."""
    exit_code: int
    """The exit code of `drift` without `--adopt`: 1 if a table cannot be read, 2 if something differs, else 0."""
    adoption: AdoptionFact | None = None
    """Null without `--adopt`."""


def drift_json(drift: Drift, adoption: AdoptionFact | None = None) -> str:
    """The report as JSON."""
    report = DriftReport(
        env=drift.env,
        tables=tuple(map(_table, drift.tables)),
        failures=drift.failures,
        as_declared=drift.as_declared,
        unmatched=drift.unmatched,
        look_back=drift.look_back,
        exit_code=int(drift.exit_code),
        adoption=adoption,
    )
    return write_json(report, indent=2) + "\n"


def adoption_fact(adoption: Adoption, *, written: bool) -> AdoptionFact:
    """Which of the tables' values were adopted, and which were not."""
    return AdoptionFact(
        written=written,
        files=tuple(sorted(adoption.texts)),
        adopted=tuple(map(_adoptable_value, adoption.adopted)),
        left=tuple(LeftFact(**json_form(_adoptable_value(wish)), reason=why) for wish, why in adoption.left),
    )


def _adoptable_value(wish: AdoptableValue) -> WishFact:
    return WishFact(table=wish.table.text, attribute=wish.attribute, key=wish.key, value=wish.value)


def _table(table: TableDrift) -> TableFact:
    return TableFact(
        name=table.spec.name.text,
        location=table.live.location,
        version=table.live.version,
        tags=tuple(table.spec.tags),
        differences=tuple(map(_difference, table.differences)),
        applied=_commit(table.applied),
        trouble=table.trouble,
        catalog=tuple(CatalogFact(what=each.what, catalog=each.catalog, log=each.log) for each in table.catalog),
        owner=table.spec.owner,
    )


def _difference(difference: Difference) -> DifferenceFact:
    change, origin, source = difference.change, difference.origin, difference.source
    return DifferenceFact(
        attribute=change.attribute,
        key=change.key,
        declared=change.after,
        found=change.before,
        policy=PlaceFact(file=source.file, line=source.line, column=source.column),
        since=_commit(origin.commit),
        before=None if origin.commit else origin.before,
        was=origin.was,
        was_known=origin.known,
    )


def _commit(commit: Commit | None) -> CommitFact | None:
    if commit is None:
        return None
    stamp = read_stamp(commit.user_metadata)
    return CommitFact(
        version=commit.version,
        timestamp=commit.timestamp,
        operation=commit.operation,
        parameters=dict(commit.parameters),
        user=commit.user,
        engine=commit.engine,
        client=commit.client.text(),
        job=dict(commit.job),
        run=stamp.run if stamp else None,
        plan=stamp.plan if stamp else None,
    )
