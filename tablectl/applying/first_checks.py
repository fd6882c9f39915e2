"""What is checked before anything is done: of all tables before the run, and of each one before and under its lease.

One commit stream: if several drivers cannot commit exclusively, an apply must run in the writers' own driver. On S3 and
on local disks Delta's default log store does not prevent two drivers from writing the same version: the later commit
replaces the earlier one, ours or a writer's (docs/object-stores.md).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from tablectl.applying.copy_beside import check_copies
from tablectl.applying.events import RunEvent
from tablectl.applying.lease_wait import LeaseWait
from tablectl.applying.run_context import RunContext, StopTableError, TableJob
from tablectl.applying.run_table import unexpected
from tablectl.applying.statement import check_name
from tablectl.applying.waits import GO, Answer, End, Wait
from tablectl.delta.dialects import dialect_of
from tablectl.engine.interface import CommitDriver, Engine, no_overwrite
from tablectl.leases.lease import Lease
from tablectl.model.errors import LiveError, PlanFileError, WindowError
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import RunOutcome
from tablectl.storage.failures import ForeignRecordError, MissingRightError
from tablectl.storage.records import RecordStore

ON_DISK = (
    "on a local disk two drivers can overwrite each other's commits: let no other process write these tables meanwhile"
)
_S3 = frozenset({"s3", "s3a", "s3n"})
_DISK = "file"
_EXCLUSIVE = frozenset({"S3DynamoDBLogStore"})
_NO_RECORD = "none"
"""The name of no lease record and of no guard."""
_log = logging.getLogger(__name__)


class Preflight(Wait):
    """Why a table cannot be leased at all, found before a lease record is written next to it: a record in the directory
    of a dropped table would prevent Delta from creating the table again.
    """

    def __init__(self, job: TableJob) -> None:
        self._job = job

    def check(self, now: float) -> Answer:  # waits for nothing
        """Whether each name leads where the plan looked, and each log can be read."""
        context = self._job.context
        for plan in self._job.tables:
            try:
                check_name(context, plan)
                context.reader.commits(plan.location, after=plan.version)
            except StopTableError as stop:
                return replace(stop.end, table=plan.name)
            except Exception as error:  # noqa: BLE001  # see ``run_table``
                return End(RunOutcome.FAILED, *unexpected(plan.name, error), plan.name)
        return GO


class Rights(Wait):
    """Whether the records of the tables lack a right, found under the lease before any gate shuts and any hook runs."""

    def __init__(self, job: TableJob, leases: LeaseWait) -> None:
        self._job = job
        self._leases = leases
        self._known: Collection[Lease] = ()
        """The leases under which they were looked at."""

    def check(self, now: float) -> Answer:  # waits for nothing
        """Whether an apply may do all that it has to with the records."""
        leases = [*self._leases.all()]
        if leases == self._known:
            return GO
        for table in self._job.tables:
            try:
                check_rights(self._leases.of(table).store)
            except (MissingRightError, ForeignRecordError) as error:
                return End(RunOutcome.FAILED, f"{table.name}: {error.message}", error.hint, table.name)
        self._known = leases
        return GO


def check_rights(store: RecordStore) -> None:
    """Raises ``MissingRightError`` unless the holder of a lease may also delete in ``lease/``, and list, get and
    delete in ``guards/``. To take the lease was to put, get and list in ``lease/``. Raises ``ForeignRecordError`` if
    guards cannot be read because of a link: else the drain would wait for it behind the shut gate.

    Four small requests, about names that no record has. A store deletes what is not there, and refuses that too where
    the right is missing. Other failures of the store decide nothing here: the next request meets them.
    """
    try:
        store.delete(f"lease/{_NO_RECORD}")
        store.names("guards/")
        store.read(f"guards/{_NO_RECORD}")
        store.delete(f"guards/{_NO_RECORD}")
    except (MissingRightError, ForeignRecordError):
        raise
    except WindowError as error:
        _log.debug("the rights on %s are not known: %s", store, error.message)


def check_places(places: Sequence[tuple[TablePlan, str]]) -> None:
    """Reject two names for one table: they would compete for its lease, and each would fail the other's checks."""
    names: dict[str, str] = {}
    for table, place in places:
        if place in names:
            raise PlanFileError(
                f"{names[place]} and {table.name} are one table: both lie in {table.location}",
                "declare the table under one name, and plan again",
            )
        names[place] = table.name


