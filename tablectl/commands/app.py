"""The commands. Each does four things: build inputs, call the workflow, render, exit."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
from tablectl.commands.program import program_for
from tablectl.commands.report_files import FILES
from tablectl.commands.request import (
    BreakOptions,
    CommandRequest,
    environment,
    variables,
)
from tablectl.commands.schema_kinds import SchemaKind, schema_of
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.install import CiSystem, InstallSource, parse_source
from tablectl.reports.formats import ReportFormat
from tablectl.support.json_text import write_json
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
def rename(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The table's old name.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    paths: PathsArg = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking for confirmation.")] = False,
    var: VarOpt = None,
    env: EnvOpt = None,
) -> int:
    """Give the policy of a table that moved its new name. Keeps comments and layout, and changes no table.

    Example: tablectl rename lake.sales.orders lake.shop.orders
    """
    from tablectl.commands.rename import rename_command  # noqa: PLC0415

    return rename_command((old, new), _request(paths, var, env), ctx.obj, yes=yes)


@app.command()
def init(
    ctx: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder. Default: the current one.")] = Path(),
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLES", help="Live tables for the first policies, as for `import`.")
    ] = None,
    var: VarOpt = None,
    env: EnvOpt = None,
    format: FormatOpt = ReportFormat.TEXT,  # noqa: A002
    remote: RemoteOpt = None,
    ci: CiOpt = CiSystem.GITHUB,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="SOURCE",
            help="Where CI installs tablectl from: git+https://HOST/PATH@COMMIT, or a folder with its two wheels.",
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            metavar="[hive|glue|unity|none]",
            help="Where names of tables are looked up; none: tables by path only.",
        ),
    ] = None,
    catalog_url: Annotated[
        str,
        typer.Option(
            "--catalog-url",
            metavar="URL",
            help="Of a Hive metastore (thrift://… or jdbc:…) or a Unity Catalog (https://…).",
        ),
    ] = "",
    catalog_name: Annotated[
        str,
        typer.Option("--catalog-name", metavar="NAME", help="The catalog's name in policies. Default: lake."),
    ] = "",
    catalog_driver: Annotated[
        Path | None,
        typer.Option("--catalog-driver", metavar="JAR", help="The JDBC driver of a Hive metastore's database."),
    ] = None,
) -> int:
    """Start a repository: configuration, policies, a CI workflow, a pre-commit hook. Existing files are kept.

    Example: tablectl init lake-policies 'sales.*' --catalog hive --catalog-url thrift://metastore:9083
    """
    from tablectl.commands.catalog_choice import catalog_choice  # noqa: PLC0415
    from tablectl.commands.init import InitOptions, init_command  # noqa: PLC0415

    request = _request(None, var, env, remote)
    chosen = catalog_choice(catalog, catalog_url, catalog_name, catalog_driver)
    options = InitOptions(ci, None if source is None else _source(source), chosen)
    return init_command(directory, tuple(tables or ()), request, ctx.obj, format, options)


def _source(text: str) -> InstallSource:
    try:
        return parse_source(text)
    except ValueError as error:
        raise UsageError(f"--source {text!r}: {error}") from error


@app.command()
def doctor(
    ctx: typer.Context,
    paths: PathsArg = None,
    engine: Annotated[bool, typer.Option("--engine", help="Also start the engine and list its catalog.")] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Do not write a test record: for machines that only plan.")
    ] = False,
    var: VarOpt = None,
    env: EnvOpt = None,
    format: FormatOpt = ReportFormat.TEXT,  # noqa: A002
    remote: RemoteOpt = None,
) -> int:
    """Check what plan and apply need here: Java, Spark, stores, credentials, rights, clock. Says what to do.

    Example: tablectl doctor --engine
    """
    from tablectl.commands.doctor import DoctorOptions, doctor_command  # noqa: PLC0415

    return doctor_command(_request(paths, var, env, remote), ctx.obj, format, DoctorOptions(engine, read_only))


@app.command()
def lock(
    ctx: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder. Default: the current one.")] = Path(),
    ci: CiOpt = CiSystem.NONE,
    format: FormatOpt = ReportFormat.TEXT,  # noqa: A002
) -> int:
    """Write the files from which CI installs this version of tablectl, as `install:` in tablectl.yaml says.

    Example: tablectl lock --ci github
    """
    from tablectl.commands.lock import lock_command  # noqa: PLC0415

    return lock_command(directory, ci, ctx.obj, format)


@app.command()
def schema(
    ctx: typer.Context,
    of: Annotated[
        SchemaKind,
        typer.Option("--of", help="Policies, `tablectl.yaml` (config), or the JSON of `plan`, `apply` or `drift`."),
    ] = SchemaKind.POLICIES,
) -> int:
    """Print the JSON Schema of policies or tablectl.yaml, for editors; or of plans, runs and drift, for programs.

    Example: tablectl schema > policies.schema.json
    """
    ctx.obj.result(write_json(schema_of(of), indent=2) + "\n")
    return ExitCode.DONE


@app.command()
def demo(
    ctx: typer.Context,
    directory: Annotated[Path | None, typer.Argument(metavar="DIR", help="Empty folder. Default: demo-lake.")] = None,
) -> int:
    """Build a small lake of real Delta tables and run plan, apply and plan on it.

    Example: tablectl demo /tmp/lake
    """
    from tablectl.commands.demo import demo_command  # noqa: PLC0415

    return demo_command(directory or Path("demo-lake"), ctx.obj)


@window_app.command("show")
def window_show(
    ctx: typer.Context,
    table: TableArg,
    env: EnvOpt = None,
    format: FormatOpt = ReportFormat.TEXT,  # noqa: A002
    remote: RemoteOpt = None,
) -> int:
    """Show who holds the lease on a table, and since when.

    Example: tablectl window show 'delta.`/lake/orders`'
    """
    from tablectl.commands.window import window_show_command  # noqa: PLC0415

    return window_show_command(table, _request(None, None, env, remote), ctx.obj, format)


@window_app.command("break")
def window_break(
    ctx: typer.Context,
    table: TableArg,
    reason: Annotated[str, typer.Option("--reason", help="Reason; recorded for the current and the next holder.")],
    epoch: Annotated[int | None, typer.Option("--epoch", help="Epoch printed by `window show`.")] = None,
    env: EnvOpt = None,
    format: FormatOpt = ReportFormat.TEXT,  # noqa: A002
    remote: RemoteOpt = None,
) -> int:
    """Release the lease on a table by force. Its holder starts no further statement; a running one is not stopped.

    Example: tablectl window break 'delta.`/lake/orders`' --epoch 3 --reason "CI job cancelled"
    """
    from tablectl.commands.window import window_break_command  # noqa: PLC0415

    request = _request(None, None, env, remote)
    return window_break_command(table, request, ctx.obj, format, BreakOptions(epoch, reason))


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
