"""Hooks: the user's commands around a table's window, and what is owed to others until they ran (docs/window.md).

Whoever may write into a table's directory may write lease records. So an owed hook is a text to be compared with the
present configuration, and never a command to be run because a record says so.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence

from tablectl.model.errors import WindowError
from tablectl.window.events import Event
from tablectl.window.lease import Lease
from tablectl.window.report import Outcome
from tablectl.window.setting import EndError, Window, interrupted

UNFINISHED = "unfinished"
"""``TABLECTL_OUTCOME`` for the hook of a run that died."""
_MOST_SHOWN = 10
_LONGEST_SHOWN = 200

_log = logging.getLogger(__name__)


class TableHooks:
    """The hooks of one table during one visit; no method but ``before`` ends the table."""

    def __init__(self, window: Window, table: str, location: str, lease: Lease) -> None:
        self._window = window
        self._table = table
        self._location = location
        self._lease = lease
        self._begun = False
        self.notes: list[str] = []
        """What people must know: hooks that failed, and owed ones that nobody runs."""
        self.owed: tuple[str, ...] = ()
        """What is still owed, as commands."""

    def settle(self) -> None:
        """Does first what a run that died still owes."""
        self._run_owed(self._lease.record.owed, UNFINISHED)

    def before(self) -> None:
        """Runs the before-hooks, once; what that will owe is in the lease record first.

        Raises ``EndError`` where one fails, and ``WindowError`` where the record cannot be written: nothing ran then.
        """
        terms = self._window.terms
        if self._begun or not (terms.before or terms.after):
            return
        owed = tuple(dict.fromkeys([*self._lease.record.owed, *map(shlex.join, terms.after)]))
        if owed != self._lease.record.owed:
            self._lease.owe(owed)
        self._begun = True
        for command in terms.before:
            self._tell("hook before", f"before: {shlex.join(command)}")
            failed = terms.run_hook(command, self._environ("before"), self._said, self._window.stop.is_set)
            if self._window.stop.is_set():
                raise interrupted()
            if failed:
                message = f"the before-hook {shlex.join(command)} {failed}"
                raise EndError(Outcome.HOOK_FAILED, message, "its output is above; no gate was closed for it")

    def after(self, outcome: Outcome) -> None:
        """Runs what is owed now, whatever became of the table and also where the lease is lost."""
        self._run_owed(self._lease.record.owed, outcome.value)

    def _run_owed(self, owed: Sequence[str], outcome: str) -> None:
        if not owed:
            return
        known = {shlex.join(command): command for command in self._window.terms.after}
        self._drop([text for text in owed if text not in known])
        left = [text for text in owed if text in known and not self._done(known[text], outcome)]
        self.owed = tuple(left)
        try:
            if self.owed != tuple(owed):
                self._lease.owe(self.owed)
        except WindowError as error:
            # Its record says that it is still owed: the next apply runs it once more.
            _log.warning("what %s owes could not be written: %s", self._table, error.message)

    def _done(self, command: Sequence[str], outcome: str) -> bool:
        self._tell("hook after", f"after: {shlex.join(command)}")
        environ = {**self._environ("after"), "TABLECTL_OUTCOME": outcome}
        failed = self._window.terms.run_hook(command, environ, self._said, lambda: False)
        if failed:
            self._note(
                f"the after-hook {shlex.join(command)} {failed}; it stays owed until an apply of this table runs it"
            )
        return not failed

    def _drop(self, texts: Sequence[str]) -> None:
        for text in texts[:_MOST_SHOWN]:
            shown = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
            self._note(f"a run before owes the hook {shown!r}, which is not one of `window.after`: it was not run")
        if len(texts) > _MOST_SHOWN:
            self._note(f"and {len(texts) - _MOST_SHOWN} more such hooks")

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self._tell("note", text)

    def _environ(self, hook: str) -> Mapping[str, str]:
        return {
            "TABLECTL_HOOK": hook,
            "TABLECTL_TABLE": self._table,
            "TABLECTL_LOCATION": self._location,
            "TABLECTL_RUN": self._window.stamp.run,
            "TABLECTL_PLAN": self._window.stamp.plan,
        }

    def _said(self, line: str) -> None:
        self._tell("hook says", f"| {line}")

    def _tell(self, step: str, words: str) -> None:
        self._window.notify(Event(self._table, step, words))
