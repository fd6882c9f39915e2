"""The options that several commands and Python functions share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tablectl.commands.project import EngineSource, Project, silent
from tablectl.commands.report_files import ReportFiles
from tablectl.commands.selection import Selection
from tablectl.model.plan import Plan
from tablectl.model.table_options import parse_size
from tablectl.planning.plan_file import PlanLimits
from tablectl.policies.config import Config, ServerSettings
from tablectl.policies.declare_setting import setting, settings_of
from tablectl.policies.field_types import ListOf, MapOf, Text, Word, flag, whole
from tablectl.policies.repository import Paths
from tablectl.policies.variables import is_variable
from tablectl.reports.render import ReportFormat, suffixes

EVERY_FORMAT = tuple(ReportFormat)
TEXT_AND_JSON = (ReportFormat.TEXT, ReportFormat.JSON)
OF_PAGES = (ReportFormat.TEXT, ReportFormat.JSON, ReportFormat.MARKDOWN, ReportFormat.HTML)
"""Of what people read, and no tool annotates lines with."""


def path_list(paths: Paths) -> list[Path]:
    """Given paths, without those of the configuration."""
    return [Path(each) for each in ([paths] if isinstance(paths, str | Path) else paths or ())]


def policy_paths() -> Any:
    """The argument ``PATHS``."""
    about = "Policy files or folders. Default: `policies` of tablectl.yaml."
    return setting((), ListOf(of=Text(parse=Path), description=about), metavar="PATHS")


def output_format(known: Sequence[ReportFormat]) -> Any:
    """The option ``--format`` of a command that has some formats."""
    meaning = {each.value: each for each in known}
    about = f"Output format: {', '.join(meaning)}. With json, errors are JSON too."
    takes = Word(words=tuple(meaning), meaning=meaning, description=about)
    return setting(ReportFormat.TEXT, takes, "--format", metavar="FORMAT")


def report_files(known: Sequence[ReportFormat]) -> Any:
    """The option ``--report`` of a command that has some formats."""
    about = f"Also write a report; the file name sets its format: {suffixes(known)}. Repeatable."
    return setting((), ListOf(of=Text(parse=Path), description=about), "--report", metavar="FILE")


@dataclass(frozen=True, kw_only=True)
class PlaceOptions(ServerSettings):
    """Where the policies and the tables are."""

    variables: Mapping[str, str] = setting(
        {},
        MapOf(
            of=Text(),
            why_not=lambda name: "" if is_variable(name) else "is not a name",
            description="Value of ${NAME} in policies. Default: the variable TABLECTL_VAR_NAME. Repeatable.",
        ),
        "--var",
        metavar="NAME=VALUE",
    )
    env: str | None = setting(
        None,
        Text(description="Environment of tablectl.yaml. Default: the variable TABLECTL_ENV."),
        "--env",
        metavar="NAME",
        empty="name an environment of tablectl.yaml, or leave it out",
    )
    """An empty text stands for the top level of ``tablectl.yaml`` alone."""
    directory: str | Path = "."
    """The directory of ``tablectl.yaml``."""
    cache: bool = setting(
        True, flag("Read every table from its log alone, and keep nothing for the next command."), "--no-cache"
    )
    """Whether what is read of tables is kept for the next call. ``apply`` never uses it."""
    spark: Any = None
    """A Spark session, by default a new one. It is used only to list and locate catalog tables, and to apply."""
    given: Mapping[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The options that were given, by name: settings among them override ``tablectl.yaml``."""

    def open(
        self,
        on_start: Callable[[str], None] = silent,
        *,
        plan: Plan | None = None,
        driver: str | None = None,
        env: str | None = None,
    ) -> Project:
        """The repository, in the environment of a saved plan if there is one. Raises as ``Project.open``."""
        return Project.open(
            self.directory,
            env=self.env if env is None else env,
            variables=self.variables,
            source=EngineSource(self.spark, driver, on_start),
            plan=plan,
            cached=self.cache,
            settings=self.given,
        )


@dataclass(frozen=True, kw_only=True)
class Tables(PlaceOptions):
    """Which tables a command selects: those that match any glob and any tag; all if there are none."""

    select: Sequence[str] = setting(
        (),
        ListOf(of=Text(), description="Include only tables whose name matches. Repeatable."),
        "--select",
        metavar="GLOB",
    )
    exclude: Sequence[str] = setting(
        (), ListOf(of=Text(), description="Exclude tables whose name matches. Repeatable."), "--exclude", metavar="GLOB"
    )
    tags: Sequence[str] = setting(
        (), ListOf(of=Text(), description="Include only tables with this tag. Repeatable."), "--tag", metavar="TAG"
    )

    @property
    def selection(self) -> Selection:
        """The tables that these options select."""
        return Selection(tuple(self.select), tuple(self.tags), tuple(self.exclude))


@dataclass(frozen=True)
class PolicyTables(Tables):
    """The tables of some policies."""

    paths: Paths = policy_paths()


@dataclass(frozen=True, kw_only=True)
class LookBack:
    """How far back a command searches the logs of tables."""

    look_back: int = setting(
        1000, whole(1, 1_000_000_000, "Number of commits of a table to search."), "--look-back", metavar="COMMITS"
    )


@dataclass(frozen=True, kw_only=True)
class NewTables:
    """Tables beyond the policies, and whether CI fails on those that were created past them."""

    everything: bool = setting(False, flag("Every table of `engine.catalog`."), "--all")
    fail_on: str | None = setting(
        None,
        Word(words=("unmanaged",), description="Exit with code 2 if tables were created past their policies."),
        "--fail-on",
        metavar="unmanaged",
    )


@dataclass(frozen=True, kw_only=True)
class ChangedTables(PolicyTables):
    """The tables of some policies, or those of them whose policies changed."""

    changed_since: str = setting(
        "",
        Text(description="Include only tables whose policy differs from that at a Git commit."),
        "--changed-since",
        metavar="REF",
    )


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """The maximum size of a plan."""

    max_tables: int | None = setting(
        None,
        whole(0, 1_000_000_000, "Refuse a plan that changes more than N tables."),
        "--max-tables",
        metavar="N",
    )
    max_bytes: int | None = setting(
        None,
        Text(
            parse=parse_size,
            noun="a size",
            example="20GB",
            description="Refuse a plan that rewrites more data, for example 20GB.",
        ),
        "--max-bytes",
        metavar="SIZE",
    )

    def check(self, plan: Plan, config: Config) -> None:
        """Raises ``LimitError`` for a plan that is larger than the options allow, or else the configuration."""
        most = config.max_tables if self.max_tables is None else self.max_tables
        PlanLimits(most, self.max_bytes).check(plan)


@dataclass(frozen=True, kw_only=True)
class Reported:
    """Where the result of a command goes."""

    format: ReportFormat = output_format(OF_PAGES)
    report: Sequence[Path] = report_files(OF_PAGES)

    def reports(self, plan: Path | None = None) -> ReportFiles:
        """The reports of the command; ``plan`` is the file of the plan itself. Raises as ``ReportFiles.of``."""
        known = next(about.takes for each, about in settings_of(type(self)) if each.name == "format")
        assert isinstance(known, Word)
        return ReportFiles.of(self.format, self.report, plan, tuple(map(ReportFormat, known.words)))


@dataclass(frozen=True, kw_only=True)
class Shown(Reported):
    """How the result of a command about plans and tables is shown."""

    format: ReportFormat = output_format(EVERY_FORMAT)
    report: Sequence[Path] = report_files(EVERY_FORMAT)
    verbose: bool = setting(False, flag("Show each table with its SQL, reasons and rollback."), "--verbose", "-v")
