"""The parameters that several commands and Python functions share, each declared once: its type, its options on the
command line, and what ``--help`` says of it. A default stands in each signature.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin

import typer

from tablectl.commands.project import EngineSource, Project, silent
from tablectl.commands.selection import Selection
from tablectl.model.errors import TablectlError, UsageError
from tablectl.model.plan import Plan
from tablectl.model.table_options import parse_size
from tablectl.planning.plan_file import PlanLimits
from tablectl.policies.config import Config, parse_remote
from tablectl.policies.repository import Paths
from tablectl.policies.variables import is_variable
from tablectl.reports.render import ReportFormat, suffixes

EVERY_FORMAT = tuple(ReportFormat)
TEXT_AND_JSON = (ReportFormat.TEXT, ReportFormat.JSON)
OF_PAGES = (ReportFormat.TEXT, ReportFormat.JSON, ReportFormat.MARKDOWN, ReportFormat.HTML)
"""Of what people read, and no tool annotates lines with."""

WHICH, WHEN, LIMITS, WHERE, REPORTS = "Which tables", "When", "Limits", "Where", "Reports"
"""The panels of ``--help``, below the arguments and the options that only one command has."""

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def read_as(parse: Callable[[str], Any], what: str = "", example: str = "") -> Callable[[str], Any]:
    """A parser for typer. Its error is that of ``parse``, or names what is needed instead, with an example."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            wrong = f"{text!r} is not {what}" if what else f"{error}, not {text!r}"
            raise typer.BadParameter(f"{wrong}; for example {example}" if example else wrong) from None

    return read


def one_of(words: Collection[str]) -> Callable[[str], str]:
    """A parser for typer, of words that are not known where types are checked."""

    def read(text: str) -> str:
        if text not in words:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(words)}.")
        return text

    return read


