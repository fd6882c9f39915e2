"""How tables differ from their policies, and the commit that caused each difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tablectl.frozen import frozen
from tablectl.log.blame import MOST_COMMITS, BlameQuery, Origin, blame
from tablectl.log.reader import Reading
from tablectl.model.errors import TablectlError, one_line
from tablectl.model.plan import Change
from tablectl.model.stamp import read_stamp
from tablectl.model.table import Commit, Depth, LiveTable
from tablectl.one_table import of_table
from tablectl.planning.diff import diff
from tablectl.planning.drift import Drift, TableDrift, questions, table_drift
from tablectl.policies.spec import Specs, TableSpec
from tablectl.project import Project
from tablectl.selection import Selection, depth_for, failure_of
from tablectl.workflow.tables import OnRead, ignore_progress, locate_tables, read_tables, sorted_failures


def find_drift(
    project: Project,
    specs: Specs,
    selection: Selection,
    look_back: int = MOST_COMMITS,
    on_read: OnRead = ignore_progress,
) -> Drift:
    """The selected tables that differ from their policies, and the commit that caused each difference.

    Only the histories of these tables are read, at most ``look_back`` commits each. Failures and errors as in
    ``make_plan``.
    """
    located = locate_tables(project, specs, selection)
    failures = list(located.failures)
    as_declared: list[str] = []
    tables: list[TableDrift] = []
    make = partial(_drifted, project, look_back)
    for spec, found in read_tables(project, located, _with_catalog, make, on_read, failures):
        if found is None:
            as_declared.append(spec.name.text)
        else:
            made = of_table(spec.name.text, partial(_table_drift, spec, found))
            if isinstance(made, TablectlError):
                failures.append(failure_of(spec.name.text, made))
            else:
                tables.append(made)
    return Drift(
        tables=tuple(sorted(tables, key=lambda table: table.spec.name.text)),
        failures=sorted_failures(failures),
        as_declared=tuple(sorted(as_declared)),
        unmatched=located.unmatched,
        look_back=look_back,
        env=project.config.environment,
    )


@frozen
class _Drifted:
    """A table that differs. What its spec says is known to the caller."""

    live: LiveTable
    changes: tuple[Change, ...]
    origins: tuple[Origin, ...]
    applied: Commit | None
    trouble: str


def _table_drift(spec: TableSpec, found: _Drifted) -> TableDrift:
    known = spec, found.live, found.changes, found.origins
    return table_drift(*known, applied=found.applied, trouble=found.trouble)


def _drifted(project: Project, look_back: int, spec: TableSpec, reading: Reading) -> _Drifted | None:
    live = reading.table
    changes = diff(spec.policy, live, project.dialect)
    if not changes and not (live.catalog and live.catalog.differences):
        return None
    result = blame(reading, BlameQuery(live, questions(changes), look_back))
    applied = next((commit for commit in result.commits if read_stamp(commit.user_metadata)), None)
    return _Drifted(live, changes, result.origins, applied, one_line(result.trouble) if result.trouble else "")


def _with_catalog(spec: TableSpec) -> Callable[[LiveTable], Depth]:
    """The depth for drift: no history, but for a catalog-managed table its log, to compare it with the catalog."""
    depth = depth_for(spec, 0)
    return lambda live: replace(depth(live), look_back=1) if live.catalog else depth(live)
