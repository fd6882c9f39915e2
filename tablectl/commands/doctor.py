"""``tablectl doctor``: checks what a plan and an apply need from this machine, and says what to do (docs/doctor.md)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit
from uuid import uuid4

import typer

from tablectl.applying.first_checks import check_commits
from tablectl.applying.run_context import StopTableError
from tablectl.catalogs.open_catalogs import WITHOUT_SPARK
from tablectl.commands.output import Output
from tablectl.commands.parameters import Env, Place, PolicyPaths, Remote, TextOrJson, VarValues
from tablectl.commands.project import Project
from tablectl.delta.credentials import server_text
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import TableName
from tablectl.documents.style import plural
from tablectl.engine.find_java import java_problem
from tablectl.engine.interface import CommitDriver
from tablectl.log.reader import read_commits
from tablectl.model.errors import ExitCode, InputError, TablectlError, UsageError
from tablectl.model.operations import RIGHTS
from tablectl.policies.catalog_config import CONNECTOR
from tablectl.policies.config import EngineConfig
from tablectl.policies.declared_tables import TableSpec
from tablectl.policies.read_config import BASE, is_unmerged
from tablectl.policies.repository import Paths
from tablectl.reports.render import ReportFormat
from tablectl.storage.records import DiskRecords, RecordStore
from tablectl.version import __version__

_MOST_TABLES = 20
_RECORDS = ("lease", "guards")
"""The folders of records."""
_CLOCK_AHEAD = 300
"""Seconds by which the newest commit of a table may be later than this machine's clock."""
_CREDENTIALS = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"),
    "az": ("AZURE_CLIENT_ID", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_ACCOUNT_NAME"),
}
_FAMILIES = {"s3": "s3", "s3a": "s3", "gs": "gs", "abfs": "az", "abfss": "az", "az": "az"}


class Health(StrEnum):
    """How a check ended."""

    OK = "ok"
    NOTE = "note"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    health: Health
    subject: str
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class _ConfiguredDriver:
    """The driver of an apply as the configuration describes it, for machines on which it was not started."""

    dialect: str
    shared: bool
    conf: Mapping[str, str]

    @property
    def stated(self) -> bool:
        """A server of ``engine.remote`` is the writers' own by the user's word."""
        return self.shared

    def log_store(self, scheme: str) -> str:
        """As ``CommitDriver.log_store``."""
        return self.conf.get("spark.delta.logStore.class") or self.conf.get(f"spark.delta.logStore.{scheme}.impl", "")


@dataclass(frozen=True, kw_only=True)
class _Asked(Place):
    """What is checked, and where."""

    paths: Paths = None
    engine: bool = False
    read_only: bool = False


def doctor_command(
    ctx: typer.Context,
    paths: PolicyPaths = None,
    *,
    engine: Annotated[bool, typer.Option("--engine", help="Also start the engine and list its catalog.")] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Do not write a test record: for machines that only plan.")
    ] = False,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    form: TextOrJson = ReportFormat.TEXT,
) -> ExitCode:
    """Check what plan and apply need here, and say what to do: Java, Spark, stores, credentials, rights, clock.

    A failed check does not stop the others.

    Example: tablectl doctor --engine
    """
    out: Output = ctx.obj
    checks: list[Check] = []
    asked = _Asked(paths=paths, engine=engine, read_only=read_only, variables=variables, env=env, remote=remote)
    for check in _checks(asked, out):
        checks.append(check)
        if form is ReportFormat.TEXT:
            out.result(_text(check))
    failed = any(each.health is Health.FAIL for each in checks)
    if form is ReportFormat.JSON:
        out.json_result({"healthy": not failed, "checks": checks})
    return ExitCode.ERROR if failed else ExitCode.DONE


def _text(check: Check) -> str:
    fix = f"      fix: {check.fix}\n" if check.fix else ""
    return f"{check.health:<4}  {check.subject}: {check.found}\n{fix}"


def _checks(asked: _Asked, out: Output) -> Iterator[Check]:
    yield Check(Health.OK, "tablectl", f"{__version__}, Python {sys.version.split()[0]}")
    yield _continuous_integration(os.environ)
    try:
        with asked.open(out.note) as project:
            yield Check(Health.OK, "tablectl.yaml", f"dialect {project.dialect}, catalog {project.catalog}")
            yield from _catalogs(project, asked)
            yield from _engine(project, asked)
            yield from _tables(project, asked)
    except TablectlError as error:
        yield _failure("tablectl.yaml", error)


def _failure(subject: str, error: TablectlError) -> Check:
    first = error.problems[0] if isinstance(error, InputError) and error.problems else None
    if first is not None:
        place = f"{first.file}:{first.line}" if first.line else first.file
        return Check(Health.FAIL, subject, f"{place}: {first.message}", first.hint)
    return Check(Health.FAIL, subject, error.message, error.hint)


