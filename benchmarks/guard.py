"""Guards: what one costs around a write that no one disturbs, against the smallest append that Delta knows.

`python benchmarks/guard.py [--rounds N]`; the figures of docs/guards.md. It also times the first guard of a process,
and a guard on an object store whose answers take 30 ms, with its requests.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from _measure import run
from _report import machine, ratio_text, say, table, time_text
from _slow_store import slow_store

import tablectl
from tablectl.leases.acquire import Blocked, Claim, acquire_all
from tablectl.leases.clock import SystemClock
from tablectl.leases.lease import Lease
from tablectl.leases.owner import current_owner
from tablectl.storage.records import open_records
from tablectl.writers.guard import ENDING

_AIM = 0.002
"""Seconds that an uncontended guard may take on a local disk."""
_FIRST = """
import sys, time, tablectl
before = time.perf_counter()
with tablectl.guard(None, sys.argv[1], "append"):
    pass
print(time.perf_counter() - before)
"""
_RENEWALS = 30
"""So many records an apply of five minutes leaves: as many as are ever kept."""


@dataclass(frozen=True, slots=True)
class Times:
    """Of one thing that was done again and again."""

    seconds: list[float]

    @property
    def median(self) -> float:
        return sorted(self.seconds)[len(self.seconds) // 2]

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[len(self.seconds) * 99 // 100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000, help="guards to measure (default: 1000)")
    options = parser.parse_args()
    say(machine())
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        spent = _on_disk(Path(folder), options.rounds)
        append = _append(Path(folder), max(options.rounds // 10, 10))
    lines = {**spent, **({"append of one row by deltalake": append} if append else {})}
    one = append.median if append else next(iter(spent.values())).median
    rows = (
        (name, time_text(times.median), time_text(times.p99), ratio_text(times.median / one))
        for name, times in lines.items()
    )
    say(table(("on a local disk", "median", "p99", "of an append" if append else "ratio"), rows))
    worst = max(times.median for times in spent.values())
    say(f"an uncontended guard: {'within' if worst < _AIM else 'ABOVE'} {time_text(_AIM)}")
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        say(f"the first guard of a process: {time_text(first_guard(Path(folder)))}")
        for each in on_a_store(Path(folder), min(options.rounds, 50)):
            asked = f"{len(each.requests)} requests ({', '.join(each.requests)})"
            say(f"on a store with 30 ms, {each.what}: {time_text(each.seconds)}, {asked}")


def _on_disk(folder: Path, rounds: int) -> dict[str, Times]:
    new, applied = folder / "new", folder / "applied"
    for place in (new, applied):
        (place / "_delta_log").mkdir(parents=True)
    lease = _lease(str(applied))
    for _ in range(_RENEWALS):
        lease.renew()
    guarded = tablectl.guard(None, new, "append")

    def nested() -> None:
        with guarded:
            _measured(nested_times, 1, lambda: _enter(guarded))

    nested_times: list[float] = []
    spent = {
        "guard, no apply ever": _times(rounds, lambda: _enter(tablectl.guard(None, new, "append"))),
        "guard, during an apply": _times(rounds, lambda: _enter(tablectl.guard(None, applied, "append"))),
    }
    lease.release()
    for _ in range(rounds):
        nested()
    return {**spent, "guard inside a guard": Times(nested_times)}


def _lease(location: str) -> Lease:
    claim = Claim(current_owner(os.environ, tablectl.__version__), run="benchmark", digest="")
    taken = acquire_all({"": open_records(location)}, claim, SystemClock(), {})
    assert not isinstance(taken, Blocked)
    return taken[""]


def _enter(guard: tablectl.writers.guard.Guard) -> None:
    with guard:
        pass


def _times(rounds: int, act: Callable[[], object]) -> Times:
    act()
    times: list[float] = []
    _measured(times, rounds, act)
    return Times(times)


def _measured(times: list[float], rounds: int, act: Callable[[], object]) -> None:
    for _ in range(rounds):
        before = time.perf_counter()
        act()
        times.append(time.perf_counter() - before)


def _append(folder: Path, rounds: int) -> Times | None:
    """The table is created again now and then, since each append reads a log that grows."""
    if importlib.util.find_spec("deltalake") is None:
        return None
    import deltalake  # noqa: PLC0415  # what is compared with, where it is installed
    import pyarrow as pa  # noqa: PLC0415

    row, place, times = pa.table({"id": [1]}), folder / "appends", list[float]()
    for done in range(0, rounds, 10):
        shutil.rmtree(place, ignore_errors=True)
        deltalake.write_deltalake(str(place), row)
        _measured(times, min(10, rounds - done), lambda: deltalake.write_deltalake(str(place), row, mode="append"))
    return Times(times)


@dataclass(frozen=True, slots=True)
class OnStore:
    """A guard on a store where each answer takes 30 ms."""

    what: str
    seconds: float
    requests: tuple[str, ...]


def on_a_store(folder: Path, rounds: int) -> list[OnStore]:
    """Before the first apply, and during one."""
    log = folder / "store" / "orders" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("{}")
    with slow_store(folder / "store") as store:
        os.environ.update(store.environment())
        location = "s3://lake/orders"

        def enter() -> None:
            _enter(tablectl.guard(None, location, "append"))

        lease: Lease | None = None
        found = []
        for name in ("no apply ever", "during an apply"):
            if name == "during an apply":
                lease = _lease(location)
            enter()
            _await_deletions()
            store.requests()
            enter()
            _await_deletions()
            asked = store.requests()
            found.append(OnStore(name, _times(rounds, enter).median, tuple(asked)))
        if lease is not None:
            lease.release()
        return found


def _await_deletions() -> None:
    """Guards on an object store are deleted in the background."""
    for thread in threading.enumerate():
        if thread.name == ENDING:
            thread.join()


def first_guard(folder: Path, repeat: int = 7) -> float:
    """Seconds of the first guard in a process, what it imports included, but not ``import tablectl``."""
    place = folder / "first"
    (place / "_delta_log").mkdir(parents=True)
    command = (sys.executable, "-c", _FIRST, str(place))
    return min(float(run(*command, repeat=1)[1]) for _ in range(repeat))


if __name__ == "__main__":
    main()
