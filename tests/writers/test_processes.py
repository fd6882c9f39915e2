"""Guards of several processes: each has its own, and what a killed one leaves ages out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tablectl.leases.clock import SystemClock
from tablectl.leases.lease_records import Gate
from tests.applying.writers import drained
from tests.leases.lease_fakes import FakeClock
from tests.writers.conftest import Place

ROOT = Path(__file__).parents[2]

_WRITER = """
import logging, sys
import tablectl
logging.basicConfig(level="INFO", stream=sys.stdout, format="%(message)s")
print("starts", flush=True)
with tablectl.guard(None, sys.argv[1], sys.argv[2], name="another process", timeout=60, ttl=float(sys.argv[3])):
    print("inside", flush=True)
    if sys.stdin.readline() == "exit\\n":
        sys.exit(7)
print("done", flush=True)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(place: Place) -> Iterator[Start]:
    """Starts a process that writes under a guard until it reads a line."""
    started: list[subprocess.Popen[str]] = []

    def go(mode: str = "any", ttl: float = 60.0) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(place), mode, str(ttl)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        started.append(process)
        assert said(process) == "starts"
        return process

    yield go
    for process in started:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], line: str = "") -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def test_an_apply_sees_the_guard_of_another_process(place: Place, start: Start) -> None:
    writer = start("append")
    assert said(writer) == "inside"
    assert len(place.guards) == 1
    tell(writer)
    assert said(writer) == "done"
    assert writer.wait(60) == 0
    assert place.guards == {}


def test_another_process_waits_at_the_gate(place: Place, start: Start) -> None:
    lease = place.apply()
    lease.gate(Gate.CLOSED)
    writer = start("append")
    assert "waits at the gate (closed): ann on ci-7" in said(writer)
    lease.gate(Gate.OPEN)
    assert "lets the write through" in said(writer)
    assert said(writer) == "inside"
    tell(writer)
    assert writer.wait(60) == 0


def test_two_processes_write_at_a_time(place: Place, start: Start) -> None:
    writers = [start(), start()]
    assert [said(writer) for writer in writers] == ["inside", "inside"]
    assert len(place.guards) == 2
    for writer in writers:
        tell(writer)
        assert writer.wait(60) == 0
    assert place.guards == {}


@pytest.mark.parametrize("way", ["sys.exit", "SIGINT"])
def test_a_process_that_ends_takes_its_guard_away(place: Place, start: Start, way: str) -> None:
    writer = start()
    assert said(writer) == "inside"
    if way == "SIGINT":
        writer.send_signal(signal.SIGINT)
    else:
        tell(writer, "exit")
    assert writer.wait(60) in {7, -signal.SIGINT}
    assert place.guards == {}


class BeatClock(FakeClock):
    """Its time goes on with each renewal of the one guard, so that no renewal is late on a busy machine."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place

    def sleep(self, seconds: float) -> None:
        before, until = self.place.guards, time.monotonic() + 60
        while self.place.guards == before and time.monotonic() < until:
            time.sleep(0.01)
        super().sleep(seconds)


def test_an_apply_waits_for_a_writer_as_long_as_it_lives_and_not_for_one_that_was_killed(
    place: Place, start: Start
) -> None:
    writer = start(ttl=1)
    assert said(writer) == "inside"
    left = drained(place.records, Gate.CLOSED, BeatClock(place), 4)
    assert [guard.writer.partition(",")[0] for guard in left.guards] == ["another process"]
    writer.kill()
    writer.wait(60)
    assert len(place.guards) == 1
    left = drained(place.records, Gate.CLOSED, SystemClock(), 600)
    assert left.over
    assert left.seconds >= 1
    assert place.guards == {}


# Forks

_FORKS = """
import os, sys
import tablectl
from tablectl.leases.guards import newest_beats
from tablectl.storage.records import open_records

place = sys.argv[1]
count = lambda: len(newest_beats(open_records(place)))
child = -1
guard = tablectl.guard(None, place, "append")
with guard:
    assert count() == 1
    child = os.fork()
    if child == 0:
        # The guard of the parent is not the child's, so it takes one, and of any mode.
        with tablectl.guard(None, place, "any"):
            assert count() == 2
        assert count() == 1
        # Nor is it with the object that its parent has entered, as in the workers of a pool.
        with guard:
            with guard:
                assert count() == 2
            assert count() == 2
        assert count() == 1, "the child's guard stays after its write"
    else:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child failed"
        assert count() == 1, "the child took its parent's guard away"
if child == 0:
    assert count() == 1, "the child took its parent's guard away"
    os._exit(0)
assert count() == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system knows no fork")
def test_a_forked_child_does_not_hold_its_parents_guard(place: Place) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORKS, str(place)], capture_output=True, text=True, timeout=120, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