def _continuous_integration(environ: Mapping[str, str]) -> Check:
    if is_unmerged(environ) and not environ.get(BASE):
        fix = f"set {BASE} to the base branch's tablectl.yaml (docs/ci.md): a branch must not choose it"
        return Check(Health.NOTE, "CI", "a job of a pull request", fix)
    if environ.get("GITHUB_ACTIONS") == "true":
        return Check(Health.OK, "CI", "GitHub Actions")
    if environ.get("GITLAB_CI") == "true":
        return Check(Health.OK, "CI", "GitLab")
    return Check(Health.OK, "CI", "none")


# Catalogs and the engine


def _without_spark(project: Project) -> list[str]:
    """The catalogs that are read without the engine."""
    return [name for name, each in project.config.catalogs.items() if each.type in WITHOUT_SPARK]


def _catalogs(project: Project, asked: _Asked) -> Iterator[Check]:
    """Whether each catalog that needs no engine answers and shows a schema, and whether an apply reaches it."""
    for name in _without_spark(project):
        try:
            schemas = project.open_catalog().schemas(name)
        except TablectlError as error:
            yield _failure(f"catalog {name}", error)
        else:
            fix = "" if schemas else "give the login USE CATALOG and USE SCHEMA: a catalog lists what the login may see"
            found = f"it answers, {plural(len(schemas), 'schema')}"
            yield Check(Health.OK if schemas else Health.FAIL, f"catalog {name}", found, fix)
        if not asked.read_only:
            yield from _connector(project, name, asked)


def _connector(project: Project, name: str, asked: _Asked) -> Iterator[Check]:
    """Whether the engine knows a Unity Catalog, by which statements name its tables."""
    config = project.config
    if config.catalogs[name].type != "unity" or dialect_of(config.engine.dialect).maintains_managed:
        return
    key, subject = f"spark.sql.catalog.{name}", f"connector of {name}"
    if asked.engine:
        try:
            listed = project.engines.start().schemas(name)
            yield Check(Health.OK, subject, f"Spark lists it, {plural(len(listed), 'schema')}")
        except TablectlError as error:
            yield _failure(subject, error)
    elif not config.engine.server and key not in config.engine.conf:
        fix = f"set it to {CONNECTOR} (docs/unity-catalog.md); if spark-defaults.conf has it, --engine shows that"
        yield Check(Health.FAIL, subject, f"engine.conf has no {key}, which an apply needs", fix)


def _engine(project: Project, asked: _Asked) -> Iterator[Check]:
    server = project.config.engine.server
    extra, names = _packages(project.config.engine)
    yield from (_package(name, extra) for name in names)
    if not server:
        problem = java_problem(os.environ)
        yield Check(Health.FAIL, "Java", problem) if problem else Check(Health.OK, "Java", "17 or newer")
    if not asked.engine:
        yield Check(Health.NOTE, "engine", "not started; --engine starts it and lists the catalog")
        return
    try:
        engine = project.engines.start()
        listed = ""
        if project.catalog not in _without_spark(project):
            listed = f"; {project.catalog}: {plural(len(engine.schemas(project.catalog)), 'schema')}"
        started = f"{server_text(server)} starts" if server else "a local Spark starts"
        yield Check(Health.OK, "engine", f"{started}{listed}")
    except TablectlError as error:
        yield _failure("engine", error)


def _packages(engine: EngineConfig) -> tuple[str, tuple[str, ...]]:
    """The extra that installs what an apply needs, and its packages."""
    if engine.thrift:
        return "thrift", ("impyla",)
    if engine.warehouse:
        return "warehouse", ("databricks-sql-connector", "databricks-sdk")
    if (engine.remote or "").startswith("databricks"):
        return "databricks", ("databricks-connect",)
    return "spark", ("pyspark",) if engine.server else ("pyspark", "delta-spark")


def _package(name: str, extra: str) -> Check:
    try:
        return Check(Health.OK, name, metadata.version(name))
    except metadata.PackageNotFoundError:
        found = "not installed; apply needs it, a plan does not"
        return Check(Health.NOTE, name, found, f"see docs/install.md, extra `{extra}`")


# Tables, their stores, their records


def _tables(project: Project, asked: _Asked) -> Iterator[Check]:
    try:
        specs = project.policies(asked.paths)
    except TablectlError as error:
        yield _failure("policies", error)
        return
    yield Check(
        Health.OK, "policies", f"{plural(len(specs.tables), 'table')}, {plural(len(specs.patterns), 'pattern')}"
    )
    places: dict[str, tuple[TableName, str]] = {}
    for spec in specs.tables[:_MOST_TABLES]:
        try:
            location = _location(project, spec, asked)
        except TablectlError as error:
            yield _failure(spec.name.text, error)
            continue
        if location is None:
            yield Check(Health.NOTE, spec.name.text, "not looked up; --engine does, or `location:` in its policy")
            continue
        readable = False
        for check in _log(project, spec.name, location):
            readable = readable or check.health is Health.OK
            yield check
        if readable:
            places.setdefault(_bucket(location), (spec.name, location))
    yield from (
        _credentials(scheme) for scheme in sorted({place.partition(":")[0] for place in places if ":" in place})
    )
    if not asked.read_only:
        yield from _rights(project, [spec.name for spec in specs.tables[:_MOST_TABLES]])
    for name, location in places.values():
        if not asked.read_only:
            yield from _records(project, name, location)
            yield from _commits(project, location, asked)


