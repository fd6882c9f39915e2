"""Guards: what one costs around a write that no one disturbs, against the smallest append that Delta knows.

`python benchmarks/guard.py [--rounds N]`; the figures of docs/guards.md. With moto installed, it also counts the
requests of a guard on S3, and the time that they take where the store answers at once.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from _report import machine, ratio_text, say, table, time_text

import tablectl
from tablectl.leases.acquire import Blocked, Claim, acquire_all
from tablectl.leases.clock import SystemClock
from tablectl.leases.lease import Lease
from tablectl.leases.owner import current_owner
from tablectl.storage.records import open_records

_AIM = 0.002
"""Seconds that an uncontended guard may take on a local disk."""
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
    if importlib.util.find_spec("moto"):
        say()
        _on_s3(min(options.rounds, 100))


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


def _on_s3(rounds: int) -> None:
    with _moto() as (requests, location):
        lease = _lease(location)
        for name, state in (
            ("in the table, during an apply", None),
            ("under `state:`, no apply ever", "s3://bucket/state"),
        ):

            def enter(state: str | None = state) -> None:
                _enter(tablectl.guard(None, location, "append", state=state))

            enter()
            requests.clear()
            enter()
            counted = f"{len(requests)} requests ({', '.join(requests)})"
            say(f"on S3 (moto), records {name}: {counted}, {time_text(_times(rounds, enter).median)}")
        lease.release()


@contextmanager
def _moto() -> Iterator[tuple[list[str], str]]:
    """A table in a bucket of this process, and the methods of all requests so far."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415  # only where it is installed

    methods: list[str] = []

    class Count(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found = re.search(r"([A-Z]+) \S+ HTTP/", record.getMessage())
            methods.extend(found.groups() if found else ())

    log = logging.getLogger("werkzeug")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.handlers = [Count()]
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    os.environ.update({**keys, "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true"})
    for name in ("bucket", f"bucket/orders/_delta_log/{0:020d}.json"):
        urlopen(Request(f"{url}/{name}", method="PUT", data=b"")).close()
    try:
        yield methods, "s3://bucket/orders"
    finally:
        server.stop()


if __name__ == "__main__":
    main()
