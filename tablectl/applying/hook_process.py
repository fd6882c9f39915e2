"""Running a hook's command: no shell, no terminal, a bounded time, its output line by line."""

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
_GRACE = 5.0
"""Seconds between asking a command to end and killing it."""
_LONGEST_LINE = 2000


class RunHook(Protocol):
    """Runs a command; says why it failed, and nothing where it did not."""

    def __call__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        """``environ`` comes on top of this process's own; ``said`` gets each line of output, in a thread of its own;
        the command is ended as soon as ``stopped`` is true.
        """
        ...


def run_nothing(
    command: Sequence[str],  # noqa: ARG001  # as in ``RunHook``
    environ: Mapping[str, str],  # noqa: ARG001
    said: Callable[[str], None],  # noqa: ARG001
    stopped: Callable[[], bool],  # noqa: ARG001
) -> str:
    """The ``RunHook`` of a run that has no hooks."""
    return "cannot be run here"


class CommandRunner:
    """``RunHook`` in earnest: commands run in a directory, each for at most ``timeout`` seconds."""

    def __init__(self, directory: Path, timeout: float) -> None:
        self._directory = directory
        self._timeout = timeout

    def __call__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        """As ``RunHook``."""
        try:
            process = subprocess.Popen(  # noqa: S603  # the user's own configuration, and no shell
                command,
                cwd=self._directory,
                env={**os.environ, **environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us: half a hook is worse than a late one
            )
        except (OSError, ValueError) as error:
            return f"cannot be run: {getattr(error, 'strerror', None) or error}"
        assert process.stdout is not None
        reader = threading.Thread(target=_pass_on, args=(process.stdout, said), daemon=True)
        reader.start()
        why = self._wait(process, stopped)
        reader.join(_LOOK_EVERY * 10)  # not for ever: a child that it left behind may hold the pipe
        return why

    def _wait(self, process: subprocess.Popen[bytes], stopped: Callable[[], bool]) -> str:
        deadline = time.monotonic() + self._timeout
        while True:
            with suppress(subprocess.TimeoutExpired):
                return _told(process.wait(_LOOK_EVERY))
            if stopped():
                _end(process)
                return "was stopped with the run"
            if time.monotonic() >= deadline:
                _end(process)
                return f"did not end within {self._timeout:g} s (`window.hook_timeout`)"


def _told(code: int) -> str:
    if code < 0:
        return f"was ended by signal {-code}"
    return f"ended with exit code {code}" if code else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal(process, signal.SIGTERM)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To the command and to all that it started, where the system knows of groups."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.terminate()


def _pass_on(output: IO[bytes], said: Callable[[str], None]) -> None:
    with output, suppress(ValueError):
        for line in iter(lambda: output.readline(_LONGEST_LINE), b""):
            text = line.decode(errors="replace").rstrip("\r\n")
            if text:
                said(text)
