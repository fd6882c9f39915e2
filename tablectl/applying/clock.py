"""Time as the window sees it: passed in, so that nothing here ever asks the machine by itself."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol

from tablectl.model.errors import WindowError


class Clock(Protocol):
    """The only source of time. Decisions are made on ``monotonic`` alone (docs/window.md, "Leases")."""

    def monotonic(self) -> float:
        """Seconds since some moment, on this process's own clock: never set back, never compared across processes.

        It goes on while the machine sleeps. It may stand still while a virtual machine is paused: what a holder must
        know of that time, it reads in the log.
        """

    def sleep(self, seconds: float) -> None:
        """Waits; raises ``StoppedError`` when the run is told to stop."""

    def utc(self) -> datetime:
        """The wall clock, for people to read. No decision may look at it."""


def milliseconds(moment: datetime) -> int:
    """A moment as logs tell it: since the epoch."""
    return round(moment.timestamp() * 1000)


class StoppedError(WindowError):
    """A wait was cut short because the run was told to stop."""


_COUNTS_SLEEP: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
"""The clock that goes on while the machine sleeps. On Linux CLOCK_MONOTONIC stands still then; on macOS it goes on, and
``time.monotonic``, which reads another one, stands still."""


class SystemClock:
    """The machine's clock. ``interrupt`` (from a signal handler, say) ends every sleep, now and later."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    def monotonic(self) -> float:
        """As ``Clock.monotonic``."""
        return time.monotonic() if _COUNTS_SLEEP is None else time.clock_gettime(_COUNTS_SLEEP)

    def sleep(self, seconds: float) -> None:
        """As ``Clock.sleep``."""
        if self._stop.wait(seconds):
            raise StoppedError("stopped while waiting", "nothing is left to repair: run it again")

    def utc(self) -> datetime:
        """As ``Clock.utc``."""
        return datetime.now(UTC)

    def interrupt(self) -> None:
        """Ends the sleep of every thread that uses this clock."""
        self._stop.set()


def pause_briefly(clock: Clock, seconds: float) -> None:
    """A short wait before another try of what must be done on every way out, also by a run that is told to stop."""
    try:
        clock.sleep(seconds)
    except StoppedError:
        threading.Event().wait(seconds)
