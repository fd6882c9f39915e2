"""The progress of a command on standard error: one line that is rewritten on a terminal, periodic lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

_SOON = 0.3
"""Seconds before the first output: fast commands need none."""
_LIVE = 0.1
_PLAIN = 15.0
"""Seconds between two lines in a log."""


class ProgressLine:
    """Called with the number of tables read and their total. Leaves nothing behind on a terminal."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float], *, live: bool) -> None:
        self._write = write
        self._clock = clock
        self._live = live
        self._next = clock() + (_SOON if live else _PLAIN)
        self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write(f"\r{' ' * self._shown}\r")

    def __call__(self, done: int, total: int) -> None:
        """Print the progress if it is time to."""
        now = self._clock()
        if now < self._next or done == total:
            return
        text = f"reading {done:,} of {total:,} tables"
        self._next = now + (_LIVE if self._live else _PLAIN)
        if self._live:
            self._write("\r" + text.ljust(self._shown))
            self._shown = max(self._shown, len(text))
        else:
            self._write(text + "\n")
