"""Finds earlier runs in the logs of tables, and what one of them changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tablectl.log.parallel import in_order, threads_for
from tablectl.log.reader import read_commits, read_table
from tablectl.model.errors import BrokenTableError, TablectlError, one_line
from tablectl.model.plan import TableFailure
from tablectl.model.table import Commit, Depth
from tablectl.one_table import of_table
from tablectl.planning.undo import (
    PastRuns,
    RunUndo,
    TableUndo,
    changes_between,
    combined,
    past_runs,
    stamped,
    table_undo,
)
from tablectl.policies.spec import Specs, TableSpec
from tablectl.project import Project
from tablectl.selection import LocatedTable, Selection, failure_of, locate

MOST_COMMITS = 1000
"""The default maximum number of commits of a table to search."""
_STATE = Depth(0)


def find_runs(
    project: Project,
    specs: Specs,
    selection: Selection,
    look_back: int = MOST_COMMITS,
    within: timedelta | None = None,
) -> PastRuns:
    """The runs in the logs of the selected tables: at most ``look_back`` commits of each table, and none that is older
    than its newest by more than ``within``. A table that cannot be read is a failure, and the others are read.
    """
    located = locate(specs, selection, project.open_catalog, project.stores)
    found, failures = _histories(project, located, look_back, within)
    return PastRuns(
        runs=past_runs({spec.name.text: commits for spec, _, commits in found}),
        failures=failures,
        unmatched=located.unmatched,
    )


def find_undo(
    project: Project, specs: Specs, selection: Selection, run: str, look_back: int = MOST_COMMITS
) -> RunUndo | None:
    """What a run changed on the selected tables; ``None`` if no commit among the newest ``look_back`` of any table is
    the run's. ``run`` may be the beginning of a run's id.

    Raises ``LookupError`` with the ids if several runs begin with it.
    """
    located = locate(specs, selection, project.open_catalog, project.stores)
    found, failures = _histories(project, located, look_back, None)
    runs = past_runs({spec.name.text: commits for spec, _, commits in found})
    meant = [each for each in runs if each.stamp.run.startswith(run)] if run else []
    exact = [each for each in meant if each.stamp.run == run]
    if not meant:
        return None
    if len(exact or meant) > 1:
        raise LookupError(", ".join(each.stamp.run for each in meant))
    (chosen,) = exact or meant
    touched = [
        (spec, location, stamped(commits)[chosen.stamp.run][1])
        for spec, location, commits in found
        if chosen.stamp.run in stamped(commits)
    ]
    threads = threads_for((location for _, location, _ in touched), project.stores)

    def undo(each: tuple[TableSpec, str, Sequence[Commit]]) -> TableUndo | TableFailure:
        spec, location, commits = each
        made = of_table(spec.name.text, lambda: _undo(project, spec, location, commits))
        if isinstance(made, BrokenTableError):
            return failure_of(spec.name.text, made)
        if isinstance(made, TablectlError):
            return TableUndo(spec=spec, commits=tuple(commits), values=(), trouble=one_line(made))
        return made

    made = list(in_order(undo, touched, threads))
    tables = sorted((each for each in made if isinstance(each, TableUndo)), key=lambda each: each.spec.name.text)
    broken = tuple(each for each in made if isinstance(each, TableFailure))
    return RunUndo(run=chosen, tables=tuple(tables), failures=(*failures, *broken))


def _histories(
    project: Project, located: LocatedTable, look_back: int, within: timedelta | None
) -> tuple[list[tuple[TableSpec, str, tuple[Commit, ...]]], tuple[TableFailure, ...]]:
    """The newest commits of each table, and the tables that cannot be read."""

    def one(each: tuple[TableSpec, str]) -> tuple[TableSpec, str, tuple[Commit, ...]] | TableFailure:
        spec, location = each
        commits = of_table(
            spec.name.text,
            lambda: read_commits(location, limit=look_back, within=within, options=project.stores),
        )
        if isinstance(commits, TablectlError):
            return failure_of(spec.name.text, commits)
        return spec, location, commits

    results = list(in_order(one, located.tables, threads_for((place for _, place in located.tables), project.stores)))
    failures = [*located.failures, *(each for each in results if isinstance(each, TableFailure))]
    found = [each for each in results if not isinstance(each, TableFailure)]
    return found, tuple(sorted(failures, key=lambda failure: (failure.name, failure.message)))


def _undo(project: Project, spec: TableSpec, location: str, commits: Sequence[Commit]) -> TableUndo:
    """The undo of a run's commits on one table, from the states before and after each of them."""
    changed = [commit for commit in commits if commit.changes_metadata or commit.overwrites]
    now = read_table(spec.name, location, _STATE, options=project.stores)
    if not changed:
        return table_undo(spec, commits, (), now, now)
    states = {
        version: read_table(spec.name, location, _STATE, version=version, options=project.stores)
        for commit in changed
        for version in (commit.version - 1, commit.version)
        if version >= 0
    }
    steps = [
        changes_between(states[commit.version - 1], states[commit.version], project.dialect)
        for commit in changed
        if commit.version > 0
    ]
    return table_undo(spec, commits, combined(steps), states[changed[0].version - 1], now)
