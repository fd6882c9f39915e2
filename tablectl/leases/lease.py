"""A held lease: proven before each statement, renewed meanwhile, released at the end (docs/window.md, "Leases")."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any

from tablectl.leases.clock import Clock, pause_briefly
from tablectl.leases.lease_records import (
    KEEP,
    MOST_DEAD_GUARDS,
    PATIENCE,
    Gate,
    LeaseRecord,
    RunningStatement,
    SilentGuard,
    prune,
    put,
    record_at,
    tail,
)
from tablectl.leases.owner import on_one_line
from tablectl.model.errors import WindowError
from tablectl.storage.records import RecordStore
from tablectl.support.compat import Self

MARGIN = 1 / 12
"""The fraction of the ttl that must be left when a statement's budget is spent: 5 s of 60 s."""

RENEW_EVERY = 1 / 6
"""The fraction of the ttl between two renewals: 10 s of 60 s."""

RETRY_EVERY = 1 / 24
"""The fraction of the ttl after which a failed renewal is retried: 2.5 s of 60 s."""

RELEASE_PAUSES = (0.25, 0.5, 1.0, 2.0)
"""Seconds before each retry of a release: a short failure of the store must not make others wait for the ttl."""

_LONGEST_NOTE = 1_000

_log = logging.getLogger(__name__)


def random_id() -> str:
    """A new id for a record."""
    return uuid.uuid4().hex


