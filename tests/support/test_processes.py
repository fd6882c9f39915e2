"""Commands whose output is kept; ``tests/applying/test_hook_process.py`` has those that pass their lines on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tablectl.support.processes import Captured, Invocation, ProcessLimits, run_captured

ANY_TIME = ProcessLimits(60)


def run(text: str, most: int = 1000, limits: ProcessLimits = ANY_TIME, given: bytes = b"") -> Captured:
    return run_captured(Invocation([sys.executable, "-c", text], given=given), most, limits)


def test_output_and_errors_are_kept_apart() -> None:
    ran = run("import sys; print('found'); print('odd', file=sys.stderr)")
    assert ran == Captured("", 0, b"found\n", b"odd\n")


def test_they_come_together_in_order_if_that_is_asked_for() -> None:
    code = "import os; os.write(1, b'a'); os.write(2, b'b'); os.write(1, b'c')"
    assert run_captured(Invocation([sys.executable, "-c", code]), 10, ANY_TIME, merged=True).out == b"abc"


def test_no_more_than_the_limit_is_kept_and_the_command_still_ends() -> None:
    ran = run("import os; [os.write(1, b'x' * 65536) for _ in range(50)]; raise SystemExit(4)", most=70_000)
    assert ran == Captured("ended with exit code 4", 4, b"x" * 70_000, b"")


def test_a_command_gets_its_input_to_the_end() -> None:
    assert run("import sys; print(len(sys.stdin.read()))", given=b"x" * 300_000).out == b"300000\n"


def test_a_command_that_does_not_read_its_input_is_not_a_failure() -> None:
    assert run("pass", given=b"x" * 300_000).why == ""


def test_without_an_input_a_command_reads_its_end() -> None:
    assert run("import sys; print(repr(sys.stdin.read()))").out == b"''\n"


def test_what_it_said_before_it_was_ended_is_kept(tmp_path: Path) -> None:
    said = tmp_path / "said"
    code = f"import os, time; os.write(1, b'begun'); open({str(said)!r}, 'w').close(); time.sleep(600)"
    ran = run(code, limits=ProcessLimits(60, stopped=said.exists))
    assert ran == Captured("was stopped with the run", None, b"begun", b"")


def test_a_command_is_ended_when_its_time_is_over() -> None:
    ran = run("import time; time.sleep(600)", limits=ProcessLimits(0.1, "a.setting"))
    assert (ran.why, ran.code) == ("did not end within 0.1 s (`a.setting`)", None)


def test_a_command_that_cannot_be_run_has_no_exit_code(tmp_path: Path) -> None:
    ran = run_captured(Invocation([str(tmp_path / "nix")]), 10, ANY_TIME)
    assert ran == Captured("cannot be run: No such file or directory", None, b"", b"")


def test_an_interrupted_wait_ends_the_command(tmp_path: Path) -> None:
    number = tmp_path / "pid"
    code = f"import os, pathlib, time; pathlib.Path({str(number)!r}).write_text(str(os.getpid())); time.sleep(600)"

    def stopped() -> bool:
        if number.exists() and number.read_text():
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        run(code, limits=ProcessLimits(60, stopped=stopped))
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)
