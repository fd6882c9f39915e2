"""Hooks: the user's commands around a table's window, and the after-hooks owed until they have run (docs/window.md).

Whoever can write to a table's directory can write lease records. So an owed hook in a record is only compared with the
current configuration; a command is never run because a record contains it.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from tablectl.applying.context import RunContext, StopTableError, interrupted
from tablectl.applying.events import RunEvent
from tablectl.leases.lease import Lease
from tablectl.model.errors import WindowError
from tablectl.model.run_report import RunOutcome
from tablectl.model.text import listed
from tablectl.support.frozen import frozen

UNFINISHED = "unfinished"
"""``TABLECTL_OUTCOME`` for the after-hook of a run that died."""
_MOST_SHOWN = 10
_LONGEST_SHOWN = 200

_log = logging.getLogger(__name__)


@frozen
class HookStreams:
    """The streaming queries of a table, or of all tables that share its window, by name, as hooks get them."""

    declared: tuple[str, ...] = ()
    """All that policies declare."""
    stopped: tuple[str, ...] = ()
    """Those that the statements of this run stop."""


_NO_STREAMS = HookStreams()


def distinct(streams: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The names of the streams of several tables, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(streams)))


class TableHooks:
    """The hooks of one table during one run. Only ``before`` and ``settle`` can end work on the table."""

    def __init__(
        self, window: RunContext, table: str, location: str, lease: Lease, streams: HookStreams = _NO_STREAMS
    ) -> None:
        self._window = window
        self._table = table
        self._location = location
        self._lease = lease
        self._streams = streams
        self._begun = False
        self._kept: tuple[str, ...] = ()  # owed by an earlier run, and must be kept
        self.notes: list[str] = []
        """For people: hooks that failed, and owed hooks that no configuration runs."""
        self.owed: tuple[str, ...] = ()
        """The commands still owed."""

    def settle(self) -> None:
        """Run first what a run that died still owes.

        Raises ``StopTableError`` if it owes a command that ``window.after`` does not contain (any more). The text of a
        record is never run, and dropping it could leave jobs paused forever. ``--proceed REASON`` drops it.
        """
        owed = self._lease.record.owed
        known = {shlex.join(command) for command in self._window.terms.after}
        foreign = [text for text in owed if text not in known]
        if foreign and not self._window.stamp.proceed:
            self._kept = tuple(foreign)
            self.owed = owed
            raise StopTableError(
                RunOutcome.REFUSED,
                f"a run before owes {_few(foreign)}, which `window.after` does not hold: it was not run",
                "put the command back into `window.after` and apply, and change it then; or run it by hand and apply "
                "with `--proceed REASON`, which drops it",
            )
        self._run_owed(owed, UNFINISHED)

    def before(self) -> None:
        """Run the before-hooks once. What they will owe is written into the lease record first.

        Raises ``StopTableError`` if one fails, and ``WindowError`` if the record cannot be written: then no hook has
        run.
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
            failed = terms.run_hook(
                command, self._environ("before", self._streams.stopped), self._on_output_line, self._window.stop.is_set
            )
            if self._window.stop.is_set():
                raise interrupted()
            if failed:
                message = f"the before-hook {shlex.join(command)} {failed}"
                raise StopTableError(RunOutcome.HOOK_FAILED, message, "its output is above; no gate was closed for it")

    def after(self, outcome: RunOutcome) -> None:
        """Run the owed after-hooks, whatever the outcome of the table, even if the lease has expired.

        If another run has taken the lease over, it owes the hooks: it may have paused the jobs again. The same applies
        if that is unknown because the store cannot be reached.
        """
        owed = self._lease.record.owed
        if not owed:
            return
        try:
            next_holder = self._lease.successor()
        except WindowError as error:
            if self._lease.lost:
                self._keep(owed, "the lease was lost", f"the next apply of this table: {error.message}")
                return
            next_holder = None  # the lease cannot have been taken over yet
        if next_holder is not None:
            self._keep(owed, "the lease was lost", str(next_holder))
            return
        self._run_owed(owed, outcome.value)

    def _keep(self, owed: Sequence[str], why: str, successor: str) -> None:
        self.owed = tuple(owed)
        self._note(f"{why}: {_few(owed)} is left to {successor}")

    def _run_owed(self, owed: Sequence[str], outcome: str) -> None:
        if not owed:
            return
        together = self._window.together
        if any(each.running is not None for each in (self._lease, *(together.leases if together else ()))):
            self._keep(owed, "a statement may still run in the engine", "the next apply of this table")
            return
        known = {shlex.join(command): command for command in self._window.terms.after}
        self._drop([text for text in owed if text not in known and text not in self._kept])
        left = [
            text
            for text in owed
            if (text in known and not self._done(known[text], outcome)) or (text not in known and text in self._kept)
        ]
        self.owed = tuple(left)
        try:
            if self.owed != tuple(owed):
                self._lease.owe(self.owed)
        except WindowError as error:
            # The lease record still says that the hooks are owed: the next apply runs them once more.
            _log.warning("what %s owes could not be written: %s", self._table, error.message)

    def _done(self, command: Sequence[str], outcome: str) -> bool:
        self._tell("hook after", f"after: {shlex.join(command)}")
        # Which streams the run that died had stopped is not recorded.
        streams = self._streams.declared if outcome == UNFINISHED else self._streams.stopped
        environ = {**self._environ("after", streams), "TABLECTL_OUTCOME": outcome}
        failed = self._window.terms.run_hook(command, environ, self._on_output_line, lambda: False)
        if failed:
            self._note(
                f"the after-hook {shlex.join(command)} {failed}; it stays owed until an apply of this table runs it"
            )
        return not failed

    def _drop(self, texts: Sequence[str]) -> None:
        for text in texts[:_MOST_SHOWN]:
            self._note(f"a run before owes the hook {_short(text)}, which is not one of `window.after`: it was not run")
        if len(texts) > _MOST_SHOWN:
            self._note(f"and {len(texts) - _MOST_SHOWN} more such hooks")

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self._tell("note", text)

    def _environ(self, hook: str, streams: Sequence[str]) -> Mapping[str, str]:
        return {
            "TABLECTL_HOOK": hook,
            "TABLECTL_TABLE": self._table,
            "TABLECTL_LOCATION": self._location,
            "TABLECTL_RUN": self._window.stamp.run,
            "TABLECTL_PLAN": self._window.stamp.plan,
            "TABLECTL_STREAMS": " ".join(streams),
        }

    def _on_output_line(self, line: str) -> None:
        self._tell("hook says", f"| {line}")

    def _tell(self, step: str, words: str) -> None:
        self._window.notify(RunEvent(self._table, step, words))


def _short(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…")


def _few(texts: Sequence[str]) -> str:
    """Some hooks, for people, cut to a line or two."""
    return listed([*map(_short, texts)], 2)
