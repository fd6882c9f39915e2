"""A table as writers and applies see it: a directory with a log, and the lease next to it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from tablectl.leases.acquire import Claim, Held
from tablectl.leases.clock import SystemClock
from tablectl.leases.guards import newest_beats
from tablectl.leases.lease import Lease
from tablectl.leases.owner import Owner
from tablectl.storage.records import RecordStore, open_records
from tablectl.writers.guard import ENDING
from tests.leases.lease_fakes import try_acquire


@dataclass(frozen=True)
class Place:
    """A table's directory."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def records(self) -> RecordStore:
        return open_records(str(self.path))

    @property
    def guards(self) -> dict[str, int]:
        return newest_beats(self.records)

    def apply(self, ttl: float = 60.0) -> Lease:
        """An apply that has just taken the lease."""
        return lease_of(self.records, ttl)


def lease_of(records: RecordStore, ttl: float = 60.0) -> Lease:
    owner = Owner(who="ann", host="ci-7", pid=7, ci="https://ci.example/runs/1", tool="0.1.0")
    lease = try_acquire(records, Claim(owner, run="run-of-ann", digest="d", ttl=ttl), SystemClock())
    assert not isinstance(lease, Held)
    return lease


def await_deletions() -> None:
    """Until the guards of ended writes are deleted: on an object store, that happens in the background."""
    for thread in threading.enumerate():
        if thread.name == ENDING:
            thread.join(60)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "orders" / "_delta_log").mkdir(parents=True)
    return Place(tmp_path / "orders")
