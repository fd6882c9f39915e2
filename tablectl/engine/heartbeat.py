"""Checks whether a remote engine still answers, from a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


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
