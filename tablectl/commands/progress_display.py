"""The display of a run in progress, on standard error: lines for logs; on a terminal, lines updated in place."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tablectl.applying.events import DONE, PROGRESS, RELEASED, RunEvent, Standing, left_text, progress_text
from tablectl.documents.style import printable_lines
from tablectl.model.safe_text import escape_output, printable

if TYPE_CHECKING:  # slow to load, and needed on terminals only
    from rich.console import RenderableType

REMIND_EVERY = 30.0
"""Seconds after which a log repeats that something is still in progress."""
_REMIND = 5.0
"""Seconds between two looks at whether a log should say how far a run is."""
_SETTLE = 5.0
"""Seconds during which a wait whose text changes is not reported again."""
_LONGEST_NAME = 60
_MOST_ROWS = 20
"""Tables with a row of their own; more would only scroll the lines above off the screen."""
_LAST_STEPS = frozenset({DONE, RELEASED})
_MOST_NAMED = 5
_BAR = 20
"""Characters of the bar."""
_PLAIN_STEPS = frozenset({"hook says", "note", "proceed"})
"""Steps that stay on the screen when the next one comes."""


@dataclass(frozen=True, slots=True)
class _State:
    words: str
    since: float
    waits: bool = False


class Lines:
    """A line for each change of state, and periodically one for what is still in progress. Thread-safe.

    A run of many tables has one line for each table that is done, and periodically how far it is: which tables wait for
    what, and which take longest.
    """

    def __init__(self, say: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._now = now
        self._waits: dict[str, tuple[str, float]] = {}
        self._states: dict[str, _State] = {}
        self._standing: Standing | None = None
        self._end: float | None = None
        """When the run will be done, about."""
        self._progress_at = now()
        self._lock = threading.Lock()

    def __call__(self, event: RunEvent) -> None:
        """Print an event if it is meant for people."""
        with self._lock:
            if event.step == PROGRESS:
                self._standing = event.standing
                self._end = None if event.left is None else self._now() + event.left
                self._progress()
                return
            self._note_state(event)
            if event.step == DONE:
                self._waits.pop(event.table, None)
                if self._brief:
                    self._say(_titled(event))
            elif self._brief and event.step not in _PLAIN_STEPS:
                self._progress()
            elif self._is_news(event):
                waited = f" ({_time(event.waited)})" if event.waited and event.waited >= 1 else ""
                self._say(f"{_titled(event)}{waited}")

    def remind(self) -> None:
        """Print the progress if it is time to: a long statement sends no event."""
        with self._lock:
            self._progress()

    @property
    def _brief(self) -> bool:
        return self._standing is not None and self._standing.total > _MOST_ROWS

    def _note_state(self, event: RunEvent) -> None:
        if event.step in _LAST_STEPS:
            self._states.pop(event.table, None)
        elif event.table and event.words and event.step not in _PLAIN_STEPS:
            self._states[event.table] = _State(event.words, self._now() - (event.waited or 0.0), _waits(event))

    def _progress(self) -> None:
        """Print the progress of the run periodically, since it changes with each table."""
        if self._standing is None or self._now() - self._progress_at < REMIND_EVERY:
            return
        self._progress_at = self._now()
        left = _until(self._end, self._now())
        self._say("\n".join([progress_text(self._standing, left), *(self._longest() if self._brief else [])]))

    def _longest(self) -> Iterator[str]:
        """The tables that wait, and those whose step takes longest."""
        states = sorted(self._states.items(), key=lambda each: (not each[1].waits, each[1].since))
        for name, state in states[:_MOST_NAMED]:
            yield f"  {name}: {state.words} ({_time(self._now() - state.since)})"
        if len(states) > _MOST_NAMED:
            yield f"  and {len(states) - _MOST_NAMED} more"

    def _is_news(self, event: RunEvent) -> bool:
        if event.waited is None:
            self._waits.pop(event.table, None)
            return bool(event.words)
        words, told = self._waits.get(event.table, ("", 0.0))
        patience = REMIND_EVERY if words == event.words else _SETTLE if words else 0.0
        if words and self._now() - told < patience:
            return False
        self._waits[event.table] = (event.words, self._now())
        return True


def _until(end: float | None, now: float) -> float | None:
    """The seconds left; ``None`` without an estimate, and once an estimate has proved wrong."""
    return None if end is None or end <= now else end - now


def _waits(event: RunEvent) -> bool:
    return event.waited is not None


class Screen:
    """What each table is doing now, updated in place; lines that must not get lost go above. Thread-safe."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now = now
        self._states: dict[str, _State] = {}
        self._standing: Standing | None = None
        self._end: float | None = None
        """When the run will be done, about."""
        self._live: Any = None
        self._lock = threading.Lock()

    def __call__(self, event: RunEvent) -> None:
        """Show an event. The first event starts the display: while Spark starts, nothing may draw."""
        with self._lock, suppress(OSError):  # a closed terminal must not stop an apply half way
            if self._live is None:
                self._start()
            if event.step == PROGRESS:
                self._standing = event.standing
                self._end = None if event.left is None else self._now() + event.left
            elif event.step in _PLAIN_STEPS:
                self.say(_titled(event))
            elif event.step in _LAST_STEPS:
                self._states.pop(event.table, None)
            elif event.words:
                self._states[event.table] = _State(event.words, self._now() - (event.waited or 0.0), _waits(event))

    def say(self, text: str) -> None:
        """Print a line that stays."""
        for line in printable_lines(text):
            self._console.print(_literal(line), style="dim", soft_wrap=True)

    def stop(self) -> None:
        """Remove the display."""
        with self._lock, suppress(OSError):
            if self._live is not None:
                self._live.stop()

    def render(self) -> RenderableType:
        """A row for each active table (its name, its step, and since when), and the progress of the run.

        If there are many tables, those whose step began last come first: the others wait.
        """
        width = min(_LONGEST_NAME, self._console.width * 2 // 5)
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(no_wrap=True, max_width=width, style="bold")
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column(no_wrap=True, justify="right", style="dim")
        states = sorted(dict(self._states).items(), key=lambda each: each[1].since, reverse=True)
        for name, state in sorted(states[:_MOST_ROWS]):
            cells = (_end_of(name, width), state.words, _time(self._now() - state.since))
            table.add_row(*map(_literal, cells), style="yellow" if state.waits else None)
        lines = [_literal(f"and {len(states) - _MOST_ROWS} more")] if len(states) > _MOST_ROWS else []
        if self._standing:
            lines += [self._bar(self._standing), *map(_literal, self._counts(self._standing))]
        return Group(table, *lines)

    def _bar(self, standing: Standing) -> Text:
        """``━━━━━━━━━━──────────  12 of 40 tables done, about 5 min left``."""
        full = _BAR * standing.done // standing.total
        said = f"  {standing.done:,} of {standing.total:,} tables done"
        if (left := _until(self._end, self._now())) is not None:
            said += f", {left_text(left)}"
        return Text.assemble(("━" * full, "green"), ("─" * (_BAR - full), "dim"), said)

    def _counts(self, standing: Standing) -> Iterator[str]:
        """``4 running, 3 waiting (2 for a lease, 1 for writers)``."""
        parts = [f"{standing.running} running"] if standing.running else []
        if standing.waiting:
            why = ", ".join(f"{number} {what}" for what, number in standing.waits)
            parts.append(f"{standing.waiting} waiting ({why})")
        if parts:
            yield ", ".join(parts)

    def _start(self) -> None:
        self._live = Live(
            console=self._console,
            get_renderable=self.render,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
        )
        self._live.start()


def _literal(text: str) -> Any:
    return Text(escape_output(printable(text)))


def _end_of(name: str, width: int) -> str:
    """Long names differ at the end."""
    return name if len(name) <= width else "…" + name[1 - width :]


def _titled(event: RunEvent) -> str:
    return f"{event.table}: {event.words}" if event.table else event.words


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"


@contextmanager
def lines(say: Callable[[str], None]) -> Iterator[Lines]:
    """Lines that are asked for the progress now and then: a statement that takes an hour sends no event meanwhile."""
    shown = Lines(say)
    over = threading.Event()

    def remind() -> None:
        while not over.wait(_REMIND):
            shown.remind()

    thread = threading.Thread(target=remind, name="tablectl-progress", daemon=True)
    thread.start()
    try:
        yield shown
    finally:
        over.set()
        thread.join()


@contextmanager
def screen(stream: TextIO, environ: Mapping[str, str]) -> Iterator[Screen]:
    """A display on a terminal, removed at the end."""
    shown = Screen(Console(file=stream, no_color=bool(environ.get("NO_COLOR")) or None, emoji=False))
    try:
        yield shown
    finally:
        shown.stop()
