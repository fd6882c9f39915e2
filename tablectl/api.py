"""The commands as functions. A given Spark session is never changed: statements run in a separate session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from time import time
from typing import Any, TypedDict, Unpack

import tablectl.notebook
from tablectl.applying.run_report import RunReport
from tablectl.delta.protocol import Client
from tablectl.frozen import frozen
from tablectl.insight.advice.lake_advice import DEFAULT_DAYS, MOST_DAYS, AdviceDepth, collect_advice
from tablectl.insight.advice.records import LakeAdvice
from tablectl.insight.matrix.conflict_report import ConflictReport
from tablectl.insight.matrix.context import Assumption
from tablectl.insight.matrix.read_conflicts import read_conflicts
from tablectl.lake_status import StatusDepth, collect_status
from tablectl.log.blame import MOST_COMMITS
from tablectl.model.errors import UsageError
from tablectl.model.plan import Plan
from tablectl.model.report_methods import ReportMethods
from tablectl.planning.drift import Drift
from tablectl.planning.lint import Linted
from tablectl.planning.plan_limits import PlanLimits
from tablectl.policies.effective_policy import Explanation
from tablectl.policies.effective_policy import explain as explain_table
from tablectl.policies.repository import Paths, declared_already, requested_tables
from tablectl.policies.spec import Specs
from tablectl.project import SHARED, EngineSource, Project
from tablectl.reports.status import LakeStatus
from tablectl.saved_plan import read_plan
from tablectl.selection import Selection
from tablectl.workflow.apply import NO_CANARY, Control, approval_of, canary_options, quiet_within, run
from tablectl.workflow.drift import find_drift
from tablectl.workflow.import_tables import Imported, import_policies
from tablectl.workflow.lint import lint_tables
from tablectl.workflow.plan import make_plan

ReportMethods.reports = tablectl.notebook


class Place(TypedDict, total=False):
    """Where the policies and the tables are."""

    variables: Mapping[str, str] | None
    """Values of ``${NAME}`` in policies."""
    env: str | None
    """One of the environments of ``tablectl.yaml``, by default that of ``TABLECTL_ENV``; an empty text means its top
    level alone."""
    directory: str | Path
    """The directory of ``tablectl.yaml``, by default the current one."""
    cache: bool
    """Whether what is read of tables is kept for the next call, in the directory that ``cache`` in ``tablectl.yaml``
    names or in the user's cache directory; by default yes. ``apply`` never uses it."""
    spark: Any
    """A Spark session, by default a new one. It is used only to list and locate catalog tables, and to apply."""


class Tables(Place, total=False):
    """Which tables a function selects: those that match any glob and any tag; all if there are none."""

    select: Sequence[str]
    """Globs of table names."""
    tags: Sequence[str]
    exclude: Sequence[str]
    """Globs of tables to leave out."""


class DriftOptions(Tables, total=False):
    """The options of ``drift``."""

    look_back: int
    """The maximum number of commits to search per table that differs."""


class StatusOptions(DriftOptions, total=False):
    """The options of ``status``."""

    tables: Sequence[str]
    """Further tables: identifiers and patterns, which need no policy."""
    debt: bool
    """Whether to count files and unclustered data from the whole log. It takes longer."""


class AdviseOptions(Tables, total=False):
    """The options of ``advise``."""

    tables: Sequence[str]
    """Tables and patterns, which need no policy; by default the tables of the policies."""
    days: int
    """How many days of commits to read."""
    list_files: bool
    """Whether to list all files of each table, too: failed writes leave some behind."""


class ConflictReportOptions(Place, total=False):
    """The options of ``conflict_report``."""

    clients: Sequence[tuple[Client, bool | None]]
    """Clients that replace those of the table's history; each with whether it has Photon, ``None`` if unknown."""
    auto_compact: bool | None
    """Whether sessions set ``spark.databricks.delta.autoCompact.enabled``; by default the table's property decides."""