def _rights(project: Project, names: Sequence[TableName]) -> Iterator[Check]:
    """Whether the login may run every statement on the tables, where their catalog tells that."""
    if project.catalogs is None or dialect_of(project.dialect).runtime is None:
        return
    needs = [*RIGHTS.items()]
    for name, rights in project.catalogs.rights(names).items():
        lacking = [*rights.lacking(needs)]
        subject, found = f"rights on {name.text}", f"the catalog does not show that {rights.principal} has "
        fix = "give it the right before it applies such statements (docs/databricks.md, section Rights to apply)"
        if lacking:
            yield Check(Health.NOTE, subject, found + "; ".join(lacking), fix)
        else:
            yield Check(Health.OK, subject, f"{rights.principal} may run every statement")


def _location(project: Project, spec: TableSpec, asked: _Asked) -> str | None:
    if spec.name.is_path:
        return spec.name.parts[0]
    if spec.location:
        return spec.location
    return project.open_catalog().location(spec.name) if asked.engine or project.config.catalogs else None


def _bucket(location: str) -> str:
    split = urlsplit(location)
    return f"{split.scheme}://{split.netloc}" if split.netloc else "disk"


def _log(project: Project, name: TableName, location: str) -> Iterator[Check]:
    try:
        commits = read_commits(location, limit=1, options=project.stores)
    except TablectlError as error:
        yield _failure(name.text, error)
        return
    version = commits[0].version if commits else 0
    yield Check(Health.OK, name.text, f"its log can be read, version {version}")
    ahead = commits[0].timestamp / 1000 - time.time() if commits else 0
    if ahead > _CLOCK_AHEAD:
        fix = "set the clock (NTP): object stores refuse requests that are signed at a wrong time"
        yield Check(Health.FAIL, "clock", f"its last commit is {ahead:.0f} s in the future of this machine", fix)


def _credentials(scheme: str) -> Check:
    names = [each for each in _CREDENTIALS.get(_FAMILIES.get(scheme, ""), ()) if os.environ.get(each)]
    said = ", ".join(names) if names else "none in the environment: the machine's role, or a public bucket"
    return Check(Health.OK, f"credentials for {scheme}", said)


def _records(project: Project, name: TableName, location: str) -> Iterator[Check]:
    """Whether this machine may put, read, list and delete records next to a table, and whether the store keeps what is
    there.
    """
    try:
        store = project.records(location)
        with _without_traces(store):
            for folder in _RECORDS:
                _probe(store, f"{folder}/doctor-{uuid4().hex}.json")
        yield Check(Health.OK, f"records of {name.text}", f"put if absent, read, list and delete work in {store}")
    except TablectlError as error:
        check = _failure(f"records of {name.text}", error)
        yield Check(
            check.health, check.subject, check.found, check.fix or "--read-only skips this where only plans run"
        )


@contextmanager
def _without_traces(store: RecordStore) -> Iterator[None]:
    """Removes the folders that were made meanwhile, if nothing is in them. A bucket has none."""
    folders = [*_RECORDS, ""] if isinstance(store, DiskRecords) else []
    missing = [each for each in folders if not os.path.lexists(Path(str(store), each))]
    try:
        yield
    finally:
        if isinstance(store, DiskRecords):
            for each in missing:  # one stays if another process has put something there
                store.delete_folder(each)


def _commits(project: Project, location: str, asked: _Asked) -> Iterator[Check]:
    """Whether an apply would refuse the tables of a bucket in S3, because another driver can overwrite its commits."""
    if _FAMILIES.get(location.partition(":")[0].lower()) != "s3":
        return
    engine, subject = project.config.engine, f"commits in {_bucket(location)}"
    driver: CommitDriver = _ConfiguredDriver(engine.dialect, bool(engine.server), engine.conf)
    try:
        if asked.engine:
            driver = project.engines.start()
        check_commits(driver, location, exclusive=engine.exclusive_commits)
    except StopTableError as end:
        # A Spark that was not started may have a log store in its spark-defaults.conf.
        health, found = (Health.FAIL, "") if asked.engine else (Health.NOTE, "by `engine.conf`, an apply refuses: ")
        yield Check(health, subject, f"{found}{end.message}", end.hint)
    except TablectlError as error:
        yield _failure(subject, error)
    else:
        yield Check(Health.OK, subject, "an apply does not refuse them; every writer must use the same log store")


def _probe(store: RecordStore, record: str) -> None:
    """Put a record that no lease and no guard has, twice, and delete it. Raises ``TablectlError``."""
    try:
        first, second = store.create(record, b"1"), store.create(record, b"2")
        if not first or second or store.read(record) != b"1":
            raise UsageError(
                "the store writes over records that are there, though asked not to (If-None-Match)",
                "leases need put-if-absent: set `state:` in tablectl.yaml to a store that has it",
            )
        if record not in store.names(f"{record.partition('/')[0]}/"):
            raise UsageError("the store does not list what was just written", "use a store with consistent listings")
    finally:
        store.delete(record)
