"""The guard around one write of a guarded session."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablectl.delta.locations import is_absolute
from tablectl.delta.names import split_parts
from tablectl.engine.describe import UNGUARDED, ViewError, locate
from tablectl.leases.clock import today
from tablectl.leases.guards import TTL, GuardMode
from tablectl.leases.owner import current_owner
from tablectl.model.errors import LiveError
from tablectl.version import __version__
from tablectl.writers.dataframe_writes import merges_schemas
from tablectl.writers.gate_entry import GuardTimeout
from tablectl.writers.guard import Guard, is_guarded
from tablectl.writers.guard_traces import leave_trace
from tablectl.writers.options import guard_options

SETTING = "spark.tablectl.guard"
"""The setting of a session that turns its guards on."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SessionGuards:
    """How the writes of a process are guarded."""

    name: str = ""
    timeout: float | None = None
    state: str | None = None
    ttl: float = TTL
    everywhere: bool = False
    """Whether every session is guarded, not only those that say so."""

    def said(self, session: Any) -> str:
        """``on`` if the writes of a session are guarded, ``off`` if they need no guard, and empty for a session that
        ``guard_session`` was not called for.
        """
        if getattr(session, UNGUARDED, None) is True:
            return "off"
        return "on" if self.everywhere else str(session.conf.get(SETTING, ""))


def run_guarded(guards: SessionGuards, session: Any, write: PendingWrite, call: Callable[[], Any]) -> Any:
    """Make a call under the guard of its write; without one if there is nothing to guard."""
    with _guarded(guards, session, write):
        return call()


@dataclass(frozen=True)
class PendingWrite:
    """A write that is about to happen."""

    target: str | None
    """Name or location; ``None`` if it is not known."""
    mode: Callable[[str], GuardMode]
    """Its mode, once the location of its target is known."""
    what: str = "a write"
    covered: bool = True
    """Whether its session is guarded."""


@contextmanager
def _guarded(guards: SessionGuards, session: Any, write: PendingWrite) -> Iterator[None]:
    guard = None
    with suppress(NothingToGuardError):
        guard = _guard_of(guards, session, write)
    if guard is None:
        yield
        return
    try:
        guard.__enter__()
    except GuardTimeout:
        raise
    except ValueError:  # inside of a guard of the job's own, of another mode: that one protects the write
        yield
        return
    error: tuple[Any, Any, Any] = (None, None, None)
    try:
        yield
    except BaseException:
        error = sys.exc_info()
        raise
    finally:
        guard.__exit__(*error)


class NothingToGuardError(Exception):
    """There is no Delta table that the write could conflict on."""


def _guard_of(guards: SessionGuards, session: Any, write: PendingWrite) -> Guard | None:
    """The guard, not entered. ``None`` with a warning if the write cannot be guarded."""
    try:
        if write.target is None:
            raise ValueError("its table cannot be read from it")
        if not write.covered:
            if is_guarded(_location(session, write.target)):
                return None
            raise ValueError("its session is another one than that of guard_session: call it for this one, too")
        location, mode = found = _find(session, write)
        terms = guard_options(
            location,
            mode,
            name=guards.name,
            timeout=guards.timeout,
            state=guards.state,
            ttl=guards.ttl,
            wait_for_deletion=True,  # how the process of an unedited job ends is not known
        )
        first = [found]
        return Guard(
            None,
            terms,
            on_entry=lambda store: leave_trace(store, _writer(guards), mode, today()),
            find=lambda: first.pop() if first else _find(session, write),
        )
    except NothingToGuardError:
        raise
    except Exception as error:  # noqa: BLE001  # never the job's problem
        _log.warning("%s is not guarded: %s", write.what, error)
        return None


def _find(session: Any, write: PendingWrite) -> tuple[str, GuardMode]:
    """Where the table of a write is, and the mode of the write. Raises as ``_location``."""
    location = _location(session, write.target or "")
    mode = write.mode(location)
    return location, GuardMode.ANY if mode is not GuardMode.ANY and merges_schemas(session) else mode


def _writer(guards: SessionGuards) -> str:
    """The writer for people: the same for all of its runs on a machine."""
    owner = current_owner(os.environ, __version__)
    script = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    return f"{guards.name or script}, {owner.who} on {owner.host}"


def _location(session: Any, target: str) -> str:
    """Where the table is. Raises ``NothingToGuardError`` if there is no such Delta table, and ``TablectlError`` if the
    look-up fails.
    """
    if is_absolute(target):
        return target
    parts = split_parts(target)  # one part is a table of the session's current schema
    if len(parts) == 2 and parts[0].lower() == "delta" and is_absolute(parts[1]):
        return parts[1]
    try:
        return locate(session, target)
    except ViewError:
        raise  # Delta writes the table under it, whose name is not known here
    except LiveError as error:
        _log.debug("%s: no guard: %s", target, error.message)
        raise NothingToGuardError from error


def fixed_mode(mode: GuardMode) -> Callable[[str], GuardMode]:
    """A mode that does not depend on the location."""
    return lambda _location: mode