class ApplyOptions(Tables, total=False):
    """The options of ``apply``."""

    driver: str | None
    """``"shared"`` states that the tables' writers commit in the driver of ``spark``. Without it, nothing is changed on
    S3 without exclusive commits."""
    proceed: str
    """The reason to continue although writers do not end in time."""
    override: str
    """The reason to run outside the calendar."""
    wait: float
    """Minutes for which to retry tables whose window could not be opened."""
    when: str
    """``"quiet"`` to start each table at a moment when few writes are expected to fail."""
    within: str
    """How long to wait for that moment: ``"90m"``, ``"6h"`` (the default), ``"2d"``."""
    canary: int | None
    """How many tables to change first, at least one of each group of equal changes; 0 to start all alike."""
    soak: float | None
    """Minutes for which the logs of these tables are watched before the others start."""
    stop_if_failed: int | None
    """The number of failed tables at which the others do not start; 0 for no limit. Default: 1."""
    stop_if_silent: int | None
    """The number of silent writers at which the others do not start; 0, the default, for no limit."""
    max_tables: int | None
    max_bytes: int | None
    """The maximum size of the plan: tables that it changes, bytes that it rewrites."""
    policies: Paths
    """The policies that a ready plan was made from, by default those of ``tablectl.yaml``."""
    without_policies: bool
    """Whether to trust a ready plan: its author then decides what is changed, where, and with which consent."""
    control: Control | None
    """Lets the caller follow the run and stop it."""


@frozen
class _PlaceOptions:
    """``Place`` with its defaults."""

    variables: Mapping[str, str] | None = None
    env: str | None = None
    directory: str | Path = "."
    cache: bool = True
    spark: Any = None

    def open(self, driver: str | None = None, plan: Plan | None = None) -> Project:
        source = EngineSource(self.spark, driver)
        return Project.open(
            self.directory, env=self.env, variables=self.variables, source=source, plan=plan, cached=self.cache
        )


@frozen
class _TableOptions(_PlaceOptions):
    """``Tables`` with its defaults."""

    select: Sequence[str] = ()
    tags: Sequence[str] = ()
    exclude: Sequence[str] = ()

    @property
    def selection(self) -> Selection:
        return Selection(_texts(self.select), _texts(self.tags), _texts(self.exclude))


@frozen
class _DriftOptions(_TableOptions):
    look_back: int = MOST_COMMITS


@frozen
class _StatusOptions(_DriftOptions):
    tables: Sequence[str] = ()
    debt: bool = False


@frozen
class _AdviseOptions(_TableOptions):
    tables: Sequence[str] = ()
    days: int = DEFAULT_DAYS
    list_files: bool = False


@frozen
class _ConflictReportOptions(_PlaceOptions):
    clients: Sequence[tuple[Client, bool | None]] = ()
    auto_compact: bool | None = None


@frozen
class _ApplyOptions(_TableOptions):
    """``ApplyOptions`` with its defaults."""

    driver: str | None = None
    proceed: str = ""
    override: str = ""
    wait: float = 0
    when: str = ""
    within: str = ""
    canary: int | None = None
    soak: float | None = None
    stop_if_failed: int | None = None
    stop_if_silent: int | None = None
    max_tables: int | None = None
    max_bytes: int | None = None
    policies: Paths = None
    without_policies: bool = False
    control: Control | None = field(default=None)

    @property
    def run_control(self) -> Control:
        given = self.control or Control()
        quiet = quiet_within(self.when, self.within)
        canary = canary_options(self.canary, self.soak, self.stop_if_failed, self.stop_if_silent)
        return replace(
            given,
            proceed=self.proceed or given.proceed,
            override=self.override or given.override,
            wait=self.wait or given.wait,
            quiet=given.quiet if quiet is None else quiet,
            canary=given.canary if canary == NO_CANARY else canary,
        )


