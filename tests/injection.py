"""Raises an exception in every function of tablectl that handles one table, one function at a time.

The functions are found by a run without faults: those that are called with arguments of one table alone. So a new
function, and a new attribute of a command, is tested without being named anywhere.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import tablectl

_PACKAGE = f"{Path(tablectl.__file__).parent}/"
Function = tuple[str, str]
"""A file below ``tablectl/`` and the qualified name of a function in it."""

EXEMPT = {
    "model/errors.py": "the mechanism",
    "delta/locations.py": "says where the table that failed is",
    "delta/names.py": "names the table that failed",
    "reports/short_names.py": "if it fails, names stay whole",
    "reports/notification.py": "a notification that cannot be made is a warning",
    "applying/approval.py": "refuses a plan file as a whole; under a lease, its caller is tested",
    "applying/scheduler.py": "the queue of the whole run",
    "applying/shared_window.py": "the queue of the whole run",
    "commands/command_line.py": "the entry, which catches everything",
    "commands/parameters.py": "reads options",
    "commands/output.py": "prints",
    "documents/style.py": "prints",
    "delta/credentials.py": "scrubs the message of the error",
    "model/safe_text.py": "shows the message of the error",
    "model/patterns.py": "selects by name, before any table is handled",
    "model/plan.py": "properties of a record that was checked when it was made",
    "policies/": "reads the files of the user, before any table is handled",
}
SHOWN = {
    ("reports/plan_document.py", "plan_groups_of"),
    ("documents/document.py", "group_names"),
    ("reports/table_groups.py", "by_key"),
    ("reports/drift_document.py", "_last"),
    ("commands/status.py", "_place"),
    ("planning/undo.py", "TableUndo.name"),
    ("support/typed_json.py", "json_form"),
    ("support/json_text.py", "write_json.<locals>.lines"),
}
"""Functions that show the name of any table, of one that failed, too."""
CALLERS = {
    *(("applying/run.py", name) for name in ("_with_owed_hooks", "_size", "_noted", "_Task._end_attempt")),
    ("applying/run_context.py", "table_key"),
    ("log/reader.py", "read_each.<locals>.one"),
    ("commands/read_tables.py", "in_threads.<locals>.one"),
    ("commands/runs.py", "_undo_of.<locals>.undo"),
    ("commands/conflicts.py", "conflicts_command"),
}
"""Functions that only call ``of_table``, and those of the queue of a whole run."""


class InjectedError(RuntimeError):
    """What no code expects."""


_PARTS = ("name", "table", "location", "spec", "live", "log", "request", "plan", "declared", "run", "window", "place")


def _mentioned(value: Any, tables: Callable[[str], frozenset[str]], depth: int = 3) -> frozenset[str]:
    if isinstance(value, str):
        return tables(value)
    if depth == 0 or value is None or isinstance(value, (int, float, bytes)):
        return frozenset()
    if isinstance(value, (tuple, list)):
        found = (_mentioned(each, tables, depth - 1) for each in value[:4])
    elif type(value).__module__.startswith("tablectl."):
        parts = (each for each in (*_PARTS, "parts") if not callable(getattr(type(value), each, None)))
        found = (_mentioned(getattr(value, each, None), tables, depth - 1) for each in parts)
    else:
        return frozenset()
    return frozenset().union(*found)


class Injector:
    """A profiler that notes the functions of one table, or raises in one of them."""

    def __init__(self, tables: Callable[[str], frozenset[str]], bad: str, target: Function | None = None) -> None:
        """``tables`` gives the tables that a text names."""
        self.tables = tables
        self.bad = frozenset({bad})
        self.target = target
        self.seen: dict[Function, None] = {}
        self.fired = False

    def __call__(self, frame: FrameType, event: str, _arg: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(_PACKAGE):
            return
        name = code.co_qualname.rpartition(".")[2]
        key = (code.co_filename.removeprefix(_PACKAGE), code.co_qualname)
        # An anonymous function compares or calls; what it calls has a name.
        if key in CALLERS | SHOWN or name.startswith(("__", "<")) or any(map(key[0].startswith, EXEMPT)):
            return
        if self.target is None:
            if key not in self.seen and self._is_of_one(frame):
                self.seen[key] = None
        elif key == self.target and self._is_of_one(frame):
            self.fired = True
            raise InjectedError(f"in {key[1]}")

    def _is_of_one(self, frame: FrameType) -> bool:
        code, values = frame.f_code, frame.f_locals
        count = code.co_argcount + code.co_kwonlyargcount
        found = (_mentioned(values.get(each), self.tables) for each in code.co_varnames[:count])
        return frozenset().union(*found) == self.bad

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A profiler that raises is switched off by Python. The debug log of the error switches it on again: a function
        that fails, fails again.
        """
        log, again = logging.getLogger("tablectl"), _Again(self)
        log.addHandler(again)
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            log.removeHandler(again)


class _Again(logging.Handler):
    def __init__(self, injector: Injector) -> None:
        super().__init__()
        self.injector = injector

    def emit(self, record: logging.LogRecord) -> None:
        """Switches the profiler on in the thread that logs."""
        sys.setprofile(self.injector)
