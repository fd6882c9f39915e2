"""How tables differ from their policies, and the commit that caused each difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tablectl.log.blame import MOST_COMMITS, BlameQuery, read_and_blame
from tablectl.log.reader import ReadRequest
from tablectl.model.errors import LiveError, one_line
from tablectl.model.stamp import read_stamp
from tablectl.model.table import Depth, LiveTable
from tablectl.planning.diff import diff
from tablectl.planning.drift import Drift, TableDrift, questions, table_drift
from tablectl.policies.spec import Specs, TableSpec
from tablectl.project import Project
from tablectl.selection import Selection, depth_for, failure_of
from tablectl.workflow.tables import OnRead, ignore_progress, locate_tables, sorted_failures


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

    def asks(position: int, live: LiveTable) -> BlameQuery | None:
        changes = diff(located.tables[position][0].policy, live, project.dialect)
        differs = changes or (live.catalog and live.catalog.differences)
        return BlameQuery(live, questions(changes), look_back) if differs else None

    requests = [ReadRequest(spec.name, location, _with_catalog(spec)) for spec, location in located.tables]
    results = read_and_blame(requests, asks, cache=project.cache, options=project.stores)
    for done, ((spec, _), found) in enumerate(zip(located.tables, results, strict=True)):
        on_read(done + 1, len(located.tables))
        if isinstance(found, LiveError):
            failures.append(failure_of(spec.name.text, found))
            continue
        live, trace = found
        if trace is None:
            as_declared.append(spec.name.text)
            continue
        applied = next((commit for commit in trace.commits if read_stamp(commit.user_metadata)), None)
        trouble = one_line(trace.trouble) if trace.trouble else ""
        changes = diff(spec.policy, live, project.dialect)
        tables.append(table_drift(spec, live, changes, trace.origins, applied=applied, trouble=trouble))
    return Drift(
        tables=tuple(sorted(tables, key=lambda table: table.spec.name.text)),
        failures=sorted_failures(failures),
        as_declared=tuple(sorted(as_declared)),
        unmatched=located.unmatched,
        look_back=look_back,
        env=project.config.environment,
    )


def _with_catalog(spec: TableSpec) -> Callable[[LiveTable], Depth]:
    """The depth for drift: no history, but for a catalog-managed table its log, to compare it with the catalog."""
    depth = depth_for(spec, 0)
    return lambda live: replace(depth(live), look_back=1) if live.catalog else depth(live)
