"""The errors of tablectl and the exit code of each kind (docs/exit-codes.md).

What goes wrong with one table is that table's error, and the other tables go on. Whatever handles one table of many
runs in ``of_table``, in every command. A lack of memory is the table's error, too: what the failed step held is free
again. So is a panic of a Rust library. An interrupt (``KeyboardInterrupt``) and an exit (``SystemExit``) end the
command.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import TypeVar

from tablectl.delta.credentials import scrub


class ExitCode(IntEnum):
    """The exit codes of every command. ``worst`` picks one if several apply."""

    DONE = 0
    """Success."""
    ERROR = 1
    """An error in the input, the engine, or an unexpected error."""
    CHANGES = 2
    """Changes are pending (``plan --detailed-exitcode``, ``drift``)."""
    REFUSED = 3
    """The plan has a refusal or an error finding, or the plan is stale or was edited."""
    WINDOW = 4
    """The protected window could not be opened, and no commit was made."""
    PARTIAL = 5
    """The plan was applied in part, or not verified."""
    USAGE = 64
    """Wrong usage of the command line."""

    @staticmethod
    def worst(*codes: ExitCode) -> ExitCode:
        """The exit code to return if several apply: the first of 1, 5, 4, 3, 2, otherwise 0."""
        order = (ExitCode.ERROR, ExitCode.PARTIAL, ExitCode.WINDOW, ExitCode.REFUSED, ExitCode.CHANGES)
        return next((code for code in order if code in codes), ExitCode.DONE)


class TablectlError(Exception):
    """The base class of all errors for users. ``message`` says what is wrong and where, ``hint`` how to fix it.

    Both are scrubbed of the credentials in locations, because they can repeat text of an engine, a store or a catalog.
    """

    exit_code = ExitCode.ERROR

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = scrub(message)
        self.hint = scrub(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


def one_line(error: BaseException) -> str:
    """The error as one log line, without its hint. For errors of other libraries it starts with the class name."""
    return error.message if isinstance(error, TablectlError) else scrub(f"{type(error).__name__}: {error}")


class UsageError(TablectlError):
    """Invalid options or arguments on the command line."""

    exit_code = ExitCode.USAGE


CONFLICTS = frozenset(
    {
        "DELTA_METADATA_CHANGED",
        "DELTA_PROTOCOL_CHANGED",
        "DELTA_CONCURRENT_APPEND",
        "DELTA_CONCURRENT_DELETE_READ",
        "DELTA_CONCURRENT_DELETE_DELETE",
        "DELTA_CONCURRENT_TRANSACTION",
        "DELTA_CONCURRENT_WRITE",
    }
)
"""Delta's error conditions for a conflict with a concurrent commit. A retry of the same work can succeed."""


def is_conflict(condition: str) -> bool:
    """Whether a condition is one of ``CONFLICTS``, with or without a subclass (``….WITH_PARTITION_HINT``)."""
    return condition.partition(".")[0] in CONFLICTS


@dataclass(frozen=True, order=True)
class Problem:
    """One error in an input file. ``line`` and ``column`` count from 1; both are 0 if the position is unknown."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{where}: {self.message}" + (f"\n  hint: {self.hint}" if self.hint else "")


MOST_PROBLEMS = 100
"""How many errors of one file are reported."""


class InputError(TablectlError):
    """The errors in the input files, the first ones of each file, sorted by file and line."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        shown = list[Problem]()
        for file, found in groupby(sorted(problems), key=lambda each: each.file):
            several = list(found)
            shown += several[:MOST_PROBLEMS]
            if len(several) > MOST_PROBLEMS:
                shown.append(Problem(file, 0, 0, f"and {len(several) - MOST_PROBLEMS:,} more problems"))
        self.problems = tuple(shown)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class PlanFileError(TablectlError):
    """The plan file was edited, truncated, or written in another format or by another version. The whole file is
    refused.
    """

    exit_code = ExitCode.REFUSED


class LimitError(TablectlError):
    """The plan exceeds a limit. No part of it is saved or run."""

    exit_code = ExitCode.REFUSED


class LiveError(TablectlError):
    """One table cannot be read: it is missing, not a Delta table, corrupt, or has an unknown protocol."""


class MissingError(LiveError):
    """There is no such table, or no such schema, catalog or directory."""


class BrokenTableError(LiveError):
    """One table is there and cannot be handled: by an unexpected error, or because its catalog says nonsense of it."""


class EngineError(TablectlError):
    """The engine rejected a statement or failed. ``condition`` is the error class of Delta or Spark; empty if there is
    none.

    ``unanswered`` means that the error is not the engine's answer: the connection broke, or the operation was cut off.
    The statement may still be running and can still commit.
    """

    def __init__(self, message: str, hint: str = "", condition: str = "", *, unanswered: bool = False) -> None:
        super().__init__(message, hint)
        self.condition = condition
        self.unanswered = unanswered


class WindowError(TablectlError):
    """The protected window could not be opened, or was lost."""

    exit_code = ExitCode.WINDOW


_Result = TypeVar("_Result")
_LONGEST = 500
_RUST = "pyo3_runtime"
"""The module of ``PanicException``, which is not an ``Exception`` (pyo3, ``src/panic.rs``)."""
DEBUG = "TABLECTL_DEBUG"
"""The environment variable that prints the debug log, with the tracebacks of unexpected errors."""
_log = logging.getLogger(__name__)


def error_of(table: str, error: BaseException) -> TablectlError:
    """The error for users. Of an unexpected one, the traceback goes to the debug log. Raises what ends the command."""
    if isinstance(error, TablectlError):
        return error
    if not isinstance(error, Exception) and type(error).__module__ != _RUST:
        raise error
    _log.debug("%s: unexpected error", table, exc_info=error)
    if isinstance(error, OSError) and error.strerror:  # a disk's, which can be full, and rights that were taken away
        place = f"{error.filename}: " if error.filename else ""
        right = "give the login the right back" if isinstance(error, PermissionError) else "look at the place"
        return BrokenTableError(f"{place}{error.strerror}"[:_LONGEST], f"{right}, and run the same command again")
    hint = f"please report this; with {DEBUG}=1 the traceback is printed"
    return BrokenTableError(f"unexpected error: {one_line(error)[:_LONGEST]}", hint)


def of_table(table: str, work: Callable[[], _Result]) -> _Result | TablectlError:
    """What ``work`` makes of one table, or its error."""
    try:
        return work()
    except BaseException as error:  # noqa: BLE001  # see ``error_of``
        return error_of(table, error)


@contextmanager
def no_panic(table: str) -> Iterator[None]:
    """For code that catches every ``Exception``: raises a panic of a Rust library as one."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:  # noqa: BLE001  # see ``error_of``
        raise error_of(table, error) from None


@contextmanager
def one_table(table: str) -> Iterator[None]:
    """For commands about a single table: raises an unexpected error as one that names the table."""
    try:
        yield
    except TablectlError:
        raise
    except BaseException as error:  # noqa: BLE001  # see ``error_of``
        found = error_of(table, error)
        raise BrokenTableError(f"{table}: {found.message}", found.hint) from None
