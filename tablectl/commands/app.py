"""The commands. Each does four things: build inputs, call the workflow, render, exit."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tablectl.commands.formats import (
    EVERY_FORMAT,
    OF_CONFLICTS,
    OF_LINT,
    OF_STATUS,
    OF_VALIDATE,
    TEXT_AND_JSON,
    check_format,
)
from tablectl.commands.output import Output
from tablectl.commands.plan_place import new_plan, saved_plan
from tablectl.commands.program import program_for
from tablectl.commands.report_files import FILES, ReportFiles
from tablectl.commands.request import (
    CommandRequest,
    ConflictOptions,
    DriftCommandOptions,
    ImportOptions,
    RunsOptions,
    UndoOptions,
    environment,
    variables,
)
from tablectl.model.errors import UsageError
from tablectl.model.install import CiSystem, InstallSource, parse_source
from tablectl.one_table import one_table
from tablectl.reports.formats import ReportFormat
from tablectl.version import __version__

app = typer.Typer(
    name="tablectl",
    help="Manage table policies for Delta Lake: plan the difference from the live tables "
    "and apply it in one protected window.\n\nExample: tablectl plan --out plans/today.json",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
window_app = typer.Typer(
    help="Show or release the lease on a table.\n\nExample: tablectl window show lake.sales.orders",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(window_app, name="window")

PathsArg = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATHS", help="Policy files or folders. Default: `policies` of tablectl.yaml."),
]
SelectOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="GLOB",
        help="Include only tables whose name matches. Repeatable.",
    ),
]
ExcludeOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="GLOB",
        help="Exclude tables whose name matches. Repeatable.",
    ),
]
MaxTablesOpt = Annotated[
    int | None, typer.Option("--max-tables", metavar="N", min=0, help="Refuse a plan that changes more than N tables.")
]
MaxBytesOpt = Annotated[
    str | None,
    typer.Option("--max-bytes", metavar="SIZE", help="Refuse a plan that rewrites more data, for example 20GB."),
]
TagOpt = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Include only tables with this tag. Repeatable."),
]
EnvOpt = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="NAME",
        help="Environment of tablectl.yaml. Default: the variable TABLECTL_ENV.",
    ),
]
VarOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--var",
        metavar="NAME=VALUE",
        help="Value of ${NAME} in policies. Default: the variable TABLECTL_VAR_NAME. Repeatable.",
    ),
]
ChangedSinceOpt = Annotated[
    str,
    typer.Option(
        "--changed-since", metavar="REF", help="Include only tables whose policy differs from that at a Git commit."
    ),
]
NoCacheOpt = Annotated[
    bool,
    typer.Option("--no-cache", help="Read every table from its log alone, and keep nothing for the next command."),
]
TableArg = Annotated[str, typer.Argument(metavar="TABLE", help="Table identifier, as in policies.")]


def _format_of(known: frozenset[ReportFormat]) -> Callable[[typer.Context, ReportFormat], ReportFormat]:
    """Checks that a command has a format, and prints errors in the format of the result."""

    def check(ctx: typer.Context, value: ReportFormat) -> ReportFormat:
        if isinstance(ctx.obj, Output):
            ctx.obj.json = value is ReportFormat.JSON
        check_format(ctx.info_name or "", value, known)
        return value

    return check


def _format_option(known: frozenset[ReportFormat], note: str = " With json, errors are JSON too.") -> Any:
    metavar = f"[{'|'.join(each for each in ReportFormat if each in known)}]"
    return typer.Option("--format", callback=_format_of(known), metavar=metavar, help=f"Output format.{note}")


FormatOpt = Annotated[ReportFormat, _format_option(TEXT_AND_JSON)]
StatusFormatOpt = Annotated[ReportFormat, _format_option(OF_STATUS)]
FormOpt = Annotated[ReportFormat, _format_option(EVERY_FORMAT)]
ValidateFormatOpt = Annotated[ReportFormat, _format_option(OF_VALIDATE, "")]
LintFormatOpt = Annotated[ReportFormat, _format_option(OF_LINT, "")]
TableFormatOpt = Annotated[ReportFormat, _format_option(OF_CONFLICTS)]
VerboseOpt = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show each table with its SQL, reasons and rollback.")
]
ReportOpt = Annotated[
    list[Path] | None,
    typer.Option(
        "--report", metavar="FILE", help=f"Also write a report; the file name sets its format: {FILES}. Repeatable."
    ),
]
RemoteOpt = Annotated[
    str | None,
    typer.Option("--remote", metavar="sc://HOST:PORT", help="Use a Spark Connect server instead of a local session."),
]
CiOpt = Annotated[CiSystem, typer.Option("--ci", help="The CI system whose workflow to write.")]


# typer carries its own copy of click since 0.26 and uses the real one before: these are the classes of either.
_WrongUsage: type[Any] = typer.BadParameter.__bases__[0]
_CODE = re.compile(r"(?i:[BLPR]|D(?=0))[0-9]{3}\Z|[A-Z]{2,16}[0-9]{1,6}\Z")
_FACT = re.compile(r"(?:D[0-9]{1,4}|delta-[0-9][0-9.]{0,7})\Z", re.IGNORECASE)
_PROPERTY = re.compile(r"delta\.[^`]", re.IGNORECASE)
"""A table known by its path has backticks around it."""


LEGACY = (_WrongUsage, typer.Exit)


def typer_command(app: typer.Typer, path: str) -> Any:
    """A command that is declared here."""
    found = program_for(app, path.split())
    for name in path.split():
        found = found.commands[name]
    return found


def _version(value: bool) -> None:  # noqa: FBT001  # typer's callback signature
    if value:
        sys.stdout.write(f"tablectl {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hold the options of the program itself."""


