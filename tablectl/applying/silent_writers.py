"""Writers that may be dead are watched before the gate shuts (docs/guards.md, "How writers and applies wait").

A writer that is alive renews its guard every sixth of the ttl. That of a killed one counts as dead after ttl × 1.25. A
drain that ends before that shuts the gate, fails, and finds the same guard the next time. So such guards are watched
first, with an open gate and without a worker, which costs no writer anything. The lease is held: its record keeps what
was seen, and the next run counts on.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from tablectl.applying.drain_writers import MOST_NAMED, Sightings, named, why_silent
from tablectl.applying.gate import GATES
from tablectl.applying.lease_wait import LeaseWait
from tablectl.applying.remaining_statements import nothing_remains, planned_phase
from tablectl.applying.run_context import TableJob, table_key
from tablectl.applying.waits import GO, Answer, Awaited, End, Later, Wait
from tablectl.leases.guards import HERE, GuardRecord, listed_twice, read_guard
from tablectl.leases.lease import LeaseLost
from tablectl.leases.lease_records import PATIENCE
from tablectl.model.errors import WindowError
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import RunOutcome, TableRun
from tablectl.model.safe_text import listed
from tablectl.planning.plan_upkeep import UpkeepTable

MOST_WATCHED = 3600.0
"""Seconds for which one run watches silent guards at most, unless ``--wait`` is longer. Whoever can write to a table's
directory can put a guard with a ttl of a day."""
_NOTE_EVERY = 60.0
_LONGEST_PAUSE = 5.0
SILENT = Awaited("silent writers", "for a sign of life")

_log = logging.getLogger(__name__)


class SilentWriters(Wait):
    """The wait until each guard that a drain could not take for dead in its time was renewed, is gone, or is dead.

    Only guards that are there at its first look are watched: it ends although new writers come all the time.
    """

    def __init__(self, job: TableJob, leases: LeaseWait) -> None:
        self._job = job
        self._leases = leases
        self._watched: dict[str, dict[str, GuardRecord]] | None = None
        """By table and id; ``None`` before the first look of an attempt."""
        self._began = self._noted = 0.0
        self._pause = 1.0
        self.waited = False
        """Whether anything was waited for since the leases were taken."""
        self._notes: dict[str, str] = {}

    def check(self, now: float) -> Answer:
        """Whether no guard is left to watch."""
        if self._job.context.stamp.proceed:
            return GO
        try:
            if self._watched is None:
                self._began = self._noted = now
                self._watched = {each.name: self._first_look(each) for each in self._job.tables}
                if any(self._watched.values()) and all(
                    nothing_remains(self._job.context, each) for each in self._job.tables
                ):
                    self._watched = {}
            for each in self._job.tables:
                self._look(each, now)
        except LeaseLost:
            raise
        except WindowError as error:  # as in a drain: the next look may succeed
            _log.warning("the guards of %s cannot be looked at: %s", self._job.tables[0].name, error.message)
        context, left = self._job.context, {name: each for name, each in (self._watched or {}).items() if each}
        if self._watched is not None and not left:
            return GO
        most = max(context.wait, MOST_WATCHED)
        table = next((each for each in self._job.tables if each.name in left), self._job.tables[0])
        guards = tuple(left.get(table.name, {}).values())
        words = f"for a sign of life of {listed([*map(named, guards)], MOST_NAMED)}: the gate is open meanwhile"
        if not context.engine.alive():
            message = "the engine of this run does not answer"
            return End(RunOutcome.NO_WINDOW, message, "run the same command again when it does", table.name)
        if now - self._began >= most:
            silent = self._sightings(table).silent(guards, now)
            hint = f"{why_silent(guards, silent)}; `--proceed REASON` goes on over them" if guards else ""
            return End(RunOutcome.NO_WINDOW, f"waited {most:.0f} s {words}", hint, table.name)
        self.waited = True
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        return Later(now + pause, SILENT, words, most, holds=True)

    def begin_again(self) -> None:
        """The next attempt looks again."""
        self._watched, self._pause = None, 1.0

    def note(self, run: TableRun) -> TableRun:
        """That the drain is too short for a guard, which would otherwise fail in silence."""
        note = self._notes.get(run.name, "")
        return replace(run, notes=(*run.notes, note)) if note and note not in run.notes else run

    def _first_look(self, table: TablePlan) -> dict[str, GuardRecord]:
        lease, context = self._leases.of(table), self._job.context
        gates = [GATES[planned_phase(table, each)] for each in table.statements]
        if not gates:
            return {}
        gate, drain = max(gates, key=lambda each: each.strictness), context.drain_of(table)
        beats = listed_twice(lease.store)
        records = filter(None, (read_guard(lease.store, *each) for each in beats.items()))
        found = [each for each in records if each.mode.waits(gate) and each.waits != HERE]
        at, sightings = context.clock.monotonic(), self._sightings(table)
        sightings.recall(lease.record.silent, at)
        long = {each.id: each for each in found if each.ttl * PATIENCE > drain}
        for each in long.values():
            sightings.since(each.id, each.beat, at)
        if long:
            longest = max(each.ttl * PATIENCE for each in long.values())
            setting = "half of `window.upkeep`" if isinstance(table, UpkeepTable) else "`window.drain`"
            self._notes[table.name] = (
                f"{setting} is {drain:.0f} s, and a guard of {listed([*map(named, long.values())], MOST_NAMED)} counts "
                f"as dead only after {longest:.0f} s: it was watched before the gate shut"
            )
        return long

    def _look(self, table: TablePlan, now: float) -> None:
        """Leave out the guards that are gone, were renewed, or are dead: the drain finds out the same at once."""
        watched = (self._watched or {}).get(table.name)
        if not watched:
            return
        lease = self._leases.of(table)
        lease.prove(self._job.context.budget)
        beats = listed_twice(lease.store)
        silent = self._sightings(table).silent(watched.values(), now)
        for each in silent:
            renewed = beats.get(each.guard) != each.beat
            if renewed or each.seconds >= watched[each.guard].ttl * PATIENCE:
                del watched[each.guard]
        if now - self._noted >= _NOTE_EVERY or not watched:
            lease.note_silent([each for each in silent if beats.get(each.guard) == each.beat])
            self._noted = now

    def _sightings(self, table: TablePlan) -> Sightings:
        return self._job.context.sightings[table_key(table)]
