"""On an object store, the end of a write does not wait until its guard is deleted."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tablectl
from tablectl.leases.guards import GuardMode, newest_beats
from tablectl.writers import guard as guard_module
from tablectl.writers import session_guards
from tablectl.writers.session_guards import PendingWrite, SessionGuards, fixed_mode, run_guarded
from tests.leases.lease_fakes import MemoryRecords
from tests.writers.conftest import Place, await_deletions

ROOT = Path(__file__).parents[2]
ORDERS = "s3://lake/orders"


class Bucket(MemoryRecords):
    """Deletes nothing until ``answers`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()

    def delete(self, name: str) -> None:
        assert self.answers.wait(60)
        super().delete(name)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """The records of a table on an object store."""
    bucket = Bucket()
    monkeypatch.setattr(guard_module, "open_records", lambda *_: bucket)
    monkeypatch.setattr(guard_module, "is_new", lambda _location: False)
    return bucket


def test_a_write_ends_before_its_guard_is_deleted(bucket: Bucket) -> None:
    with tablectl.guard(None, ORDERS):
        pass
    assert len(newest_beats(bucket)) == 1
    bucket.answers.set()
    await_deletions()
    assert bucket.kept == {}


def test_the_next_write_has_a_guard_of_its_own(bucket: Bucket) -> None:
    """The late deletion of the first guard must not take the second away."""
    with tablectl.guard(None, ORDERS):
        pass
    with tablectl.guard(None, ORDERS):
        assert len(newest_beats(bucket)) == 2
        bucket.answers.set()
        await_deletions()
        assert len(newest_beats(bucket)) == 1
    await_deletions()
    assert bucket.kept == {}


def test_in_a_new_place_the_guard_is_gone_before_the_write_begins(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta creates no table in a folder that holds something."""
    monkeypatch.setattr(guard_module, "is_new", lambda _location: True)
    bucket.answers.set()
    with tablectl.guard(None, ORDERS):
        assert bucket.kept == {}


def test_a_guard_for_which_no_thread_is_left_is_deleted_at_once(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.answers.set()
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == guard_module.ENDING:
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with tablectl.guard(None, ORDERS):
        pass
    assert bucket.kept == {}


def no_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_module._Entry, "_end_in_background", lambda _entry: pytest.fail("it did not wait"))


def test_a_batch_of_a_stream_ends_with_its_guard_deleted(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark Connect kills the process of a batch when the query ends."""
    no_background(monkeypatch)
    bucket.answers.set()
    tablectl.guard_batch(lambda _df, _id: None, ORDERS)(None, 0)
    assert bucket.kept == {}


def test_a_guard_may_wait_for_its_deletion(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process must that ends with ``os._exit``."""
    no_background(monkeypatch)
    bucket.answers.set()
    with tablectl.guard(None, ORDERS, wait_for_deletion=True):
        pass
    assert bucket.kept == {}


def test_a_write_of_a_guarded_session_waits_for_the_deletion(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the process of an unedited job ends is not known."""
    no_background(monkeypatch)
    monkeypatch.setattr(session_guards, "leave_trace", lambda *_: None)
    monkeypatch.setattr(session_guards, "merges_schemas", lambda _session: False)
    bucket.answers.set()
    write = PendingWrite(ORDERS, fixed_mode(GuardMode.APPEND))
    assert len(run_guarded(SessionGuards(), None, write, lambda: newest_beats(bucket))) == 1
    assert bucket.kept == {}


def test_on_a_local_disk_a_write_ends_with_its_guard_deleted(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    no_background(monkeypatch)
    with tablectl.guard(None, str(place)):
        pass
    with tablectl.guard(None, ORDERS, state=str(place)):
        pass
    assert not [path for path in place.path.rglob("*") if path.is_file()]


_JOB = """
import atexit, sys, threading
import tablectl
from tablectl.writers import guard as guard_module, keepalive
from tests.leases.lease_fakes import MemoryRecords

class Bucket(MemoryRecords):
    def delete(self, name):
        threading.main_thread().join()
        threading.Event().wait(float(sys.argv[1]))
        super().delete(name)

bucket = Bucket()
guard_module.open_records = lambda *_: bucket
guard_module.is_new = lambda _location: False
atexit.register(lambda: print(len(bucket.kept)))
with tablectl.guard(None, "s3://lake/orders"):
    keepalive.ANSWER = float(sys.argv[2])
{}
"""


def job(deletion: float, answer: float, end: str = "") -> tuple[int, str]:
    """A job whose guard takes so many seconds to delete: its exit code, and how many guards it leaves."""
    done = subprocess.run(
        [sys.executable, "-c", _JOB.format(end), str(deletion), str(answer)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
    )
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize(("end", "code"), [("", 0), ("sys.exit(3)", 3), ("raise ValueError", 1)])
def test_the_end_of_the_interpreter_waits_for_the_deletion(end: str, code: int) -> None:
    assert job(0.05, 60, end) == (code, "0")


def test_but_not_for_a_store_that_hangs() -> None:
    assert job(3600, 0.05) == (0, "1")
