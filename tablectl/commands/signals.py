"""Signals during a run: the first one ends it cleanly, the next one ends the process."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from tablectl.commands.output import Output
from tablectl.commands.run_plan import Control
from tablectl.leases.clock import SystemClock


@contextmanager
def stop_on_signals(control: Control, out: Output) -> Iterator[Callable[[], None]]:
    """On the first SIGINT, SIGTERM or SIGHUP, end the run cleanly: no further statement starts, and leases are
    released.

    The next signal ends the process at once, as it would without our handlers. Ignored signals stay ignored
    (``nohup``). Yields a function that restores our handlers after another library has replaced them.
    """
    before: dict[int, Any] = {}

    def stop(_number: int, _frame: FrameType | None) -> None:
        control.stop.set()
        if isinstance(control.clock, SystemClock):
            control.clock.interrupt()
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        with suppress(RuntimeError):  # the signal came while the same stream was being written
            out.note("stopping: waiting for running statements, starting no more; repeat the signal to exit at once")

    def install_handlers() -> None:
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            now = signal.getsignal(number) if number else None
            if number and now not in {None, signal.SIG_IGN, stop} and not control.stop.is_set():
                before.setdefault(number, now)
                signal.signal(number, stop)

    install_handlers()
    try:
        yield install_handlers
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
