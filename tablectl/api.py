"""The commands as functions. A given Spark session is never changed: statements run in a separate session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from tablectl.applying.run_report import RunReport
from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.engine.spark import SparkEngine, SparkOptions, open_spark, wrap_spark
from tablectl.files import read_regular
from tablectl.log.blame import MOST_COMMITS
from tablectl.log.commit_cache import DiskCache, cache_directory
from tablectl.log.write_history import CommitCache, NoCache
from tablectl.model.errors import EngineError, PlanFileError, TablectlError, UsageError
from tablectl.model.plan import Plan
from tablectl.planning.conflict_report import ConflictReport
from tablectl.planning.drift import Drift
from tablectl.planning.limits import PlanLimits
from tablectl.planning.lint import Linted
from tablectl.planning.plan_file import MAX_BYTES, check_environment, load_plan
from tablectl.policies.config import ENV, Config, load_config, signers_of
from tablectl.policies.effective_policy import Explanation, parse_name, spec_for
from tablectl.policies.effective_policy import explain as explain_table
from tablectl.policies.repository import Paths, load_any, load_repository, variables_for
from tablectl.policies.requested_tables import declared_already, requested_tables
from tablectl.policies.spec import Specs
from tablectl.selection import Selection
from tablectl.signatures import check_signature
from tablectl.workflow import (
    Control,
    Imported,
    approval_of,
    find_drift,
    import_policies,
    lint_tables,
    make_outlook,
    make_plan,
    run,
    store_options,
)

_SHARED = "shared"
"""The value of ``driver``: all writers of the tables commit in the driver of the given session."""


def plan(
    paths: Paths = None,
    *,
    select: Sequence[str] = (),
    tags: Sequence[str] = (),
    exclude: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    directory: str | Path = ".",
    spark: Any = None,
    cache: bool = True,
) -> Plan:
    """Plans the changes: compares policies with live tables. Changes nothing.

    ``paths`` are policy files or directories, by default those of ``tablectl.yaml`` in ``directory``. ``env`` is one of
    its environments, by default that of ``TABLECTL_ENV``; an empty text means its top level alone. ``spark`` is used
    only to list and locate catalog tables. Raises ``InputError`` with all errors in the policies. A table that cannot
    be read is in ``Plan.failures``, and the others are planned.
    """
    config = load_config(Path(directory), os.environ, env)
    with Engines(config, spark) as engines:
        selection = Selection(_texts(select), _texts(tags), _texts(exclude))
        specs = load_repository(paths, config, directory, variables or {}, os.environ)
        return _planned(specs, selection, config, engines, cache=cache)


def apply(
    plan_or_paths: Plan | Paths = None,
    *,
    select: Sequence[str] = (),
    tags: Sequence[str] = (),
    exclude: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    directory: str | Path = ".",
    spark: Any = None,
    driver: str | None = None,
    proceed: str = "",
    override: str = "",
    wait: float = 0,
    watch: float = 0,
    max_tables: int | None = None,
    max_bytes: int | None = None,
    policies: Paths = None,
    without_policies: bool = False,
    require_signature: bool = False,
    control: Control | None = None,
) -> RunReport:
    """Applies a plan in one protected window: a ``Plan``, the path of a plan file (``*.json``), or policies to plan
    first.

    A ready plan is compared with the policies it was made from: those at ``policies``, by default those of
    ``tablectl.yaml`` in ``directory``, with ``variables``. It is refused (``PlanFileError``) if it contains anything
    that they do not declare, and each table is planned again under its lease. ``without_policies`` trusts the plan: its
    author then decides what is changed, on which tables and with which consent.

    ``require_signature`` refuses (``PlanFileError``) all but a plan file with a signature beside it, ``PLAN.sig``, by
    one of ``signatures.signers`` in ``tablectl.yaml``; ``signatures.required`` there does the same.

    ``proceed`` is the reason to continue although writers do not end in time, ``override`` the reason to run outside
    the calendar. ``wait`` is the number of minutes for which to retry tables whose window could not be opened,
    ``watch`` the number of minutes to wait for earlier writers to come back. ``control`` lets the caller follow the run
    and stop it. ``driver="shared"`` states that the tables' writers commit in the driver of ``spark``. Without it,
    nothing is changed on S3 without exclusive commits.

    ``RunReport.exit_code`` is the result. Raises ``PlanFileError`` for a plan that was edited or comes from another
    version, and ``UsageError`` if a ready plan comes with a selection, which would have no effect, or without policies.
    A plan is applied in its own environment, and refused (``PlanFileError``) if ``env`` names another. Raises
    ``LimitError`` for a plan that changes more than ``max_tables`` tables or rewrites more than ``max_bytes``.
    """
    given_plan = plan_or_paths if isinstance(plan_or_paths, Plan) else None
    paths = None if isinstance(plan_or_paths, Plan) else plan_or_paths
    if (given_plan or _is_plan_file(paths)) and (select or tags or exclude):
        raise UsageError("a ready plan is applied as it is", "select when planning, and apply that plan")
    file = Path(str(paths)) if _is_plan_file(paths) else None
    signers = required_signers(file, directory, required=require_signature)
    ready = read_plan(file, signers=signers) if file else given_plan
    if ready is None and (policies or without_policies):
        raise UsageError("`policies` and `without_policies` are for ready plans", "name the policies to plan first")
    config = config_of(ready, env, directory) if ready else load_config(Path(directory), os.environ, env)
    selection = Selection(_texts(select), _texts(tags), _texts(exclude))
    given = control or Control()
    control = replace(
        given,
        proceed=proceed or given.proceed,
        override=override or given.override,
        wait=wait or given.wait,
        watch=watch or given.watch,
    )
    if driver is not None and (driver != _SHARED or spark is None):
        raise UsageError(f"driver={driver!r} makes no sense here", 'with the session of the writers: driver="shared"')
    with Engines(config, spark, driver=driver) as engines:
        if ready is None:
            specs: Specs | None = load_repository(paths, config, directory, variables or {}, os.environ)
            assert specs is not None
            plan = _planned(specs, selection, config, engines)
        else:
            plan = ready
            specs = None if without_policies else policies_of_plan(policies, config, directory, variables or {})
        PlanLimits(max_tables, max_bytes).check(plan)
        approve = approval_of(plan, specs, config, max_bytes)
        return run(plan, engines.open, config, os.environ, control, Path(directory), approve)


def _texts(given: Sequence[str]) -> tuple[str, ...]:
    """A single text counts as one item, not as a sequence of letters."""
    return (given,) if isinstance(given, str) else tuple(given)


def commit_cache(*, enabled: bool = True) -> CommitCache:
    """The cache of commits in the user's cache directory; one that keeps nothing if there is no such directory."""
    directory = cache_directory(os.environ) if enabled else None
    return DiskCache(directory) if directory else NoCache()


