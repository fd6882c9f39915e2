"""What goes wrong with one table is that table's error, and the other tables go on.

Whatever handles one table of many runs in ``of_table``, in every command. A lack of memory is the table's error, too:
what the failed step held is free again. So is a panic of a Rust library. An interrupt (``KeyboardInterrupt``) and an
exit (``SystemExit``) end the command.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tablectl.model.errors import BrokenTableError, TablectlError, one_line

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
