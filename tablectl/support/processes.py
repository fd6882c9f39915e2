"""Runs commands: without a shell or a terminal, in bounded time, each together with everything that it starts.

A command gets a session of its own: Ctrl-C is for tablectl, which decides what becomes of the command, and a signal to
its process group reaches its children. Children that a command leaves behind when it ends by itself stay.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_LOOK_EVERY = 0.1
_LONGEST_LINE = 2000
_PIECE = 1 << 16
_LAST_OUTPUT = 1.0
"""Seconds to wait for output after a command has ended. A child that it left behind may hold the pipe."""
_NO_SIGNAL = 0
"""Sent to a process group, it only tells whether the group has processes."""

Read = Callable[[IO[bytes]], None]
"""Reads an output to its end, on a thread of its own."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """When a command is ended. It is asked first, and killed with all that is left of it after the grace."""

    seconds: float
    setting: str = ""
    """The setting with the seconds, for the message."""
    grace: float = 5.0
    """Seconds."""
    stopped: Callable[[], bool] = _never
    """Asked all the time; the command is ended as soon as it returns true."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """What runs, and where."""

    words: Sequence[str]
    directory: Path | None = None
    """``None`` for the current one."""
    environ: Mapping[str, str] | None = None
    """All variables; ``None`` for those of this process."""
    given: bytes = b""
    """Its input."""


@dataclass(frozen=True, slots=True)
class Captured:
    """What became of a command."""

    why: str
    """Why it failed; empty if it succeeded."""
    code: int | None
    """Its exit code, negative for a signal; ``None`` if it could not be run or was ended."""
    out: bytes
    err: bytes


def run_lines(command: Invocation, said: Callable[[str], None], limits: ProcessLimits) -> str:
    """Runs a command and returns why it failed; empty if it succeeded. ``said`` gets each line of its output and its
    errors, on a thread of its own. Lines that are too long come in parts.
    """

    def read(stream: IO[bytes]) -> None:
        for line in iter(lambda: stream.readline(_LONGEST_LINE), b""):
            text = line.decode(errors="replace").rstrip("\r\n")
            if text:
                said(text)

    return _run(command, [read], limits)[0]


def run_captured(command: Invocation, most: int, limits: ProcessLimits, *, merged: bool = False) -> Captured:
    """Runs a command and keeps the first ``most`` bytes of its output and of its errors; ``merged`` puts
    the errors into the output. The rest is read and thrown away, so that the command can end.
    """
    kept: list[list[bytes]] = [[], []]

    def keep(parts: list[bytes]) -> Read:
        def read(stream: IO[bytes]) -> None:
            left = most
            while part := os.read(stream.fileno(), _PIECE):
                if left > 0:
                    parts.append(part[:left])
                left -= len(part)

        return read

    why, code = _run(command, [keep(each) for each in (kept[:1] if merged else kept)], limits)
    return Captured(why, code, b"".join(kept[0]), b"".join(kept[1]))


def _run(command: Invocation, reads: Sequence[Read], limits: ProcessLimits) -> tuple[str, int | None]:
    """Why a command failed, and its exit code. ``reads`` read its output and, if there are two, its errors."""
    try:
        process = subprocess.Popen(  # noqa: S603  # from the user's own configuration or this code, and no shell
            command.words,
            cwd=command.directory,
            env=command.environ,
            stdin=subprocess.PIPE if command.given else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if len(reads) > 1 else subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"cannot be run: {getattr(error, 'strerror', None) or error}", None
    streams = [stream for stream in (process.stdout, process.stderr) if stream]
    threads = [_begin(_closed, stream, read) for stream, read in zip(streams, reads, strict=True)]
    if process.stdin:
        threads.append(_begin(_feed, process.stdin, command.given))
    try:
        why = _wait(process, limits)
    except BaseException:
        _end(process, limits.grace)
        raise
    for thread in threads:
        thread.join(_LAST_OUTPUT)
    return (why, None) if why else (_exit_text(process.returncode), process.returncode)


def _begin(work: Callable[..., None], *args: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=args, name="tablectl-process", daemon=True)
    thread.start()
    return thread


def _closed(stream: IO[bytes], read: Read) -> None:
    with stream, suppress(OSError, ValueError):
        read(stream)


def _feed(stream: IO[bytes], given: bytes) -> None:
    """A command need not read its input."""
    with suppress(OSError, ValueError):
        stream.write(given)
    with suppress(OSError, ValueError):
        stream.close()


def _wait(process: subprocess.Popen[bytes], limits: ProcessLimits) -> str:
    """Why the command was ended; empty if it ended by itself."""
    deadline = time.monotonic() + limits.seconds
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_EVERY)
            return ""
        if limits.stopped():
            _end(process, limits.grace)
            return "was stopped with the run"
        if time.monotonic() >= deadline:
            _end(process, limits.grace)
            setting = f" (`{limits.setting}`)" if limits.setting else ""
            return f"did not end within {limits.seconds:g} s{setting}"


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
