"""Real code, one step at a time: actors that stand still before each call of the store, until the test lets them go on.

Only one thread ever runs, so a test decides every interleaving; and an actor may be paused, or killed, where it stands.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, TypeVar

from tablectl.applying.gate import GATES
from tablectl.applying.run_context import RunContext
from tablectl.applying.run_table import run_table
from tablectl.attributes.policy import Policy
from tablectl.leases.acquire import Claim, Held
from tablectl.leases.guards import GuardMode, GuardRecord
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import Gate, LeaseRecord
from tablectl.leases.owner import Owner
from tablectl.model.errors import WindowError
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import TableRun
from tablectl.model.stamp import Stamp
from tablectl.model.table import Depth
from tablectl.planning.plan_table import plan_table
from tablectl.storage.records import ListedRecord
from tablectl.support.typed_json import read_record
from tablectl.writers.gate_entry import GateEntry, StoredGuard
from tests.applying.fake_lake import FakeEngine, FakeLake, FakeTable
from tests.leases.lease_fakes import MemoryRecords, acquire

TTL = 60.0
_STUCK = 60.0
_Result = TypeVar("_Result")


class Killed(BaseException):
    """The process is gone: it does nothing more."""


class NoLock:
    """Where only one thread ever runs, a lock that is held by one who stands still would stop all."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class Store(MemoryRecords):
    """The shared store, with the history of the lease."""

    def __init__(self) -> None:
        super().__init__()
        self.lease: list[LeaseRecord] = []
        self.strays: list[tuple[LeaseRecord, int]] = []
        """Records that landed on a number that was pruned, with the newest number at that time. They are not of the
        log, and their writer learns it."""

    def land(self, name: str, data: bytes) -> bool:
        new = super().land(name, data)
        if new and name.startswith("lease/"):
            record = read_record(LeaseRecord, data)
            if self.lease and record.seq <= self.lease[-1].seq:
                self.strays.append((record, self.lease[-1].seq))
            else:
                self.lease.append(record)
        return new


class World:
    """One table, its records, and the true time, which no actor knows."""

    def __init__(self) -> None:
        self.now = 0.0
        self.store = Store()
        self.lake = FakeLake(lock=NoLock())  # type: ignore[arg-type]
        self.table: FakeTable = self.lake.add()
        self.actors: list[Actor] = []
        self.ids = count(1)

    def pass_time(self, seconds: float) -> None:
        """In steps, so that those who are awake renew in time."""
        until = self.now + seconds
        while self.now < until:
            self.now = min(until, self.now + TTL / 12)
            for actor in self.actors:
                if not (actor.paused or actor.ended):
                    actor.renew_if_due()

    def unprotected_writers(self) -> list[str]:
        """The writers during whose write a statement is being run whose gate should have kept them away."""
        gates = [actor.executing for actor in self.actors if isinstance(actor, Apply) and actor.alive]
        return [
            f"{writer.name} ({writer.mode}) under {gate}"
            for writer in self.actors
            if isinstance(writer, Writer) and writer.alive
            for gate in gates
            if gate is not None and writer.mode.waits(gate)
        ]


