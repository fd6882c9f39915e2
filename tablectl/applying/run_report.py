"""What a run did: per table its outcome, statements and commits, and the exit code that follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from tablectl.model.errors import ExitCode
from tablectl.model.plan import Phase, Refusal, TableFailure


class RunOutcome(StrEnum):
    """How one table came out of a run."""

    APPLIED = "applied"
    """Every change reads as declared, and statements ran for it."""
    ALREADY = "already"
    """Every change read as declared before; no commit was made."""
    WAITING = "waiting"
    """All that can be done is done; the rest is made by an apply once history is old enough."""
    STALE = "stale"
    """Somebody changed what the plan took for granted; nothing more was done."""
    REFUSED = "refused"
    """The table cannot take a change, by the plan or by what was found under the lease."""
    HELD = "held"
    """Another apply holds the table's lease."""
    NOT_DRAINED = "not drained"
    """Writers did not end in time; the gate opened again."""
    HOOK_FAILED = "hook failed"
    """A before-hook failed; the gate stayed, or is again, open."""
    OUTSIDE = "outside the calendar"
    """The calendar does not allow it now."""
    FAILED = "failed"
    """A statement, the lease or a reading failed."""
    UNVERIFIED = "unverified"
    """All statements ran, and yet a change does not read as declared."""
    ELSEWHERE = "landed elsewhere"
    """A statement went to another table, to which the name led at that moment; the message names it."""
    UNKNOWN = "unknown"
    """A statement gave no answer, and may have taken effect, or may yet do so."""
    LEASE_LOST = "lease lost"
    """Another run took the lease over, or it ran out; the message names who has it."""
    SUCCEEDED = "done by another run"
    """The lease was lost to a run of the same plan, and the table is as declared."""
    INTERRUPTED = "interrupted"
    """The run was stopped before it was through with the table."""


