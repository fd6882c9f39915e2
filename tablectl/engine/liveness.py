"""Whether an engine still answers, and calls that wait no longer than it does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from tablectl.model.errors import EngineError
from tablectl.support.threads import in_thread

_T = TypeVar("_T")

_LOOK_EVERY = 0.2
"""Seconds between two checks whether the engine of a running statement is alive."""
_REQUEST_LIMIT = 10.0
"""Seconds that a request may take which a server that answers completes at once."""


class Heartbeat:
    """Calls ``ping`` every few seconds; ``alive`` says whether an answer came recently. Thread-safe.

    A ping may hang for any time: an engine that does not answer counts as gone. A process that was itself stopped for a
    while (SIGSTOP, a closed laptop) pings once more before it concludes that.
    """

    def __init__(
        self,
        ping: Callable[[], object],
        every: float,
        dead_after: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``ping`` raises if the engine does not answer. After ``dead_after`` seconds of that, the engine counts as
        dead.
        """
        self._ping = ping
        self._every = every
        self._now = now
        self.dead_after = dead_after
        self._seen = now()
        self._doubted: float | None = None
        self._stop = threading.Event()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start pinging. The thread is a daemon: the process can exit without waiting for it."""
        threading.Thread(target=self._beat, name="tablectl-heartbeat", daemon=True).start()

    def stop(self) -> None:
        """Stop pinging. Idempotent."""
        self._stop.set()

    def ask(self) -> None:
        """Send one ping."""
        asked = self._now()
        try:
            self._ping()
        except Exception:  # noqa: BLE001  # any exception means that there was no answer
            return
        with self._lock:
            self._seen = max(self._seen, asked)
            self._doubted = None

    def alive(self) -> bool:
        """Whether the engine answered within the last ``dead_after`` seconds."""
        with self._lock:
            now = self._now()
            if now - self._seen < max(self.dead_after - self._every, 0):
                return True
            if self._doubted is None:
                self._doubted = now
            return now - self._doubted < min(self._every, self.dead_after)

    def _beat(self) -> None:
        while not self._stop.wait(self._every):
            self.ask()


def watched(work: Callable[[], _T], alive: Callable[[], bool], why_dead: Callable[[], str]) -> _T:
    """What ``work`` returns or raises: an ``EngineError``, whatever the client raised. An unanswered one as soon as the
    engine counts as dead: a call may hang for as long as a dead server's connection.
    """
    done = in_thread(work, "tablectl-statement")
    while True:
        with suppress(TimeoutError):
            return done.result(timeout=_LOOK_EVERY)
        if not alive() and not done.done():
            raise EngineError(why_dead(), "see whether its server runs", unanswered=True)


def answer_of(ask: Callable[[], _T]) -> _T | None:
    """The answer to a request; ``None`` if none comes soon: a server that is paused would never answer."""
    try:
        return in_thread(ask, "tablectl-request").result(timeout=_REQUEST_LIMIT)
    except TimeoutError:
        return None
