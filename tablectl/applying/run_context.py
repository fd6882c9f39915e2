"""What all tables of a run share, and the exception that ends work on one table."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event as Flag
from typing import Protocol
from uuid import uuid4

from tablectl.applying.drain_writers import Sightings
from tablectl.applying.events import Notify
from tablectl.applying.scheduler import Pace
from tablectl.applying.shared_window import SharedWindow
from tablectl.applying.statement_turns import Turns
from tablectl.applying.waits import End
from tablectl.delta.dialects import dialect_of
from tablectl.delta.locations import canonical_location
from tablectl.delta.names import TableName
from tablectl.engine.interface import Engine
from tablectl.leases.acquire import Claim
from tablectl.leases.clock import Clock
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.commit import Commit
from tablectl.model.errors import TablectlError
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import RunOutcome
from tablectl.model.stamp import Stamp, read_stamp
from tablectl.model.stream_progress import StreamState
from tablectl.model.table import WITH_HISTORY, Depth, LiveTable
from tablectl.policies.config import WindowConfig
from tablectl.storage.records import RecordStore
from tablectl.storage.table_log import DataFile
from tablectl.support.processes import Invocation, ProcessLimits, run_lines

TAG = "tablectl-"
"""The prefix of the tags of our operations. Operations without it are never interrupted, whatever a lease record
says."""


class RunHook(Protocol):
    """Runs a command. Returns why it failed; empty if it succeeded."""

    def __call__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        """``environ`` is added to this process's environment. ``said`` gets each line of output, on a thread of its
        own. The command is ended as soon as ``stopped`` returns true.
        """
        ...


def run_nothing(
    command: Sequence[str],  # noqa: ARG001  # the signature of ``RunHook``
    environ: Mapping[str, str],  # noqa: ARG001
    said: Callable[[str], None],  # noqa: ARG001
    stopped: Callable[[], bool],  # noqa: ARG001
) -> str:
    """The ``RunHook`` of a run without hooks."""
    return "cannot be run here"


def hook_runner(directory: Path, timeout: float, grace: float = 5.0) -> RunHook:
    """Runs commands in a directory, each for at most ``timeout`` seconds. ``grace`` is the time in seconds between
    asking a command to end and killing it.
    """

    def run(
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        limits = ProcessLimits(timeout, "window.hook_timeout", grace, stopped)
        return run_lines(Invocation(command, directory, {**os.environ, **environ}), said, limits)

    return run


class LiveReader(Protocol):
    """How an apply reads tables. The implementation is in ``tablectl.commands.run_plan``; tests use a fake."""

    def read(
        self, name: TableName, location: str, depth: Depth = WITH_HISTORY, *, version: int | None = None
    ) -> LiveTable:
        """The table at a version; by default the newest."""
        ...

    def commits(self, location: str, *, after: int) -> tuple[Commit, ...]:
        """The commits after version ``after``, newest first."""
        ...

    def unnamed(self, location: str, *, after: int, since: float) -> Sequence[DataFile]:
        """The data files modified from ``since`` on, in seconds since the epoch, that no commit after a version
        names. Raises ``LiveError`` if that is unknown.
        """
        ...

    def modified(self, location: str, paths: Collection[str]) -> Mapping[str, float]:
        """When some data files of a table were last written, in seconds since the epoch by the clock of the store.
        Files that are not there are left out. Raises ``LiveError`` if that is unknown.
        """
        ...

    def row_versions(self, location: str, *, after: int) -> Sequence[int]:
        """The versions after one that add rows, newest first: what streams read. Raises ``LiveError``."""
        ...

    def newest_row_version(self, location: str) -> int:
        """The newest version that adds rows; -1 if none does. Versions for which that is no longer known count as
        if they did. Raises ``LiveError``.
        """
        ...

    def streams(self, checkpoints: Sequence[tuple[str, str]], table_id: str, location: str) -> Sequence[StreamState]:
        """How far the streaming queries with some names and checkpoints have read or written a table."""
        ...

    def entry(self, location: str) -> CatalogEntry | None:
        """What the catalog of a table says about it besides its state; ``None`` without a configured catalog."""
        ...

    def free(self, location: str) -> int | None:
        """Free bytes in the file system of a table; ``None`` if that is unknown, as in a bucket."""
        ...


Approve = Callable[[TablePlan], None]
"""Checks under a table's lease, before any statement is sent, whether its plan may run. Raises ``StopTableError``."""


def approve_all(_plan: TablePlan) -> None:
    """Approves every plan: for plans that were compared with the policies in another way."""


def _by_engine(_table: TableName) -> None:
    """No catalog but the engine's."""


