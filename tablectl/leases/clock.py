"""The clock of a run. It is passed in everywhere; no other code of this package reads the machine's clock."""

from __future__ import annotations

import threading
import time
from datetime import date, datetime
from typing import Protocol

from tablectl.model.errors import WindowError
from tablectl.support.compat import UTC


class Clock(Protocol):
    """The only source of time. Decisions use ``monotonic`` alone (docs/window.md, "Leases")."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment on this process's clock. Never set back; never compared across processes.

        It keeps counting while the machine sleeps. It may stand still while a virtual machine is paused: the holder of
        a lease learns from the log what happened during that time.
        """

    def sleep(self, seconds: float) -> None:
        """Wait. Raises ``StoppedError`` when the run is asked to stop."""

    def utc(self) -> datetime:
        """The wall clock, for output only. No decision may use it."""


def today() -> date:
    """The day on which locks are asked whether they hold: everywhere that of UTC."""
    return datetime.now(UTC).date()


def milliseconds(moment: datetime) -> int:
    """A moment as milliseconds since the epoch, as in Delta logs."""
    return round(moment.timestamp() * 1000)


class StoppedError(WindowError):
    """A wait was cut short because the run was asked to stop."""


_COUNTS_SLEEP: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
"""The clock that keeps counting while the machine sleeps. On Linux CLOCK_MONOTONIC stands still during sleep. On macOS
it keeps counting, and ``time.monotonic``, which reads another clock, stands still."""


class SystemClock:
    """The machine's clock. ``interrupt``, called from a signal handler for example, ends every sleep, current and
    future.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()

    def monotonic(self) -> float:
        """Seconds on a clock that keeps counting while the machine sleeps, where the system has one."""
        return time.monotonic() if _COUNTS_SLEEP is None else time.clock_gettime(_COUNTS_SLEEP)

    def sleep(self, seconds: float) -> None:
        """Wait. Raises ``StoppedError`` at once if ``interrupt`` was or is called."""
        if self._stop.wait(seconds):
            raise StoppedError("stopped while waiting", "nothing is left to repair: run it again")

    def utc(self) -> datetime:
        """The wall clock in UTC, for output only."""
        return datetime.now(UTC)

    def interrupt(self) -> None:
        """End the sleep of every thread that uses this clock."""
        self._stop.set()


def pause_briefly(clock: Clock, seconds: float) -> None:
    """Wait before retrying cleanup that every exit path must do, even in a run that was asked to stop."""
    try:
        clock.sleep(seconds)
    except StoppedError:
        threading.Event().wait(seconds)
