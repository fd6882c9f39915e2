"""``tablectl check``: what is wrong or risky in a lake, without policies and without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tablectl.commands.advise import Days, Past, check_new, each_table, entry_of, write_declared
from tablectl.commands.lint import findings_on, state_of
from tablectl.commands.output import Output
from tablectl.commands.parameters import (
    OF_PAGES,
    Cache,
    Env,
    ListFiles,
    PageFormat,
    PageReports,
    Place,
    Remote,
    VarValues,
    function,
    table_names,
    texts,
)
from tablectl.commands.project import Project
from tablectl.commands.read_tables import OnRead, ignore_progress, locate
from tablectl.commands.report_facts import context_here
from tablectl.commands.report_files import ReportFiles, report_of
from tablectl.commands.rivals import rivals_in
from tablectl.delta.names import parse_table
from tablectl.insight.advice.advice_records import TableFacts
from tablectl.insight.advice.risks import LakeRisks, Risk, TableRisks, document_of_risks, find_risks
from tablectl.model.errors import ExitCode, TablectlError, UsageError, one_line
from tablectl.model.plan import LintedTable
from tablectl.model.safe_text import natural_key
from tablectl.planning.diff import diff
from tablectl.policies.declared_tables import TableSpec
from tablectl.reports.render import ReportFormat
from tablectl.reports.rivals import rival_advice, rival_text

_WRITTEN = "Written by `tablectl check`: what mends the risks that it found. What no line names is not managed."


def check_command(
    ctx: typer.Context,
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PLACE",
            help="A folder or an address (/data/lake, s3://lake/sales), a catalog, a table, or a pattern. Default: the "
            "tables of the policies.",
            autocompletion=table_names,
        ),
    ] = None,
    *,
    file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write a new policy file with the lines that mend it.")
    ] = None,
    list_files: ListFiles = False,
    days: Days = 30,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    cache: Cache = True,
    form: PageFormat = ReportFormat.TEXT,
    report: PageReports = None,
) -> ExitCode:
    """Say what is wrong or risky in a lake, the worst first. Needs no policy, no Java and no Spark.

    Example: tablectl check /data/lake --report lake.html
    """
    out: Output = ctx.obj
    reports = ReportFiles.of(form, report, known=OF_PAGES)
    place = Place(variables=variables, env=env, remote=remote, cache=cache)
    with place.open(out.note) as project, out.progress() as on_read:
        reports.check()
        check_new(file)
        found = check_tables(project, places or (), Past(days, list_files), on_read)
    reports.write(report_of(found, document_of_risks, context_here()), out)
    mended = [(each.table, [one for risk in each.risks for one in risk.declare]) for each in found.tables]
    entries = [entry_of(project, parse_table(table), declared) for table, declared in mended if declared]
    write_declared(file, entries, _WRITTEN, f"tablectl plan {file}", out)
    return found.exit_code


@function
def check(
    places: Sequence[str] | None = None,
    *,
    days: Days = 30,
    list_files: ListFiles = False,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
) -> LakeRisks:
    """What is wrong or risky in the tables of ``places``, or of the policies (``tablectl check``). Changes nothing.

    Options and errors as in ``plan``. A table that cannot be read is an entry with its error.
    """
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    with place.open() as project:
        return check_tables(project, texts(places, "places"), Past(days, list_files))


def check_tables(
    project: Project,
    places: Sequence[str],
    past: Past,
    on_read: OnRead = ignore_progress,
) -> LakeRisks:
    """The risks of the tables. Raises as ``locate``, and ``UsageError`` if neither a place nor a policy names any.

    A place is checked although policies of the current folder have an error.
    """
    others = project.requested([_catalog(each, project) for each in places])
    specs = project.any_policies(asked=others)
    if others is None and not specs.tables and not specs.patterns:
        hint = "name a folder (`tablectl check /data/lake`), a catalog (`lake`), or a pattern (`'lake.sales.*'`)"
        raise UsageError("no place is named, and no policy names a table", hint)
    found = locate(project, others or specs)
    tables = [
        TableRisks(table=spec.name.text, location=where, error=one_line(made))
        if isinstance(made, TablectlError)
        else made
        for spec, where, made in each_table(project, specs, found, past, partial(_checked, project), on_read)
    ]
    ordered = tuple(sorted(tables, key=lambda each: natural_key(each.table)))
    return LakeRisks(tuple(places), ordered, found.failures, found.unmatched)


def _catalog(place: str, project: Project) -> str:
    """The pattern of a whole catalog for its name."""
    return f"{place}.*.*" if place in {project.catalog, *project.config.catalogs} else place


def _checked(project: Project, spec: TableSpec, location: str, facts: TableFacts) -> TableRisks:
    live = facts.live
    state = state_of(project, spec, live, diff(spec.policy, live, project.dialect))
    shown = project.mask.linted(LintedTable(spec.name.text, findings_on(project, spec, state))).findings
    commits = facts.live.past.commits if facts.live.past else ()
    rivals = [(rival_text(each), rival_advice(each)) for each in rivals_in(project, live, commits)]
    risks = find_risks(facts, state, shown, project.mask.table_plan, rivals)
    return TableRisks(
        table=spec.name.text,
        location=location,
        files=live.files,
        bytes=live.bytes,
        risks=tuple(_unmasked(each, project) for each in risks),
    )


def _unmasked(risk: Risk, project: Project) -> Risk:
    """A risk without the policy lines whose values reports hide."""
    return replace(risk, declare=tuple(each for each in risk.declare if not project.mask.withholds(*each)))