def function(work: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Makes a function one for Python: its values are checked as those of the command line are, and ``None`` stands for
    a value that is not given. It raises ``UsageError`` for a wrong one, and ``TypeError`` for an unknown parameter.
    """
    known = signature(work, eval_str=True)

    @wraps(work)
    def call(*args: _Given.args, **given: _Given.kwargs) -> _Result:
        try:
            values = known.bind(*args, **given).arguments
        except TypeError as error:
            raise TypeError(f"{work.__name__}(): {error}") from None
        return work(
            **{  # type: ignore[call-arg]
                name: checked(name, value, known.parameters[name].annotation)
                for name, value in values.items()
                if value is not None
            }
        )

    return call


def checked(name: str, value: Any, takes: Any) -> Any:
    """A value of a parameter that ``takes`` declares for typer. Raises ``UsageError`` for a wrong one."""
    if get_origin(takes) is not Annotated:
        return value
    plain, about = get_args(takes)[:2]
    if about.parser is not None and isinstance(value, str) and value:
        try:
            return about.parser(value)
        except typer.BadParameter as error:
            raise UsageError(f"`{name}` {error.message}") from None
    kinds = [each for each in get_args(plain) or (plain,) if each is not type(None)]
    words = get_args(kinds[0]) if get_origin(kinds[0]) is Literal else ()
    if words and value and value not in words:
        raise UsageError(f"`{name}` needs {' or '.join(map(repr, words))}, not {value!r}")
    if kinds == [bool] and not isinstance(value, bool):
        raise UsageError(f"`{name}` needs true or false, not {value!r}")
    if about.min is None:
        return value
    with suppress(ValueError):
        number = kinds[0](value) if isinstance(value, str) else value
        whole = isinstance(number, int) and not isinstance(number, bool)
        fits = whole or (kinds == [float] and isinstance(number, float))
        if fits and about.min <= number and (about.max is None or number <= about.max):
            return number
    kind = "a number" if kinds == [float] else "a whole number"
    bounds = f"of at least {about.min}" if about.max is None else f"from {about.min} to {about.max}"
    raise UsageError(f"`{name}` needs {kind} {bounds}, not {value!r}")


def texts(given: Any, name: str = "it") -> tuple[Any, ...]:
    """Several values of a parameter that also takes a single one. Raises ``UsageError`` for what is neither."""
    if isinstance(given, str | Path):
        return (given,)
    try:
        return tuple(given or ())
    except TypeError:
        raise UsageError(f"{name}={given!r}: it takes a text or a list of texts") from None


def path_list(paths: Paths, name: str = "paths") -> list[Path]:
    """Given paths, without those of the configuration."""
    return list(map(Path, texts(paths, name)))


# Completion


def table_names(incomplete: str) -> list[str]:
    """The tables that the policies name and that go on like this, as people call them if that is enough."""
    with suppress(TablectlError):
        own = [each.table for each in Project.open().any_policies().declarations.named if each.table]
        last = [each.last for each in own]
        names = (each.last if last.count(each.last) == 1 else each.text for each in own)
        return sorted(name for name in names if name.startswith(incomplete))
    return []


# Where the policies and the tables are


def _named(value: str | None) -> str | None:
    if value == "":
        raise UsageError("--env is empty", "name an environment of tablectl.yaml, or leave it out")
    return value


PolicyPaths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATHS", help="Policy files or folders. Default: `policies` of tablectl.yaml.", show_default=False
    ),
]
VarValues = Annotated[
    list[str] | None,
    typer.Option(
        "--var",
        metavar="NAME=VALUE",
        help="Value of ${NAME} in policies. Default: the variable TABLECTL_VAR_NAME. Repeatable.",
        rich_help_panel=WHERE,
    ),
]
Env = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="NAME",
        help="Environment of tablectl.yaml. Default: the variable TABLECTL_ENV.",
        callback=_named,
        rich_help_panel=WHERE,
    ),
]
Remote = Annotated[
    str | None,
    typer.Option(
        "--remote",
        metavar="sc://HOST:PORT",
        parser=read_as(parse_remote),
        help="A Spark Connect server to use instead of a Spark session in this process; `databricks` or "
        "`databricks://PROFILE` for Databricks Connect. Default: `engine.remote`.",
        rich_help_panel=WHERE,
    ),
]
Cache = Annotated[
    bool,
    typer.Option(
        " /--no-cache",
        help="Read every table from its log alone, and keep nothing for the next command.",
        show_default=False,
        rich_help_panel=WHERE,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the policies and the tables are."""

    variables: Mapping[str, str] | Sequence[str] | None = None
    """As a mapping, or as texts ``NAME=VALUE``."""
    env: str | None = None
    """An empty text stands for the top level of ``tablectl.yaml`` alone."""
    remote: str | None = None
    cache: bool = True
    """Whether what is read of tables is kept for the next call. ``apply`` never uses it."""
    directory: str | Path = "."
    """The directory of ``tablectl.yaml``."""
    spark: Any = None
    """A Spark session, by default a new one. It is used only to list and locate catalog tables, and to apply."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings that override those of ``tablectl.yaml``; ``None`` for one that is not given."""

    def open(
        self,
        on_start: Callable[[str], None] = silent,
        *,
        plan: Plan | None = None,
        driver: str | None = None,
        env: str | None = None,
    ) -> Project:
        """The repository, in the environment of a saved plan if there is one. Raises as ``Project.open``."""
        settings = {**self.settings, "remote": self.remote}
        return Project.open(
            self.directory,
            env=self.env if env is None else env,
            variables=_variables(self.variables),
            source=EngineSource(self.spark, driver, on_start),
            plan=plan,
            cached=self.cache,
            settings={name: value for name, value in settings.items() if value is not None},
        )


def _variables(given: Mapping[str, str] | Sequence[str] | None) -> Mapping[str, str]:
    """The values of variables. Raises ``UsageError``."""
    if given is None or isinstance(given, Mapping):
        return given or {}
    found: dict[str, str] = {}
    for pair in texts(given, "variables"):
        name, equals, value = str(pair).partition("=")
        if not equals or not is_variable(name):
            raise UsageError(f"--var {pair!r} is not NAME=VALUE", "for example --var LAKE=/data/lake")
        if name in found:
            raise UsageError(f"--var {name} is given twice")
        found[name] = value
    return found


# Which tables

Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="GLOB",
        help="Include only tables whose name matches. Repeatable.",
        autocompletion=table_names,
        rich_help_panel=WHICH,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="GLOB",
        help="Exclude tables whose name matches. Repeatable.",
        autocompletion=table_names,
        rich_help_panel=WHICH,
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Include only tables with this tag. Repeatable.", rich_help_panel=WHICH),
]
Changed = Annotated[
    str,
    typer.Option(
        "--changed-since",
        metavar="REF",
        help="Include only tables whose policy differs from that at a Git commit.",
        rich_help_panel=WHICH,
    ),
]
WholeCatalog = Annotated[bool, typer.Option("--all", help="Every table of `engine.catalog`.", rich_help_panel=WHICH)]
TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="Table identifier, as in policies.", autocompletion=table_names)
]