def _planned(specs: Specs, selection: Selection, config: Config, engines: Engines, *, cache: bool = True) -> Plan:
    stores, env, severities = store_options(config), config.environment, config.severities
    dialect = config.engine.dialect
    kept = commit_cache(enabled=cache)
    return make_plan(specs, selection, dialect, engines.start, stores, env=env, severities=severities, cache=kept)


def policies_of_plan(paths: Paths, config: Config, directory: str | Path, variables: Mapping[str, str]) -> Specs:
    """The policies to compare a plan with. Raises as ``load_repository``, and ``UsageError`` if there are none."""
    if not paths and not (Path(directory) / config.policies).exists():
        raise UsageError(
            "there are no policies here to compare the plan with",
            "run this where the policies are, or name them; `--without-policies` (`without_policies=True`) takes the "
            "plan's word for which tables are changed, to what, and with which consent",
        )
    return load_repository(paths, config, directory, variables, os.environ)


def drift(
    paths: Paths = None,
    *,
    select: Sequence[str] = (),
    tags: Sequence[str] = (),
    exclude: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    directory: str | Path = ".",
    spark: Any = None,
    look_back: int = MOST_COMMITS,
) -> Drift:
    """The differences from the policies, and the commit that caused each. Changes nothing.

    Arguments and errors as in ``plan``. ``look_back`` is the maximum number of commits to search per table that
    differs.
    """
    config = load_config(Path(directory), os.environ, env)
    with Engines(config, spark) as engines:
        specs = load_repository(paths, config, directory, variables or {}, os.environ)
        selection = Selection(_texts(select), _texts(tags), _texts(exclude))
        stores, env = store_options(config), config.environment
        return find_drift(specs, selection, engines.start, stores, look_back=look_back, env=env)


