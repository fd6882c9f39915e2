"""Whether an engine on the other side of a network still answers: asked again and again by a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Heartbeat:
    """Asks ``ping`` every few seconds; ``alive`` says whether an answer came lately. Safe for several threads.

    A ping may hang for as long as it likes: an engine that does not answer counts as one that is gone. A process that
    was itself stopped for a while (SIGSTOP, a laptop's lid) asks once more before it draws that conclusion.
    """

    def __init__(
        self,
        ping: Callable[[], object],
        every: float,
        dead_after: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``ping`` raises where the engine does not answer; ``dead_after`` seconds of that are its death."""
        self._ping = ping
        self._every = every
        self._now = now
        self.dead_after = dead_after
        self._seen = now()
        self._doubted: float | None = None
        self._stop = threading.Event()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begins to ask. The thread is a daemon: it keeps no process from ending."""
        threading.Thread(target=self._beat, name="tablectl-heartbeat", daemon=True).start()

    def stop(self) -> None:
        """Asks no more; harmless to call twice."""
        self._stop.set()

    def ask(self) -> None:
        """One ping."""
        asked = self._now()
        try:
            self._ping()
        except Exception:  # noqa: BLE001  # whatever it is, it is no answer
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
