"""Guards as they are stored: one small record per transaction of a cooperating writer (docs/guards.md).

``guards/<id>.<beat>.json`` beside the lease. A writer puts its guard and then reads the gate; an apply puts its gate
and then lists the guards. Either the writer sees the gate, or the apply sees the guard.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from enum import StrEnum

from tablectl.applying.lease_log import Gate
from tablectl.model.errors import WindowError
from tablectl.storage.records import RecordStore

TTL = 60.0
"""Seconds for which a guard's record holds, each observer counting on its own monotonic clock."""
LONGEST_TTL = 86_400.0
"""More than this is nobody's ttl."""
HERE = "here"
FORMAT = 1
"""The format of the guards that this version writes. Readers ignore the fields that they do not know."""
_TEXT_LIMIT = 200
_log = logging.getLogger(__name__)
_NAME = re.compile(r"guards/(?P<id>[0-9a-f]{8,64})\.(?P<beat>[0-9]{1,9})\.json")


class GuardMode(StrEnum):
    """What a guarded write may do, from strict to loose; by it the writer waits (docs/guards.md, "Modes")."""

    ANY = "any"
    """It may also change the schema, or replace or restore the whole table."""
    REWRITE = "rewrite"
    """It reads the table, and changes no schema."""
    APPEND = "append"
    """It reads nothing of the table, and changes no schema."""

    def covers(self, other: GuardMode) -> bool:
        """Whether a write of this mode waits wherever one of the other does."""
        return _WAITS_FROM[self].strictness <= _WAITS_FROM[other].strictness

    def waits(self, gate: Gate) -> bool:
        """Whether a write of this mode waits at a gate."""
        return gate.strictness >= _WAITS_FROM[self].strictness


_WAITS_FROM = {GuardMode.ANY: Gate.NO_SCHEMA, GuardMode.REWRITE: Gate.APPENDS_ONLY, GuardMode.APPEND: Gate.CLOSED}


@dataclass(frozen=True, slots=True)
class GuardRecord:
    """One beat of one guard. An unchanged beat ages; whoever watches judges by its own clock."""

    id: str
    """Random, lower-case hex, of the transaction."""
    beat: int
    """Grows with each renewal."""
    writer: str = ""
    """Who writes, for people: a job's name, host and process."""
    mode: GuardMode = GuardMode.ANY
    ttl: float = TTL
    waits: str = ""
    """``HERE`` while the writer waits at this table's gate and could not delete its guard; the place of another table
    while it waits at that one's gate in the midst of its write; else empty.
    """

    @property
    def name(self) -> str:
        """Its name in the store: flat, since deleting a record would leave an empty directory behind on a disk."""
        return f"guards/{self.id}.{self.beat}.json"

    def to_bytes(self) -> bytes:
        """As it is stored."""
        body = {"beat": self.beat, "id": self.id, "mode": self.mode.value, "ttl": self.ttl, "writer": self.writer}
        body |= {"format": FORMAT} | ({"waits": self.waits[:_TEXT_LIMIT]} if self.waits else {})
        return json.dumps(body, sort_keys=True).encode()


def newest_beats(store: RecordStore) -> dict[str, int]:
    """The guards in the store: id → newest beat. Raises ``WindowError`` where they cannot be listed."""
    beats: dict[str, int] = {}
    for name in store.names("guards/"):
        found = _NAME.fullmatch(name)
        if found:
            beats[found["id"]] = max(beats.get(found["id"], 0), int(found["beat"]))
    return beats


def read_guard(store: RecordStore, guard: str, beat: int) -> GuardRecord | None:
    """The record of a beat; ``None`` where it is gone. What cannot be understood counts as the strictest guard: an
    apply fails closed. Raises ``WindowError`` where the store cannot be reached.
    """
    data = store.read(GuardRecord(guard, beat).name)
    return None if data is None else _parse(guard, beat, data)


def bury(store: RecordStore, guard: str, beat: int) -> None:
    """Deletes a dead guard's beats up to ``beat``, for the holder of the lease: else each drain to come waits for it.

    A writer that was only paused puts a later beat when it comes back. Never fails; what is left ages again.
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
        body = json.loads(data)
        ttl = float(body["ttl"])
        if not 0 < ttl <= LONGEST_TTL:
            raise ValueError("ttl")
        waits = _printable(str(body.get("waits", "")))
        return GuardRecord(guard, beat, _printable(str(body["writer"])), GuardMode(body["mode"]), ttl, waits)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return GuardRecord(guard, beat, "a writer whose guard cannot be read")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text[:_TEXT_LIMIT])
