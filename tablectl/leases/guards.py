"""Guards as they are stored: one small record per transaction of a cooperating writer (docs/guards.md).

Guards are stored as ``guards/<id>.<beat>.json`` next to the lease. A writer puts its guard and then reads the gate. An
apply puts its gate and then lists the guards. So either the writer sees the gate, or the apply sees the guard.
"""

from __future__ import annotations

import logging
import re
from contextvars import ContextVar
from dataclasses import dataclass

from tablectl.leases.lease_records import Gate
from tablectl.model.errors import WindowError
from tablectl.storage.records import RecordStore
from tablectl.support.compat import StrEnum
from tablectl.support.json_text import read_json, write_json

TTL = 60.0
"""Seconds for which a guard's record is valid. Each observer counts on its own monotonic clock."""
LONGEST_TTL = 86_400.0
"""Upper bound of a guard's ttl, in seconds; records with a larger value are rejected."""
HERE = "here"
FORMAT = 1
"""The format of the guards that this version writes. Readers ignore unknown fields."""
_TEXT_LIMIT = 200
_log = logging.getLogger(__name__)
_NAME = re.compile(r"guards/(?P<id>[0-9a-f]{8,64})\.(?P<beat>[0-9]{1,9})\.json")


class GuardMode(StrEnum):
    """What a guarded write may do, from strict to loose. It decides which gates block the writer (docs/guards.md,
    "Modes").
    """

    ANY = "any"
    """May also change the schema, or replace or restore the whole table."""
    REWRITE = "rewrite"
    """Reads the table; does not change the schema."""
    APPEND = "append"
    """Does not read the table; does not change the schema."""

    def covers(self, other: GuardMode) -> bool:
        """Whether every gate that blocks a write of the other mode also blocks one of this mode."""
        return _WAITS_FROM[self].strictness <= _WAITS_FROM[other].strictness

    def waits(self, gate: Gate) -> bool:
        """Whether the gate blocks a write of this mode."""
        return gate.strictness >= _WAITS_FROM[self].strictness


_WAITS_FROM = {GuardMode.ANY: Gate.NO_SCHEMA, GuardMode.REWRITE: Gate.APPENDS_ONLY, GuardMode.APPEND: Gate.CLOSED}


APPLYING: ContextVar[str | None] = ContextVar("tablectl_apply", default=None)
"""The id of the apply that the running code is a part of. A write of it would wait for itself at that apply's gate."""


@dataclass(frozen=True)
class GuardRecord:
    """One beat of one guard. Observers measure on their own clock how long a beat has not changed."""

    id: str
    """Random lower-case hex; one per transaction."""
    beat: int
    """Grows with each renewal."""
    writer: str = ""
    """The writer, for people: a job's name, host and process."""
    mode: GuardMode = GuardMode.ANY
    ttl: float = TTL
    waits: str = ""
    """``HERE`` while the writer is blocked at this table's gate. The location of another table while the writer is
    blocked at that table's gate in the middle of its write. Else empty."""

    @property
    def name(self) -> str:
        """The record's name in the store. It is flat, because deleting a record would leave an empty directory on a
        disk.
        """
        return f"guards/{self.id}.{self.beat}.json"

    def to_bytes(self) -> bytes:
        """The record as stored."""
        body = {"beat": self.beat, "id": self.id, "mode": self.mode.value, "ttl": self.ttl, "writer": self.writer}
        body |= {"format": FORMAT} | ({"waits": self.waits[:_TEXT_LIMIT]} if self.waits else {})
        return write_json(body, sort=True, spaces=True).encode()


def newest_beats(store: RecordStore) -> dict[str, int]:
    """The guards in the store: id → newest beat. Raises ``WindowError`` if they cannot be listed."""
    beats: dict[str, int] = {}
    for name in store.names("guards/"):
        found = _NAME.fullmatch(name)
        if found:
            beats[found["id"]] = max(beats.get(found["id"], 0), int(found["beat"]))
    return beats


def read_guard(store: RecordStore, guard: str, beat: int) -> GuardRecord | None:
    """The record of a beat; ``None`` if it was deleted.

    An invalid record counts as a guard of the strictest mode: an apply fails closed. Raises ``WindowError`` if the
    store cannot be reached.
    """
    data = store.read(GuardRecord(guard, beat).name)
    return None if data is None else _parse(guard, beat, data)


def read_guards(store: RecordStore) -> tuple[GuardRecord, ...]:
    """The records of all guards of a table. One that is deleted between listing and reading counts as a guard of the
    strictest mode: it ended, or its next beat replaced it. Raises ``WindowError`` as ``newest_beats``.
    """
    return tuple(read_guard(store, *each) or GuardRecord(*each) for each in listed_twice(store).items())


def listed_twice(store: RecordStore) -> dict[str, int]:
    """The guards of two listings in a row, as ``newest_beats``. A single listing may miss a guard that is renewed at
    the same time: its old beat is already deleted and its new one not yet listed.
    """
    first, second = newest_beats(store), newest_beats(store)
    return {guard: max(first.get(guard, 0), second.get(guard, 0)) for guard in {**first, **second}}


def delete_dead_guard(store: RecordStore, guard: str, beat: int) -> None:
    """Delete a dead guard's beats up to ``beat``. For the holder of the lease: otherwise every later drain waits for
    it, or reads it.

    A writer that was only paused puts a later beat when it continues. Never fails; beats that remain expire again.
    """
    try:
        for name in store.names(f"guards/{guard}."):
            found = _NAME.fullmatch(name)
            if found and int(found["beat"]) <= beat:
                store.delete(name)
    except WindowError as error:
        _log.debug("a dead guard stays: %s", error.message)


def _parse(guard: str, beat: int, data: bytes) -> GuardRecord:
    try:
        body = read_json(data)
        ttl = float(body["ttl"])
        if not 0 < ttl <= LONGEST_TTL:
            raise ValueError("ttl")
        waits = _printable(str(body.get("waits", "")))
        return GuardRecord(guard, beat, _printable(str(body["writer"])), GuardMode(body["mode"]), ttl, waits)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return GuardRecord(guard, beat, "a writer whose guard cannot be read")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text[:_TEXT_LIMIT])