@app.command()
def show(
    ctx: typer.Context,
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file written by `tablectl plan --out`.")],
    format: FormOpt = ReportFormat.TEXT,  # noqa: A002
    report: ReportOpt = None,
    verbose: VerboseOpt = False,
    var: VarOpt = None,
) -> int:
    """Show a saved plan.

    Example: tablectl show plans/today.json
    """
    from tablectl.commands.show import show_command  # noqa: PLC0415

    request = replace(_request(None, var), verbose=verbose)
    plan_file = saved_plan(plan_file)
    return show_command(plan_file, request, ctx.obj, ReportFiles.of(format, report, plan_file))


@app.command()
def drift(
    ctx: typer.Context,
    paths: PathsArg = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Write the live values into the policies, after showing the change.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Adopt without asking for confirmation.")] = False,
    look_back: Annotated[
        int,
        typer.Option("--look-back", metavar="COMMITS", min=1, help="Number of commits of a table to search."),
    ] = 1000,
    select: SelectOpt = None,
    exclude: ExcludeOpt = None,
    tag: TagOpt = None,
    var: VarOpt = None,
    env: EnvOpt = None,
    format: FormOpt = ReportFormat.TEXT,  # noqa: A002
    report: ReportOpt = None,
    verbose: VerboseOpt = False,
    no_cache: NoCacheOpt = False,
    remote: RemoteOpt = None,
) -> int:
    """Show differences from the policies and the commit that caused each. Exits with code 2 if there are any.

    Example: tablectl drift --select 'lake.sales.*'
    """
    from tablectl.commands.drift import drift_command  # noqa: PLC0415

    if yes and not adopt:
        raise UsageError("--yes needs --adopt", "add --adopt, or leave --yes out")
    request = replace(_request(paths, var, env, remote, (select, tag, exclude)), verbose=verbose, no_cache=no_cache)
    return drift_command(request, ctx.obj, ReportFiles.of(format, report), DriftCommandOptions(look_back, adopt, yes))


