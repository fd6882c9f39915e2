"""How a lease changes hands: acquired, taken over from a dead holder, or broken by an operator (docs/window.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from tablectl.leases.clock import Clock
from tablectl.leases.lease import Lease, random_id
from tablectl.leases.lease_records import ATTEMPTS, Gate, LeaseRecord, contended, prune, put, tail
from tablectl.leases.owner import Owner
from tablectl.model.errors import WindowError
from tablectl.storage.records import RecordStore

LONGEST_PAUSE = 5.0
"""Longest pause between two polls of a held lease, in seconds."""
_LONGEST_REASON = 1_000


@dataclass(frozen=True)
class Claim:
    """What a run writes about itself into every lease that it acquires."""

    owner: Owner
    run: str
    digest: str
    """The digest of the plan."""
    ttl: float = 60.0


@dataclass(frozen=True)
class Held:
    """The lease was not acquired because its holder may be alive. ``record`` is the holder's newest record."""

    record: LeaseRecord

    def __str__(self) -> str:
        return f"held by {self.record}"


@dataclass(frozen=True)
class Sighting:
    """What an observer knows about a lease's holder, carried from one poll of the tail to the next."""

    record: LeaseRecord
    """The tail at the last poll."""
    since: float
    """When this tail was first seen, in seconds on our monotonic clock."""
    alive: bool = False
    """Whether the tail changed between two polls: the holder is at work, or there is a new holder."""

    def is_dead(self, now: float) -> bool:
        """Whether the tail, read again after ``now``, has stayed the same for ttl × 1.25 on our own clock.

        No polls are needed in between: each record has its own id, so a tail that moved never comes back.
        """
        return now - self.since >= self.patience

    @property
    def patience(self) -> float:
        """Seconds without a new record after which the holder counts as dead."""
        return self.record.silence


@dataclass(frozen=True)
class Blocked:
    """No lease was acquired. ``holders`` maps the keys of the tables that block to their holders."""

    holders: Mapping[str, Sighting]


def acquire_all(
    stores: Mapping[str, RecordStore],
    claim: Claim,
    clock: Clock,
    seen: Mapping[str, Sighting],
    new_id: Callable[[], str] = random_id,
) -> dict[str, Lease] | Blocked:
    """Acquire all of these leases or none, in the order of their keys.

    Never waits: a blocked caller asks again later and passes the ``seen`` sightings of the last call. All tails are
    read before the first lease is taken, so only a race wastes a lease. A holder whose tail has not changed for
    ttl × 1.25 is dead. If anything is raised on the way, no lease stays taken.

    Applies cannot deadlock: none holds a lease while it waits for another one. And one of several competing applies
    always makes progress: all take leases in the same order, so the one that is furthest ahead gets through.
    """
    looks = {key: _look(stores[key], clock, seen.get(key)) for key in sorted(stores)}
    blocked = {key: each.sighting for key, each in looks.items() if each.sighting and not each.dead}
    if blocked:
        return Blocked(blocked)
    dead = frozenset(each.sighting.record.id for each in looks.values() if each.sighting)
    taken: dict[str, Lease] = {}
    with ExitStack() as undo:
        for key in sorted(stores):
            got = _take(stores[key], claim, clock, new_id, dead)
            if isinstance(got, Held):
                return Blocked({key: Sighting(got.record, clock.monotonic(), alive=True)})
            undo.callback(got.release)
            taken[key] = got
        undo.pop_all()
    return taken


@dataclass(frozen=True)
class _Look:
    sighting: Sighting | None
    """``None`` if the lease is free."""
    dead: bool = False


def _look(store: RecordStore, clock: Clock, seen: Sighting | None) -> _Look:
    before = clock.monotonic()
    last = tail(store)
    if last is None or not last.held:
        return _Look(None)
    if seen is None or seen.record.id != last.id:
        # The time after the read: the record is at least as old as this.
        return _Look(Sighting(last, clock.monotonic(), alive=seen is not None))
    return _Look(seen, seen.is_dead(before))


def break_lease(store: RecordStore, epoch: int, reason: str, owner: Owner, clock: Clock) -> LeaseRecord:
    """Force the end of the ownership with the given epoch. Returns the ``break`` record.

    The holder notices before its next statement; a statement that already runs cannot be stopped. Raises
    ``WindowError`` if the reason is empty, if the lease is free and its gate open, or if its epoch is no longer
    ``epoch``.
    """
    if not reason.strip():
        raise WindowError("breaking a lease wants a reason", "its holder and the next one will read it")
    for _ in range(ATTEMPTS):
        last = tail(store)
        if last is None or not (last.held or last.shut_for):
            raise WindowError(f"the lease in {store} is free", "there is nothing to break: apply may run")
        if last.epoch != epoch:
            raise WindowError(
                f"the lease in {store} has changed hands since epoch {epoch}: it is held by {last}",
                f"to break that one, give epoch {last.epoch}",
            )
        record = replace(
            last,
            seq=last.seq + 1,
            id=random_id(),
            owner=owner,
            kind="break",
            gate=Gate.OPEN,
            reason=reason.strip()[:_LONGEST_REASON],
            at=clock.utc(),
        )
        if put(store, record, last):
            return record
    raise contended(store)


def _take(
    store: RecordStore, claim: Claim, clock: Clock, new_id: Callable[[], str], dead: frozenset[str]
) -> Lease | Held:
    """Append an ``acquire`` record unless the lease is held by a holder whose last record is not in ``dead``."""
    for _ in range(ATTEMPTS):
        last = tail(store)
        if last is not None and last.held and last.id not in dead:
            return Held(last)
        started = clock.monotonic()
        record = _first(claim, last, clock, new_id())
        if put(store, record, last):
            prune(store, record.seq)
            return Lease(store, record, started + record.ttl, clock, new_id)
    raise contended(store)


def _first(claim: Claim, last: LeaseRecord | None, clock: Clock, new_id: str) -> LeaseRecord:
    now = clock.utc()
    # A statement that the holder before left running keeps the gate that was shut for it.
    left = last if last is not None and last.statement_bound > 0 else None
    return LeaseRecord(
        seq=last.seq + 1 if last else 1,
        epoch=last.epoch + 1 if last else 1,
        id=new_id,
        owner=claim.owner,
        run=claim.run,
        digest=claim.digest,
        kind="acquire",
        gate=left.shut if left else Gate.OPEN,
        ttl=claim.ttl,
        owed=last.owed if last else (),
        reason="",
        since=now,
        at=now,
        running=left.running if left else None,
        compared=last.compared if last else None,
        dead_guards=last.dead_guards if last else (),
        together=last.together if last else (),
        silent=last.silent if last else (),
    )
