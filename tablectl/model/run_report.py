"""The report of a run: outcome, statements and commits per table, and the exit code that follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import computed_field

from tablectl.model.errors import ExitCode
from tablectl.model.plan import Phase, Refusal, TableFailure
from tablectl.model.report_methods import ReportMethods


class RunOutcome(StrEnum):
    """The outcome of a run on one table. Its message says why."""

    APPLIED = "applied"
    """Every change reads as declared, and this run sent statements for it."""
    ALREADY = "already"
    """Every change reads as declared without this run: no commit was needed, or another run of the same plan took the
    lease over and made them."""
    WAITING = "waiting"
    """Everything possible now is done. A later apply makes the rest, once history is old enough."""
    STALE = "stale"
    """The table no longer matches the plan because of someone else's change; the run stopped there."""
    REFUSED = "refused"
    """The table cannot take a change, according to the plan or to what was found under the lease."""
    NO_WINDOW = "no window"
    """What the window waits for did not come in time: a lease, writers, the calendar, a quiet moment, a stream, or the
    tables that go first with ``--canary``."""
    HOOK_FAILED = "hook failed"
    """A before-hook failed; the gate stayed open or was opened again."""
    FAILED = "failed"
    """A statement, the lease or a read failed."""
    UNVERIFIED = "unverified"
    """Statements ran, and a change does not read as declared, or no more at the end of the run, or a statement changed
    another table.
    """
    UNKNOWN = "unknown"
    """A statement gave no answer. It may have taken effect, or may still do so."""
    INTERRUPTED = "interrupted"
    """The run was stopped before it finished the table."""


