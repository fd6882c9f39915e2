"""The gate of one table during a run: it tightens before statements and opens on every exit path."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

from tablectl.applying.drain_writers import MOST_NAMED, STUCK, Drain, is_silent, named, why_silent
from tablectl.applying.events import RunEvent
from tablectl.applying.hooks import TableHooks
from tablectl.applying.run_context import RunContext, StopTableError, check_answers, interrupted, table_key
from tablectl.applying.shared_window import SharedWindow, WindowStep
from tablectl.applying.statement_turns import SHORT_DRAIN, lane_of
from tablectl.applying.waits import Later
from tablectl.leases.clock import milliseconds, pause_briefly
from tablectl.leases.guards import GuardRecord, delete_dead_guard, newest_beats
from tablectl.leases.lease import RELEASE_PAUSES, Lease, LeaseLost
from tablectl.leases.lease_records import PATIENCE, Gate
from tablectl.model.errors import WindowError
from tablectl.model.plan import Phase, Statement, TablePlan
from tablectl.model.run_report import GateRun, PossibleFailure, RunOutcome
from tablectl.model.safe_text import listed

GATES: Mapping[Phase, Gate] = MappingProxyType(
    {Phase.FREE: Gate.NO_SCHEMA, Phase.REWRITE: Gate.APPENDS_ONLY, Phase.CLOSED: Gate.CLOSED}
)
"""The loosest gate that a statement of each phase may run under."""

_FREE_FAILS = "concurrent writes that change the schema fail once (MetadataChangedException)"

_log = logging.getLogger(__name__)


class GateKeeper:
    """Shuts a table's gate for statements and opens it again. Measures for how long, and records which writers may
    fail.
    """

    def __init__(self, context: RunContext, plan: TablePlan, lease: Lease, hooks: TableHooks) -> None:
        self._context = context
        self._table = plan.name
        self._drain = context.drain_of(plan)
        self._lease = lease
        self._sightings = context.sightings[table_key(plan)]
        self._sightings.recall(lease.record.silent, context.clock.monotonic())
        self._hooks = hooks
        self._turn = context.turns.of(plan.name, context.clock)
        self._together = context.together
        self._lets_in = ""
        """The shared window whose writers the gate lets in when it shuts."""
        self._drained = Gate.OPEN
        self._tried = False
        self._closed_at: float | None = None
        self._shut_since: tuple[Gate, int] | None = None
        self._given_up: set[str] = set()
        self._at_gate: dict[str, int] = {}
        self._dead: tuple[GuardRecord, ...] = ()
        self.closings = 0
        """How often the gate was closed."""
        self._closed_for = 0.0
        self.drained_for = 0.0
        """Seconds spent waiting for writers."""
        self.spans: list[GateRun] = []
        """The gates of this session in order of time, for reports."""
        self.possible_failures: list[PossibleFailure] = []
        """Writers that the drain did not wait for to the end."""
        self.guarded = False
        """Whether any guard was seen. If so, the table's writers are assumed to use guards."""

    def admit(self, statement: Statement, phase: Phase) -> bool:
        """Make sure that no cooperating writer conflicts with a statement.

        Returns True if the gate was tight enough already. Returns False if it was shut just now and writers were waited
        for: they may have committed meanwhile, so the statement must be decided again. Raises ``StopTableError`` if
        writers did not finish in time or a before-hook failed, and ``WindowError`` if the lease is lost or its store
        cannot be reached.
        """
        gate = GATES[phase]
        self._check_others()
        if gate.strictness <= self._drained.strictness:
            if gate is Gate.CLOSED:
                self._turn.take(lane_of(statement), self._wait_turn, shut=True)
                self._check_others()
            return True
        if self._together is not None:
            self._admit_together(self._together, gate, statement)
            return False
        if gate.strictness > Gate.NO_SCHEMA.strictness:
            self._hooks.before()
        if gate is Gate.CLOSED:
            # After the hooks, which may take minutes, and before the gate shuts.
            self._turn.take(lane_of(statement), self._wait_turn, shut=self._drained is not Gate.OPEN)
        self._tighten(gate, statement)
        return False

    def _tighten(self, gate: Gate, statement: Statement) -> float:
        """Shut the gate and wait for writers. Returns for how many seconds."""
        limit, spent = self._drain, 0.0
        if gate is Gate.CLOSED and self._drained.strictness < Gate.APPENDS_ONLY.strictness and self._is_guarded():
            # Appends still pass while the long writes, those that read the table, finish.
            left = self._shut_and_drain(Gate.APPENDS_ONLY, limit)
            spent = left.seconds
            if not (left.over or self._context.stamp.proceed):
                self._give_up(left, statement)
            if self._together is None:
                self._turn.take(lane_of(statement), self._wait_turn, shut=True)  # given up if the drain took long
        left = self._shut_and_drain(gate, limit - spent)
        if not left.over:
            left.seconds += spent
            self._give_up(left, statement)
        self._name_dead(statement)
        self._drained = gate
        self.closings += gate is Gate.CLOSED
        return spent + left.seconds

    def _admit_together(self, together: SharedWindow, gate: Gate, statement: Statement) -> None:
        """The gate of a table that shares its window: it waits for the other tables around each step.

        No turn is taken here: the gates of all tables are shut at the same time, and each statement takes the turn by
        itself.
        """
        if gate.strictness > Gate.NO_SCHEMA.strictness:
            together.once(self._hooks.before)
            self._hooks.share()
        if self._drained is Gate.OPEN:
            self._tighten_twice(together, Gate.NO_SCHEMA if gate is Gate.CLOSED else gate, statement, WindowStep.SHUT)
        elif gate is Gate.CLOSED:
            self._let_in(together)
            self._await_all(together, WindowStep.READY)
            self._tighten_twice(together, gate, statement, WindowStep.CLOSED)
        else:
            self._tighten_twice(together, gate, statement)

    def _tighten_twice(
        self, together: SharedWindow, gate: Gate, statement: Statement, where: WindowStep = WindowStep.BEGUN
    ) -> None:
        """Shut the gate for all but the writers that the window waits for, meet the other tables, and shut it for
        those, too. A writer that was let in has put its guard before the second record, or has seen it.
        """
        self._lets_in = together.id
        try:
            spent = self._tighten(gate, statement)
            self._await_all(together, where)
        finally:
            self._lets_in = ""
        left = self._shut_and_drain(gate, max(0.0, self._drain - spent))
        if not left.over:
            self._give_up(left, statement)
        self._name_dead(statement)
        self._drained = gate  # it may have been open for a moment

    def _let_in(self, together: SharedWindow) -> None:
        """Let in the writers that the window waits for, while this table sends nothing. If that fails, they wait."""
        with suppress(WindowError):
            if self._lease.record.gate is not Gate.OPEN:
                self._lease.gate(self._lease.record.gate, together.id)

    def _await_all(self, together: SharedWindow, where: WindowStep) -> None:
        if not together.arrive(self._table, where, self._context.clock, self._tell_wait):
            raise interrupted()

    def finish(self) -> None:
        """Call this when no statement is missing any more: tables that share a window open their gates together."""
        self._turn.give()
        if self._together is not None:
            self._let_in(self._together)
            self._await_all(self._together, WindowStep.DONE)

    def give_turn(self) -> None:
        """Call this after the last closed statement: the next table shuts its gate while this one is verified."""
        self._turn.give()

    @property
    def opens_early(self) -> bool:
        """Whether the gate may open as soon as the last closed statement has ended. Tables that share a window open
        their gates together.
        """
        return self._together is None

    def reopen(self) -> None:
        """Open the gate for hours of work between two statements. Raises ``StopTableError`` if it stays shut."""
        if self._drained is Gate.OPEN:
            return
        self._turn.give()
        self._open()
        if self._lease.record.gate is not Gate.OPEN:
            message = "the gate stays shut after the statement before the copy, so no copy is made"
            raise StopTableError(RunOutcome.FAILED, message, "run the same command again")

    def end_statement(self) -> None:
        """Open the gate with the record that says that the last closed statement has ended. Never raises: if it fails,
        the gate is opened as ``open`` opens it.
        """
        try:
            self._lease.statement_ended(opens=True)
        except WindowError as error:
            _log.warning("the end of a statement of %s was not written down: %s", self._table, error.message)
            self._drained = Gate.OPEN  # the next record opens it, so another closed statement must shut it again
            return
        if self._lease.record.gate is Gate.OPEN:
            self._tried, self._drained = False, Gate.OPEN
            self._opened("")

    @property
    def closed_ms(self) -> int | None:
        """Milliseconds for which the gate was closed; ``None`` if it is not known when it was opened."""
        return round(self._closed_for * 1000) if self._closed_at is None else None

    @property
    def closed(self) -> bool:
        """Whether the gate is closed and every writer that it blocks has ended."""
        return self._drained is Gate.CLOSED

    def leave(self) -> None:
        """Release what other tables of the run wait for, on every exit path."""
        self._turn.give()

    def open(self) -> None:
        """Open the gate. Never raises an ``Exception``.

        If opening fails, the next renewal opens it, or the release does, or the gate expires with the lease.
        """
        if self._together is None:
            self._turn.give()
            self._open()
            return
        self._together.stop_unless_done(self._table)  # before the next of them takes the turn
        self._turn.give()
        self._open()
        self._together.leave(self._table)
        if self._lease.record.owed:
            self._together.wait_until_open()  # the after-hooks that follow cover all tables of the window

    def _open(self) -> None:
        self._drained = Gate.OPEN
        if not self._tried and self._lease.record.gate is Gate.OPEN:
            return
        runs = self._lease.running is not None
        problem = "a statement may still run in the engine" if runs else self._open_with_retries()
        self._opened(problem or ("the lease has run out" if self._lease.shut_for else ""))

    def _open_with_retries(self) -> str:
        """Why the gate is not open after some tries; empty if it is."""
        problem = self._try_open()
        for pause in RELEASE_PAUSES:
            if not problem:
                break
            pause_briefly(self._context.clock, pause)
            problem = self._try_open()
        return problem and f"{problem}; the next record of this run opens it"

    def _opened(self, problem: str) -> None:
        """Account for the time for which the gate was shut, if it is known when it was opened."""
        if self._closed_at is not None and not problem and not self._lease.lost:
            self._closed_for += self._context.clock.monotonic() - self._closed_at
            self._closed_at = None
        self._end_span()
        if problem:
            _log.warning("the gate of %s was not opened yet: %s", self._table, problem)
            self._tell("note", f"the gate is not open yet: {problem}")
        else:
            self._tell("gate open")
        self._note_waiting()

    def _note_waiting(self) -> None:
        """Note the guards of writers that came to the gate after the drain had listed the guards.

        A record that a writer left when it began to wait, before this gate was shut, is deleted: its writer may be
        dead, and one that is alive puts the next one.
        """
        if self.guarded and not self._at_gate:
            return
        try:
            beats = newest_beats(self._lease.store)
        except WindowError as error:
            _log.debug("%s: the guards were not listed: %s", self._table, error.message)
            return
        self.guarded |= bool(beats)
        for guard, beat in self._at_gate.items():
            if beats.get(guard) == beat:
                delete_dead_guard(self._lease.store, guard, beat)
        self._at_gate.clear()

    def _try_open(self) -> str:
        """Why the gate is not open although a retry may help; empty if it is open or no longer ours."""
        try:
            self._lease.gate(Gate.OPEN)
        except LeaseLost as error:
            _log.warning("the gate of %s was not opened: %s", self._table, error.message)
        except WindowError as error:
            return error.message
        self._tried = False
        return ""

    def _is_guarded(self) -> bool:
        """Whether there may be a guard. Without guards, a looser gate before a closed one would be a useless record."""
        try:
            return bool(newest_beats(self._lease.store))
        except WindowError:
            return True

    def _shut_and_drain(self, gate: Gate, limit: float) -> Drain:
        """Write the gate first, then list the guards: a writer that is not in the list saw the gate (docs/guards.md).

        If a writer that is waited for is itself blocked at the gate of another table, the gate opens for a moment: a
        writer blocked at this gate may be the one that blocks the other table's.
        """
        began = self._context.clock.monotonic()
        while True:
            self._shut(gate)
            left = self._wait_for_writers(gate, limit - (self._context.clock.monotonic() - began))
            left.seconds = self._context.clock.monotonic() - began
            if left.over:
                self._tell("drained")
            if left.over or not left.waits_for or left.seconds + STUCK > limit:
                return left
            # Not ``open``, which takes this table out of the window that it may share with others.
            self._turn.give()
            self._open()
            self._tell("draining", f"{left.text} waits at the gate of {left.waits_for}: this gate opens for a moment")
            self._context.clock.sleep(STUCK * random.uniform(0.5, 1))  # noqa: S311  # jitter, no secret

    def _shut(self, gate: Gate) -> None:
        started = self._context.clock.monotonic()
        self._tried = True
        self._lease.gate(gate, self._lets_in)
        if gate is Gate.CLOSED and self._closed_at is None:
            self._closed_at = started
        if self._shut_since is None or self._shut_since[0] is not gate:
            self._shut_since = (gate, self._end_span())
            self._tell(f"gate {gate}")

    def _end_span(self) -> int:
        """Record until when the current gate applied. Returns that moment, in milliseconds since the epoch."""
        now = milliseconds(self._context.clock.utc())
        if self._shut_since is not None:
            gate, since = self._shut_since
            self.spans.append(GateRun(gate=gate, since=since, until=now))
            self._shut_since = None
        return now

    def _wait_for_writers(self, gate: Gate, limit: float) -> Drain:
        left = Drain(
            self._lease.store,
            gate,
            self._context.clock,
            limit,
            self._given_up,
            self._lease.note_dead,
            self._sightings,
        )
        left.wait(self._keep_alive)
        self.drained_for += left.seconds
        self.guarded |= left.guarded
        self._at_gate |= left.at_gate
        self._dead += left.dead if left.over else ()
        return left

    def _name_dead(self, statement: Statement) -> None:
        """Name the writers that were taken for dead: one that is alive fails as one that was not waited for."""
        silent = dict.fromkeys(
            (named(each), f"gave no sign of life for {each.ttl * PATIENCE:.0f} s") for each in self._dead
        )
        fails = statement.fails or _FREE_FAILS
        self.possible_failures += [PossibleFailure(writer=name, reason=reason, fails=fails) for name, reason in silent]
        if silent:
            writers = listed([name for name, _ in silent], MOST_NAMED)
            self._hooks.notes.append(
                f"no sign of life, and so taken for dead: {writers}; if alive, they need a longer ttl"
            )
        self._dead = ()

    def _give_up(self, left: Drain, statement: Statement) -> None:
        """End work on the table, or continue despite the remaining writers if the user passed ``--proceed``."""
        since = self._context.clock.utc() - timedelta(seconds=left.seconds)
        message = f"waited {left.seconds:.0f} s for writers, since {since:%Y-%m-%d %H:%M:%S} UTC: {left.text}"
        if not self._context.stamp.proceed:
            silent = self._sightings.silent(left.guards, self._context.clock.monotonic())
            try:
                self._lease.note_silent(silent)
            except LeaseLost:
                raise
            except WindowError as error:
                _log.warning("what was seen of the writers of %s was not recorded: %s", self._table, error.message)
            hint = "run again when they are done, or wait longer (`window.drain`, `--wait 30m`)"
            if left.guards and len(silent) == len(left.guards) and all(map(is_silent, left.guards, silent)):
                hint = why_silent(left.guards, silent)
            raise StopTableError(RunOutcome.NO_WINDOW, message, f"{hint}; `--proceed REASON` goes on over them")
        self._lease.note_dead([guard.id for guard in left.dead])
        self._dead += left.dead
        self._lease.note(f"proceed: {self._context.stamp.proceed} ({message})")
        self._given_up.update(guard.id for guard in left.guards)
        fails = statement.fails or _FREE_FAILS
        names = [named(guard) for guard in left.guards]
        reason = "did not end in time"
        self.possible_failures += [
            PossibleFailure(writer=name, reason=reason, fails=fails) for name in names or ["unknown"]
        ]
        self._tell("proceed", f"{message}; going on over them: {self._context.stamp.proceed}. What may fail: {fails}")

    def _keep_alive(self, later: Later, waited: float) -> None:
        if self._context.stop.is_set():
            raise interrupted()
        if waited >= SHORT_DRAIN:
            self._turn.give()  # a slow writer delays only its own table
        # The gate is shut for the engine's statement: without an engine, writers have nothing to wait for.
        check_answers(self._context.engine)
        self._tell_wait(replace(later, most=self._drain), waited)
        self._lease.prove(self._context.budget)

    def _check_others(self) -> None:
        if self._together is not None and not self._together.may_go_on(self._table):
            raise interrupted()

    def _wait_turn(self, later: Later, waited: float) -> None:
        self._check_others()
        self._tell_wait(later, waited)

    def _tell_wait(self, later: Later, waited: float) -> None:
        if self._context.stop.is_set():
            raise interrupted()
        self._context.notify(later.event(self._table, waited))

    def _tell(self, step: str, words: str = "") -> None:
        self._context.notify(RunEvent(self._table, step, words))