def check_commit_drivers(context: RunContext, tables: Sequence[TablePlan]) -> tuple[dict[str, End], tuple[str, ...]]:
    """The tables on which commits could be lost, checked before any table starts, and warnings where that is only
    possible.
    """
    barred: dict[str, End] = {}
    warn, exclusive = False, context.exclusive_commits
    checked: dict[tuple[str, bool], bool] = {}
    for table in tables:
        through_catalog = table.basis.metadata_version is not None
        try:
            location = _opened_at(context, table)
            scheme = location.partition(":")[0] if ":" in location else ""
            check_overwrites(context.engine, table)
            key = (scheme, through_catalog)
            if key not in checked:
                check_scheme(context.engine, location)
                checked[key] = check_commits(context.engine, location, exclusive=exclusive or through_catalog)
            warn |= checked[key]
        except StopTableError as stop:
            barred[table.name] = stop.end
        except Exception as error:  # noqa: BLE001  # see ``run_table``
            barred[table.name] = End(RunOutcome.FAILED, *unexpected(table.name, error))
    if warn:
        context.notify(RunEvent("", "note", ON_DISK))
    return barred, (ON_DISK,) if warn else ()


def check_overwrites(engine: Engine, table: TablePlan) -> None:
    """Raise ``StopTableError`` if a statement rewrites the table, and the engine cannot."""
    check_copies(engine, table)
    if not engine.rewrites and any(each.repartition is not None for each in table.statements):
        error = no_overwrite(table.table, engine.dialect)
        raise StopTableError(RunOutcome.REFUSED, error.message, error.hint)


def _opened_at(context: RunContext, table: TablePlan) -> str:
    """Where the engine opens a table. One that is not there is reported later, as every change since the plan."""
    if dialect_of(context.engine.dialect).exclusive_commits:
        return table.location
    try:
        return context.opened_at(table.table, table.location)
    except LiveError:
        return table.location


def check_scheme(engine: Engine, location: str) -> None:
    """Raise ``StopTableError`` if the engine has no file system for a location that the log reader can read. Raises
    ``EngineError`` if the engine does not answer.
    """
    scheme = location.partition(":")[0].lower()
    if location.startswith("/") or scheme == _DISK or engine.opens(scheme) is not False:
        return
    hint = (
        "set `stores: {s3: {region: …}}` in tablectl.yaml: it configures a local session, too (docs/object-stores.md)"
        if scheme in _S3
        else f"add the file system of {scheme}:// to the engine: its package and settings under `engine.conf`"
    )
    raise StopTableError(RunOutcome.REFUSED, f"the engine has no file system for {scheme}:// locations", hint)


def check_commits(engine: CommitDriver, location: str, *, exclusive: bool) -> bool:
    """Whether commits to a table on a local disk may be lost, ours or a writer's: this deserves a warning.

    On S3 it raises ``StopTableError`` instead. ``exclusive`` is what the configuration states. Raises
    ``EngineError`` if the engine does not report its log store.
    """
    # As the engine sees it, because the scheme selects the log store: s3a and s3 are two schemes.
    scheme = _DISK if location.startswith("/") else location.partition(":")[0].lower()
    if scheme not in _S3 | {_DISK} or exclusive or dialect_of(engine.dialect).exclusive_commits:
        return False
    # A session passed in may be any session. On S3, where a commit could be lost, the caller must state that it is the
    # writers' own.
    if engine.shared and (engine.stated or scheme == _DISK):
        return False
    store = engine.log_store(scheme)
    if store.rpartition(".")[2] in _EXCLUSIVE:
        return False
    if scheme == _DISK:
        return True
    what = f"the log store {store}" if store else "Delta's default log store"
    message = f"on S3, {what} does not keep this driver and the writers' from overwriting each other's commits"
    raise StopTableError(RunOutcome.REFUSED, message, _hint(scheme))


def _hint(scheme: str) -> str:
    return (
        'run it in the writers\' own driver (`spark=` with `driver="shared"`, `--remote`), or set '
        f"`spark.delta.logStore.{scheme}.impl: io.delta.storage.S3DynamoDBLogStore` here and in every writer "
        "(docs/object-stores.md); if commits are exclusive all the same, say so with `engine.exclusive_commits: true`"
    )
