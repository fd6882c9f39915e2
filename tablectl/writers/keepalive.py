"""The thread of one guard. Only this thread calls the store, so a store that hangs does not hang the writer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError  # another class before Python 3.11
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from tablectl.leases.clock import Clock, SystemClock
from tablectl.leases.lease import RENEW_EVERY, RETRY_EVERY
from tablectl.leases.lease_records import PATIENCE
from tablectl.model.errors import WindowError, one_line
from tablectl.writers.gate_entry import StoredGuard

ANSWER = 10.0
"""Seconds that a writer waits for one answer of the store: more than a healthy store takes, including retries."""

SHORT_ANSWER = 1.0
"""The same for a store that has already failed."""

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


def start(call: Callable[[], _Result]) -> Future[_Result]:
    """Make a call on a daemon thread of its own. ``GuardThread.wait`` returns its result."""
    answer: Future[_Result] = Future()
    threading.Thread(target=_make, args=(answer, call), name="tablectl-guard", daemon=True).start()
    return answer


class GuardThread:
    """Makes the calls of one write in the order in which they are requested, and renews its guard in between.

    The thread is a daemon: the interpreter exits without waiting for it. ``dismiss`` ends it.
    """

    def __init__(self, table: str, ttl: float) -> None:
        """``table`` is the name for messages, ``ttl`` the guard's, in seconds."""
        self._table = table
        self._ttl = ttl
        self._guard: StoredGuard | None = None
        self._failed = False
        self.was_passed = False
        """Whether an apply is known to have taken the guard for dead."""
        self._clock: Clock = SystemClock()
        self._began = self._clock.monotonic()
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        threading.Thread(target=self._attend, name="tablectl-guard", daemon=True).start()

    def fail(self, message: str) -> None:
        """Warn that the store fails, and use the shorter timeout from now on."""
        if not self._failed:
            _log.warning("%s: %s", self._table, message)
        self._failed = True

    def ask(self, call: Callable[[], _Result], /) -> _Result:
        """Make a call on the thread and return its result, or raise what it raises. Raises ``WindowError`` if no answer
        comes in time; the call is then still made, in its turn.
        """
        return self.wait(self.send(call))

    def send(self, call: Callable[[], _Result], /) -> Future[_Result]:
        """Make a call on the thread, in its turn. ``wait`` returns its result."""
        answer: Future[_Result] = Future()
        self._calls.put((answer, call))
        return answer

    def wait(self, answer: Future[_Result]) -> _Result:
        """The result of a call that was started, or what it raises. Raises ``WindowError`` if none comes in time."""
        patience = SHORT_ANSWER if self._failed else ANSWER
        try:
            return answer.result(patience)
        except FutureTimeoutError as error:
            if answer.done():
                raise
            raise WindowError(f"its records did not answer within {patience:g} s") from error

    def keep(self, guard: StoredGuard) -> None:
        """Renew this guard from now on, while it is in the store."""
        self._guard = guard

    def withdraw(self, guard: StoredGuard) -> None:
        """Delete the guard at the end of its write. One that lasted for less than its ttl was not taken for dead."""
        if self._clock.monotonic() - self._began >= self._ttl:
            self.send(lambda: self._look_back(guard))
        self.ask(guard.withdraw)

    def _look_back(self, guard: StoredGuard) -> None:
        """Warn if an apply took the guard for dead and continued."""
        if not self.was_passed and guard.is_taken_for_dead():
            self.was_passed = True
            _log.warning(
                "%s: an apply took this write for dead, because its guard was not renewed for %g s, and went on: the "
                "write may fail once. Give its guard a longer ttl",
                self._table,
                self._ttl * PATIENCE,
            )

    def dismiss(self) -> None:
        """End the thread; no call may follow."""
        self._calls.put(None)

    def _attend(self) -> None:
        pause = RENEW_EVERY
        while True:
            try:
                asked = self._calls.get(timeout=pause * self._ttl)
            except Empty:
                pause = RENEW_EVERY if self._renewed() else RETRY_EVERY
                continue
            if asked is None:
                return
            _make(*asked)

    def _renewed(self) -> bool:
        """Whether the guard was renewed. The write continues in any case: an apply may then take the guard for dead."""
        try:
            if self._guard is not None:
                self._guard.renew()
                self._look_back(self._guard)
        except Exception as error:  # noqa: BLE001  # see the docstring
            self.fail(f"the guard of this write is not renewed, and an apply may take it for dead: {one_line(error)}")
            return False
        return True


def _make(answer: Future[Any], call: Callable[[], Any]) -> None:
    try:
        answer.set_result(call())
    except Exception as error:  # noqa: BLE001  # it is passed to the caller
        answer.set_exception(error)
    except BaseException as error:  # noqa: BLE001  # Rust panics: they must end neither the thread nor a write
        answer.set_exception(WindowError(f"its records cannot be used: {error!r}"))