class LeaseLost(WindowError):  # noqa: N818  (an event, as people name it)
    """The lease is no longer ours: no further work may be done under it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "run the same apply again: it goes on from the tables as they are then")


class Lease:
    """One ownership of one table's lease. Thread-safe. Created by the functions of ``acquire``.

    It is lost for good as soon as another record follows ours, our record is gone, or its time has run out on our own
    clock: writers may then have taken our gate for dead and continued. From then on every method except ``release``
    raises ``LeaseLost`` and writes nothing. Every method raises ``WindowError`` if the store cannot be reached. The
    lease may then still be ours, but no work may be done until it is proven.
    """

    def __init__(
        self,
        store: RecordStore,
        record: LeaseRecord,
        deadline: float,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        """``record`` is ours and in the log. ``deadline`` is the time before it was sent, plus its ttl."""
        self._store = store
        self._record = record
        self._wanted = Gate.OPEN
        self._running = record.running
        self._announced = deadline - record.ttl  # when ``_running`` was announced, or first seen by us
        self._awaited = False
        self._shut_for = record.shut_for
        self._deadline = deadline
        self._clock = clock
        self._new_id = new_id
        self._sent: set[str] = set()  # the ids of our records, including those whose answer was lost
        self._over: LeaseLost | None = None
        self._released = False
        # Reentrant: a signal handler that releases the lease may interrupt its own thread in here.
        self._lock = threading.RLock()

    @property
    def record(self) -> LeaseRecord:
        """Our newest record: epoch, gate, owed hooks."""
        return self._record

    @property
    def running(self) -> RunningStatement | None:
        """The statement that may still commit: ours, or one that an earlier holder left. ``None`` after
        ``statement_ended`` and once its bound has passed.

        Until then our records name it, and none of them, a release included, opens the gate that was shut for it.
        """
        with self._lock:
            running = self._still_running()
        return running if running is not None and running.until > 0 else None

    @property
    def shut_for(self) -> float:
        """Seconds for which writers may wait at our gate, at most, if we write no further record; 0 if it is open, or
        is no longer ours. Records whose put failed count: they may be in the log.
        """
        return self._shut_for

    @property
    def lost(self) -> bool:
        """Whether the lease is known to be lost or its time has run out on our own clock."""
        return self._over is not None or self._left() <= 0

    @property
    def wanted(self) -> Gate:
        """The gate that our next record has, including a renewal."""
        return self._wanted

    @property
    def store(self) -> RecordStore:
        """The store of its records and of the guards of the same table."""
        return self._store

    def prove(self, budget: float) -> None:
        """Return if a statement of ``budget`` seconds may start now: the tail is ours and stays valid long enough.

        Renews first if less than the budget plus the margin is left. If the budget exceeds the ttl, renewals while the
        statement runs cover it (``Renewer``). A pause of the process between this call and the statement is caught by
        the verification.
        """
        with self._alive():
            self._check_tail()
            if self._left() <= budget + MARGIN * self._record.ttl:
                self._append("renew")

    def renew(self) -> None:
        """Extend the lease by another ttl from now."""
        with self._alive():
            self._check_tail()
            self._append("renew")

    def gate(self, gate: Gate, window: str = "") -> None:
        """Set the gate: tighter than before, or open. ``window`` is that of the record.

        If it raises a plain ``WindowError``, writers may see either gate until our next record. That record, which may
        be a renewal, opens the gate if it was to open. If the gate was to tighten, it stays as it was.
        """
        with self._alive():
            if gate is not Gate.OPEN and gate.strictness < self._record.gate.strictness:
                raise ValueError(f"a gate only tightens until it opens: {self._record.gate} → {gate}")
            before, self._wanted = self._wanted, gate
            try:
                self._check_tail()
                self._append("gate", window=window)
            except WindowError:
                if gate is not Gate.OPEN:
                    self._wanted = before
                raise

    def announce(self, running: RunningStatement) -> None:
        """Record which statement may run from now on, before it is sent.

        The statement must be sent before the next renewal is due and before ``prove`` is called again: observers count
        its bound from the records that name it. Raises ``ValueError`` while another statement may be running.
        """
        with self._alive():
            before = self.running
            if before is not None and before.tag != running.tag:
                raise ValueError(f"{before.tag} may still be running: {running.tag} was not sent")
            self._check_tail()
            started = self._clock.monotonic()
            self._append("statement", running=running)
            self._running, self._announced = running, started

    @contextmanager
    def awaiting(self) -> Iterator[None]:
        """While the caller waits for the answer of the announced statement, all our records name its full bound: that
        begins when the client is gone.
        """
        self._awaited = True
        try:
            yield
        finally:
            with self._lock:
                self._awaited, self._announced = False, self._clock.monotonic()

    def announce_again(self, running: RunningStatement) -> None:
        """Announce a statement again, unless a record of the last sixth of the ttl names it.

        Call it directly before the request is sent: if this process was paused since the announcement, another run may
        have found nothing that runs and have taken the lease over.
        """
        with self._alive():
            fresh = self._clock.monotonic() - self._announced < self._record.ttl * RENEW_EVERY
        if not fresh:
            self.announce(running)

    def statement_ended(self, *, opens: bool = False) -> None:
        """Record that no statement is running any more, neither ours nor one that an earlier holder left. With
        ``opens`` the same record opens the gate.

        If it raises, our next record says so.
        """
        with self._lock:
            self._running = None
            self._wanted = Gate.OPEN if opens else self._wanted
        with self._alive():
            self._check_tail()
            if self._record.running is not None:
                self._append("statement")

    def note_compared(self, version: int) -> None:
        """Record that a version was compared with the version before it and found equal."""
        with self._alive():
            self._check_tail()
            if version > (-1 if self._record.compared is None else self._record.compared):
                self._append("note", compared=version, reason=f"version {version} was compared")

    def note_dead(self, guards: Sequence[str]) -> None:
        """Record that these guards are taken for dead, before acting on it."""
        with self._alive():
            known = set(self._record.dead_guards)
            new = [guard for guard in guards if guard not in known]
            self._check_tail()
            if new:
                all_dead = (*self._record.dead_guards, *new)[-MOST_DEAD_GUARDS:]
                self._append("note", dead_guards=all_dead, reason=f"{len(new)} guards gave no sign of life")

    def note_silent(self, guards: Sequence[SilentGuard]) -> None:
        """Record for how long guards have shown no sign of life, so that the next holder counts on."""
        with self._alive():
            self._check_tail()
            kept = tuple(guards[:MOST_DEAD_GUARDS])
            if kept != self._record.silent:
                self._append("note", silent=kept, reason=f"{len(kept)} guards have shown no sign of life so far")

    def note(self, reason: str) -> None:
        """Record a decision before acting on it, such as to proceed despite writers that did not finish in time."""
        with self._alive():
            self._check_tail()
            self._append("note", reason=reason[:_LONGEST_NOTE])

    def successor(self) -> LeaseRecord | None:
        """The record of the run that acquired the lease after us; ``None`` if there is none. Raises ``WindowError``."""
        last = tail(self._store)
        if last is None or last.epoch <= self._record.epoch:
            return None
        return last

    def owe(self, hooks: tuple[str, ...], together: tuple[str, ...] = ()) -> None:
        """Record the after-hooks that are owed from now on, before the before-hooks run, and the tables for whose
        statements the jobs were paused. The next holder inherits them.
        """
        with self._alive():
            self._check_tail()
            self._append("renew", owed=hooks, together=together)

    def release(self) -> bool:
        """Release the lease, and open its gate unless a statement may still run. Returns whether the log says so; else
        ``shut_for`` tells what writers find. Never raises ``WindowError``; idempotent.

        It is tried even if the time has run out: if there is no new holder, no other run has to wait. It retries for a
        few seconds if the store fails.
        """
        with self._lock:
            problem = "" if self._released else self._try_release()
            for pause in RELEASE_PAUSES:
                if not problem:
                    break
                pause_briefly(self._clock, pause)
                problem = self._try_release()
            if problem:
                _log.warning("the lease in %s was not released: %s", self._store, problem)
            self._over = self._over or LeaseLost(f"the lease in {self._store} was released by its own run")
            return self._released

    def _try_release(self) -> str:
        """Why the lease was not released although a retry may help; empty if it was released or is no longer ours."""
        try:
            self._check_tail()
            self._wanted = Gate.OPEN
            if self._record.kind != "release":  # else an earlier attempt has landed
                self._append("release")
            self._released = True
        except LeaseLost as error:
            _log.warning("the lease in %s was not released: %s", self._store, error.message)
        except WindowError as error:
            return error.message
        return ""

    @contextmanager
    def _alive(self) -> Iterator[None]:
        """Runs one call under the lock, on a lease not known to be lost. A failure that outlasts the lease loses it."""
        with self._lock:
            self._check_over()
            try:
                yield
            except LeaseLost:
                raise
            except WindowError as error:
                if self._left() > 0:
                    raise
                raise self._ran_out() from error

    def _check_over(self) -> None:
        if self._over is not None:
            raise LeaseLost(self._over.message)

    def _check_time(self) -> None:
        self._check_over()  # again: a signal handler may have released it meanwhile
        if self._left() <= 0:
            raise self._ran_out()

    def _left(self) -> float:
        return self._deadline - self._clock.monotonic()

    def _check_tail(self) -> None:
        """Lose the lease unless the tail is ours. Adopts records of ours whose answer was lost."""
        ours = record_at(self._store, self._record.seq)
        if ours is None or ours.id != self._record.id:
            raise self._taken()  # pruned by a later holder, or the directory was deleted and numbers restarted
        while (later := record_at(self._store, self._record.seq + 1)) is not None:
            if later.id not in self._sent:
                raise self._taken()
            # The deadline is unchanged: when this record was sent is unknown.
            self._record, self._shut_for = later, later.shut_for

    def _append(self, kind: str, **changes: Any) -> None:
        while True:
            started = self._clock.monotonic()
            if kind != "release":
                self._check_time()
            last, record = self._record, self._next(kind, changes)
            self._sent.add(record.id)
            self._shut_for = max(self._shut_for, record.shut_for)
            if put(self._store, record, last):
                break
            self._check_tail()
            if self._record.seq < record.seq:
                raise WindowError(f"{self._store} says that a record exists, and then that it does not", "try again")
        self._record, self._shut_for = record, record.shut_for
        if kind != "release":
            self._check_time()  # a late answer: writers may have taken the gate for dead before this record arrived
        self._deadline = started + record.ttl
        if record.seq % KEEP == 0:
            prune(self._store, record.seq)

    def _next(self, kind: str, changes: Mapping[str, Any]) -> LeaseRecord:
        last = self._record
        running = changes.get("running", self._still_running())
        kept = last.gate if running is not None and running.until > 0 else Gate.OPEN
        record = replace(
            last,
            seq=last.seq + 1,
            id=self._new_id(),
            kind=kind,
            gate=max(kept, self._wanted, key=lambda gate: gate.strictness),
            reason="",
            running=running,
            at=self._clock.utc(),
            window=last.window if kind in {"renew", "note"} else "",
        )
        return replace(record, **changes)

    def _still_running(self) -> RunningStatement | None:
        """The statement that may be running; its bound is reduced by the time that has certainly passed since it was
        set, or since its client stopped waiting for it.
        """
        if self._running is not None and not self._awaited:
            now = self._clock.monotonic()
            passed, self._announced = max(0.0, now - self._announced), now
            self._running = replace(self._running, until=max(0.0, self._running.until - passed / PATIENCE))
        return self._running

    def _taken(self) -> LeaseLost:
        self._shut_for = 0.0
        try:
            # What happened to a lease that is no longer ours
            now = tail(self._store)
            if now is None:
                what = "is gone: its records were deleted"
            elif now.kind == "break":
                what = f"was broken by {now.owner}: {on_one_line(now.reason)}"
            elif now.kind == "dead":
                what = f"was taken for dead by {now.owner}: {on_one_line(now.reason)}"
            else:
                what = f"{'is held' if now.held else 'was taken'} by {now}"
        except WindowError as error:
            what = f"has another owner, who cannot be named: {error.message}"
        return self._lose(f"the lease in {self._store} was lost by epoch {self._record.epoch}: it {what}")

    def _ran_out(self) -> LeaseLost:
        return self._lose(
            f"the lease in {self._store} was lost: for {self._record.ttl:g} s it could not be renewed, "
            "because this process was paused or the store out of reach"
        )

    def _lose(self, message: str) -> LeaseLost:
        self._over = LeaseLost(message)
        return self._over


def keep_renewed(
    lease: Lease, wait: Callable[[float], bool], may_renew: Callable[[Lease], bool] = lambda _lease: True
) -> None:
    """Renew in time until ``wait(seconds)`` returns True, as ``Event.wait`` does, or until the lease is lost.

    Any failure is retried until the lease has expired. A renewal writes the wanted gate. While ``may_renew`` returns
    false (an engine that does not answer, behind a closed gate), the lease is not renewed and ages.
    """
    pause = RENEW_EVERY
    while not wait(pause * lease.record.ttl):
        try:
            if may_renew(lease):
                lease.renew()
            pause = RENEW_EVERY
        except LeaseLost as error:
            _log.warning("%s", error.message)
            return
        except BaseException as error:  # noqa: BLE001  # Rust panics, too: without this thread the lease expires
            _log.warning("the lease is not renewed yet: %s", error if isinstance(error, WindowError) else repr(error))
            pause = RETRY_EVERY


class Renewer:
    """``with Renewer(lease):`` renews the lease on a thread. ``Lease.prove`` tells whether it is still held."""

    def __init__(
        self,
        lease: Lease,
        wait: Callable[[float], bool] | None = None,
        may_renew: Callable[[Lease], bool] = lambda _lease: True,
    ) -> None:
        """``may_renew``: see ``keep_renewed``."""
        self._stop = threading.Event()
        # A daemon: a process that exits must not hang on a lease, which others can take over anyway.
        self._thread = threading.Thread(
            target=keep_renewed, args=(lease, wait or self._stop.wait, may_renew), name="tablectl-renewer", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
