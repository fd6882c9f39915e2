"""A held lease: proven before each statement, renewed meanwhile, released at the end (window.md 6.3)."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self

from tablectl.model.errors import WindowError
from tablectl.window.clock import Clock
from tablectl.window.lease_log import KEEP, Gate, Kind, LeaseRecord, prune, put, record_at, tail
from tablectl.window.records import RecordStore

MARGIN = 1 / 12
"""The part of the ttl that must be left when a statement's budget is spent: 5 s of 60 s."""

RENEW_EVERY = 1 / 6
"""The part of the ttl between two renewals: 10 s of 60 s."""

RETRY_EVERY = 1 / 24
"""The part of the ttl after which a failed renewal is tried again: 2.5 s of 60 s."""

_log = logging.getLogger(__name__)


def random_id() -> str:
    """A new id for a record."""
    return uuid.uuid4().hex


class LeaseLost(WindowError):  # noqa: N818  (an event, as people name it)
    """The lease is no longer ours: nothing more may be done under it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "run the same apply again: it goes on from the tables as they are then")


class Lease:
    """One ownership of one table's lease. Safe for use by several threads; made by ``acquire.acquire`` and the like.

    It is lost for good as soon as another record follows ours, ours is gone, or its time has run out on our own clock
    (writers may then have taken our gate for dead and gone on, 6.4). From then on every method raises ``LeaseLost``
    and touches nothing, except ``release``. Every method raises ``WindowError`` where the store cannot be reached;
    then the lease may still be ours, but nothing may be done until it is proven.
    """

    def __init__(
        self, store: RecordStore, record: LeaseRecord, deadline: float, clock: Clock, new_id: Callable[[], str]
    ) -> None:
        """``record`` is ours and in the log; ``deadline`` is the time before it was sent, plus its ttl."""
        self._store = store
        self._record = record
        self._deadline = deadline
        self._clock = clock
        self._new_id = new_id
        self._sent: set[str] = set()  # the ids of our records, also of those whose answer was lost
        self._over: LeaseLost | None = None
        self._released = False
        # Reentrant: a signal handler that releases may interrupt its own thread in here.
        self._lock = threading.RLock()

    @property
    def record(self) -> LeaseRecord:
        """Our newest record: epoch, gate, what is owed."""
        return self._record

    @property
    def store(self) -> RecordStore:
        """Where its records lie, and the guards beside them."""
        return self._store

    def prove(self, budget: float) -> None:
        """Returns if a statement of ``budget`` seconds may start now: the tail is ours, and stays so long enough.

        Renews first if less than budget and margin are left. A budget beyond the ttl is covered by renewals while the
        statement runs (``Renewer``). A pause between this call and the statement is what the verification is for.
        """
        with self._alive():
            self._check_tail()
            if self._left() <= budget + MARGIN * self._record.ttl:
                self._append("renew")

    def renew(self) -> None:
        """Makes the lease last for another ttl from now."""
        with self._alive():
            self._check_tail()
            self._append("renew")

    def gate(self, gate: Gate) -> None:
        """Tells writers what they may do from now on: tighter than before, or open.

        When it raised a plain ``WindowError``, writers may see either gate, until the next call that succeeds.
        """
        with self._alive():
            self._check_tail()
            if gate is not Gate.OPEN and gate.strictness < self._record.gate.strictness:
                raise ValueError(f"a gate only tightens until it opens: {self._record.gate} → {gate}")
            self._append("gate", gate=gate)

    def owe(self, hooks: tuple[str, ...]) -> None:
        """Writes down what is owed to others from now on, before it is done; the next holder inherits it."""
        with self._alive():
            self._check_tail()
            self._append("renew", owed=hooks)

    def release(self) -> bool:
        """Gives the lease back, gate open; whether the log says so. Never raises ``WindowError``; may be repeated.

        Also tried when the time has run out: if nobody took over, nobody has to wait for us.
        """
        with self._lock:
            if not self._released:
                try:
                    self._check_tail()
                    if self._record.kind != "release":  # else an earlier try had landed
                        self._append("release", gate=Gate.OPEN)
                    self._released = True
                except WindowError as error:
                    _log.warning("the lease in %s was not released: %s", self._store, error.message)
            self._over = self._over or LeaseLost(f"the lease in {self._store} was released by its own run")
            return self._released

    @contextmanager
    def _alive(self) -> Iterator[None]:
        """One call under the lock, on a lease not known to be lost; a failure that outlasts the lease loses it."""
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
        """Loses the lease unless the tail is ours. Takes over records of ours whose answer was lost."""
        ours = record_at(self._store, self._record.seq)
        if ours is None or ours.id != self._record.id:
            raise self._taken()  # pruned by a later holder, or the directory was deleted and numbers started again
        while (later := record_at(self._store, self._record.seq + 1)) is not None:
            if later.id not in self._sent:
                raise self._taken()
            self._record = later  # the deadline stays: when this one was sent is not remembered

    def _append(self, kind: Kind, gate: Gate | None = None, owed: tuple[str, ...] | None = None) -> None:
        while True:
            started = self._clock.monotonic()
            if kind != "release":
                self._check_time()
            record = self._next(kind, gate, owed)
            self._sent.add(record.id)
            if put(self._store, record):
                break
            self._check_tail()
            if self._record.seq < record.seq:
                raise WindowError(f"{self._store} says that a record exists, and then that it does not", "try again")
        self._record = record
        if kind != "release":
            self._check_time()  # answered too late, writers may have taken the gate for dead before this record came
        self._deadline = started + record.ttl
        if record.seq % KEEP == 0:
            prune(self._store, record.seq)

    def _next(self, kind: Kind, gate: Gate | None, owed: tuple[str, ...] | None) -> LeaseRecord:
        last = self._record
        return replace(
            last,
            seq=last.seq + 1,
            id=self._new_id(),
            kind=kind,
            gate=last.gate if gate is None else gate,
            owed=last.owed if owed is None else owed,
            at=self._clock.utc(),
        )

    def _taken(self) -> LeaseLost:
        try:
            what = _fate(tail(self._store))
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


def _fate(now: LeaseRecord | None) -> str:
    """What became of a lease that is not ours any more."""
    if now is None:
        return "is gone: its records were deleted"
    if now.kind == "break":
        return f"was broken by {now.owner}: {now.reason}"
    return f"{'is held' if now.held else 'was taken'} by {now}"


def keep_renewed(lease: Lease, wait: Callable[[float], bool]) -> None:
    """Renews in time until ``wait(seconds)`` answers True, as ``Event.wait`` does, or the lease is lost.

    A failure that may pass is tried again until the lease has run out.
    """
    pause = RENEW_EVERY
    while not wait(pause * lease.record.ttl):
        try:
            lease.renew()
            pause = RENEW_EVERY
        except LeaseLost as error:
            _log.warning("%s", error.message)
            return
        except WindowError as error:
            _log.warning("the lease is not renewed yet: %s", error.message)
            pause = RETRY_EVERY


class Renewer:
    """``with Renewer(lease):`` keeps the lease renewed by a thread. Whether it still holds, ``Lease.prove`` tells."""

    def __init__(self, lease: Lease, wait: Callable[[float], bool] | None = None) -> None:
        self._stop = threading.Event()
        # A daemon: a run that is torn down must not hang on a lease, which others can take over anyway.
        self._thread = threading.Thread(
            target=keep_renewed, args=(lease, wait or self._stop.wait), name="tablectl-renewer", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