_CODES = {
    RunOutcome.APPLIED: ExitCode.DONE,
    RunOutcome.ALREADY: ExitCode.DONE,
    RunOutcome.WAITING: ExitCode.DONE,
    RunOutcome.STALE: ExitCode.REFUSED,
    RunOutcome.REFUSED: ExitCode.REFUSED,
    RunOutcome.HELD: ExitCode.WINDOW,
    RunOutcome.NOT_DRAINED: ExitCode.WINDOW,
    RunOutcome.HOOK_FAILED: ExitCode.WINDOW,
    RunOutcome.OUTSIDE: ExitCode.WINDOW,
    RunOutcome.FAILED: ExitCode.ERROR,
    RunOutcome.UNVERIFIED: ExitCode.PARTIAL,
    RunOutcome.ELSEWHERE: ExitCode.PARTIAL,
    RunOutcome.UNKNOWN: ExitCode.PARTIAL,
    RunOutcome.LEASE_LOST: ExitCode.ERROR,
    RunOutcome.SUCCEEDED: ExitCode.DONE,
    RunOutcome.INTERRUPTED: ExitCode.ERROR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRun:
    """A commit seen in the log, ours or another's."""

    version: int
    operation: str
    user: str
    at: int
    """Milliseconds since the epoch."""
    metadata: bool = False
    """Whether it changed metadata, protocol or clustering, and not only data."""
    run: str = ""
    """The apply that made it, where another one did: perhaps an owner that was paused past its lease."""
    inside: bool = False
    """Whether it was made while the gate was closed, by somebody who did not wait."""
    writer: str = ""
    """What tells its writer from others, as ``WriterRun.name``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRun:
    """A statement that was sent."""

    id: str
    sql: str
    phase: Phase
    milliseconds: int
    at: int = 0
    """When it was sent, in milliseconds since the epoch by the wall clock; 0 where nobody noted it."""
    error: str = ""
    condition: str = ""
    """The engine's error class."""
    fails: str = ""
    """Who in flight it fails, and how; empty when nobody."""
    separate: int = 0
    """Metadata commits that one statement for each of its keys and columns lists would have made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Casualty:
    """A writer that may have failed because of the run, once."""

    writer: str
    reason: str
    """Why it was not spared."""
    fails: str
    """What fails, and how, by the statement that did not wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterRun:
    """A writer that the table's history knows from before the run."""

    name: str
    commits: int
    """How many of its commits were looked back on."""
    last: int
    """When it committed last before the run, in milliseconds since the epoch."""
    back: bool
    """Whether it has committed since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRun:
    """For how long a gate was as tight as it was. Times are milliseconds since the epoch, by the wall clock."""

    gate: str
    """``no-schema``, ``appends-only`` or ``closed``."""
    since: int
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRun:
    """One table's part of a run."""

    name: str
    outcome: RunOutcome
    message: str = ""
    hint: str = ""
    epoch: int = 0
    """The lease's epoch; 0 where none was taken."""
    changed: tuple[str, ...] = ()
    """Ids of the changes that this run made."""
    already: tuple[str, ...] = ()
    """Ids of the changes that were made before it."""
    statements: tuple[StatementRun, ...] = ()
    commits: tuple[CommitRun, ...] = ()
    """This run's commits."""
    foreign: tuple[CommitRun, ...] = ()
    """Others' commits: since the plan where it is stale, else during the run."""
    later: tuple[str, ...] = ()
    """Ids of changes that were verified at our last commit and that others have undone since."""
    refusals: tuple[Refusal, ...] = ()
    """The plan's own, where it leaves the table out."""
    window_ms: int = 0
    """For how long the gate was closed."""
    drain_ms: int = 0
    """For how long writers were waited for."""
    rewrite_ms: int = 0
    """How long statements of the rewrite phase took."""
    exposed_ms: int = 0
    """From the first commit that fails every writer to the last one."""
    gates: tuple[GateRun, ...] = ()
    """What the gate was, in the order of time; open in between."""
    casualties: tuple[Casualty, ...] = ()
    """Whom the run may have failed."""
    writers: tuple[WriterRun, ...] = ()
    """Who wrote the table before the run, by its history."""
    watched: bool = False
    """Whether the run waited for them to come back."""
    owed: tuple[str, ...] = ()
    """After-hooks that failed and stay owed."""
    notes: tuple[str, ...] = ()
    """What else people must know of."""

    def following(self, earlier: TableRun) -> TableRun:
        """The run of a table that was tried again: what earlier tries did, and how the last one ended."""
        if not earlier.epoch:
            return self
        known = {commit.version for commit in self.foreign}
        made = tuple(each for each in (*self.already, *self.changed) if each not in earlier.already)
        through = self.outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY, RunOutcome.WAITING, RunOutcome.SUCCEEDED}
        committed = self.outcome is RunOutcome.ALREADY and earlier.commits
        return replace(
            self,
            outcome=RunOutcome.APPLIED if committed else self.outcome,
            epoch=self.epoch or earlier.epoch,
            already=earlier.already,
            changed=made if through else (),
            statements=(*earlier.statements, *self.statements),
            commits=(*earlier.commits, *self.commits),
            foreign=(*(each for each in earlier.foreign if each.version not in known), *self.foreign),
            gates=(*earlier.gates, *self.gates),
            casualties=(*earlier.casualties, *self.casualties),
            window_ms=earlier.window_ms + self.window_ms,
            drain_ms=earlier.drain_ms + self.drain_ms,
            rewrite_ms=earlier.rewrite_ms + self.rewrite_ms,
            exposed_ms=earlier.exposed_ms + self.exposed_ms,
            writers=earlier.writers or self.writers,
            notes=tuple(dict.fromkeys([*earlier.notes, *self.notes])),
        )

    @property
    def metadata_commits(self) -> int:
        """This run's commits that changed metadata."""
        return sum(commit.metadata for commit in self.commits)

    @property
    def separate_commits(self) -> int:
        """The metadata commits that a run of one statement for each key and columns list would have made."""
        return sum(statement.separate for statement in self.statements if not statement.error)

    @property
    def code(self) -> ExitCode:
        """The exit code of this table alone, had no commit been made."""
        code = _CODES[self.outcome]
        return ExitCode.WINDOW if code is ExitCode.DONE and self.owed else code


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A whole run."""

    run: str
    plan: str
    """The plan's digest."""
    env: str = ""
    """The environment that the plan is for; empty without one."""
    tables: tuple[TableRun, ...]
    failures: tuple[TableFailure, ...] = ()
    """Tables that the plan could not read."""
    proceed: str = ""
    """Why it was to go on over writers that did not end in time; empty where it was not."""
    override: str = ""
    """Why it was to run outside the calendar; empty where it was not."""
    notes: tuple[str, ...] = ()
    """What people must know of that is about no single table."""

    @property
    def committed(self) -> bool:
        """Whether the run made any commit, by the log, or by the engine's word where the log could not be read."""
        return any(table.commits or any(not each.error for each in table.statements) for table in self.tables)

    @property
    def exit_code(self) -> ExitCode:
        """As in docs/exit-codes.md: once something was committed, whatever else went wrong makes the run a partial one.

        So do tables that the plan itself leaves out, refused or unreadable, beside others that are as declared.
        """
        wrong = [table for table in self.tables if table.code is not ExitCode.DONE]
        if not wrong and not self.failures:
            return ExitCode.DONE
        left_out = all(table.refusals for table in wrong) and len(wrong) < len(self.tables)
        if self.committed or left_out:
            return ExitCode.PARTIAL
        return ExitCode.worst(*(table.code for table in wrong), *(ExitCode.ERROR for _ in self.failures))
