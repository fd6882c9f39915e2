"""The defects of ``python -m chaos sabotage``: each takes one line of the window away, or turns it round."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Defect:
    """One line that is replaced by another."""

    what: str
    """What the product does then."""
    file: str
    line: str
    """Text that the file holds exactly once."""
    becomes: str
    tests: tuple[str, ...]
    """The nearest unit tests."""


_LEASES, _APPLYING, _WRITERS = "tests/leases", "tests/applying", "tests/writers"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "a holder counts as dead at once",
        "tablectl/leases/acquire.py",
        "return now - self.since >= self.patience",
        "return now >= self.since",
        (_LEASES,),
    ),
    Defect(
        "a lease is taken although its holder is alive",
        "tablectl/leases/acquire.py",
        "if last is not None and last.held and last.id not in dead:",
        "if last is not None and last.held and last.id in dead:",
        (_LEASES,),
    ),
    Defect(
        "a new holder forgets the statement that still runs",
        "tablectl/leases/acquire.py",
        "running=left.running if left else None,",
        "running=None,",
        (_LEASES, _APPLYING),
    ),
    Defect(
        "a new holder forgets the hooks that are owed",
        "tablectl/leases/acquire.py",
        "owed=last.owed if last else (),",
        "owed=(),",
        (_LEASES, _APPLYING),
    ),
    Defect(
        "a new holder keeps the number of the old ownership",
        "tablectl/leases/acquire.py",
        "epoch=last.epoch + 1 if last else 1,",
        "epoch=last.epoch if last else 1,",
        (_LEASES, _APPLYING),
    ),
    Defect(
        "a new holder forgets which guards were taken for dead",
        "tablectl/leases/acquire.py",
        "dead_guards=last.dead_guards if last else (),",
        "dead_guards=(),",
        (_LEASES, _WRITERS),
    ),
    Defect(
        "leases that were taken without use stay taken",
        "tablectl/leases/acquire.py",
        "undo.callback(got.release)",
        "undo.callback(int)",
        (_LEASES, _APPLYING),
    ),
    Defect(
        "a lease about to expire is not renewed before a statement",
        "tablectl/leases/lease.py",
        "if self._left() <= budget + MARGIN * self._record.ttl:",
        "if self._left() < 0:",
        (_LEASES, _APPLYING),
    ),
    Defect(
        "an expired lease still writes records",
        "tablectl/leases/lease.py",
        "        if self._left() <= 0:\n            raise self._ran_out()",
        "        if self._left() <= 0:\n            return",
        (_LEASES, _APPLYING, _WRITERS),
    ),
    Defect(
        "a lease counts from the answer instead of the request",
        "tablectl/leases/lease.py",
        "self._deadline = started + record.ttl",
        "self._deadline = self._clock.monotonic() + record.ttl",
        (_LEASES, _WRITERS),
    ),
    Defect(
        "records of others are taken for our own",
        "tablectl/leases/lease.py",
        "if later.id not in self._sent:",
        "if not later.id:",
        (_LEASES, _WRITERS),
    ),
    Defect(
        "a second statement is announced while one may run",
        "tablectl/leases/lease.py",
        "if before is not None and before.tag != running.tag:",
        "if before is not None and not running.tag:",
        (_LEASES, _APPLYING),
    ),
    Defect(
        "a paused run does not announce its statement again",
        "tablectl/leases/lease.py",
        "        if not fresh:\n            self.announce(running)",
        "        if fresh:\n            self.announce(running)",
        (_LEASES, _APPLYING, _WRITERS),
    ),
    Defect(
        "a failed renewal is not tried again",
        "tablectl/leases/lease.py",
        "            pause = RETRY_EVERY",
        "            return",
        (_LEASES,),
    ),
    Defect(
        "writers do not count the bound of a running statement",
        "tablectl/leases/lease_records.py",
        "return self.silence + self.statement_bound * PATIENCE",
        "return self.silence",
        (_LEASES, _WRITERS),
    ),
    Defect(
        "a drain lists the guards once",
        "tablectl/leases/guards.py",
        "first, second = newest_beats(store), newest_beats(store)",
        "first = second = newest_beats(store)",
        (_APPLYING, _WRITERS),
    ),
    Defect(
        "a guard counts as dead as soon as it is seen twice",
        "tablectl/applying/drain_writers.py",
        "dead=now - known.since >= known.record.ttl * PATIENCE",
        "dead=now >= known.since",
        (_APPLYING, _WRITERS),
    ),
    Defect(
        "a drain waits for writers that wait at its own gate",
        "tablectl/applying/drain_writers.py",
        "return record.mode.waits(self._gate) and record.waits != HERE",
        "return record.mode.waits(self._gate)",
        (_APPLYING, _WRITERS),
    ),
    Defect(
        "dead guards are deleted without a record",
        "tablectl/applying/drain_writers.py",
        "self._note_dead([each.id for each in self.dead])",
        "pass",
        (_APPLYING, _WRITERS),
    ),
    Defect(
        "a drain waits for writers that came later",
        "tablectl/applying/drain_writers.py",
        "if guard not in self._ignored and not is_late:",
        "if guard not in self._ignored:",
        (_APPLYING, _WRITERS),
    ),
    Defect(
        "jobs are not paused",
        "tablectl/applying/gate.py",
        "            self._hooks.before()",
        "            pass",
        (_APPLYING,),
    ),
    Defect(
        "the gate is not written down",
        "tablectl/applying/gate.py",
        "self._lease.gate(gate)",
        "self._lease.prove(0)",
        (_APPLYING,),
    ),
    Defect(
        "writers are not waited for",
        "tablectl/applying/gate.py",
        "left = self._shut_and_drain(gate, limit - spent)",
        "left = self._shut_and_drain(gate, 0.0)",
        (_APPLYING,),
    ),
    Defect(
        "a drain that failed goes on",
        "tablectl/applying/gate.py",
        "        if not self._window.stamp.proceed:\n            raise StopTableError(",
        "        if self._window.stamp.override:\n            raise StopTableError(",
        (_APPLYING,),
    ),
    Defect(
        "a lease is not proven while writers are waited for",
        "tablectl/applying/gate.py",
        "        self._lease.prove(self._window.budget)",
        "        self._lease.prove(-1e9)",
        (_APPLYING, _WRITERS),
    ),
    Defect(
        "a statement of a dead run is not ended first",
        "tablectl/applying/lease_wait.py",
        "        if running is not None:",
        "        if running is not None and not running:",
        (_APPLYING,),
    ),
    Defect(
        "owed hooks are not run",
        "tablectl/applying/run_table.py",
        "                session.hooks.settle()\n",
        "",
        (_APPLYING,),
    ),
    Defect(
        "a plan is not approved under the lease",
        "tablectl/applying/run_table.py",
        "                window.approve(plan)\n",
        "",
        (_APPLYING, "tests/commands/test_approval.py"),
    ),
    Defect(
        "the name is not resolved under the lease",
        "tablectl/applying/run_table.py",
        "                check_name(window, plan)\n",
        "",
        (_APPLYING,),
    ),
    Defect(
        "the table is not checked before a statement",
        "tablectl/applying/run_table.py",
        "    check_target(session, statement, live.table_id)\n",
        "",
        (_APPLYING,),
    ),
    Defect(
        "a foreign change that was overwritten is not reported",
        "tablectl/applying/run_table.py",
        "            _check_between(session, statement, versions, between)",
        "            del between",
        (_APPLYING,),
    ),
    Defect(
        "an error of a statement is forgotten",
        "tablectl/applying/run_table.py",
        "        attempts.check_failed(missing)",
        "        attempts.failed = None",
        (_APPLYING,),
    ),
    Defect(
        "a statement without an answer counts as ended",
        "tablectl/applying/statement.py",
        "over = error is None or not error.unanswered or _wait_for_end(session, sent)",
        "over = error is None or error is not None",
        (_APPLYING,),
    ),
    Defect(
        "commits of other runs count as ours",
        "tablectl/applying/statement.py",
        "ours = [each for each in commits if read_stamp(each.user_metadata) == session.window.stamp]",
        "ours = [each for each in commits if read_stamp(each.user_metadata) is not None]",
        (_APPLYING,),
    ),
    Defect(
        "the lease is not asked before the request",
        "tablectl/applying/statement.py",
        "            self._lease.announce_again(self._running)",
        "            del self._running",
        (_APPLYING,),
    ),
    Defect(
        "operations of others are interrupted",
        "tablectl/applying/lease_wait.py",
        "if not running.tag.startswith(TAG):",
        "if not running.tag:",
        (_APPLYING,),
    ),
    Defect(
        "a statement is not announced",
        "tablectl/applying/statement.py",
        "    session.lease.announce(running)\n",
        "",
        (_APPLYING, _WRITERS),
    ),
    Defect(
        "hooks run without a record that they are owed",
        "tablectl/applying/hooks.py",
        "            self._lease.owe(owed)\n",
        "            pass\n",
        (_APPLYING,),
    ),
    Defect(
        "a run that lost its lease resumes the jobs",
        "tablectl/applying/hooks.py",
        "        if next_holder is not None:",
        "        if next_holder is None:",
        (_APPLYING,),
    ),
    Defect(
        "a lease is not released",
        "tablectl/applying/lease_wait.py",
        "self._stack.callback(lease.release)",
        "self._stack.callback(int)",
        (_APPLYING,),
    ),
    Defect(
        "a writer reads the gate before it puts its guard",
        "tablectl/writers/gate_entry.py",
        "        self.put_active()\n        return self.gate()",
        "        found = self.gate()\n        self.put_active()\n        return found",
        (_WRITERS,),
    ),
    Defect(
        "a slow writer does not look again",
        "tablectl/writers/gate_entry.py",
        "if self.clock.monotonic() - sent < self.guard.ttl and not taken_for_dead:",
        "if not taken_for_dead:",
        (_WRITERS,),
    ),
    Defect(
        "a writer that was taken for dead writes",
        "tablectl/writers/gate_entry.py",
        "if self.clock.monotonic() - sent < self.guard.ttl and not taken_for_dead:",
        "if self.clock.monotonic() - sent < self.guard.ttl:",
        (_WRITERS,),
    ),
    Defect(
        "a renewal deletes the beat before it",
        "tablectl/writers/gate_entry.py",
        "while len(self._names) > 2:",
        "while len(self._names) > 1:",
        (_WRITERS,),
    ),
    Defect(
        "a release opens the gate of a statement that may still run",
        "tablectl/leases/lease.py",
        "kept = last.gate if running is not None and running.until > 0 else Gate.OPEN",
        "kept = Gate.OPEN",
        (_LEASES, _APPLYING),
    ),
    Defect(
        "writers enter after a release that names a running statement",
        "tablectl/leases/lease_records.py",
        'if self.kind == "break" or not (self.held or self.statement_bound):',
        'if self.kind == "break" or not self.held:',
        (_LEASES, _APPLYING, _WRITERS),
    ),
    Defect(
        "jobs are resumed while a statement may still run",
        "tablectl/applying/hooks.py",
        "if any(each.running is not None for each in (self._lease, *(together.leases if together else ()))):",
        "if any(each.running is None and not each for each in (self._lease, together)):",
        (_APPLYING,),
    ),
    Defect(
        "a run that could not open its gate ends with 0",
        "tablectl/applying/lease_wait.py",
        "    if not lease.shut_for:\n        return run",
        "    if lease.shut_for >= 0:\n        return run",
        (_APPLYING,),
    ),
    Defect(
        "a guard waits for the apply that it is a part of",
        "tablectl/writers/gate_entry.py",
        "if seen.run == APPLYING.get():",
        "if not seen.run:",
        (_WRITERS,),
    ),
    Defect(
        "old records are deleted newest first",
        "tablectl/leases/lease_records.py",
        "for old in _seqs(store):",
        "for old in reversed(_seqs(store)):",
        (_LEASES,),
    ),
)