@dataclass(frozen=True)
class Choice:
    """Which tables a command selects: those that match any glob and any tag; all if there are none."""

    paths: Paths = None
    """Policy files or folders, by default those of the configuration."""
    select: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    changed_since: str = ""

    @property
    def selection(self) -> Selection:
        """The tables that these options select."""
        return Selection(texts(self.select, "select"), texts(self.tags, "tags"), texts(self.exclude, "exclude"))


# How much is read and changed

LookBack = Annotated[
    int,
    typer.Option(
        "--look-back",
        metavar="COMMITS",
        min=1,
        max=1_000_000_000,
        help="Number of commits of a table to search.",
        rich_help_panel=LIMITS,
    ),
]
ListFiles = Annotated[
    bool, typer.Option("--list-files", help="Also list all files of each table: failed writes leave some behind.")
]
FailOn = Annotated[
    Literal["unmanaged"] | None,
    typer.Option("--fail-on", metavar="unmanaged", help="Exit with code 2 if tables were created past their policies."),
]
MaxTables = Annotated[
    int | None,
    typer.Option(
        "--max-tables",
        metavar="N",
        min=0,
        help="Refuse a plan that changes more than N tables.",
        rich_help_panel=LIMITS,
    ),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        metavar="SIZE",
        parser=read_as(parse_size, "a size", "20GB"),
        help="Refuse a plan that rewrites more data, for example 20GB.",
        rich_help_panel=LIMITS,
    ),
]


@dataclass(frozen=True, slots=True)
class PlanSize:
    """The maximum size of a plan."""

    max_tables: int | None = None
    max_bytes: int | None = None

    def check(self, plan: Plan, config: Config) -> None:
        """Raises ``LimitError`` for a plan that is larger than the options allow, or else the configuration."""
        most = config.max_tables if self.max_tables is None else self.max_tables
        PlanLimits(most, self.max_bytes).check(plan)


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking for confirmation.")]


# Where the result goes


def output_format(known: Collection[ReportFormat]) -> Any:
    """The option ``--format`` of a command that has some formats. With json, errors are JSON too."""

    def remember(context: typer.Context, value: ReportFormat) -> ReportFormat:
        if not context.resilient_parsing:
            context.obj.json = value is ReportFormat.JSON
        return value

    return typer.Option(
        "--format",
        metavar="FORMAT",
        parser=lambda text: ReportFormat(one_of(known)(text)),
        callback=remember,
        is_eager=True,
        autocompletion=lambda: list(known),
        help=f"Output format: {', '.join(known)}. With json, errors are JSON too.",
        rich_help_panel=REPORTS,
    )


def report_files(known: Collection[ReportFormat]) -> Any:
    """The option ``--report`` of a command that has some formats."""
    about = f"Also write a report; the file name sets its format: {suffixes(known)}. Repeatable."
    return typer.Option("--report", metavar="FILE", help=about, rich_help_panel=REPORTS)


AnyFormat = Annotated[ReportFormat, output_format(EVERY_FORMAT)]
AnyReports = Annotated[list[Path] | None, report_files(EVERY_FORMAT)]
PageFormat = Annotated[ReportFormat, output_format(OF_PAGES)]
PageReports = Annotated[list[Path] | None, report_files(OF_PAGES)]
TextOrJson = Annotated[ReportFormat, output_format(TEXT_AND_JSON)]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Show each table with its SQL, reasons and rollback.", rich_help_panel=REPORTS
    ),
]
