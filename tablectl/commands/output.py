"""The output of a command: results on standard output; progress, errors and the debug log on standard error.

All text passes ``escape_output`` here: foreign names and values cannot be commands of a CI system or a terminal.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from tablectl.delta.credentials import scrub
from tablectl.documents.style import Style, printable_lines
from tablectl.model.errors import DEBUG, ExitCode, InputError, TablectlError, UsageError
from tablectl.model.safe_text import escape_output
from tablectl.support.json_text import write_json

if TYPE_CHECKING:  # loaded where a run is shown
    from tablectl.applying.events import Notify
    from tablectl.commands.progress_display import Screen

_SOON = 0.3
"""Seconds before the first progress of reading: fast commands need none."""
_LIVE = 0.1
_PLAIN = 15.0
"""Seconds between two lines about reading in a log."""


class Output:
    """The two streams of a command, with colours if the stream supports them (``NO_COLOR`` is respected)."""

    def __init__(self, environ: Mapping[str, str], out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._environ = environ
        self._out: TextIO | None = out or sys.stdout
        self._err: TextIO | None = err or sys.stderr
        self._screen: Screen | None = None
        self.json = False
        """Whether errors are also printed as JSON."""
        self.results = 0
        """The number of results printed."""

    @property
    def style(self) -> Style:
        """The style of results."""
        width = shutil.get_terminal_size((80, 24)).columns
        return Style(self._colour(self._out), min(max(width, 40), 100))

    @property
    def interactive(self) -> bool:
        """Whether a user can answer questions."""
        return sys.stdin is not None and sys.stdin.isatty()

    def result(self, text: str) -> None:
        """Print a result. Raises ``TablectlError`` if it cannot be written, ``BrokenPipeError`` if its reader has
        closed the pipe.
        """
        try:
            _write(self._out, escape_output(text, colour=self._colour(self._out)))
        except BrokenPipeError:
            raise
        except OSError as error:
            raise TablectlError(f"the result cannot be written: {error.strerror or error}") from error
        self.results += 1

    def json_result(self, body: object) -> None:
        """Print a result as JSON. Raises as ``result``."""
        from tablectl.support.typed_json import json_form  # noqa: PLC0415  # `--help` does without pydantic

        self.result(write_json(json_form(body), indent=2) + "\n")

    def note(self, text: str) -> None:
        """Print progress and other text that is not the result. A closed terminal must not stop an apply half way."""
        style = Style(self._colour(self._err))
        with suppress(OSError):
            if self._screen is not None:
                self._screen.say(text)
            else:
                self._say("".join(style.paint(line, "dim") + "\n" for line in printable_lines(text)))

    @contextmanager
    def display(self) -> Iterator[Notify]:
        """The observer of an apply: a display in place on a terminal, else lines."""
        from tablectl.commands.progress_display import lines, screen  # noqa: PLC0415  # few commands show a run

        if self._err is None or not self._redraws:
            with lines(self.note) as told:
                yield told
            return
        with screen(self._err, self._environ) as shown:
            self._screen = shown
            try:
                yield shown
            finally:
                self._screen = None

    def progress(self) -> ProgressLine:
        """The progress of reading tables. A terminal that cannot rewrite a line counts as none."""

        def write(text: str) -> None:
            with suppress(OSError):
                _write(self._err, text)

        return ProgressLine(write, monotonic, live=self._redraws)

    def error(self, error: TablectlError) -> None:
        """Print an error and its hint."""
        style = Style(self._colour(self._err))
        body = "\n".join(printable_lines(str(error)))
        with suppress(OSError):
            self._say(f"{style.paint('error:', 'red', 'bold')} {body}\n")

    def usage(self, text: str, message: str) -> None:
        """Report a usage error of the command-line library, whose ``text`` for people has the usage, too."""
        with suppress(OSError):
            self._say(text)
        self._fail_as_json(UsageError(message), ExitCode.USAGE)

    def fail(self, error: TablectlError, code: ExitCode | None = None) -> None:
        """Report why the command has no result: to people and, as JSON, to programs."""
        self.error(error)
        self._fail_as_json(error, code or error.exit_code)

    def _fail_as_json(self, error: TablectlError, code: ExitCode) -> None:
        if self.json and not self.results:
            with suppress(OSError, TablectlError):  # the stream is closed, so nothing else can be reported
                problems = error.problems if isinstance(error, InputError) else ()
                said = {"error": error.message, "hint": error.hint, "problems": problems, "exit_code": int(code)}
                self.json_result(said)

    def ask(self, question: str) -> bool:
        """Ask a yes-or-no question on the terminal. Any answer but yes is no."""
        self._say(f"{question} [y/N] ")
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    def _say(self, text: str) -> None:
        _write(self._err, escape_output(text, colour=self._colour(self._err)))

    @property
    def _redraws(self) -> bool:
        return self._err is not None and self._err.isatty() and self._environ.get("TERM") != "dumb"

    def _colour(self, stream: TextIO | None) -> bool:
        return (
            stream is not None
            and stream.isatty()
            and not self._environ.get("NO_COLOR")
            and self._environ.get("TERM") != "dumb"
        )


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


def flush_streams() -> None:
    """Redirect closed streams to the null device, because the interpreter's flush at exit would fail."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # closed by the parent process
        return
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


class _Escaped(logging.Formatter):
    """Tracebacks can contain foreign text."""

    def format(self, record: logging.LogRecord) -> str:
        """The record without credentials and without commands of a terminal."""
        return escape_output(scrub(super().format(record)))


def print_debug_log(environ: Mapping[str, str]) -> None:
    """Prints the log of ``TABLECTL_DEBUG=1``, if it is asked for: what went wrong, with tracebacks.

    Only tablectl's own: other libraries log headers, which contain tokens.
    """
    if not environ.get(DEBUG):
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_Escaped("%(name)s: %(message)s"))
    log = logging.getLogger("tablectl")
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
