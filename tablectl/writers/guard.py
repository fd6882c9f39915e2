"""``tablectl.guard`` and ``guard_batch``: protect a write from concurrent commits of an apply (docs/guards.md).

It fails open. If it cannot use its records, it logs one warning and the write continues: Delta's own conflict check
keeps the table correct, at worst with one failed transaction.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from tablectl.delta.locations import is_local
from tablectl.engine.describe import locate
from tablectl.leases.clock import SystemClock
from tablectl.leases.guards import GuardMode, GuardRecord
from tablectl.leases.lease import random_id
from tablectl.leases.lease_records import ATTEMPTS
from tablectl.leases.owner import current_owner
from tablectl.model.errors import WindowError, one_line
from tablectl.storage.mounts import real_place
from tablectl.storage.records import RecordStore, is_new, open_records
from tablectl.support.compat import ParamSpec, Self
from tablectl.version import __version__
from tablectl.writers.gate_entry import UNDELETED, GateEntry, GuardTimeout, StoredGuard
from tablectl.writers.keepalive import GuardThread, start
from tablectl.writers.options import GuardOptions, GuardSettings, ModeName, Table, guard_options
from tablectl.writers.retry import check_plain
from tablectl.writers.statement_log import StatementLog

if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Unpack

    from tablectl.leases.lease_records import RunningStatement

_UNGUARDED = "this write goes on without a look at the gate, and an apply may fail it"
ENDING = "tablectl-guard-end"
"""The name of the threads that delete guards after their writes."""
_NEW = "%s: there is no Delta table, and so no guard: check the path, unless this write creates the table"

_log = logging.getLogger(__name__)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def guard(
    spark: Any,
    table: Table,
    mode: ModeName | GuardMode = "any",
    **settings: Unpack[GuardSettings],
) -> Guard:
    """Guard a write to ``table``: ``with tablectl.guard(spark, "sales.orders"):``, or as a decorator.

    While an apply runs changes that would fail a write of this ``mode``, the write waits before it begins. While the
    write runs, such changes wait. The write must resolve the table inside the guard: a ``DeltaTable`` created earlier
    keeps the state that it read then.

    * ``spark``: a session, classic or Connect, to look up a catalog name; ``None`` for a table given by location.
    * ``table``: ``schema.table``, ``catalog.schema.table``, ``delta.`/path``` or a location.
    * ``mode``: what the write may do. ``any`` (default): it may also change the schema, or replace or restore the
      table. ``rewrite``: it reads the table, as MERGE, UPDATE and DELETE do. ``append``: it does not read the table.
      Writes of the latter two do not change the schema.
    * ``name``: the writer's name, shown to whoever waits for it.
    * ``timeout``: seconds to wait at a gate before ``GuardTimeout``; ``None`` waits as long as the apply is alive.
    * ``state``: where the records are stored if not in the table, as ``state:`` in ``tablectl.yaml``; default
      ``TABLECTL_STATE``.
    * ``ttl``: seconds after which an apply may take a guard that was not renewed for dead.

    * ``wait_for_deletion``: on an object store, the guard is deleted in the background after the write, and the
      interpreter waits for that before it exits. With ``True`` the end of the write waits. For processes that end
      without the exit of the interpreter (``os._exit``), as tasks of Airflow do.

    The guard is reusable and may be entered by several threads at a time. A guard inside another guard of the same
    table passes at once, and the record of the outer one stays until both have ended. Raises ``ValueError`` and
    ``TypeError`` for invalid arguments, and ``GuardTimeout``. Every other failure is logged as a warning.
    """
    terms = guard_options(table, mode, **settings)
    if terms.target.location is None and spark is None:
        raise ValueError(f"to look up {terms.target.text!r} takes a session; without one, give the table's location")
    return Guard(spark, terms)


def _runs_in() -> tuple[int, object]:
    """The running thread and asyncio task. A task or thread that was started inside of a guard may outlast it."""
    asyncio = sys.modules.get("asyncio")
    task = None
    if asyncio is not None:
        with suppress(RuntimeError):  # no loop runs in this thread
            task = asyncio.current_task()
    return threading.get_ident(), task


@dataclass(eq=False)
class _Hold:
    """One use of a guard, from ``__enter__`` to ``__exit__``."""

    mode: GuardMode
    place: tuple[str, str] = ("", "")
    """Where the table and its records are, with links resolved; empty if that could not be looked up."""
    entries: list[_Entry] = field(default_factory=list)
    """The guards in the store that protect the write. Each stays there until the last write that it protects has ended.
    Empty if there is no table yet, or if it failed open.
    """
    over: bool = False
    process: int = field(default_factory=os.getpid)
    runs_in: tuple[int, object] = field(default_factory=_runs_in)

    @property
    def ours(self) -> bool:
        """Whether it is of the code that runs now, and not over: contexts are copied into tasks, threads and forks."""
        return not self.over and self.process == os.getpid() and self.runs_in == _runs_in()


_HOLDS: ContextVar[tuple[_Hold, ...]] = ContextVar("tablectl_guards", default=())
"""The guards around the running code, outermost first. A task has a copy of its creator's, and a generator shares the
context of its caller: so they may end in any order."""


def _holds() -> list[_Hold]:
    """The guards around the running code that this process took, outermost first. A forked child has none: the record
    of its parent's guard is renewed and deleted by the parent.
    """
    return [each for each in _HOLDS.get() if each.process == os.getpid()]


def is_guarded(location: str) -> bool:
    """Whether the running code is inside of a guard of the table at a location."""
    place = real_place(location)
    return any(each.ours and each.place[0] == place for each in _holds())


OnEntry = Callable[[RecordStore], None]
"""Gets the records of a table each time that a guard is in them. The write does not wait for it."""


Find = Callable[[], "tuple[str, GuardMode]"]
"""Looks up where a table is, and the mode of a write there."""


class Guard:
    """Created by ``guard``. A context manager and a decorator; holds resources only while entered."""

    def __init__(
        self, spark: Any, terms: GuardOptions, on_entry: OnEntry | None = None, find: Find | None = None
    ) -> None:
        """``find`` replaces the look-up of the table's name. It is called again after a wait."""
        self._spark = spark
        self._terms = terms
        self._on_entry = on_entry
        self._find = find or self._look_up
        self._entries: list[_Hold] = []

    def __repr__(self) -> str:
        return f"Guard({self._terms.target.text!r}, {str(self._terms.mode)!r})"

    def __enter__(self) -> Self:
        hold = self._enter()
        self._entries.append(hold)
        _HOLDS.set((*_HOLDS.get(), hold))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        around = _HOLDS.get()
        # A forked child has the entries of its parent, too, which are outside of its own. If the context differs from
        # the one on entry, as in an async fixture, it is the last entry.
        own = [each for each in self._entries if each.process == os.getpid()] or self._entries
        known = [each for each in own if each in around] or own[:]
        hold = known.pop()
        self._entries.remove(hold)
        _HOLDS.set(tuple(each for each in around if each is not hold))
        hold.over = True
        if hold.process != os.getpid():
            return  # in a forked child, the guard is still the parent's
        if known and known[-1].entries != hold.entries:
            # Generators leave one guard in any order. Which of its uses ends here is not known, so what protects it
            # stays until the other one ends.
            known[-1].entries += hold.entries
            return
        for entry in hold.entries:
            entry.leave(wait=self._terms.wait_for_deletion)

    def __call__(self, function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        """Wrap the function: each call runs under its own guard."""
        check_plain(function, "a guard")

        @wraps(function)
        def guarded(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            with self:
                return function(*args, **kwargs)

        return guarded

    def __reduce__(self) -> tuple[type[Guard], tuple[Any, GuardOptions]]:
        return Guard, (self._spark, self._terms)

    def _look_up(self) -> tuple[str, GuardMode]:
        target = self._terms.target
        return target.location or locate(self._spark, target.text), self._terms.mode

    def _enter(self) -> _Hold:
        hold = _Hold(self._terms.mode)
        try:
            self._pass(hold)
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, (GuardTimeout, _StrongerModeError)):
                # Whatever it is, the write must not fail because of its guard.
                _log.warning("%s: %s: %s", self._terms.target.text, _UNGUARDED, one_line(error))
                return hold
            for entry in hold.entries:  # no write follows, so nothing else would end it
                entry.leave(wait=False)
            raise
        return hold

    def _pass(self, hold: _Hold) -> None:
        """Pass the gate of the table to which the name leads. The name may be given to another table while the write
        waits: then that table has a gate, too.
        """
        found = self._find()
        for _ in range(ATTEMPTS):
            location, hold.mode = found
            terms = replace(self._terms, mode=hold.mode)
            state = terms.state or os.environ.get("TABLECTL_STATE") or ""
            hold.place = real_place(location), state
            if _share(hold, terms.target.text):
                return
            entry = _begin(terms, location, state or None, self._on_entry)
            if entry is None:
                return
            hold.entries.append(entry)
            if not entry.waited:
                return
            before, found = found, self._find()
            if found == before:
                return
            hold.entries.remove(entry)
            entry.leave(wait=False)
        raise WindowError("its name led to another table after each wait")


def _share(hold: _Hold, text: str) -> bool:
    """Let a guard around this one protect its write, too: that guard then stays in the store until both have ended.

    So a task, thread or generator that outlasts the guard around it is protected to its end. To wait here for a gate
    would be a deadlock with an apply that waits for the guard around, as long as the code around waits for this write.
    """
    around = [each for each in reversed(_holds()) if each.place == hold.place]
    for each in around:
        for entry in each.entries:
            if entry.mode.covers(hold.mode) and entry.join():
                hold.entries.append(entry)
                return True
    looser = [each for each in around if each.ours and each.entries and not each.mode.covers(hold.mode)]
    if looser:
        raise _StrongerModeError(
            f"{text}: a guard of mode {hold.mode} inside one of mode {looser[0].mode} could wait forever: give the "
            f"outer one mode {hold.mode}"
        )
    return False


class _StrongerModeError(ValueError):
    """A guard inside a guard of a looser mode, which waits at fewer gates."""


class _Entry:
    """One write: its guard in the store, or on its way there, and the thread that makes its calls."""

    def __init__(self, terms: GuardOptions, location: str, state: str | None, *, may_be_new: bool = False) -> None:
        """``may_be_new``: there may be no table."""
        self._terms = terms
        self._location = real_place(location)
        """Where the write goes: it follows links."""
        self._state = state
        self._may_be_new = may_be_new
        self._guard: StoredGuard | None = None
        self._thread = GuardThread(terms.target.text, terms.ttl)
        self._holders = 1
        self._at_gates: list[str] = []
        self._around: list[_Entry] = []
        self._wait = is_local(state or location)  # on a local disk, no request takes long
        # Reentrant: a signal handler may enter a guard while its own thread is in here.
        self._lock = threading.RLock()
        self.waited = False
        """Whether the write had to wait."""

    @property
    def mode(self) -> GuardMode:
        """The mode of the guard in the store."""
        return self._terms.mode

    def join(self) -> bool:
        """Protect one more write. False if the last one has ended, or if an apply took the guard for dead: then no
        apply waits for it.
        """
        with self._lock:
            joins = self._holders > 0 and not self._thread.was_passed
            self._holders += joins
            return joins

    def leave(self, *, wait: bool) -> None:
        """A write has ended; the last one withdraws the guard. ``wait`` says whether its end waits for that."""
        with self._lock:
            self._holders -= 1
            self._wait |= wait
            if self._holders > 0:
                return
        self._leave_around()  # now, and not when the store has answered
        if self._wait:
            self.end()
        else:
            self._end_in_background()

    def begin(self, on_entry: OnEntry | None) -> bool:
        """Pass the gate; see ``GateEntry.enter``. Returns false if there is no table."""
        terms, ask, location = self._terms, self._thread.ask, self._location
        owner = current_owner(os.environ, __version__)
        writer = f"{terms.name}, {owner}" if terms.name else str(owner)
        # On the thread, too: loading the credentials of a bucket may take several requests.
        store = ask(lambda: open_records(location, self._state, location))
        self._guard = StoredGuard(store, GuardRecord(random_id(), 0, writer, terms.mode, terms.ttl), owner)
        self._thread.keep(self._guard)
        # The proof needs no order between this question and the records. So it is asked while they are put and read.
        new = start(lambda: is_new(location)) if self._may_be_new else None
        name, clock = terms.target.text, SystemClock()
        lease = GateEntry(
            self._guard, name, terms.timeout, clock, ask, self._tell_outer, self._look, self._is_waited_for
        ).enter()
        if lease is None and new is not None and self._thread.wait(new):
            return False
        if on_entry is not None:
            self._thread.send(lambda: on_entry(store))
        return True

    @cached_property
    def _log(self) -> StatementLog:
        return StatementLog(self._location)

    def _look(self, running: RunningStatement) -> Future[bool]:
        """Begin a look at the table's log. It may hang, so it has a thread of its own."""
        return start(lambda: self._log.has(running))

    def _is_waited_for(self, window: str) -> bool:
        """Whether a shared window waits for a guard around this one. That guard then stays until this one has ended, in
        whatever order the two are left: so the window waits for both.
        """
        for entry in dict.fromkeys(entry for hold in _holds() for entry in hold.entries):
            if entry.keeps(window) and entry.join():
                self._around.append(entry)
                return True
        return False

    def keeps(self, window: str) -> bool:
        """Whether a shared window waits for this guard. Never raises an ``Exception``."""
        guard = self._guard
        with suppress(Exception):
            last = None if guard is None else self._thread.ask(guard.gate)
            return last is not None and last.waited_for(window) and self.mode.waits(last.shut)
        return False

    def _tell_outer(self, waits: bool) -> None:  # noqa: FBT001
        """The guards around this one record at which gate their write is blocked: their applies need not wait."""
        self.waited = True
        place = self._location
        around = [entry for hold in _holds() for entry in hold.entries]
        for entry in dict.fromkeys(around):
            entry.wait_elsewhere(place, waits)

    def wait_elsewhere(self, place: str, waits: bool) -> None:  # noqa: FBT001
        """Record at which gate a write inside of this guard is blocked. Never raises an ``Exception``: it only helps
        others.
        """
        guard = self._guard
        with self._lock:
            if waits:
                self._at_gates.append(place)
            elif place in self._at_gates:
                self._at_gates.remove(place)
            newest = self._at_gates[-1] if self._at_gates else ""
        if guard is not None:
            with suppress(Exception):
                self._thread.ask(lambda: guard.wait_elsewhere(newest))

    def fail_open(self, error: Exception) -> None:
        """Log the problem. A guard that is in the store stays there: a later apply can wait for it."""
        self._thread.fail(f"{_UNGUARDED}: {one_line(error)}")

    def end(self) -> None:
        """Withdraw the guard. Never raises an ``Exception``, which could hide the writer's own."""
        self._leave_around()
        try:
            if self._guard is not None:
                self._thread.withdraw(self._guard)
        except Exception as error:  # noqa: BLE001  # see the docstring
            if self._guard is None or not self._guard.told_undeleted:
                self._thread.fail(f"{UNDELETED}: {one_line(error)}")
        finally:
            self._thread.dismiss()

    def _leave_around(self) -> None:
        while self._around:
            self._around.pop().leave(wait=self._wait)

    def _end_in_background(self) -> None:
        """The same, without waiting for the store.

        The thread is not a daemon: the interpreter waits for it before it exits, as long as ``GuardThread`` waits for
        an answer.
        """
        try:
            threading.Thread(target=self.end, name=ENDING, daemon=False).start()
        except RuntimeError:  # there are too many threads, or the interpreter already exits
            self.end()


def _is_surely_new(location: str) -> bool:
    """Whether there is no table. If that cannot be known, the guard's own first request says why."""
    try:
        return is_new(location)
    except WindowError:
        return False


def _begin(terms: GuardOptions, location: str, state: str | None, on_entry: OnEntry | None) -> _Entry | None:
    """Pass the gate. ``None`` if the table does not exist yet: no apply can run on it, and the guard must not block its
    creation.
    """
    may_be_new = terms.target.location is not None and state is None
    on_disk = is_local(location)
    # A guarded session sees the write itself, which creates the table. A path given to ``guard`` may have a typo.
    level = logging.WARNING if on_entry is None else logging.INFO
    if may_be_new and on_disk and _is_surely_new(location):
        _log.log(level, _NEW, terms.target.text)
        return None
    # A bucket keeps no empty directories, so there it may be asked after the guard was put.
    entry = _Entry(terms, location, state, may_be_new=may_be_new and not on_disk)
    try:
        if not entry.begin(on_entry):
            entry.end()
            _log.log(level, _NEW, terms.target.text)
            return None
    except GuardTimeout:
        entry.end()
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, the write must not fail because of its guard
        entry.fail_open(error)
    except BaseException:
        entry.end()
        raise
    return entry


Batch = Callable[[Any, int], Any]
"""What ``foreachBatch`` accepts: a function of the batch's DataFrame and its number."""


@dataclass(frozen=True)
class GuardedBatch:
    """A ``Batch``. Holds no session, so that Spark Connect can send it to the server."""

    function: Batch
    terms: GuardOptions

    def __call__(self, df: Any, batch_id: int) -> None:
        """Run one batch. If the table must be looked up, the batch's session is used.

        It ends with its guard deleted: Spark Connect kills the Python process of a batch as soon as the query ends.
        """
        session = df.sparkSession if self.terms.target.location is None else None
        with Guard(session, replace(self.terms, wait_for_deletion=True)):
            self.function(df, batch_id)


def guard_batch(
    function: Batch,
    table: Table,
    mode: ModeName | GuardMode = "any",
    **settings: Unpack[GuardSettings],
) -> GuardedBatch:
    """Wrap a function for ``writeStream.foreachBatch``: each batch runs ``function`` under its own guard.

    All parameters except ``function(df, batch_id)`` are those of ``guard``. The function must resolve the table inside
    (``df.write.saveAsTable(…)``, ``MERGE`` as SQL, ``DeltaTable.forName``), not before. On Spark Connect it runs in a
    Python process of the server, where tablectl must be installed, too.
    """
    check_plain(function, "guard_batch")
    return GuardedBatch(function, guard_options(table, mode, **settings))