def lint(
    paths: Paths = None,
    *,
    select: Sequence[str] = (),
    tags: Sequence[str] = (),
    exclude: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    directory: str | Path = ".",
    spark: Any = None,
) -> Linted:
    """The lint findings on live tables in their planned state (``tablectl lint``). Changes nothing.

    Arguments and errors as in ``plan``. ``lint:`` in ``tablectl.yaml`` sets the severity of each finding.
    """
    config = load_config(Path(directory), os.environ, env)
    with Engines(config, spark) as engines:
        specs = load_repository(paths, config, directory, variables or {}, os.environ)
        selection = Selection(_texts(select), _texts(tags), _texts(exclude))
        stores, dialect = store_options(config), config.engine.dialect
        return lint_tables(specs, selection, dialect, engines.start, stores, severities=config.severities)


def import_tables(
    tables: str | Sequence[str],
    *,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    directory: str | Path = ".",
    spark: Any = None,
) -> Imported:
    """Policies for live tables, which are given as identifiers and patterns in policy syntax. ``Imported.text`` is a
    file.

    Tables that have an entry in the policies of ``directory`` are left out. Raises ``UsageError`` for text that is
    neither an identifier nor a pattern. A table that cannot be read is in ``Imported.failures``.
    """
    config = load_config(Path(directory), os.environ, env)
    given = variables_for(config, variables or {}, os.environ)
    known = declared_already(load_any(None, config, directory, variables or {}, os.environ), besides="")
    with Engines(config, spark) as engines:
        texts = [tables] if isinstance(tables, str) else tables
        return import_policies(requested_tables(texts, config.engine.catalog, given), known, config, engines.start)


def explain(
    table: str,
    paths: Paths = None,
    *,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    directory: str | Path = ".",
) -> Explanation:
    """The effective policy of a table: each value, the line that declares it, and what it overrides.

    Reads no live table. Raises ``UsageError`` if no policy applies to the table.
    """
    config = load_config(Path(directory), os.environ, env)
    specs = load_repository(paths, config, directory, variables or {}, os.environ)
    return explain_table(specs, table, config.engine.catalog, config.engine.dialect)


def outlook(
    table: str,
    paths: Paths = None,
    *,
    clients: Sequence[tuple[Client, bool | None]] = (),
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    directory: str | Path = ".",
    spark: Any = None,
) -> ConflictReport:
    """Conflicts between writers of a live table, in its current and in its planned state (``tablectl conflicts``).

    ``clients`` replace those of the table's history; each comes with whether it has Photon, ``None`` if unknown. A
    table without a policy is analysed in its current state only. Without ``paths``, a directory without policies is
    valid. Raises ``LiveError`` if the table cannot be read.
    """
    config = load_config(Path(directory), os.environ, env)
    name = parse_name(table, config.engine.catalog, config.engine.dialect)
    spec = spec_for(load_any(paths, config, directory, variables or {}, os.environ), name)
    with Engines(config, spark) as engines:
        dialect, stores = config.engine.dialect, store_options(config)
        return make_outlook(name, spec, dialect, engines.locate, stores, clients, commit_cache())


