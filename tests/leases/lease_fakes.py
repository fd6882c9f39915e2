"""A record store that fails as stores do, and clocks that tests turn by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from itertools import count

from tablectl.leases.acquire import LONGEST_PAUSE, Blocked, Claim, Held, Sighting, acquire_all
from tablectl.leases.clock import Clock
from tablectl.leases.lease import Lease, random_id
from tablectl.leases.owner import Owner
from tablectl.model.errors import WindowError
from tablectl.storage.records import ListedRecord, RecordStore


class Fault(Enum):
    """What happens to one create."""

    LOST_ANSWER = auto()
    """Done, and raised: the connection broke before the answer."""
    RETRIED = auto()
    """Done, and answered "exists": the library tried again after a lost answer."""
    REFUSED = auto()
    """Not done, and raised."""
    LATE = auto()
    """Raised, and done when ``deliver`` is called: the request was on its way."""


class MemoryRecords:
    """A RecordStore in memory. ``faults`` are used up one by one, by the creates that come."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.faults: deque[Fault] = deque()
        self.late: list[tuple[str, bytes]] = []
        self.down = False
        self.before_create: Callable[[], None] = lambda: None

    def __str__(self) -> str:
        return "/lake/orders/_tablectl"

    def create(self, name: str, data: bytes) -> bool:
        self._reach()
        self.before_create()
        fault = self.faults.popleft() if self.faults else None
        if fault is Fault.REFUSED:
            raise WindowError("refused")
        if fault is Fault.LATE:
            self.late.append((name, data))
            raise WindowError("no answer")
        new = self.land(name, data)
        if fault is Fault.LOST_ANSWER:
            raise WindowError("no answer")
        return new and fault is not Fault.RETRIED

    def deliver(self) -> None:
        """What was on its way arrives."""
        for name, data in self.late:
            self.land(name, data)
        self.late.clear()

    def land(self, name: str, data: bytes) -> bool:
        """One request, as the store carries it out."""
        new = name not in self.kept
        self.kept.setdefault(name, data)
        return new

    def read(self, name: str) -> bytes | None:
        self._reach()
        return self.kept.get(name)

    def names(self, prefix: str) -> tuple[str, ...]:
        self._reach()
        return tuple(sorted(name for name in self.kept if name.startswith(prefix)))

    def listed(self, prefix: str) -> tuple[ListedRecord, ...]:
        return tuple(ListedRecord(name) for name in self.names(prefix))

    def read_listed(self, record: ListedRecord) -> bytes | None:
        return self.read(record.name)

    def delete(self, name: str) -> None:
        self._reach()
        self.kept.pop(name, None)

    def _reach(self) -> None:
        if self.down:
            raise WindowError("the store is down")


class FakeClock:
    """Stands still until a sleep, or a test, moves ``now``. ``wall`` is what it believes of the date."""

    def __init__(self, start: float = 1000.0, wall: str = "2026-08-22T10:00:00") -> None:
        self.now = start
        self.wall = datetime.fromisoformat(wall).replace(tzinfo=UTC)
        self.on_sleep: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()

    def utc(self) -> datetime:
        return self.wall + timedelta(seconds=self.now)

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Once, at the end of the first sleep that lasts until then."""
        due, before, done = self.now + seconds, self.on_sleep, False

        def happen() -> None:
            nonlocal done
            before()
            if self.now >= due and not done:
                done = True
                act()

        self.on_sleep = happen


def numbered(prefix: str) -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def claim(who: str, ttl: float = 60.0) -> Claim:
    owner = Owner(who=who, host=f"{who}-laptop", pid=7, ci="", tool="0.1.0")
    return Claim(owner, run=f"run-of-{who}", digest="d1", ttl=ttl)


def try_acquire(store: RecordStore, claim: Claim, clock: Clock, new_id: Callable[[], str] = random_id) -> Lease | Held:
    """Acquire one lease if it is free. Never waits."""
    taken = acquire_all({"": store}, claim, clock, {}, new_id)
    return Held(taken.holders[""].record) if isinstance(taken, Blocked) else taken[""]


def acquire(store: RecordStore, claim: Claim, clock: Clock, new_id: Callable[[], str] = random_id) -> Lease | Held:
    """Acquire a lease as an apply does, in one call: it looks until the holder is dead or shows a sign of life."""
    seen: Mapping[str, Sighting] = {}
    while True:
        taken = acquire_all({"": store}, claim, clock, seen, new_id)
        if not isinstance(taken, Blocked):
            return taken[""]
        holder = taken.holders[""]
        if holder.alive:
            return Held(holder.record)
        seen = taken.holders
        clock.sleep(min(LONGEST_PAUSE, holder.record.ttl / 12))
