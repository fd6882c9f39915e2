"""Writers that guard their transactions, as far as the window's records tell of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import count

from tablectl.applying.drain_writers import Drain
from tablectl.applying.waits import Later
from tablectl.leases.clock import Clock
from tablectl.leases.guards import GuardMode, GuardRecord
from tablectl.leases.lease_records import Gate
from tablectl.storage.records import RecordStore
from tests.leases.lease_fakes import FakeClock

_IDS = count(1)


class FakeGuard:
    """One guarded transaction: put, renewed, ended. A renewal puts the new beat before it deletes the old one."""

    def __init__(
        self, store: RecordStore, writer: str = "etl", mode: GuardMode = GuardMode.ANY, ttl: float = 60.0
    ) -> None:
        self.store = store
        self.record = GuardRecord(f"{next(_IDS):08x}", 1, writer, mode, ttl)
        store.create(self.record.name, self.record.to_bytes())

    def beat(self) -> None:
        old = self.record
        self.record = GuardRecord(old.id, old.beat + 1, old.writer, old.mode, old.ttl)
        self.store.create(self.record.name, self.record.to_bytes())
        self.store.delete(old.name)

    def end(self) -> None:
        self.store.delete(self.record.name)
        self.ended = True

    ended = False

    def lives(self, clock: FakeClock) -> FakeGuard:
        """Renewed whenever the clock moves, until it ends."""
        before = clock.on_sleep

        def renew() -> None:
            before()
            if not self.ended:
                self.beat()

        clock.on_sleep = renew
        return self


def nothing(*_: object) -> None:
    """Keeps no lease alive, and records no dead guard."""


def drained(
    store: RecordStore,
    gate: Gate,
    clock: Clock,
    limit: float,
    keep_alive: Callable[[Later, float], None] = nothing,
    ignored: Collection[str] = (),
    note_dead: Callable[[Sequence[str]], None] = nothing,
) -> Drain:
    """A drain that has ended."""
    drain = Drain(store, gate, clock, limit, ignored, note_dead)
    drain.wait(keep_alive)
    return drain
