"""How a lease changes hands: taken, taken over from a dead holder, or broken by an operator (window.md 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import Enum, auto

from tablectl.model.errors import WindowError
from tablectl.window.clock import Clock
from tablectl.window.lease import Lease, random_id
from tablectl.window.lease_log import ATTEMPTS, Gate, LeaseRecord, contended, prune, put, tail
from tablectl.window.owner import Owner
from tablectl.window.records import RecordStore

_LONGEST_PAUSE = 5.0
_LONGEST_REASON = 1_000


@dataclass(frozen=True, slots=True)
class Claim:
    """What one run says of itself in every lease that it takes."""

    owner: Owner
    run: str
    digest: str
    """The digest of the plan."""
    ttl: float = 60.0


@dataclass(frozen=True, slots=True)
class Held:
    """The lease was not taken, since its holder may be alive: ``record`` is the holder's newest."""

    record: LeaseRecord

    def __str__(self) -> str:
        return f"held by {self.record}"


@dataclass(frozen=True, slots=True)
class Blocked:
    """No lease of the wave was taken, because of these holders, by the keys of their tables."""

    holders: Mapping[str, Held]


def try_acquire(store: RecordStore, claim: Claim, clock: Clock, new_id: Callable[[], str] = random_id) -> Lease | Held:
    """Takes the lease if nobody holds it; never waits."""
    return _take(store, claim, clock, new_id, dead=frozenset())


def acquire(store: RecordStore, claim: Claim, clock: Clock, new_id: Callable[[], str] = random_id) -> Lease | Held:
    """Takes the lease, if need be after watching its holder die."""
    taken = acquire_all({"": store}, claim, clock, new_id)
    return taken.holders[""] if isinstance(taken, Blocked) else taken[""]


def acquire_all(
    stores: Mapping[str, RecordStore], claim: Claim, clock: Clock, new_id: Callable[[], str] = random_id
) -> dict[str, Lease] | Blocked:
    """Takes the leases of a wave, all or none, in the order of their keys.

    Those that are held are watched first, all together, so that no lease is kept waiting while another is watched. A
    holder is dead when its tail did not change for its ttl × 1.25 on our clock; one that shows a sign of life blocks
    the wave at once. Whatever is raised on the way, nothing stays taken.
    """
    watched = _watch(stores, clock)
    if isinstance(watched, Blocked):
        return watched
    taken: dict[str, Lease] = {}
    with ExitStack() as undo:
        for key in sorted(stores):
            got = _take(stores[key], claim, clock, new_id, dead=watched)
            if isinstance(got, Held):
                return Blocked({key: got})
            undo.callback(got.release)
            taken[key] = got
        undo.pop_all()
    return taken


def break_lease(store: RecordStore, epoch: int, reason: str, owner: Owner, clock: Clock) -> LeaseRecord:
    """Ends the ownership that the operator was shown, by force; gives the record of it.

    The holder finds out before its next statement; one that runs already cannot be stopped. Raises ``WindowError``
    without a reason, when nobody holds the lease, and when somebody else holds it by now.
    """
    if not reason.strip():
        raise WindowError("breaking a lease wants a reason", "its holder and the next one will read it")
    for _ in range(ATTEMPTS):
        last = tail(store)
        if last is None or not last.held:
            raise WindowError(f"nobody holds the lease in {store}", "there is nothing to break: apply may run")
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
    """Appends our ``acquire`` unless the tail is held, by another than those whose last records are in ``dead``."""
    for _ in range(ATTEMPTS):
        last = tail(store)
        if last is not None and last.held and last.id not in dead:
            return Held(last)
        started = clock.monotonic()
        record = _first(claim, last, clock, new_id())
        if put(store, record, last):
            prune(store, record.seq)
            return Lease(store, record, started + record.ttl, clock, new_id, last)
    raise contended(store)


def _first(claim: Claim, last: LeaseRecord | None, clock: Clock, new_id: str) -> LeaseRecord:
    now = clock.utc()
    # A statement that the dead holder left behind runs under the gate that was shut for it.
    left = last if last is not None and last.statement_bound > 0 else None
    return LeaseRecord(
        seq=last.seq + 1 if last else 1,
        epoch=last.epoch + 1 if last else 1,
        id=new_id,
        owner=claim.owner,
        run=claim.run,
        digest=claim.digest,
        kind="acquire",
        gate=left.gate if left is not None and left.held else Gate.OPEN,
        ttl=claim.ttl,
        owed=last.owed if last else (),
        reason="",
        since=now,
        at=now,
        running=left.running if left else None,
        compared=last.compared if last else None,
        dead_guards=last.dead_guards if last else (),
    )


class _Sign(Enum):
    FREE = auto()
    ALIVE = auto()
    DEAD = auto()
    NONE = auto()


def _judge(first: LeaseRecord, last: LeaseRecord | None, watched: float) -> _Sign:
    """What a tail tells that was ``first`` and is ``last`` after ``watched`` seconds on our own clock."""
    if last is None or not last.held:
        return _Sign.FREE
    if last.id != first.id:
        return _Sign.ALIVE
    return _Sign.DEAD if watched >= first.silence else _Sign.NONE


def _watch(stores: Mapping[str, RecordStore], clock: Clock) -> frozenset[str] | Blocked:
    """Watches all held leases until each is free or dead, or one shows a sign of life. Gives the dead tails' ids."""
    tails = {key: tail(stores[key]) for key in sorted(stores)}
    since = clock.monotonic()  # after the reads: what we saw is at least as old as this
    waiting = {key: last for key, last in tails.items() if last is not None and last.held}
    dead: set[str] = set()
    while waiting:
        clock.sleep(min(_LONGEST_PAUSE, *(first.ttl / 12 for first in waiting.values())))
        now = clock.monotonic()  # before the reads
        lasts = {key: tail(stores[key]) for key in waiting}
        signs = {key: _judge(first, lasts[key], now - since) for key, first in waiting.items()}
        alive = {key: Held(last) for key, last in lasts.items() if last is not None and signs[key] is _Sign.ALIVE}
        if alive:
            return Blocked(alive)
        dead |= {first.id for key, first in waiting.items() if signs[key] is _Sign.DEAD}
        waiting = {key: first for key, first in waiting.items() if signs[key] is _Sign.NONE}
    return frozenset(dead)