def _is_plan_file(given: Paths) -> bool:
    return isinstance(given, str | Path) and str(given).endswith(".json")


def config_of(plan: Plan, env: str | None, directory: str | Path) -> Config:
    """The configuration for applying a ready plan: that of the plan's environment.

    Raises ``PlanFileError`` if ``env``, or without it ``TABLECTL_ENV``, names another environment, or if
    ``tablectl.yaml`` no longer has the plan's environment.
    """
    check_environment(plan, (os.environ.get(ENV) or None) if env is None else env)
    try:
        return load_config(Path(directory), os.environ, plan.env)
    except UsageError as error:
        raise PlanFileError(f"the plan is for the environment {plan.env}: {error.message}", error.hint) from None


def required_signers(plan: Path | None, directory: str | Path, *, required: bool) -> Path | None:
    """The allowed-signers file for a plan, as ``signers_of``. Raises ``PlanFileError`` where only signed plans are
    applied and there is no plan file, which alone can be signed.
    """
    signers = signers_of(Path(directory), os.environ, required=required)
    if signers is not None and plan is None:
        raise PlanFileError(
            "only signed plans may be applied, and this is no plan file",
            "run `tablectl plan --out FILE`, have that reviewed and signed by `tablectl sign FILE --key KEY`, apply it",
        )
    return signers


def read_plan(path: Path, *, to_apply: bool = True, signers: Path | None = None) -> Plan:
    """The plan in a file. With ``signers`` its signature is checked before anything else, on the bytes that are read.

    Raises ``TablectlError`` where it cannot be read, and ``PlanFileError`` where it was edited or damaged, or is not
    signed as it must be.
    """
    data = plan_bytes(path)
    if signers is not None:
        check_signature(data, path, signers)
    return load_plan(data, str(path), to_apply=to_apply)


def plan_bytes(path: Path) -> bytes:
    """What is in a plan file. Raises ``TablectlError`` where it cannot be read."""
    try:
        return read_regular(path, MAX_BYTES)
    except OSError as error:
        raise TablectlError(
            f"{path}: {error.strerror or error}", "plans are written by `tablectl plan --out FILE`"
        ) from error


class Engines:
    """The engine of a command, started on first use: most plans never need one."""

    def __init__(
        self,
        config: Config,
        spark: Any = None,
        on_start: Callable[[str], None] = lambda _what: None,
        driver: str | None = None,
    ) -> None:
        """``driver`` states whether the driver of the given session is the writers' own."""
        self._driver = driver
        self._config = config
        self._spark = spark
        self._on_start = on_start
        self._lookup: SparkEngine | None = None
        self._broken: EngineError | None = None
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lookup is not None:
            self._lookup.close()

    def locate(self, table: TableName) -> str:
        """The location of a catalog table."""
        return self.start().location(table)

    def start(self) -> SparkEngine:
        """An engine without a stamp, shared by all look-ups of the command. A failed start is not retried."""
        if self._broken is not None:
            raise self._broken
        if self._lookup is None:
            try:
                self._lookup = self.open("")
            except EngineError as error:
                self._broken = error
                raise
        return self._lookup

    def open(self, stamp: str) -> SparkEngine:
        """An engine whose commits carry the stamp."""
        engine = self._config.engine
        bound = None if engine.statement_bound is None else float(engine.statement_bound)
        options = SparkOptions(
            engine.dialect, engine.remote, engine.conf, float(engine.heartbeat), float(engine.dead_after), bound
        )
        if self._spark is not None:
            return wrap_spark(self._spark, engine.dialect, stamp, options, stated=self._driver == _SHARED)
        remote = engine.remote
        if not self._started:
            self._on_start(f"connecting to {remote}" if remote else "starting Spark")
            self._started = True
        return open_spark(options, stamp)
