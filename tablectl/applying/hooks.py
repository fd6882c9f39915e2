"""Hooks: the user's commands around a table's window, and the after-hooks owed until they have run (docs/window.md).

After-hooks that a dead run owes run before all else, also on tables that this run does not change: they may start what
it waits for, such as a stream.

Whoever can write to a table's directory can write lease records. So an owed hook in a record is only compared with the
current configuration; a command is never run because a record contains it.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain

from tablectl.applying.events import RunEvent
from tablectl.applying.lease_wait import STATEMENT_LEFT, DeadStatements, LeaseWait
from tablectl.applying.run_context import RunContext, StopTableError, TableJob, interrupted
from tablectl.applying.scheduler import QueuedJob, Rules, Scheduler
from tablectl.applying.shared_window import shares_window
from tablectl.applying.waits import End, Later
from tablectl.delta.names import NameSyntaxError, parse_table
from tablectl.leases.guards import APPLYING
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import tail
from tablectl.model.errors import BrokenTableError, MissingError, TablectlError, WindowError, of_table, one_line
from tablectl.model.run_report import RunOutcome, TableRun
from tablectl.model.safe_text import listed
from tablectl.storage.records import RecordStore

UNFINISHED = "unfinished"
"""``TABLECTL_OUTCOME`` for the after-hook of a run that died."""
_MOST_SHOWN = 10
_LONGEST_SHOWN = 200
_LOOK_EVERY = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HookStreams:
    """The streaming queries of a table, or of all tables that share its window, by name, as hooks get them."""

    declared: tuple[str, ...] = ()
    """All that policies declare."""
    stopped: tuple[str, ...] = ()
    """Those that the statements of this run stop."""


_NO_STREAMS = HookStreams()


@dataclass(frozen=True, slots=True)
class LeftElsewhere:
    """Why jobs stay paused although nothing runs on the tables of this run."""

    why: str
    left: float = 0.0
    """Seconds after which nothing of the statement runs, if its record stays the same; 0 if unknown."""


def distinct(streams: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The names of the streams of several tables, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(streams)))


def statement_elsewhere(context: RunContext, names: Iterable[str]) -> LeftElsewhere | None:
    """What may still commit on tables that shared the window of owed hooks and are not held by this run.

    A record of a table names them. It has no authority, so their own records are read, and nothing is written there or
    interrupted: the end of a statement is its commit, or its bound on our clock, as for a writer at a gate.
    """
    for name in names:
        try:
            table = parse_table(name)
            place = table.parts[0] if table.is_path else context.where(table)
            last = tail(context.records(place))
        except MissingError:
            continue  # a table that is gone takes no commit
        except (TablectlError, NameSyntaxError) as error:
            return LeftElsewhere(f"whether a statement still runs on {name} is unknown: {one_line(error)}")
        if last is None or not last.statement_bound or last.running is None:
            continue
        now = context.clock.monotonic()
        seen, since = context.records_seen.get(name, ("", now))
        if seen != last.id:
            since = now
            context.records_seen[name] = last.id, now
        left = since + last.statement_silence - now
        if seen not in {"", last.id} and last.held:  # another apply is at work there, for as long as it takes
            return LeftElsewhere(f"another apply runs a statement on {name}, which shared the window")
        if left > 0 and not context.has_committed(place, last.running.run, last.running.version):
            return LeftElsewhere(f"a statement may still run on {name}, which shared the window", left)
    return None


class TableHooks:
    """The hooks of one table during one run. Only ``before`` and ``settle`` can end work on the table."""

    def __init__(
        self, context: RunContext, table: str, location: str, lease: Lease, streams: HookStreams = _NO_STREAMS
    ) -> None:
        self._context = context
        self._table = table
        self._location = location
        self._lease = lease
        self._streams = streams
        self._begun = False
        self._kept: tuple[str, ...] = ()  # owed by an earlier run, and must be kept
        self.notes: list[str] = []
        """For people: hooks that failed, and owed hooks that no configuration runs."""
        self.owed: tuple[str, ...] = ()
        """The commands still owed."""

    def settle(self) -> None:
        """Run first what a run that died still owes.

        Raises ``StopTableError`` if it owes a command that ``window.after`` does not contain (any more). The text of a
        record is never run, and dropping it could leave jobs paused forever. ``--proceed REASON`` drops it.
        """
        owed = self._lease.record.owed
        known = {shlex.join(command) for command in self._context.config.after}
        foreign = [text for text in owed if text not in known]
        if foreign and not self._context.stamp.proceed:
            self._kept = tuple(foreign)
            self.owed = owed
            raise StopTableError(
                RunOutcome.REFUSED,
                f"a run before owes {_few(foreign)}, which `window.after` does not hold: it was not run",
                "put the command back into `window.after` and apply, and change it then; or run it by hand and apply "
                "with `--proceed REASON`, which drops it",
            )
        self._run_owed(owed, UNFINISHED)

    def before(self) -> None:
        """Run the before-hooks once. What they will owe is written into the lease record first.

        Raises ``StopTableError`` if one fails, and ``WindowError`` if the record cannot be written: then no hook has
        run.
        """
        config = self._context.config
        if self._begun or not (config.before or config.after):
            return
        owed = tuple(dict.fromkeys([*self._lease.record.owed, *map(shlex.join, config.after)]))
        self._owe(owed)
        self._begun = True
        for command in config.before:
            self._tell("hook before", f"before: {shlex.join(command)}")
            failed = self._context.run_hook(
                command, self._environ("before", self._streams.stopped), self._on_output_line, self._context.stop.is_set
            )
            if self._context.stop.is_set():
                raise interrupted()
            if failed:
                message = f"the before-hook {shlex.join(command)} {failed}"
                raise StopTableError(RunOutcome.HOOK_FAILED, message, "its output is above; no gate was closed for it")

    def share(self) -> None:
        """Write down the tables of the window on a table that pauses no jobs itself, because another one of them did:
        an apply of this one alone must not resume them while a statement of another one may commit.
        """
        if self._context.config.before or self._context.config.after:
            self._owe(self._lease.record.owed)

    def _owe(self, owed: tuple[str, ...]) -> None:
        record, together = self._lease.record, self._context.together
        names = [each.name for each in together.tables] if together else []
        shared = tuple(dict.fromkeys([*record.together, *names]))
        if (owed, shared) != (record.owed, record.together):
            self._lease.owe(owed, shared)

    def after(self, outcome: RunOutcome) -> None:
        """Run the owed after-hooks, whatever the outcome of the table, even if the lease has expired.

        If another run has taken the lease over, it owes the hooks: it may have paused the jobs again. The same applies
        if that is unknown because the store cannot be reached.
        """
        owed = self._lease.record.owed
        if not (owed or self._lease.record.together):
            return
        try:
            next_holder = self._lease.successor()
        except WindowError as error:
            if self._lease.lost:
                self._keep(owed, "the lease was lost", f"the next apply of this table: {error.message}")
                return
            next_holder = None  # the lease cannot have been taken over yet
        if next_holder is not None:
            self._keep(owed, "the lease was lost", str(next_holder))
            return
        self._run_owed(owed, outcome.value)

    def _keep(self, owed: Sequence[str], why: str, successor: str) -> None:
        self.owed = tuple(owed)
        if owed:
            self._note(f"{why}: {_few(owed)} is left to {successor}")

    def _run_owed(self, owed: Sequence[str], outcome: str) -> None:
        shared = self._lease.record.together
        if not (owed or shared):
            return
        together = self._context.together
        if any(each.running is not None for each in (self._lease, *(together.leases if together else ()))):
            self._keep(owed, "a statement may still run in the engine", "the next apply of this table")
            return
        elsewhere = statement_elsewhere(self._context, self._shared_with())
        if elsewhere is not None:
            self._keep(owed, elsewhere.why, "the next apply of this table")
            return
        known = {shlex.join(command): command for command in self._context.config.after}
        texts = [text for text in owed if text not in known and text not in self._kept]
        for text in texts[:_MOST_SHOWN]:
            self._note(f"a run before owes the hook {_short(text)}, which is not one of `window.after`: it was not run")
        if len(texts) > _MOST_SHOWN:
            self._note(f"and {len(texts) - _MOST_SHOWN} more such hooks")
        left = [
            text
            for text in owed
            if (text in known and not self._done(known[text], outcome)) or (text not in known and text in self._kept)
        ]
        self.owed = tuple(left)
        try:
            if self.owed != tuple(owed) or (shared and not self.owed):
                self._lease.owe(self.owed, shared if self.owed else ())
        except WindowError as error:
            # The lease record still says that the hooks are owed: the next apply runs them once more.
            _log.warning("what %s owes could not be written: %s", self._table, error.message)

    def _shared_with(self) -> tuple[str, ...]:
        """The tables of the window for which hooks are owed, without those that this run holds."""
        together = self._context.together
        held = {self._table, *(each.name for each in together.tables)} if together else {self._table}
        return tuple(each for each in self._lease.record.together if each not in held)

    def _done(self, command: Sequence[str], outcome: str) -> bool:
        self._tell("hook after", f"after: {shlex.join(command)}")
        # Which streams the run that died had stopped is not recorded.
        streams = self._streams.declared if outcome == UNFINISHED else self._streams.stopped
        environ = {**self._environ("after", streams), "TABLECTL_OUTCOME": outcome}
        failed = self._context.run_hook(command, environ, self._on_output_line, lambda: False)
        if failed:
            self._note(
                f"the after-hook {shlex.join(command)} {failed}; it stays owed until an apply of this table runs it"
            )
        return not failed

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self._tell("note", text)

    def _environ(self, hook: str, streams: Sequence[str]) -> Mapping[str, str]:
        return {
            "TABLECTL_HOOK": hook,
            "TABLECTL_TABLE": self._table,
            "TABLECTL_LOCATION": self._location,
            "TABLECTL_RUN": self._context.stamp.run,
            "TABLECTL_PLAN": self._context.stamp.plan,
            "TABLECTL_STREAMS": " ".join(streams),
        }

    def _on_output_line(self, line: str) -> None:
        self._tell("hook says", f"| {line}")

    def _tell(self, step: str, words: str) -> None:
        self._context.notify(RunEvent(self._table, step, words))


def _short(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…")


def _few(texts: Sequence[str]) -> str:
    """Some hooks, for people, cut to a line or two."""
    return listed([*map(_short, texts)], 2)


# What a run that died owes


@dataclass(frozen=True, slots=True)
class HookFacts:
    """What hooks need to know of a table besides its name and location."""

    streams: tuple[str, ...] = ()
    """The names of its declared streams."""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwedHookTable:
    """A table by name and location."""

    name: str
    location: str
    facts: Callable[[], HookFacts] = HookFacts
    """Called only if a table owes hooks: to look up all tables of a large repository in its policies takes seconds."""
    applied: bool = False
    """Whether the run applies it afterwards, which ends the statement that a run before may have left."""


def _sharing(places: Sequence[OwedHookTable], together: Sequence[str]) -> Sequence[OwedHookTable]:
    """The tables that share one window: the hooks of one are those of all. ``together`` has names (globs) and tags."""
    if not together:
        return ()
    return [each for each in places if shares_window(parse_table(each.name), each.facts().tags, together)]


def run_owed_hooks(context: RunContext, places: Sequence[OwedHookTable]) -> dict[str, TableRun]:
    """Run what is owed on these tables, each under its lease. Returns a run by name for each table that owed hooks.

    A table that is not applied afterwards, and on which a run before left a statement, opens its gate here, too.
    A table that cannot be read, or that another apply holds, is left to the next apply. Waiting for a dead holder does
    not occupy a worker.
    """
    sharing = cache(partial(_sharing, places, context.config.together))
    todo = {
        place.name: _Settlement(TableJob(context, ()), place, sharing)
        for place in places
        if context.config.after or not place.applied
    }

    def step(job: QueuedJob) -> TableRun | Later | None:
        found = of_table(job.key, todo[job.key].step)
        if isinstance(found, BrokenTableError):
            return End(RunOutcome.FAILED, found.message, found.hint).run(job.key)
        return None if isinstance(found, TablectlError) else found

    def tell_wait(job: QueuedJob, later: Later, since: float) -> None:
        context.notify(later.event(job.key, context.clock.monotonic() - since))

    rules: Rules[TableRun | None] = Rules(left_out=lambda job, *_: todo[job.key].left_out(), on_wait=tell_wait)
    with ExitStack() as stack:
        for each in todo.values():
            stack.callback(each.leases.close)
        runs = Scheduler(context.clock, context.config.parallel, context.stop, rules).run(map(QueuedJob, todo), step)
    return {name: run for name, run in runs.items() if run is not None}


class _Settlement:
    """What a run before left on one table, and on those that share its window."""

    def __init__(self, job: TableJob, place: OwedHookTable, sharing: Callable[[], Sequence[OwedHookTable]]) -> None:
        """``sharing`` returns the tables of the run that share one window."""
        self._job = job
        self._place = place
        self._sharing = sharing
        self._group: Sequence[OwedHookTable] = ()
        self._left = ""
        self._shared: tuple[str, ...] = ()
        self.leases = LeaseWait(job, from_dead=True)
        self._dead = DeadStatements(job, self.leases)

    def step(self) -> TableRun | Later | None:
        """Take the leases, end the statements, and run the hooks. ``None`` if nothing is owed, or nothing can be
        done.
        """
        if not self.leases.held and not self._find():
            return None
        elsewhere = None if self.leases.held else statement_elsewhere(self._job.context, self._shared)
        if elsewhere is not None and elsewhere.left:
            at = self._job.context.clock.monotonic() + min(_LOOK_EVERY, elsewhere.left)
            return Later(at, STATEMENT_LEFT, f"a run before {self._left}: {elsewhere.why}", elsewhere.left)
        answer = self.leases.check(self._job.context.clock.monotonic())
        if isinstance(answer, Later):
            return replace(answer, words=f"a run before {self._left}: {answer.words}")
        return None if isinstance(answer, End) else self._settle()

    def left_out(self) -> TableRun | None:
        """The result if the run ends before its next step."""
        return self._run(interrupted()) if self.leases.held else None

    def _find(self) -> bool:
        """Whether anything is owed, and which leases that takes."""
        place, records = self._place, self._job.context.records
        last = tail(records(place.location))
        if last is None or not (last.owed or (last.statement_bound and not place.applied)):
            return False
        known = {each.name for each in self._sharing()} | {place.name}
        self._shared = tuple(each for each in last.together if each not in known) if last.owed else ()
        self._left = "owes its after-hooks" if last.owed else "left a statement that may still run"
        sharing = self._sharing()
        self._group = sharing if place in sharing else (place,)
        # The jobs stay paused while a statement may run on any of these tables.
        self.leases.places = [each for each in self._group if each.name == place.name or _runs(records(each.location))]
        return True

    def _settle(self) -> TableRun | Later:
        # Under the leases: what a dead apply left is counted from when its record was read.
        answer = of_table(self._place.name, lambda: self._dead.check(self._job.context.clock.monotonic()))
        if isinstance(answer, TablectlError):
            return self._run(answer)
        if isinstance(answer, Later):
            return answer
        return self._run(StopTableError.of(answer) if isinstance(answer, End) else None)

    def _run(self, end: StopTableError | TablectlError | None) -> TableRun:
        """Run the hooks unless something ended the work before, and release the leases."""
        place, lease = self._place, self.leases.of(self._place)
        streams = HookStreams(declared=distinct(each.facts().streams for each in self._group))
        hooks = TableHooks(self._job.context, place.name, place.location, lease, streams)
        applying = APPLYING.set(self._job.context.claim.run)
        try:
            if end is not None:
                raise end
            hooks.settle()
        except (StopTableError, TablectlError) as stop:
            hooks.owed = lease.record.owed
            hooks.notes.append(f"{stop.message}: {stop.hint}")
        finally:
            self.leases.close()
            APPLYING.reset(applying)
        notes = (*self._dead.notes.values(), *hooks.notes)
        run = TableRun(
            name=place.name, outcome=RunOutcome.ALREADY, epoch=lease.record.epoch, owed=hooks.owed, notes=notes
        )
        if isinstance(end, BrokenTableError):
            run = replace(run, outcome=RunOutcome.FAILED, message=end.message, hint=end.hint)
        # The statement that keeps a gate shut may be that of a table which shares the window.
        gates = [self.leases.note(replace(run, name=each.name)) for each in self.leases.places]
        shut = max(gates, key=lambda gate: gate.shut_ms)
        return replace(run, shut_ms=shut.shut_ms, shut=shut.shut)


def _runs(store: RecordStore) -> bool:
    last = tail(store)
    return last is not None and last.statement_bound > 0