def plan(paths: Paths = None, **options: Unpack[Tables]) -> Plan:
    """Plans the changes: compares policies with live tables. Changes nothing.

    ``paths`` are policy files or directories, by default those of ``tablectl.yaml`` in ``directory``. Options:
    ``select``, ``tags``, ``exclude``, ``variables``, ``env``, ``directory``, ``spark`` (see ``Tables``). Raises
    ``InputError`` with all errors in the policies. A table that cannot be read is in ``Plan.failures``, and the others
    are planned.
    """
    given = _TableOptions(**options)
    with given.open() as project:
        return make_plan(project, project.policies(paths), given.selection)


def apply(plan_or_paths: Plan | Paths = None, **options: Unpack[ApplyOptions]) -> RunReport:
    """Applies a plan in one protected window: a ``Plan``, the path of a plan file (``*.json``), or policies to plan
    first.

    A ready plan is compared with the policies it was made from: those at ``policies``, by default those of
    ``tablectl.yaml`` in ``directory``, with ``variables``. It is refused (``PlanFileError``) if it contains anything
    that they do not declare, and each table is planned again under its lease. Options: those of ``plan``, and
    ``driver``, ``proceed``, ``override``, ``wait``, ``when``, ``within``, ``canary``, ``soak``, ``stop_if_failed``,
    ``stop_if_silent``,
    ``max_tables``, ``max_bytes``, ``policies``, ``without_policies``, ``control`` (see
    ``ApplyOptions``).

    ``RunReport.exit_code`` is the result. Raises ``PlanFileError`` for a plan that was edited or comes from another
    version, and ``UsageError`` if a ready plan comes with a selection, which would have no effect, or without policies.
    A plan is applied in its own environment, and refused (``PlanFileError``) if ``env`` names another. Raises
    ``LimitError`` for a plan that changes more than ``max_tables`` tables or rewrites more than ``max_bytes``.
    """
    given = replace(_ApplyOptions(**options), cache=False)
    ready, paths = _ready_plan(plan_or_paths, given)
    if given.driver is not None and (given.driver != SHARED or given.spark is None):
        hint = 'with the session of the writers: driver="shared"'
        raise UsageError(f"driver={given.driver!r} makes no sense here", hint)
    with given.open(given.driver, ready) as project:
        specs: Specs | None
        if ready is None:
            specs = project.policies(paths)
            plan = make_plan(project, specs, given.selection)
        else:
            plan = ready
            specs = None if given.without_policies else project.policies_of_plan(given.policies)
        PlanLimits(given.max_tables, given.max_bytes).check(plan)
        return run(project, plan, given.run_control, approval_of(project, plan, specs, given.max_bytes))


def _ready_plan(plan_or_paths: Plan | Paths, given: _ApplyOptions) -> tuple[Plan | None, Paths]:
    """The ready plan, or ``None`` and the policies to plan first. Raises as ``apply``."""
    plan = plan_or_paths if isinstance(plan_or_paths, Plan) else None
    paths = None if isinstance(plan_or_paths, Plan) else plan_or_paths
    file = Path(str(paths)) if isinstance(paths, str | Path) and str(paths).endswith(".json") else None
    if (plan or file) and (given.select or given.tags or given.exclude):
        raise UsageError("a ready plan is applied as it is", "select when planning, and apply that plan")
    ready = read_plan(file) if file else plan
    if ready is None and (given.policies or given.without_policies):
        raise UsageError("`policies` and `without_policies` are for ready plans", "name the policies to plan first")
    return ready, paths


def _texts(given: Sequence[str]) -> tuple[str, ...]:
    """A single text counts as one item, not as a sequence of letters."""
    return (given,) if isinstance(given, str) else tuple(given)


def drift(paths: Paths = None, **options: Unpack[DriftOptions]) -> Drift:
    """The differences from the policies, and the commit that caused each. Changes nothing.

    Options and errors as in ``plan``, and ``look_back``: the maximum number of commits to search per table that
    differs.
    """
    given = _DriftOptions(**options)
    with given.open() as project:
        return find_drift(project, project.policies(paths), given.selection, given.look_back)