@app.command()
def runs(
    ctx: typer.Context,
    paths: PathsArg = None,
    days: Annotated[
        int | None, typer.Option("--days", metavar="DAYS", min=1, help="Only the commits of the last DAYS of a table.")
    ] = None,
    look_back: Annotated[
        int, typer.Option("--look-back", metavar="COMMITS", min=1, help="Number of commits of a table to search.")
    ] = 1000,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show all tables of each run.")] = False,
    select: SelectOpt = None,
    exclude: ExcludeOpt = None,
    tag: TagOpt = None,
    var: VarOpt = None,
    env: EnvOpt = None,
    format: FormatOpt = ReportFormat.TEXT,  # noqa: A002
    remote: RemoteOpt = None,
) -> int:
    """List earlier applies from the tables' logs: time, user, plan and commits.

    Example: tablectl runs --select 'lake.sales.*' --days 30
    """
    from tablectl.commands.runs import runs_command  # noqa: PLC0415

    request = _request(paths, var, env, remote, (select, tag, exclude))
    return runs_command(request, ctx.obj, format, RunsOptions(look_back, days, verbose))


@app.command()
def undo(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a run, or its beginning (`tablectl runs`).")],
    paths: PathsArg = None,
    write: Annotated[bool, typer.Option("--write", help="Write the policies, after showing the change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking for confirmation.")] = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Save the plan of the undo.")] = None,
    look_back: Annotated[
        int, typer.Option("--look-back", metavar="COMMITS", min=1, help="Number of commits of a table to search.")
    ] = 1000,
    table: Annotated[
        list[str] | None, typer.Option("--table", metavar="GLOB", help="Undo the run only on these tables.")
    ] = None,
    exclude: ExcludeOpt = None,
    var: VarOpt = None,
    env: EnvOpt = None,
    format: FormatOpt = ReportFormat.TEXT,  # noqa: A002
    remote: RemoteOpt = None,
) -> int:
    """Undo a run: put the values from before it into the policies, and plan them. Changes no table.

    Values that were changed after the run are not undone. Review the policies and the plan, and apply them like any
    other.

    Example: tablectl undo 3f2a9c41d7e0 --write --out plans/undo.json
    """
    from tablectl.commands.runs import undo_command  # noqa: PLC0415

    if (yes or out) and not write:
        raise UsageError(f"{'--yes' if yes else '--out'} needs --write", "add --write, or leave it out")
    out = new_plan(out) if out else None
    request = _request(paths, var, env, remote, (table, None, exclude))
    return undo_command(request, ctx.obj, format, UndoOptions(run, look_back, write, yes, out))


@app.command("import")
def import_(
    ctx: typer.Context,
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLES", help="Table identifiers and patterns, as in policies.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Import every table of `engine.catalog`.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file. Default: standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    var: VarOpt = None,
    env: EnvOpt = None,
    format: FormatOpt = ReportFormat.TEXT,  # noqa: A002
    no_cache: NoCacheOpt = False,
    remote: RemoteOpt = None,
    from_dbt: Annotated[
        Path | None,
        typer.Option("--from-dbt", metavar="MANIFEST", help="Read a dbt manifest.json instead of live tables."),
    ] = None,
) -> int:
    """Write policies from live tables. A plan of these policies has no changes.

    Example: tablectl import 'lake.sales.*' --output policies/sales.yaml
    """
    from tablectl.commands.import_tables import import_command  # noqa: PLC0415

    target = None if output is None or str(output) == "-" else output
    options = ImportOptions(tuple(tables or ()), everything, target, force)
    request = replace(_request(None, var, env, remote), no_cache=no_cache)
    if from_dbt is not None:
        from tablectl.commands.import_dbt import import_dbt_command  # noqa: PLC0415

        return import_dbt_command(request, ctx.obj, format, options, from_dbt)
    return import_command(request, ctx.obj, format, options)


