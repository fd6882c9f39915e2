"""Whether an engine still answers, whether its process is gone, and calls that wait no longer than it does."""

from __future__ import annotations

import socket
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
_CONNECT_LIMIT = 2.0
SETTLED = 10.0
"""Seconds for which a driver's port must refuse before its statements count as ended. A ``SparkContext`` that stops
closes its port before the process ends (``SparkContext.stop``, ``SparkEnv.stop``). By then no job runs any more, and
what is left of a commit is one put, which takes much less.
"""


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


class DriverPort:
    """The port on which a Spark driver itself listens (``spark.driver.host``, ``spark.driver.port``). If the driver's
    machine refuses connections there, the driver is gone, and so is every statement that it ran.

    The port of the server proves nothing: a load balancer, a forwarded port or a service of Kubernetes refuses
    connections although the server behind it lives. The driver's own port counts only if the server's address is of the
    same machine, and if the port took a connection when the session was opened. A machine that is cut off or a process
    that is stopped refuses nothing, so their statements are waited for.
    """

    def __init__(self, host: str, port: int, now: Callable[[], float] = time.monotonic) -> None:
        self._address = host, port
        self._now = now
        self._refused_since: float | None = None

    def gone(self) -> bool:
        """Whether it has refused connections for ``SETTLED`` seconds, at each call in that time."""
        if self._answer() is not ConnectionRefusedError:
            self._refused_since = None
            return False
        now = self._now()
        if self._refused_since is None:
            self._refused_since = now
        return now - self._refused_since >= SETTLED

    def reachable(self) -> bool:
        """Whether it takes a connection."""
        return self._answer() is None

    def _answer(self) -> type[OSError] | None:
        try:
            socket.create_connection(self._address, _CONNECT_LIMIT).close()
        except OSError as error:
            return type(error)
        return None


def find_driver(setting: Callable[[str], str | None], server: str) -> DriverPort | None:
    """The port of the driver behind a server's host, by the driver's own settings; ``None`` if it is not known, on
    another machine, or out of reach. Never raises an ``Exception``.
    """
    try:
        host, port = setting("spark.driver.host") or "", int(setting("spark.driver.port") or 0)
        found = DriverPort(host, port)
        if host and 0 < port < 1 << 16 and _is_one_machine(host, server) and found.reachable():
            return found
    except Exception:  # noqa: BLE001  # an engine that does not tell, or tells nonsense
        return None
    return None


def _is_one_machine(one: str, other: str) -> bool:
    first, second = _addresses(one), _addresses(other)
    return not first.isdisjoint(second) or (any(map(_is_ours, first)) and any(map(_is_ours, second)))


def _addresses(host: str) -> set[str]:
    return {str(each[4][0]) for each in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}


def _is_ours(address: str) -> bool:
    """Whether an address is one of this machine's: others cannot be bound."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as bound:
            bound.bind((address, 0))
    except OSError:
        return False
    return True


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
