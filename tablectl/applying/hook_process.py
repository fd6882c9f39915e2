"""Run the command of a hook: without a shell or a terminal, in bounded time, with its output line by line."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

_LOOK_EVERY = 0.1
_LONGEST_LINE = 2000
_NO_SIGNAL = 0
"""Sent to a process group, it only tells whether the group has processes."""


class RunHook(Protocol):
    """Runs a command. Returns why it failed; empty if it succeeded."""

    def __call__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        """``environ`` is added to this process's environment. ``said`` gets each line of output, on a thread of its
        own. The command is ended as soon as ``stopped`` returns true.
        """
        ...


def run_nothing(
    command: Sequence[str],  # noqa: ARG001  # the signature of ``RunHook``
    environ: Mapping[str, str],  # noqa: ARG001
    said: Callable[[str], None],  # noqa: ARG001
    stopped: Callable[[], bool],  # noqa: ARG001
) -> str:
    """The ``RunHook`` of a run without hooks."""
    return "cannot be run here"


class CommandRunner:
    """The production ``RunHook``: runs commands in a directory, each for at most ``timeout`` seconds. ``grace`` is the
    time in seconds between asking a command to end and killing it.
    """

    def __init__(self, directory: Path, timeout: float, grace: float = 5.0) -> None:
        self._directory = directory
        self._timeout = timeout
        self._grace = grace

    def __call__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        """Run a command and return why it failed; empty if it succeeded."""
        try:
            process = subprocess.Popen(  # noqa: S603  # the user's own configuration, and no shell
                command,
                cwd=self._directory,
                env={**os.environ, **environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a new session: Ctrl-C must not kill a hook half way
            )
        except (OSError, ValueError) as error:
            return f"cannot be run: {getattr(error, 'strerror', None) or error}"
        assert process.stdout is not None
        reader = threading.Thread(target=_pass_on, args=(process.stdout, said), daemon=True)
        reader.start()
        why = self._wait(process, stopped)
        reader.join(_LOOK_EVERY * 10)  # bounded: a child process left behind may hold the pipe
        return why

    def _wait(self, process: subprocess.Popen[bytes], stopped: Callable[[], bool]) -> str:
        deadline = time.monotonic() + self._timeout
        while True:
            with suppress(subprocess.TimeoutExpired):
                return _exit_text(process.wait(_LOOK_EVERY))
            if stopped():
                _end(process, self._grace)
                return "was stopped with the run"
            if time.monotonic() >= deadline:
                _end(process, self._grace)
                return f"did not end within {self._timeout:g} s (`window.hook_timeout`)"


def _exit_text(code: int) -> str:
    if code < 0:
        return f"was ended by signal {-code}"
    return f"ended with exit code {code}" if code else ""


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Ask the command and all that it started to end. What is left of them after the grace is killed, also if the
    command itself has ended.
    """
    deadline = time.monotonic() + grace
    left = _signal(process, signal.SIGTERM)
    while left and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY)
        process.poll()  # without it, a command that has ended stays in its process group
        left = _signal(process, _NO_SIGNAL)
    if left:
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> bool:
    """Signal the command and, on systems with process groups, everything that it started. Returns whether any of it
    may still run.
    """
    if not hasattr(os, "killpg"):
        process.terminate()
        return process.poll() is None
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _pass_on(output: IO[bytes], said: Callable[[str], None]) -> None:
    with output, suppress(ValueError):
        for line in iter(lambda: output.readline(_LONGEST_LINE), b""):
            text = line.decode(errors="replace").rstrip("\r\n")
            if text:
                said(text)