@app.command()
def explain(
    ctx: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="TABLE | WORD",
            help="A table identifier, as in policies; or an exception, a DELTA_… error class, an isolation level, a "
            "property or the code of a finding.",
        ),
    ],
    paths: PathsArg = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="TABLE",
            help="Explain the term for this live table.",
        ),
    ] = None,
    var: VarOpt = None,
    env: EnvOpt = None,
    format: FormatOpt = ReportFormat.TEXT,  # noqa: A002
    remote: RemoteOpt = None,
) -> int:
    """Explain the effective policy of a table, or a term: an exception, an isolation level, a property, a finding.

    Examples: tablectl explain lake.sales.orders; tablectl explain delta.appendOnly; tablectl explain L004
    """
    if table is None and _CODE.match(what):
        from tablectl.commands.explain_code import explain_code_command  # noqa: PLC0415

        return explain_code_command(what, _request(None, None, env), ctx.obj, format)
    if table is None and _PROPERTY.match(what):
        from tablectl.commands.explain import explain_key_command  # noqa: PLC0415

        return explain_key_command(what, _request(None, None, env), ctx.obj, format)
    if _FACT.match(what):
        from tablectl.commands.explain_fact import explain_fact_command  # noqa: PLC0415

        return explain_fact_command(what, ctx.obj, format)
    from tablectl.insight.terms.glossary import find_tool_term  # noqa: PLC0415

    own = find_tool_term(what)
    if own is not None:
        from tablectl.commands.explain_tool_term import explain_tool_term_command  # noqa: PLC0415

        return explain_tool_term_command(own, ctx.obj, format)
    from tablectl.attributes.policy import VALUE_TYPES  # noqa: PLC0415
    from tablectl.insight.terms.glossary import find_term, looks_like_a_term  # noqa: PLC0415

    # An identifier has two parts or more, so a single word is none.
    word = "." not in what and what not in VALUE_TYPES
    if table is not None or word or find_term(what) or looks_like_a_term(what):
        from tablectl.commands.explain_term import explain_word_command  # noqa: PLC0415

        return explain_word_command(what, table, _request(paths, var, env, remote), ctx.obj, format)
    from tablectl.commands.explain import explain_command  # noqa: PLC0415

    return explain_command(what, _request(paths, var, env, remote), ctx.obj, format)


@app.command()
def conflicts(
    ctx: typer.Context,
    table: TableArg,
    paths: PathsArg = None,
    operation: Annotated[
        str | None,
        typer.Option(
            "--operation",
            metavar="NAME",
            help="Show one operation only: insert, merge, optimize, add-columns …",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every pair of operations, grouped by reason.")
    ] = False,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--between",
            metavar="SQL SQL",
            help="Compare two SQL statements: whether they conflict, and how to avoid it.",
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(
            "--client",
            metavar="CLIENT",
            help="Client to assume instead of those in the table's history: 'delta-spark 4.0', "
            "'databricks 14.2 photon', kernel, delta-rs. Repeatable.",
        ),
    ] = None,
    auto_compact: Annotated[
        bool | None,
        typer.Option(
            "--auto-compact/--no-auto-compact",
            help="Whether sessions set spark.databricks.delta.autoCompact.enabled; default: the table's property.",
        ),
    ] = None,
    var: VarOpt = None,
    env: EnvOpt = None,
    format: TableFormatOpt = ReportFormat.TEXT,  # noqa: A002
    no_cache: NoCacheOpt = False,
    remote: RemoteOpt = None,
) -> int:
    """Show which concurrent operations on a table conflict and how to avoid it, now and after its policy is applied.

    Example: tablectl conflicts lake.sales.orders
    """
    from tablectl.commands.conflicts import conflicts_command  # noqa: PLC0415

    request = replace(_request(paths, var, env, remote), no_cache=no_cache)
    options = ConflictOptions(tuple(client or ()), operation or "", everything, between, auto_compact)
    with one_table(table):
        return conflicts_command(table, request, ctx.obj, format, options)