_CODES = {
    RunOutcome.APPLIED: ExitCode.DONE,
    RunOutcome.ALREADY: ExitCode.DONE,
    RunOutcome.WAITING: ExitCode.DONE,
    RunOutcome.STALE: ExitCode.REFUSED,
    RunOutcome.REFUSED: ExitCode.REFUSED,
    RunOutcome.NO_WINDOW: ExitCode.WINDOW,
    RunOutcome.HOOK_FAILED: ExitCode.WINDOW,
    RunOutcome.FAILED: ExitCode.ERROR,
    RunOutcome.UNVERIFIED: ExitCode.PARTIAL,
    RunOutcome.UNKNOWN: ExitCode.PARTIAL,
    RunOutcome.INTERRUPTED: ExitCode.ERROR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRun:
    """A commit seen in the log, of this run or of others."""

    version: int
    operation: str
    user: str
    at: int
    """Milliseconds since the epoch."""
    metadata: bool = False
    """Whether it changed metadata, protocol or clustering, and not only data."""
    run: str = ""
    """The apply that made it, if it was another one."""
    late: bool = False
    """Whether that apply had lost its lease: this one held the lease when the commit was made."""
    inside: bool = False
    """Whether it was made while the gate was closed, by a writer that did not wait."""
    writer: str = ""
    """The name of its writer, as in ``WriterRun.name``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRun:
    """A statement that was sent."""

    id: str
    sql: str
    phase: Phase
    milliseconds: int
    at: int = 0
    """When it was sent, in milliseconds since the epoch by the wall clock; 0 if unknown."""
    error: str = ""
    condition: str = ""
    """The engine's error class."""
    fails: str = ""
    """Which writes in flight it fails, and how; empty if none."""
    separate: int = 0
    """The number of metadata commits if each of its keys and columns lists had its own statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleFailure:
    """A writer that may have failed once because of the run."""

    writer: str
    reason: str
    """Why it was not protected."""
    fails: str
    """What fails, and how, because of the statement that did not wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterRun:
    """A writer found in the table's history before the run."""

    name: str
    commits: int
    """How many of its commits were found."""
    last: int
    """When it last committed before the run, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRun:
    """The time for which a gate had one value, in milliseconds since the epoch by the wall clock."""

    gate: str
    """``no-schema``, ``appends-only`` or ``closed``."""
    since: int
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietStart:
    """The moment at which a table of an apply with ``--when quiet`` was started: what was expected, and what came."""

    waited_ms: int
    """Milliseconds from the start of the run to that moment."""
    limit: float
    """The expected number of failed writes below which a moment is quiet."""
    failed: float | None = None
    """The expected number of failed writes; ``null`` if unknown."""
    seconds: float | None = None
    """The expected seconds of work of these writes."""
    unknown: str = ""
    """Why the loss is unknown; empty if it is known."""
    free: str = ""
    """The time that was expected to be free of the runs of known jobs; empty if no writer has a rhythm."""
    actual: int | None = None
    """The number of writers that may have failed, as far as the log shows: at most so many writes failed. ``null`` if
    no statement ran that fails writes.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRun:
    """A declared streaming query before and after the run, by its checkpoint."""

    name: str
    stopped: bool
    """Whether the conflict rules say that the statements stop it."""
    before: int | None = None
    """The last batch that it had finished before the run, for a query that writes the table the last one in its log; -1
    if none, ``null`` if unknown.
    """
    after: int | None = None
    """The same at the end of the run."""
    read: int | None = None
    """The newest version that it has read at the end of the run; ``null`` if unknown, or if it does not read the
    table.
    """
    continued: bool | None = None
    """Whether it has read rows that were written after the last commit of this run, or has written a later batch after
    it; ``null`` if there are none, or if that is unknown.
    """
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRun:
    """The run on one table."""

    name: str
    outcome: RunOutcome
    message: str = ""
    hint: str = ""
    epoch: int = 0
    """The lease's epoch; 0 if no lease was acquired."""
    changed: tuple[str, ...] = ()
    """Ids of the changes that this run made."""
    already: tuple[str, ...] = ()
    """Ids of the changes that were already made before the run."""
    statements: tuple[StatementRun, ...] = ()
    commits: tuple[CommitRun, ...] = ()
    """This run's commits."""
    foreign: tuple[CommitRun, ...] = ()
    """Commits of others: since the plan if the table is stale, else during the run."""
    later: tuple[str, ...] = ()
    """Ids of changes that were verified at our last commit and that others have undone since."""
    refusals: tuple[Refusal, ...] = ()
    """The plan's refusals, if the plan excludes the table."""
    window_ms: int | None = 0
    """Milliseconds for which the gate was closed; ``null`` if it is not known when it was opened."""
    shut_ms: int = 0
    """Milliseconds for which writers may still wait at the gate after the run, at most; 0 if it is open."""
    shut: str = ""
    """Why, and what opens it; empty if it is open."""
    drain_ms: int = 0
    """Milliseconds spent waiting for writers."""
    rewrite_ms: int = 0
    """Milliseconds that statements of the rewrite phase took."""
    exposed_ms: int = 0
    """Milliseconds from the first commit that fails every writer to the last one."""
    gates: tuple[GateRun, ...] = ()
    """The gates in order of time; the gate was open in between."""
    possible_failures: tuple[PossibleFailure, ...] = ()
    """The writers that the run may have failed."""
    writers: tuple[WriterRun, ...] = ()
    """The writers before the run, according to the table's history."""
    streams: tuple[StreamRun, ...] = ()
    """The declared streaming queries that read the table, if the run made a commit."""
    quiet: QuietStart | None = None
    """The moment that it was started at; ``None`` without ``--when quiet``, or if it was not started."""
    owed: tuple[str, ...] = ()
    """After-hooks that failed and are still owed."""
    notes: tuple[str, ...] = ()
    """Other notes for people."""
    took_ms: int = 0
    """Milliseconds from its first step to its last, waits included; 0 if it was never started."""
    paced_ms: int = 0
    """Milliseconds that it waited for ``window.max_bytes_per_hour``."""

    def following(self, earlier: TableRun) -> TableRun:
        """The combined run of a table that was retried: the work of all attempts, and the outcome of the last one."""
        if not earlier.epoch:
            return self
        known, ours = {commit.version for commit in self.foreign}, {commit.version for commit in self.commits}
        made = tuple(each for each in (*self.already, *self.changed) if each not in earlier.already)
        through = self.outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY, RunOutcome.WAITING}
        # With a message, another run took the lease over: then this one did not apply the table.
        committed = self.outcome is RunOutcome.ALREADY and earlier.commits and not self.message
        return replace(
            self,
            outcome=RunOutcome.APPLIED if committed else self.outcome,
            epoch=self.epoch or earlier.epoch,
            already=earlier.already,
            changed=made if through else (),
            statements=(*earlier.statements, *self.statements),
            commits=(*(each for each in earlier.commits if each.version not in ours), *self.commits),
            foreign=(*(each for each in earlier.foreign if each.version not in known), *self.foreign),
            gates=(*earlier.gates, *self.gates),
            possible_failures=(*earlier.possible_failures, *self.possible_failures),
            window_ms=None
            if earlier.window_ms is None or self.window_ms is None
            else earlier.window_ms + self.window_ms,
            drain_ms=earlier.drain_ms + self.drain_ms,
            rewrite_ms=earlier.rewrite_ms + self.rewrite_ms,
            exposed_ms=earlier.exposed_ms + self.exposed_ms,
            writers=earlier.writers or self.writers,
            quiet=self.quiet or earlier.quiet,
            owed=self.owed if self.epoch else earlier.owed,
            shut_ms=self.shut_ms if self.epoch else earlier.shut_ms,
            shut=self.shut if self.epoch else earlier.shut,
            notes=tuple(dict.fromkeys([*earlier.notes, *self.notes])),
        )

    @property
    def metadata_commits(self) -> int:
        """The number of this run's commits that changed metadata."""
        return sum(commit.metadata for commit in self.commits)

    @property
    def separate_commits(self) -> int:
        """The number of metadata commits if each key and each columns list had its own statement."""
        return sum(statement.separate for statement in self.statements if not statement.error)

    @property
    def code(self) -> ExitCode:
        """The exit code of this table alone, as if the run had made no commit."""
        code = _CODES[self.outcome]
        if self.shut_ms:
            return ExitCode.worst(code, ExitCode.PARTIAL)
        return ExitCode.WINDOW if code is ExitCode.DONE and self.owed else code


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryTable:
    """A table that was changed before the others, and what was seen of it since."""

    table: str
    writes: int | None = None
    """The commits of writers since the change; ``null`` if the log could not be read, or was not."""
    orphans: int | None = None
    """Data files written since that no commit names, of writes that failed; ``null`` if they could not be listed."""
    silent: tuple[str, ...] = ()
    """Writers that have not committed for twice their usual gap."""
    stopped: tuple[str, ...] = ()
    """Streams that write the table of which the same holds, and declared ones that have not read new rows for twice
    their usual gap.
    """
    unknown_streams: int = 0
    """How many declared streams could not be observed."""
    unknown: tuple[str, ...] = ()
    """What could not be observed, and why."""
    notes: tuple[str, ...] = ()
    """For people: ``nothing observed`` among others."""

    @property
    def suspicious(self) -> bool:
        """Whether a failure was observed."""
        return bool(self.orphans or self.silent or self.stopped)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRun:
    """The tables that were changed first, with ``--canary``, and what was decided."""

    tables: tuple[CanaryTable, ...]
    soak_ms: int
    """Milliseconds for which they were to be watched."""
    watched_ms: int
    """Milliseconds for which they were watched by this run."""
    stop_if: str
    """The thresholds at which the other tables are not started: ``failed 1 or silent 3``."""
    reason: str = ""
    """Why they were not started; empty if they were."""
    not_started: tuple[str, ...] = ()
    """Their names, if they were not."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunReport(ReportMethods):
    """The report of a whole run."""

    run: str
    plan: str
    """The plan's digest."""
    env: str = ""
    """The environment of the plan; empty if it has none."""
    tables: tuple[TableRun, ...]
    failures: tuple[TableFailure, ...] = ()
    """Tables that the plan could not read."""
    proceed: str = ""
    """The reason given with ``--proceed``, to continue despite writers that did not finish in time; else empty."""
    override: str = ""
    """The reason given with ``--override``, to run outside the calendar; else empty."""
    notes: tuple[str, ...] = ()
    """Notes for people that concern no single table."""
    canary: CanaryRun | None = None
    """The tables that were changed first; ``null`` without ``--canary``."""
    at: int = 0
    """When the run began, in milliseconds since the epoch by the wall clock; 0 if unknown."""
    took_ms: int = 0
    """Milliseconds from its beginning to its end."""

    @property
    def committed(self) -> bool:
        """Whether the run made any commit, according to the log, or to the engine if the log could not be read."""
        return any(table.commits or any(not each.error for each in table.statements) for table in self.tables)

    @computed_field
    @property
    def exit_code(self) -> ExitCode:
        """The exit code, as in docs/exit-codes.md. If anything was committed, every other failure makes the run a
        partial one.

        So do tables that the plan itself excludes, refused or unreadable, if there are others that are as declared.
        """
        wrong = [table for table in self.tables if table.code is not ExitCode.DONE]
        if not wrong and not self.failures:
            return ExitCode.DONE
        left_out = all(table.refusals for table in wrong) and len(wrong) < len(self.tables)
        if self.committed or left_out:
            return ExitCode.PARTIAL
        return ExitCode.worst(*(table.code for table in wrong), *(ExitCode.ERROR for _ in self.failures))
