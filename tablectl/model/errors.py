"""What can go wrong, and the exit code each kind of failure has (docs/exit-codes.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tablectl.delta.credentials import scrub


class ExitCode(IntEnum):
    """The exit codes of every command. ``worst`` picks one when several hold."""

    DONE = 0
    """Done, nothing wrong."""
    ERROR = 1
    """Input, engine, or anything unexpected."""
    CHANGES = 2
    """Changes are pending (``plan --detailed-exitcode``, ``drift``)."""
    REFUSED = 3
    """A refusal or error finding in the plan, or a stale or edited plan."""
    WINDOW = 4
    """The window could not be opened and no commit was made."""
    PARTIAL = 5
    """Applied in part, or not verified."""
    USAGE = 64
    """Wrong usage of the command line."""

    @staticmethod
    def worst(*codes: ExitCode) -> ExitCode:
        """The one to return when several hold: the first of 1, 5, 4, 3, 2, else 0."""
        order = (ExitCode.ERROR, ExitCode.PARTIAL, ExitCode.WINDOW, ExitCode.REFUSED, ExitCode.CHANGES)
        return next((code for code in order if code in codes), ExitCode.DONE)


class TablectlError(Exception):
    """The root of every error a user can meet: ``message`` says what is wrong and where, ``hint`` the way out.

    Neither holds the credentials of a location, whoever's words they repeat: an engine's, a store's, a catalog's.
    """

    exit_code = ExitCode.ERROR

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = scrub(message)
        self.hint = scrub(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


def one_line(error: Exception) -> str:
    """An error for a log, without its hint; of one that is none of ours the class, too."""
    return error.message if isinstance(error, TablectlError) else scrub(f"{type(error).__name__}: {error}")


class UsageError(TablectlError):
    """The command line does not make sense."""

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
"""The conditions by which Delta says that another commit was faster: the same work may succeed when done again."""


def is_conflict(condition: str) -> bool:
    """Whether a condition is one of ``CONFLICTS``, with or without a part of its own (``….WITH_PARTITION_HINT``)."""
    return condition.partition(".")[0] in CONFLICTS


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong in an input file. ``line`` and ``column`` count from 1; 0 where there is no place to name."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{where}: {self.message}" + (f"\n  hint: {self.hint}" if self.hint else "")


class InputError(TablectlError):
    """Everything wrong in the input files, all at once and in the order of file and line."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class PlanFileError(TablectlError):
    """A plan file that was edited, truncated, or made by another format or tool version: refused whole."""

    exit_code = ExitCode.REFUSED


class LimitError(TablectlError):
    """A plan that is larger than it may be: nothing of it is saved or run."""

    exit_code = ExitCode.REFUSED


class LiveError(TablectlError):
    """One table cannot be read: missing, not Delta, corrupt, or of a protocol unknown here."""


class EngineError(TablectlError):
    """The engine refused or failed a statement. ``condition`` is Delta's or Spark's error class, where it gave one.

    ``unanswered`` says that the error is not the engine's answer: the connection broke, or the operation was cut off.
    Then the statement may still run, and may yet commit.
    """

    def __init__(self, message: str, hint: str = "", condition: str = "", *, unanswered: bool = False) -> None:
        super().__init__(message, hint)
        self.condition = condition
        self.unanswered = unanswered


class WindowError(TablectlError):
    """The protected window could not be opened, or was lost."""

    exit_code = ExitCode.WINDOW