@app.command()
def status(
    ctx: typer.Context,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLES",
            help="Further tables and patterns; they need no policy.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every table of `engine.catalog`.")] = False,
    debt: Annotated[
        bool, typer.Option("--debt", help="Count files and unclustered data from the whole log. Takes longer.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write a page with all rows.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="LOCATION", help="Append the rows to a Delta table (needs the extra `status`)."),
    ] = None,
    look_back: Annotated[
        int,
        typer.Option("--look-back", metavar="COMMITS", min=1, help="Number of commits of a table to search."),
    ] = 1000,
    select: SelectOpt = None,
    exclude: ExcludeOpt = None,
    tag: TagOpt = None,
    var: VarOpt = None,
    env: EnvOpt = None,
    format: StatusFormatOpt = ReportFormat.TEXT,  # noqa: A002
    report: ReportOpt = None,
    no_cache: NoCacheOpt = False,
    remote: RemoteOpt = None,
) -> int:
    """Show the state of every table: policy, drift, last apply, protocol, debt, retention.

    Example: tablectl status --html lake.html 'lake.sales.*'
    """
    from tablectl.commands.status import StatusRequest, status_command  # noqa: PLC0415

    reports = ReportFiles.of(format, [*(report or ()), *([html] if html else [])])
    for _, each in reports.files:
        check_format("status", each, OF_STATUS)
    request = replace(_request(None, var, env, remote, (select, tag, exclude)), no_cache=no_cache)
    asked = StatusRequest(tuple(tables or ()), everything, debt, look_back, to)
    return status_command(request, ctx.obj, reports, asked)


@app.command()
def advise(
    ctx: typer.Context,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLES",
            help="Tables and patterns; they need no policy. Default: all tables of the policies.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every table of `engine.catalog`.")] = False,
    days: Annotated[
        int, typer.Option("--days", metavar="DAYS", min=1, max=365, help="How many days of commits to read.")
    ] = 30,
    list_files: Annotated[
        bool,
        typer.Option("--list-files", help="Also list all files of each table: failed writes leave some behind."),
    ] = False,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write a new policy file that declares the advice.")
    ] = None,
    select: SelectOpt = None,
    exclude: ExcludeOpt = None,
    tag: TagOpt = None,
    var: VarOpt = None,
    env: EnvOpt = None,
    format: TableFormatOpt = ReportFormat.TEXT,  # noqa: A002
    report: ReportOpt = None,
    remote: RemoteOpt = None,
    no_cache: NoCacheOpt = False,
) -> int:
    """Say from the logs which settings would save failed writes, bytes and files, and why.

    Example: tablectl advise 'lake.sales.*' --list-files
    """
    from tablectl.commands.advise import AdviseCommandOptions, advise_command  # noqa: PLC0415

    reports = ReportFiles.of(format, report or ())
    for _, each in reports.files:
        check_format("advise", each, OF_STATUS)
    request = replace(_request(None, var, env, remote, (select, tag, exclude)), no_cache=no_cache)
    return advise_command(
        request, ctx.obj, reports, AdviseCommandOptions(tuple(tables or ()), everything, days, list_files, write)
    )


def _source(text: str) -> InstallSource:
    try:
        return parse_source(text)
    except ValueError as error:
        raise UsageError(f"--source {text!r}: {error}") from error


_Filter = list[str] | None


def _request(
    paths: list[Path] | None,
    var: list[str] | None,
    env: str | None = None,
    remote: str | None = None,
    filters: tuple[_Filter, _Filter, _Filter] = (None, None, None),
) -> CommandRequest:
    """``filters`` are ``--select``, ``--tag`` and ``--exclude``."""
    select, tags, excluded = (tuple(each or ()) for each in filters)
    return CommandRequest(tuple(paths or ()), select, tags, variables(var), remote, environment(env), excluded)
