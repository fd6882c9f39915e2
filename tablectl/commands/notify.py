"""Send notifications to the commands of ``notify:`` in ``tablectl.yaml``.

A notification that fails is reported and never changes the exit code. Commands get no shell: an argument list, and the
event as JSON on standard input.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

from tablectl.commands.output import Output
from tablectl.model.errors import TablectlError
from tablectl.model.text import printable
from tablectl.one_table import of_table
from tablectl.policies.branch import BASE
from tablectl.policies.config import Config, NotifyConfig
from tablectl.reports.context import Context
from tablectl.reports.notification import Notification, for_command

_MOST = 20
"""Receivers that are told. More are a mistake."""
_MOST_LINES = 20
_LONGEST_LINE = 500
_MOST_BYTES = 65_536
"""Bytes of a command's output that are read. The rest is thrown away, so that the command can end."""
_GRACE = 2.0
"""Seconds between asking a command to end and killing it."""


def send_notification(
    make: Callable[[], Notification | None],
    config: Config,
    context: Context,
    out: Output,
    environ: Mapping[str, str],
) -> None:
    """Tell every receiver of the event. Never raises."""
    notification = of_table("notification", make)
    if isinstance(notification, TablectlError):
        out.note(f"warning: no notification was sent: {notification.message}")
        return
    if notification is None:
        return
    wanted = [(number, each) for number, each in enumerate(config.notify, 1) if notification.event in each.events]
    if wanted and config.unmerged:
        out.note(
            "no notification was sent: this is a pull request, and without "
            f"{BASE} its own tablectl.yaml would decide which code runs"
        )
        return
    for number, each in wanted[:_MOST]:
        try:
            why = _run(each, for_command(notification, context), out, environ)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the work is done, whoever hears of it
            why = type(error).__name__
        if why:
            out.note(f"warning: notification {number} ({printable(each.command[0])}) failed: {why}")
    if len(wanted) > _MOST:
        out.note(f"warning: {len(wanted) - _MOST} notifications were not sent: at most {_MOST} are")


def _run(receiver: NotifyConfig, body: Mapping[str, Any], out: Output, environ: Mapping[str, str]) -> str:
    """Run a command and return why it failed. Its output is shown, up to a limit."""
    try:
        process = subprocess.Popen(  # noqa: S603  # the user's own configuration, and no shell
            receiver.command,
            env={**environ, "TABLECTL_EVENT": str(body["event"])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that it can be ended with everything that it started
        )
    except (OSError, ValueError) as error:
        return f"it cannot be run: {getattr(error, 'strerror', None) or 'not a command'}"
    said: list[bytes] = []
    assert process.stdin is not None
    assert process.stdout is not None
    threads = [
        threading.Thread(target=_feed, args=(process.stdin, json.dumps(body).encode() + b"\n"), daemon=True),
        threading.Thread(target=_read, args=(process.stdout, said.append), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        code = process.wait(receiver.timeout)
        why = f"it ended with exit code {code}" if code else ""
    except subprocess.TimeoutExpired:
        why = f"it did not end within {receiver.timeout} s"
    finally:
        _end(process)
    for thread in threads:
        thread.join(1.0)
    _show(b"".join(said), out)
    return why


def _feed(stream: IO[bytes], data: bytes) -> None:
    """A command need not read its input."""
    with suppress(OSError, ValueError):
        stream.write(data)
    with suppress(OSError, ValueError):
        stream.close()


def _read(stream: IO[bytes], keep: Callable[[bytes], None]) -> None:
    left = _MOST_BYTES
    with suppress(OSError, ValueError):
        while part := os.read(stream.fileno(), 8192):
            if left > 0:
                keep(part[:left])
            left -= len(part)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and everything that it started, if it still runs."""
    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
        return
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.terminate()


def _show(said: bytes, out: Output) -> None:
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    for line in lines[:_MOST_LINES]:
        out.note(f"| {line[:_LONGEST_LINE]}")
    if len(lines) > _MOST_LINES:
        out.note(f"| and {len(lines) - _MOST_LINES} more lines")