def _never(_table: TableName) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all tables of a run share."""

    engine: Engine
    reader: LiveReader
    clock: Clock
    stamp: Stamp
    stop: Flag
    """Set to end the run: no further statement starts."""
    notify: Notify
    claim: Claim
    """What the run writes into the leases of its tables."""
    records: Callable[[str], RecordStore]
    """Returns the record store of a table by its location."""
    config: WindowConfig = field(default_factory=WindowConfig)
    """The configuration of the window, with what the caller says instead."""
    run_hook: RunHook = run_nothing
    exclusive_commits: bool = False
    """Whether the configuration states that concurrent commits of several drivers exclude each other."""
    wait: float = 0.0
    """Seconds for which tables whose window could not be opened are retried."""
    within: float | None = None
    """Seconds from the start of the run in which each table must be started at a quiet moment; ``None`` to start it at
    once.
    """
    table_groups: tuple[tuple[str, ...], ...] = ()
    """The names of the plan's tables in groups of equal changes, the most important group first. For ``--canary``
    alone.
    """
    turns: Turns = field(default_factory=Turns)
    """The queue in which closed statements run."""
    pace: Pace = field(default_factory=lambda: Pace(None))
    """When the next rewrite of the run may start."""
    together: SharedWindow | None = None
    """The tables that share one window; ``None`` if each has its own."""
    approve: Approve = approve_all
    resolve: Callable[[TableName], str | None] = _by_engine
    """Where the name of a table leads now, if its catalog is one that the engine need not know; else ``None``."""
    resolves: Callable[[TableName], bool] = _never
    """Whether ``resolve`` answers for a table: its statements name it by its location."""
    sightings: defaultdict[str, Sightings] = field(default_factory=lambda: defaultdict(Sightings))
    """What the run has seen of the guards of each table, by ``table_key``."""
    records_seen: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The id of the newest lease record of tables that this run does not hold, and when it was first seen, by name."""

    @property
    def budget(self) -> float:
        """Seconds for which a lease must remain valid when a statement starts."""
        return self.config.ttl / 4

    def drain_of(self, table: TablePlan) -> float:
        """Seconds that the writers of a table get: its own ``window.drain``, or that of the configuration."""
        own = table.window.drain if table.window else None
        return float(self.config.drain if own is None else own)

    def where(self, table: TableName) -> str:
        """The location that a catalog table's name leads to now. Raises as ``Engine.location``."""
        return self.resolve(table) or self.engine.location(table)

    def addressed(self, table: TableName, location: str) -> TableName:
        """The table as statements name it. Raises as ``where``."""
        return TableName("", (self.opened_at(table, location),)) if self.resolves(table) else table

    def target(self, plan: TablePlan) -> TableName:
        """A planned table by location, which no rename changes. By name, if the dialect accepts no paths of tables in
        its catalog. Raises as ``where``.
        """
        return TableName("", (self.opened_at(plan.table, plan.location),)) if self.by_location(plan) else plan.table

    def by_location(self, plan: TablePlan) -> bool:
        """Whether ``target`` is a location and not the table's name."""
        return not plan.table.is_path and dialect_of(self.engine.dialect).path_names

    def new_tag(self) -> str:
        """A new tag for one statement of this run."""
        return f"{TAG}{self.stamp.run}-{uuid4().hex[:8]}"

    def has_committed(self, location: str, run: str, after: int | None) -> bool:
        """Whether a run has committed above a version of a table; false if that is ``None``."""
        if after is None:
            return False
        try:
            commits = self.reader.commits(location, after=after)
        except TablectlError:
            return False
        stamps = (read_stamp(each.user_metadata) for each in commits)
        return any(stamp is not None and stamp.run == run for stamp in stamps)

    def opened_at(self, table: TableName, location: str) -> str:
        """A planned location with the scheme by which the engine opens the table. Raises as ``where``.

        Plans write ``s3a`` and ``s3n`` as ``s3``. Delta's log stores take each for a table of its own, and exclude only
        commits by the same scheme (``S3SingleDriverLogStore`` and ``BaseExternalLogStore`` of Delta 4.4.0).
        """
        if table.is_path:
            return table.parts[0]
        if not location.startswith("s3:"):
            return location
        found = self.where(table)
        return found if canonical_location(found) == location else location


@dataclass(slots=True)
class TableJob:
    """One table of a run, or the tables that share a window, and what their waits know of each other."""

    context: RunContext
    tables: tuple[TablePlan, ...]
    began: float = 0.0
    """When the run began, on the clock's ``monotonic``."""
    tried_since: float | None = None
    """When the first attempt ended without success, from which ``--wait`` counts; ``None`` before."""

    def left(self, now: float) -> float:
        """Seconds for which they are tried again."""
        self.tried_since = now if self.tried_since is None else self.tried_since
        return self.context.wait - (now - self.tried_since)


def table_key(table: TablePlan) -> str:
    """The key of a table among those of a run."""
    return canonical_location(table.location)


class StopTableError(Exception):
    """Ends work on one table with an outcome."""

    def __init__(self, outcome: RunOutcome, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message
        self.hint = hint

    @classmethod
    def of(cls, end: End) -> StopTableError:
        """The error of an end."""
        assert end.outcome is not None
        return cls(end.outcome, end.message, end.hint)

    @property
    def end(self) -> End:
        """The same as an answer."""
        return End(self.outcome, self.message, self.hint)


def interrupted() -> StopTableError:
    """The error that ends work on a table when the run was asked to stop."""
    return StopTableError(RunOutcome.INTERRUPTED, "stopped before all statements ran", "run the same command again")


def check_answers(engine: Engine) -> None:
    """Raise ``StopTableError`` if the engine does not answer."""
    if not engine.alive():
        raise StopTableError(RunOutcome.FAILED, "the engine does not answer", "run the same command again when it does")


def check_table_id(plan: TablePlan, found: str) -> None:
    """Raise ``StopTableError`` if a table has another id than the planned one."""
    if found != plan.table_id:
        message = "the table was replaced since the plan: it has a new table id"
        raise StopTableError(RunOutcome.STALE, message, "plan again")