class Actor:
    """A process: a thread that the test steps, and a clock that may be off by years."""

    def __init__(self, world: World, name: str, offset: float = 0.0, stops: Callable[[str], bool] = lambda _: True):
        """``stops`` says at which steps it stands still; it always does when it sleeps."""
        self.world = world
        self.name = name
        self.at = ""
        """The step that comes next."""
        self.ended = True
        self.paused = False
        self.wakes = 0.0
        self.error: BaseException | None = None
        self._offset = offset
        self._stops = stops
        self._killed = False
        self.unnoticed = False
        """Whether it does something that no other actor decides by: then it does not stand still."""
        self._go, self._stood = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.current_thread()
        world.actors.append(self)

    @property
    def ready(self) -> bool:
        return not (self.ended or self.paused) and self.world.now >= self.wakes

    def start(self, main: Callable[[], None]) -> None:
        """Runs ``main`` up to its first step."""
        assert self.ended
        self.ended, self._killed, self.error, self.wakes = False, False, None, 0.0
        self._thread = threading.Thread(target=self._run, args=(main,), name=self.name, daemon=True)
        self._thread.start()
        self._wait()

    def step(self) -> None:
        """One step, up to the next."""
        assert not self.ended
        self._go.release()
        self._wait()
        if self.error is not None:
            raise AssertionError(f"{self.name} failed at {self.at!r}") from self.error

    def kill(self) -> None:
        """It ends where it stands; what it has in the store stays there."""
        self._killed = True
        while not self.ended:
            self.step()
        self.paused = False

    def stand(self, at: str) -> None:
        """In the actor's own thread: waits to be stepped."""
        if threading.current_thread() is not self._thread:
            return
        if self._killed:
            raise Killed
        if at == "sleep" or (self._stops(at) and not self.unnoticed):
            self.at = at
            self._stood.release()
            self._go.acquire()
            if self._killed:
                raise Killed

    def renew_if_due(self) -> None:
        """What its thread for renewals does."""

    def monotonic(self) -> float:
        return self.world.now + self._offset

    def sleep(self, seconds: float) -> None:
        self.wakes = self.world.now + seconds
        self.stand("sleep")
        while self.world.now < self.wakes:
            self.stand("sleep")

    def utc(self) -> datetime:
        return datetime(2026, 8, 22, tzinfo=UTC) + timedelta(seconds=self._offset)

    def _run(self, main: Callable[[], None]) -> None:
        try:
            main()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001  # the test's to see
            self.error = error
        finally:
            self.ended = True
            self._stood.release()

    def _wait(self) -> None:
        assert self._stood.acquire(timeout=_STUCK), f"{self.name} never came to its next step"


@dataclass(frozen=True)
class Stepped:
    """The store as one actor has it: it stands still before each call."""

    actor: Actor

    def __str__(self) -> str:
        return str(self.actor.world.store)

    def create(self, name: str, data: bytes) -> bool:
        self.actor.stand(f"create {name}")
        return self.actor.world.store.create(name, data)

    def read(self, name: str) -> bytes | None:
        self.actor.stand(f"read {name}")
        return self.actor.world.store.read(name)

    def names(self, prefix: str) -> tuple[str, ...]:
        self.actor.stand(f"names {prefix}")
        return self.actor.world.store.names(prefix)

    def listed(self, prefix: str) -> tuple[ListedRecord, ...]:
        return tuple(ListedRecord(name) for name in self.names(prefix))

    def read_listed(self, record: ListedRecord) -> bytes | None:
        return self.read(record.name)

    def delete(self, name: str) -> None:
        self.actor.stand(f"delete {name}")
        self.actor.world.store.delete(name)


def _ask(call: Callable[[], _Result], /) -> _Result:
    return call()


class TimedGuard(StoredGuard):
    """Knows for how long its beats hold, as its writer counts."""

    def __init__(self, actor: Writer, record: GuardRecord) -> None:
        super().__init__(Stepped(actor), record)
        self.actor = actor
        self.holds_until = 0.0
        self.put_at = 0.0

    def wait_here(self) -> None:
        """No apply decides by the record of a waiting writer, so it makes no further schedules."""
        self.actor.unnoticed = True
        try:
            super().wait_here()
        finally:
            self.actor.unnoticed = False

    def put(self) -> None:
        sent = self.actor.monotonic()
        self.put_at = sent
        super().put()
        if self.actor.inside and sent >= self.holds_until:
            self.actor.lapsed = True  # an apply may have taken it for dead in between
        self.holds_until = sent + self.ttl


