"""What an apply waits for: one question, ``check(now)``, and its three answers.

Each wait lives with its subject: the quiet moment, streams, the calendar, leases, the drain, turns, … A table goes on
when each of its waits says ``Go``; ``run.WAITS`` lists those before its work. They hold no worker: the scheduler
asks again at the moment that ``Later`` names. A wait under a lease asks on its own thread (``wait_here``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tablectl.applying.events import RunEvent
from tablectl.leases.clock import Clock
from tablectl.model.run_report import RunOutcome, TableRun


@dataclass(frozen=True, slots=True)
class Awaited:
    """A kind of wait in events and in the progress of a run."""

    step: str
    """For machines: ``held``."""
    what: str
    """For people, after *waiting*: ``for a lease``."""


@dataclass(frozen=True, slots=True)
class Go:
    """Nothing is left to wait for."""


GO = Go()


@dataclass(frozen=True, slots=True)
class End:
    """Waiting is over without success, or cannot help."""

    outcome: RunOutcome | None
    """``None`` if the results of earlier attempts say more."""
    message: str = ""
    hint: str = ""
    table: str = ""
    """The table that it is about, if not about all; the others share its window."""

    def run(self, table: str) -> TableRun:
        """The run of a table that ends so before its work began."""
        assert self.outcome is not None
        return TableRun(name=table, outcome=self.outcome, message=self.message, hint=self.hint)


KEEP = End(None)
"""The end with the results of earlier attempts."""


@dataclass(frozen=True, slots=True)
class Later:
    """Not yet."""

    at: float
    """When to ask again, on the clock's ``monotonic``."""
    awaited: Awaited
    words: str = ""
    """What it waits for now, for people."""
    most: float = 0.0
    """Seconds after which the whole wait ends at the latest; 0 if unknown."""
    otherwise: End | None = None
    """The end if the run is stopped before; by default what earlier attempts brought, or *interrupted*."""
    ends_when_idle: bool = False
    """Whether it ends so, too, once no other table is worth waiting for."""
    holds: bool = False
    """Whether leases are held meanwhile: then the next question does not wait for a free worker."""

    def event(self, table: str, waited: float) -> RunEvent:
        """The event of a table that has waited for some seconds."""
        return RunEvent(table, self.awaited.step, self.words, waited, self.most, awaited=self.awaited.what)


Answer = Go | Later | End


class Wait(ABC):
    """One thing that tables wait for. Asked by one thread at a time."""

    @abstractmethod
    def check(self, now: float) -> Answer:
        """Whether the tables may go on at a moment of the clock's ``monotonic``."""

    def note(self, run: TableRun) -> TableRun:
        """A table's run with what the wait has to report of it."""
        return run


def first_answer(waits: Iterable[Wait], clock: Clock) -> Answer:
    """The answer of the first wait that does not say ``Go``. Each is asked about the moment at which its turn comes:
    those before it may have read logs for minutes.
    """
    return next((answer for wait in waits if not isinstance(answer := wait.check(clock.monotonic()), Go)), GO)


def wait_here(
    check: Callable[[float], Answer],
    clock: Clock,
    tell: Callable[[Later, float], None],
    pause: Callable[[float], object] | None = None,
) -> Go | End:
    """Ask until the wait is over, on this thread. ``tell`` gets each ``Later`` with the seconds waited; what it raises
    ends the wait. ``pause`` waits for some seconds, by default on the clock.
    """
    began = clock.monotonic()
    while isinstance(answer := check(clock.monotonic()), Later):
        tell(answer, clock.monotonic() - began)
        seconds = answer.at - clock.monotonic()
        if seconds > 0:
            (pause or clock.sleep)(seconds)
    return answer
