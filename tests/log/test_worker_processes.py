"""Work in several processes. Tests run scripts: a process with threads, as theirs can be, may not fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tablectl.log import worker_processes
from tablectl.log.worker_processes import can_fork, usable_cores

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")

_PREPARED = """
import os, signal, sys
from tablectl.log.worker_processes import can_fork, in_processes
me = os.getpid()
def nothing(): pass
def done(work, count=3, items=range(100), at_end=nothing):
    return in_processes(work, items, count, at_end)
"""


def run(script: str, *, code: int = 0, inherited: int = -1) -> str:
    """What a script prints. It prints no errors."""
    done = subprocess.run(
        [sys.executable, "-c", _PREPARED + script],
        capture_output=True,
        text=True,
        timeout=60,
        pass_fds=(inherited,) if inherited >= 0 else (),
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, "")
    return done.stdout


def test_results_come_in_order_and_from_all_processes() -> None:
    script = """
found = list(done(lambda each: (each, os.getpid())))
print([each for each, _ in found] == list(range(100)), len({pid for _, pid in found} - {me}))
"""
    assert run(script) == "True 3\n"


def test_each_process_ends_its_work_once() -> None:
    script = """
reader, writer = os.pipe()
list(done(abs, at_end=lambda: os.write(writer, b"x")))
print(os.read(reader, 10))
"""
    assert run(script) == "b'xxx'\n"


def test_records_maps_and_errors_of_tables_come_back_equal() -> None:
    script = """
from types import MappingProxyType
from tablectl.model.errors import LiveError
from tablectl.model.commit import AppTransaction, Commit
commit = Commit(3, 4, "WRITE", parameters=MappingProxyType({"mode": "Append"}), transactions=(AppTransaction("a", 1),))
found = list(done(lambda _: commit, items=[1]))
(error,) = done(lambda _: LiveError("gone", "look"), items=[1])
print(found == [commit], error.message, error.hint)
"""
    assert run(script) == "True gone look\n"


def test_what_a_killed_process_owes_is_done_here() -> None:
    script = """
def work(each):
    if each == 25 and os.getpid() != me:
        os.kill(os.getpid(), signal.SIGKILL)
    return each, os.getpid() == me
found = list(done(work))
print([each for each, _ in found] == list(range(100)), [each for each, here in found if here])
"""
    assert run(script) == f"True {[*range(20, 40), *range(80, 100)]}\n"


def test_an_error_is_raised_here_with_its_trace_and_after_earlier_results() -> None:
    script = """
import traceback
def work(each):
    return 1 // (50 - each)
seen = []
try:
    for each in done(work):
        seen.append(each)
except ZeroDivisionError as error:
    print(len(seen), "in work" in traceback.format_exc())
"""
    assert run(script) == "50 True\n"


def test_a_result_that_cannot_be_sent_is_made_here() -> None:
    assert run("print([each() for each in done(lambda each: lambda: each, items=[1, 2])])") == "[1, 2]\n"


@pytest.mark.parametrize("stop", ["signal.raise_signal(signal.SIGINT)", "raise KeyboardInterrupt"])
def test_an_interrupt_leaves_no_process(stop: str) -> None:
    script = f"""
reader, writer = os.pipe()
try:
    for _ in done(lambda each: b"x" * 1_000_000, items=range(10_000)):
        {stop}
except KeyboardInterrupt:
    pass
os.close(writer)
print(os.read(reader, 1))  # returns once no other process has the pipe
"""
    assert run(script) == "b''\n"


def test_an_interrupt_of_the_whole_group_is_silent() -> None:
    script = """
os.setsid()
try:
    for _ in done(lambda each: b"x" * 1_000_000, items=range(10_000)):
        os.killpg(0, signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert run(script) == "interrupted\n"


def test_processes_end_when_their_parent_is_killed() -> None:
    reader, writer = os.pipe()
    script = """
for _ in done(lambda each: b"x" * 1_000_000, items=range(10_000)):
    os.kill(me, signal.SIGKILL)
"""
    run(script, code=-9, inherited=writer)
    os.close(writer)
    assert os.read(reader, 1) == b""  # returns once no other process has the pipe
    os.close(reader)


def test_a_caller_that_stops_early_leaves_no_process() -> None:
    script = """
reader, writer = os.pipe()
found = done(lambda each: b"x" * 1_000_000, items=range(10_000))
next(found)
found.close()
os.close(writer)
print(os.read(reader, 1))
"""
    assert run(script) == "b''\n"


def test_a_process_with_a_single_thread_may_fork() -> None:
    assert run("print(can_fork())") == "True\n"


def test_a_process_with_a_second_thread_may_not() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    assert not can_fork()
    over.set()
    thread.join()


def test_a_process_that_may_have_no_children_may_not() -> None:
    script = """
import multiprocessing
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.apply(can_fork))
"""
    assert run(script) == "False\n"


def test_other_systems_do_not_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not can_fork()


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 4), ("150000 100000", 1), ("300000 100000", 3), ("50000 100000", 1), ("900000 100000", 4), ("", 4)],
)
def test_a_container_has_the_cores_of_its_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
) -> None:
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    monkeypatch.setattr(worker_processes, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    assert usable_cores() == cores