class Writer(Actor):
    """A process that writes under a guard, with the real ``GateEntry``."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.mode = GuardMode.ANY
        self.inside = False
        self.lapsed = False
        self.failed_open = False
        self.wrote = 0
        self.guard: TimedGuard | None = None

    @property
    def alive(self) -> bool:
        """Whether it is inside its write, and its guard has held all the time, as it sees it."""
        if self.ended or not self.inside or self.lapsed or self.failed_open:
            return False
        return self.guard is not None and self.monotonic() < self.guard.holds_until

    def begin(self, mode: GuardMode) -> None:
        self.mode = mode
        self.start(self._write)

    def _write(self) -> None:
        guard = TimedGuard(self, GuardRecord(f"{next(self.world.ids):08x}", 0, self.name, self.mode, TTL))
        self.guard, self.lapsed, self.failed_open, self.inside = guard, False, False, False
        try:
            GateEntry(guard, "orders", None, self, _ask).enter()
        except WindowError:
            self.failed_open = True
        try:
            self.inside = True
            self.stand("begin")
            self.stand("commit")
            self.world.table.commit("WRITE", self.name)
            self.wrote += 1
        finally:
            self.inside = False
        try:
            guard.withdraw()
        except WindowError:
            return

    def renew_if_due(self) -> None:
        if self.inside and self.guard is not None and self.monotonic() - self.guard.put_at >= TTL / 6:
            try:
                self.guard.renew()
            except WindowError:
                return


class Apply(Actor):
    """A process that applies plan after plan, with the real lease, gate, drain and executor."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.executing: Gate | None = None
        """The gate under which a statement runs just now."""
        self.lease: Lease | None = None
        self.runs: list[TableRun] = []

    @property
    def alive(self) -> bool:
        """Whether its lease holds, as it sees it."""
        return self.lease is not None and self.lease._over is None and self.lease._left() > 0

    def plan(self, **policy: Any) -> TablePlan:
        location = self.world.table.live.location
        live = self.world.lake.read(self.world.table.name, location, Depth(counts=True))
        plan = plan_table(Policy(policy), live, "oss")
        assert plan is not None
        return plan

    def begin(self, **policy: Any) -> None:
        plan = self.plan(**policy)
        self.start(lambda: self._apply(plan))

    def _apply(self, plan: TablePlan) -> None:
        stamp = Stamp(f"{self.name}-{next(self.world.ids)}", "d")
        owner = Owner(who=self.name, host="h", pid=1, ci="", tool="0.1.0")
        claim = Claim(owner, stamp.run, "d", TTL)
        gates = {statement.sql: GATES[statement.phase] for statement in plan.statements}
        self.lease = None
        try:
            got = acquire(Stepped(self), claim, self)
        except WindowError:
            return
        if isinstance(got, Held):
            return
        self.lease = got
        engine = FakeEngine(self.world.lake, stamp)
        engine.before = lambda _table, sql: self._execute(gates[sql])
        engine.after = lambda _table, _sql: self._executed()
        window = RunContext(
            engine=engine,
            reader=self.world.lake,
            clock=self,
            stamp=stamp,
            stop=threading.Event(),
            notify=lambda _event: None,
            claim=claim,
            records=lambda _location: Stepped(self),
        )
        try:
            run = run_table(window, plan, got)
            self.runs.append(run)
            got.release()
        finally:
            self.executing = None

    def _execute(self, gate: Gate) -> None:
        assert self.alive, "a statement starts, and the lease has run out"
        self.executing = gate
        self.stand("statement")

    def _executed(self) -> None:
        self.stand("landed")
        self.executing = None

    def renew_if_due(self) -> None:
        lease = self.lease
        # Its own call in the middle of the lease has the lock, and a renewal would wait for that.
        if lease is None or lease._left() > TTL * 5 / 6 or not lease._lock.acquire(blocking=False):
            return
        try:
            if self._thread is not threading.current_thread():
                lease.renew()
        except WindowError:
            return
        finally:
            lease._lock.release()