def status(paths: Paths = None, **options: Unpack[StatusOptions]) -> LakeStatus:
    """The state of every table of the policies, and of further ``tables`` (``tablectl status``). Changes nothing.

    Options and errors as in ``drift``. A table that cannot be read is a row with its error.
    """
    given = _StatusOptions(**options)
    with given.open() as project:
        others = project.requested(_texts(given.tables))
        depth = StatusDepth(look_back=given.look_back, debt=given.debt, now=int(time() * 1000))
        return collect_status(project, project.any_policies(paths), others, given.selection, depth)


def advise(paths: Paths = None, **options: Unpack[AdviseOptions]) -> LakeAdvice:
    """What to declare, from the logs of the tables of the policies, or of ``tables`` (``tablectl advise``). Changes
    nothing.

    Options and errors as in ``plan``, and ``tables``, ``days``, ``list_files`` (see ``AdviseOptions``). A table that
    cannot be read is an entry with its error.
    """
    given = _AdviseOptions(**options)
    if not 1 <= given.days <= MOST_DAYS:
        raise UsageError(f"days={given.days}: a number from 1 to {MOST_DAYS}")
    with given.open() as project:
        others = project.requested(_texts(given.tables))
        depth = AdviceDepth(days=given.days, list_files=given.list_files)
        return collect_advice(project, project.any_policies(paths), others, given.selection, depth)


def lint(paths: Paths = None, **options: Unpack[Tables]) -> Linted:
    """The lint findings on live tables in their planned state (``tablectl lint``). Changes nothing.

    Options and errors as in ``plan``. ``lint:`` in ``tablectl.yaml`` sets the severity of each finding.
    """
    given = _TableOptions(**options)
    with given.open() as project:
        return lint_tables(project, project.policies(paths), given.selection)


def import_tables(tables: str | Sequence[str], **options: Unpack[Place]) -> Imported:
    """Policies for live tables, which are given as identifiers and patterns in policy syntax. ``Imported.text`` is a
    file.

    Options: ``variables``, ``env``, ``directory``, ``spark`` (see ``Place``). Tables that have an entry in the policies
    of ``directory`` are left out. Raises ``UsageError`` for text that is neither an identifier nor a pattern. A table
    that cannot be read is in ``Imported.failures``.
    """
    with _PlaceOptions(**options).open() as project:
        asked = requested_tables(_texts(tables), project.catalog, project.variables)
        return import_policies(project, asked, declared_already(project.any_policies(), besides=""))


def explain(table: str, paths: Paths = None, **options: Unpack[Place]) -> Explanation:
    """The effective policy of a table: each value, the line that declares it, and what it overrides.

    Options: ``variables``, ``env``, ``directory``. Reads no live table. Raises ``UsageError`` if no policy applies to
    the table.
    """
    with _PlaceOptions(**options).open() as project:
        return explain_table(project.policies(paths), table, project.catalog, project.dialect)


def conflict_report(table: str, paths: Paths = None, **options: Unpack[ConflictReportOptions]) -> ConflictReport:
    """Conflicts between writers of a live table, in its current and in its planned state (``tablectl conflicts``).

    Options: ``variables``, ``env``, ``directory``, ``spark``; ``clients``, which replace those of the table's history,
    each with whether it has Photon, ``None`` if unknown; and ``auto_compact``, whether sessions set
    ``spark.databricks.delta.autoCompact.enabled``. A table without a policy is analysed in its current state only.
    Without ``paths``, a directory without policies is valid. Raises ``LiveError`` if the table cannot be read.
    """
    given = _ConflictReportOptions(**options)
    with given.open() as project:
        assumption = Assumption(tuple(given.clients), given.auto_compact)
        return read_conflicts(project, *project.find(table, paths), assumption)
