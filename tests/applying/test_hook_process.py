"""Hooks as real processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tablectl.applying.run_context import hook_runner, run_nothing

LONG = "import time; print('begun', flush=True); time.sleep(600)"


class Hook:
    """Runs Python text as a hook, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.said: list[str] = []
        self.stop = False
        self.grace = 5.0

    def __call__(self, text: str, timeout: float = 30, **environ: str) -> str:
        runner = hook_runner(self.directory, timeout, self.grace)
        return runner([sys.executable, "-c", text], environ, self.said.append, lambda: self.stop)


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    return Hook(tmp_path)


def test_what_succeeds_gives_no_reason(hook: Hook) -> None:
    assert hook("print('paused')\nprint('and more')") == ""
    assert hook.said == ["paused", "and more"]


def test_standard_error_comes_too_and_bytes_that_are_not_text_are_replaced(hook: Hook) -> None:
    assert hook(r"import os; os.write(2, b'oh \xff no\r\n\n')") == ""
    assert hook.said == ["oh \ufffd no"]


def test_an_exit_code_and_a_signal_are_told(hook: Hook) -> None:
    assert hook("raise SystemExit(3)") == "ended with exit code 3"
    assert hook("import os; os.kill(os.getpid(), 9)") == "was ended by signal 9"


def test_it_has_the_environment_of_the_run_and_ours_and_no_input(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "theirs")
    text = "import os, sys; print(os.environ['TOKEN'], os.environ['TABLECTL_HOOK'], repr(sys.stdin.read()))"
    assert hook(text, TABLECTL_HOOK="before") == ""
    assert hook.said == ["theirs before ''"]


def test_it_runs_in_the_users_directory(hook: Hook) -> None:
    assert hook("import os; print(os.getcwd())") == ""
    assert hook.said == [str(hook.directory)]


def test_a_relative_program_counts_from_there(tmp_path: Path) -> None:
    script = tmp_path / "pause.sh"
    script.write_text('#!/bin/sh\necho "paused $1"\n')
    script.chmod(0o755)
    said: list[str] = []
    assert hook_runner(tmp_path, 30)(["./pause.sh", "a b; c"], {}, said.append, lambda: False) == ""
    assert said == ["paused a b; c"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["./nix.sh"], "cannot be run: No such file or directory"),
        (["."], "cannot be run: Permission denied"),
        (["a\0b"], "cannot be run: embedded null byte"),
    ],
)
def test_what_cannot_be_run(tmp_path: Path, command: list[str], why: str) -> None:
    assert hook_runner(tmp_path, 30)(command, {}, print, lambda: False) == why


def test_it_is_ended_when_its_time_is_over(hook: Hook) -> None:
    assert hook(LONG, timeout=0.3) == "did not end within 0.3 s (`window.hook_timeout`)"


def test_so_are_the_processes_that_it_started(tmp_path: Path) -> None:
    (child,) = stopped_once_it_says_something("sleep 600 & echo $!; wait", tmp_path)
    assert _gone_soon(int(child))


def test_a_child_that_ignores_the_request_is_killed_although_the_hook_has_ended(tmp_path: Path) -> None:
    (child,) = stopped_once_it_says_something("trap '' TERM; sleep 600 & trap - TERM; echo $!; wait", tmp_path)
    assert _gone_soon(int(child))


def test_a_child_has_the_grace_to_clean_up_although_the_hook_has_ended(tmp_path: Path) -> None:
    child = "trap 'sleep 0.3; echo tidied; exit' TERM; echo ready; sleep 600 & wait"
    assert stopped_once_it_says_something(f"({child}) & wait", tmp_path, grace=60) == ["ready", "tidied"]


def stopped_once_it_says_something(script: str, directory: Path, grace: float = 0.2) -> list[str]:
    """The output of a shell script that is stopped at its first line."""
    said: list[str] = []
    runner = hook_runner(directory, 30, grace)
    assert runner(["sh", "-c", script], {}, said.append, lambda: bool(said)) == "was stopped with the run"
    return said


def _gone_soon(pid: int) -> bool:
    until = time.monotonic() + 60
    while not _gone(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return _gone(pid)


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_it_is_ended_with_the_run(hook: Hook) -> None:
    def said(_line: str) -> None:
        hook.stop = True

    runner = hook_runner(hook.directory, 30)
    assert runner([sys.executable, "-c", LONG], {}, said, lambda: hook.stop) == "was stopped with the run"


def test_what_ignores_the_request_is_killed(hook: Hook) -> None:
    hook.grace = 0.2
    text = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {LONG}"
    assert hook(text, timeout=1).startswith("did not end")


def test_ctrl_c_is_for_the_run_and_not_for_the_hook(hook: Hook) -> None:
    """The terminal sends it to a whole group of processes."""
    assert hook("import os; print(os.getpgid(0) == os.getpid())") == ""
    assert hook.said == ["True"]


def test_a_child_that_holds_the_output_holds_no_one_up(hook: Hook) -> None:
    child = "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    assert hook(f"{child}; print(child.pid)") == ""
    (pid,) = map(int, hook.said)
    assert not _gone(pid), "the run waited for the child"
    os.kill(pid, signal.SIGKILL)


def test_endless_lines_are_cut(hook: Hook) -> None:
    assert hook("print('x' * 5000)") == ""
    assert [len(line) for line in hook.said] == [2000, 2000, 1000]


def test_signals_that_we_ignore_are_not_ignored_for_it(hook: Hook) -> None:
    assert hook("import signal; print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)") == ""
    assert hook.said == ["True"]


def test_where_there_are_no_hooks_nothing_runs() -> None:
    assert run_nothing(["x"], {}, print, lambda: False) == "cannot be run here"
