"""The lease as it is stored: a numbered, append-only log of records in ``lease/`` (window.md 6.2).

A number is used once and its record never changes, so appending record n + 1 after reading n is the compare-and-swap.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

from tablectl.model.as_json import plain, read_record
from tablectl.model.errors import WindowError
from tablectl.window.owner import Owner
from tablectl.window.records import RecordStore

KEEP = 20
"""How many records stay behind the tail; what lies further back may be pruned by the holder."""

PATIENCE = 1.25
"""How many times its ttl a tail must stay the same before its holder counts as dead: clocks may differ by a quarter."""

LONGEST_TTL = 86_400
"""Seconds. A record that claims more was not written by tablectl."""

ATTEMPTS = 5
"""How often to begin again where others append at the same time; each time, one of them got on."""

_log = logging.getLogger(__name__)
_NAME = re.compile(r"lease/\d{20}\.json")

Kind = Literal["acquire", "renew", "gate", "release", "break"]


class Gate(StrEnum):
    """What writers may do, from loose to strict (window.md 6.1)."""

    OPEN = "open"
    NO_SCHEMA = "no-schema"
    """Writes that may change the schema wait."""
    APPENDS_ONLY = "appends-only"
    """Writes that read the table wait, too."""
    CLOSED = "closed"

    @property
    def strictness(self) -> int:
        """0 for open, more for each gate that lets fewer writers through."""
        return list(Gate).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """One step in the life of a table's lease. The last one, the tail, says how things are.

    Raises ``ValueError`` for numbers that no lease has and for times without a zone.
    """

    seq: int
    epoch: int
    """The number of this ownership."""
    id: str
    """Random, new for each record: by it a writer knows its own, and an observer sees that the holder is alive."""
    owner: Owner
    run: str
    """The apply that holds the lease (in a ``break``: that held it)."""
    digest: str
    """The digest of its plan."""
    kind: Kind
    gate: Gate
    ttl: float
    """Seconds for which the record holds, each observer counting on its own monotonic clock."""
    owed: tuple[str, ...]
    """The after-hooks owed to others; a new holder inherits them until they are done."""
    reason: str
    """Why the lease was broken; else empty."""
    since: datetime
    """When this ownership began. For people: never used for decisions."""
    at: datetime
    """When the record was written. For people: never used for decisions."""

    def __post_init__(self) -> None:
        possible = {
            "seq": self.seq >= 1,
            "epoch": self.epoch >= 1,
            "id": bool(self.id),
            "ttl": 0 < self.ttl <= LONGEST_TTL,
            "since": self.since.tzinfo is not None,
            "at": self.at.tzinfo is not None,
        }
        for name, fine in possible.items():
            if not fine:
                raise ValueError(f"{name}: {getattr(self, name)!r} is impossible")

    @property
    def held(self) -> bool:
        """Whether somebody holds the lease, as far as the record knows."""
        return self.kind not in {"release", "break"}

    def __str__(self) -> str:
        since = self.since.astimezone(UTC)
        return f"{self.owner}, run {self.run}, epoch {self.epoch}, since {since:%Y-%m-%d %H:%M:%S} UTC"


def record_name(seq: int) -> str:
    """The name of a record in its store."""
    return f"lease/{seq:020d}.json"


def tail(store: RecordStore) -> LeaseRecord | None:
    """The last record, None where there never was one. Raises ``WindowError`` where it cannot be read."""
    for _ in range(ATTEMPTS):
        names = _record_names(store)
        if not names:
            return None
        record = record_at(store, _seq(names[-1]))
        if record is not None:
            return record  # else it was pruned, or all were deleted, since the listing
    raise contended(store)


def record_at(store: RecordStore, seq: int) -> LeaseRecord | None:
    """The record of a number. Raises ``WindowError`` when it is not one that this version understands: fail closed."""
    data = store.read(record_name(seq))
    if data is None:
        return None
    try:
        record = read_record(LeaseRecord, data)
    except ValueError as error:
        raise _unreadable(store, seq, str(error)) from error
    if record.seq != seq:
        raise _unreadable(store, seq, f"it says that it is number {record.seq}")
    return record


def put(store: RecordStore, record: LeaseRecord) -> bool:
    """Whether the record is in the log, at its number; False when another one has that number.

    "Exists" may be the answer to our own record: the first answer was lost and the library tried again. And a put that
    raised may have happened. So the record at that number is read, and its id tells whose it is (window.md 6.2).
    """
    try:
        created = store.create(record_name(record.seq), dump_record(record))
    except WindowError:
        found = record_at(store, record.seq)
        if found is None:
            raise
        return found.id == record.id
    if created:
        return True
    found = record_at(store, record.seq)
    return found is not None and found.id == record.id


def dump_record(record: LeaseRecord) -> bytes:
    """A record as it is stored."""
    return json.dumps(record, default=plain, separators=(",", ":"), ensure_ascii=False).encode()


def prune(store: RecordStore, seq: int) -> None:
    """Deletes what lies far behind record ``seq``, for its holder. Never fails: the next holder does what is left."""
    try:
        for name in _record_names(store):
            if _seq(name) <= seq - KEEP:
                store.delete(name)
    except WindowError as error:
        _log.debug("old lease records stay: %s", error.message)


def contended(store: RecordStore) -> WindowError:
    """The error where others got on each time that we tried."""
    return WindowError(f"the lease in {store} changes hands faster than it can be read", "try again")


def _record_names(store: RecordStore) -> list[str]:
    return [name for name in store.names("lease/") if _NAME.fullmatch(name)]


def _seq(name: str) -> int:
    return int(name[-25:-5])


def _unreadable(store: RecordStore, seq: int, why: str) -> WindowError:
    return WindowError(
        f"the lease record {store}/{record_name(seq)} is not one that this version of tablectl wrote: {why}",
        "use the version that wrote it; or, when no apply runs, delete the `lease` directory: numbers start again",
    )
