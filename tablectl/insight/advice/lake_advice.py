"""Collects the advice for the tables of the policies, and for further tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tablectl.delta.names import TableName, parse_table
from tablectl.frozen import frozen
from tablectl.insight.advice.advise import advise
from tablectl.insight.advice.facts import Advice, LakeAdvice, TableAdvice, TableFacts
from tablectl.insight.advice.jobs import find_jobs
from tablectl.log.commit_files import read_past_commits
from tablectl.log.parallel import in_order, threads_for
from tablectl.log.reader import ReadRequest, read_many
from tablectl.log.stream_checkpoint import read_streams
from tablectl.model.errors import TablectlError, one_line
from tablectl.model.table import Depth, LiveTable, WriteHistory
from tablectl.model.text import natural_key
from tablectl.one_table import of_table
from tablectl.policies.effective_policy import spec_for
from tablectl.policies.spec import Specs, TableSpec
from tablectl.policies.yaml_text import TableEntry, table_key, write_entry, write_policies
from tablectl.project import Project
from tablectl.selection import Selection, locate
from tablectl.storage.log_stores import Stores

_ADVISED = "Written by `tablectl advise`: what it recommends. What no line names is not managed."
DEFAULT_DAYS = 30
MOST_DAYS = 365


@frozen(kw_only=True)
class AdviceDepth:
    """How much to read."""

    days: int
    """The days before a table's newest commit whose commits are read."""
    list_files: bool = False
    """Whether to list all files of each table, and not only its log."""


def collect_advice(
    project: Project,
    specs: Specs,
    others: Specs | None,
    selection: Selection,
    options: AdviceDepth,
    on_read: Callable[[int, int], None] = lambda _done, _all: None,
) -> LakeAdvice:
    """The advice for ``others``, which need no policy, or without any for the selected tables of the policies.

    A table that cannot be read is an entry with its error. Raises as ``locate``.
    """
    found = locate(others or specs, Selection() if others else selection, project.open_catalog, project.stores)
    placed = [(spec_for(specs, spec.name) or spec, where) for spec, where in found.tables] if others else found.tables

    requests = [ReadRequest(spec.name, where, _depth) for spec, where in placed]
    threads = threads_for((where for _, where in placed), project.stores)
    tables: list[TableAdvice] = []
    with Stores(project.stores) as stores:

        def one(each: tuple[tuple[TableSpec, str], LiveTable | TablectlError]) -> TableAdvice:
            (spec, where), live = each
            made = of_table(spec.name.text, lambda: _table(project, stores, spec, where, live, options))
            if isinstance(made, TablectlError):
                return TableAdvice(table=spec.name.text, location=where, commits=0, error=one_line(made))
            return made

        read = zip(placed, read_many(requests, cache=project.cache, options=project.stores), strict=True)
        for done, table in enumerate(in_order(one, read, threads), 1):
            on_read(done, len(placed))
            tables.append(table)
    return LakeAdvice(
        tuple(sorted(tables, key=lambda each: natural_key(each.table))),
        found.failures,
        found.unmatched,
    )


def policies_text(project: Project, advice: LakeAdvice) -> str:
    """A policy file that declares all advice."""
    entries = [_entry(project, parse_table(each.table), each.advice) for each in advice.tables if each.yaml]
    return write_policies(entries, _ADVISED)


def _table(
    project: Project,
    stores: Stores,
    spec: TableSpec,
    location: str,
    live: LiveTable | TablectlError,
    options: AdviceDepth,
) -> TableAdvice:
    if isinstance(live, TablectlError):
        raise live
    past = read_past_commits(stores, location, options.days, list_files=options.list_files)
    commits = tuple(each.commit for each in past.commits)
    facts = TableFacts(
        live=replace(live, past=WriteHistory(commits, past.cut)),
        past=past,
        jobs=find_jobs(past.commits),
        dialect=project.dialect,
        policy=spec.policy,
        options=spec.options,
        streams=read_streams(stores, spec.options.streams, live.table_id, location),
    )
    found, untold = advise(facts, project.mask.table_plan)
    return TableAdvice(
        table=spec.name.text,
        location=location,
        commits=len(commits),
        since=min((each.timestamp for each in commits if each.timestamp > 0), default=0),
        advice=found,
        untold=untold,
        yaml=write_entry(_entry(project, spec.name, found)) if any(each.declare for each in found) else "",
    )


def _depth(live: LiveTable) -> Depth:
    return Depth(counts=True, layout=True, marks="incremental" if live.clustering else None)


def _entry(project: Project, name: TableName, found: Sequence[Advice]) -> TableEntry:
    """The entry that declares some advice. Advice does not contradict itself: each value is declared once."""
    values = {(attribute, key): value for each in found for attribute, key, value in each.declare if value is not None}
    return TableEntry(
        key=table_key(name, project.catalog),
        declared=tuple((attribute, key, value) for (attribute, key), value in values.items()),
    )
