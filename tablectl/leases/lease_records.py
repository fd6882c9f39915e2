"""The lease as it is stored: a numbered, append-only log of records in ``lease/`` (docs/window.md, "Leases").

A number is used once and its record never changes, so appending record n + 1 after reading n is the compare-and-swap.
Every conclusion of one process about another (its gate is dead, its guard is dead, a run proceeds despite it) is a
record of this log before anyone acts on it. So a holder whose clock stood still learns about it from the log.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from tablectl.leases.owner import UNKNOWN_OWNER, Owner, on_one_line
from tablectl.model.errors import WindowError
from tablectl.storage.records import RecordStore
from tablectl.support.compat import UTC, StrEnum, parse_time
from tablectl.support.json_text import read_json, write_json

FORMAT = 1
"""The record format that this version writes. It is incremented only when a known field changes its meaning: readers
ignore unknown fields."""

KEEP = 20
"""How many records to keep behind the tail. The holder may prune older ones."""

PATIENCE = 1.25
"""A holder counts as dead once its tail has stayed the same for this many times its ttl: clocks may differ by a
quarter."""

LONGEST_TTL = 3_600.0
"""Seconds. A record with a longer ttl was not written by tablectl."""

LONGEST_STATEMENT = 604_800.0
"""The longest bound of a statement in a record, in seconds: a week."""

LARGEST_NUMBER = 10**18
"""Upper bound of the numbers in a record. Larger ones were not written by tablectl."""

MOST_RECORDS = 10**12
"""Record numbers and epochs that are read are lower, so that the next one is possible, too. A record each millisecond
for 30 years would not reach it."""

MOST_DEAD_GUARDS = 200
"""How many dead guards a record names at most; the oldest are dropped."""

ATTEMPTS = 5
"""Attempts to append while others append at the same time. In each round one of them makes progress."""

UNREADABLE = "unreadable"
"""The kind of the stand-in for a record that cannot be read."""

_UNREADABLE_TTL = 60.0
_MOST_TOGETHER, _MOST_NAMES = 100, 150_000
"""How many names of tables a record holds, and their characters."""
_LONGEST_SILENCE = 1_000_000.0
"""Seconds. A guard of the longest ttl, a day, is dead after 108,000."""
_LONGEST_TEXT = 4_000
_LONGEST_WORD = 200
_MOST_OWED = 20_000
"""Characters of all owed hooks together."""
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)

_log = logging.getLogger(__name__)
_NAME = re.compile(r"lease/(?P<seq>[0-9]{20})\.json")
_KIND = re.compile(r"[a-z-]{1,20}")
_GUARD = re.compile(r"[0-9a-f]{8,64}")

_OVER = frozenset({"release", "break", "dead"})
"""Kinds of records after which the lease is free. An unknown kind counts as held."""


class Gate(StrEnum):
    """What writers may do, from loose to strict (docs/window.md, "Phases and gates")."""

    OPEN = "open"
    NO_SCHEMA = "no-schema"
    """Blocks writes that may change the schema."""
    APPENDS_ONLY = "appends-only"
    """Also blocks writes that read the table."""
    CLOSED = "closed"

    @property
    def strictness(self) -> int:
        """0 for open; higher for each gate that lets fewer writers through."""
        return list(Gate).index(self)


@dataclass(frozen=True)
class RunningStatement:
    """A statement that may be running in an engine. It is in the log before it is sent.

    Raises ``ValueError`` for empty or long texts and for bounds outside of 0 to ``LONGEST_STATEMENT``.
    """

    engine: str
    """The identity of the engine that runs it."""
    tag: str
    """The tag of the operation in that engine. No other run uses it."""
    until: float
    """The bound of the statement: seconds that it may still run after it was sent.

    It is a duration and not a moment, because no two clocks are compared. Each observer adds it to the ttl and counts
    both on its own clock from when it first saw the record, which is later than when the record was written. The
    statement is sent within the ttl of the record that announces it, or not at all. So a wrong wall clock has no
    effect, and a clock that stood still (the observer's, while its machine slept) makes the observer act later, never
    earlier. While the holder waits for the answer, it names the full bound. When it renews afterwards, it subtracts the
    time that has passed since, less a quarter, since its clock may be fast.
    If its clock stood still, it subtracts too little, which errs to the same side."""
    run: str = ""
    """The run in the stamp of its commits; empty in records of older versions."""
    version: int | None = None
    """One commit of ``run`` above this version of the table ends it; ``None`` if it may make several commits."""

    def __post_init__(self) -> None:
        _check_words(engine=self.engine, tag=self.tag, run=self.run or "-")
        if self.version is not None and not 0 <= self.version <= LARGEST_NUMBER:
            raise ValueError(f"version: {self.version!r} is impossible")
        if not 0 <= self.until <= LONGEST_STATEMENT:
            raise ValueError(f"until: {self.until!r} is not a number of seconds up to {LONGEST_STATEMENT:g}")


@dataclass(frozen=True)
class SilentGuard:
    """For how long the holders of a lease have seen the same beat of a guard, each on its own clock, one after another.

    The time between two holders does not count: no two clocks are compared. Raises ``ValueError`` for what no holder
    writes.
    """

    guard: str
    beat: int
    seconds: float

    def __post_init__(self) -> None:
        if not (_GUARD.fullmatch(self.guard) and 0 <= self.beat < 10**9 and 0 <= self.seconds <= _LONGEST_SILENCE):
            raise ValueError(f"silent: {self!r:.200} is impossible")


@dataclass(frozen=True)
class LeaseRecord:
    """One step in the life of a table's lease. The last record, the tail, is the current state.

    Raises ``ValueError`` for impossible numbers, times and sizes, and for times without a time zone.
    """

    seq: int
    epoch: int
    """The number of this ownership."""
    id: str
    """Random, new for each record. A writer recognizes its own records by it, and an observer sees that the holder is
    alive."""
    owner: Owner
    """Who wrote the record: the holder; in a ``break`` the operator, in a ``dead`` the writer that found the holder
    dead."""
    run: str
    """The apply that holds the lease; in a ``break`` or ``dead``, the one that held it."""
    digest: str
    """The digest of its plan."""
    kind: str
    """``acquire``, ``renew``, ``gate``, ``statement``, ``note``, ``release``, ``break`` or ``dead``. A kind that a
    later version adds counts as held."""
    gate: Gate
    ttl: float
    """Seconds for which the record is valid. Each observer counts on its own clock."""
    owed: tuple[str, ...]
    """The owed after-hooks. A new holder inherits them until they have run."""
    reason: str
    """Why the lease was broken, why its holder was taken for dead, or the text of a ``note``; else empty."""
    since: datetime
    """When this ownership began. For people; never used for decisions."""
    at: datetime
    """When the record was written. For people; never used for decisions."""
    format: int = FORMAT
    running: RunningStatement | None = None
    """The statement that may be running. A new holder inherits it until it is known to have ended."""
    compared: int | None = None
    """The newest version that was compared with the version before it and found equal."""
    dead_guards: tuple[str, ...] = ()
    """Ids of the guards that were taken for dead, newest last."""
    together: tuple[str, ...] = ()
    """The names of the tables that shared the window for which hooks are owed; empty if it was the table's own."""
    silent: tuple[SilentGuard, ...] = ()
    """The guards that showed no sign of life when writers were waited for last. A new holder counts on from there."""
    window: str = ""
    """A window that several tables share (``window.together``). Before its statements, each of its gates lets in
    writers that the window waits for at another of its tables: else both would wait for each other. Empty if it lets
    none in.
    """

    def __post_init__(self) -> None:
        possible = {
            "seq": 1 <= self.seq <= LARGEST_NUMBER,
            "epoch": 1 <= self.epoch <= LARGEST_NUMBER,
            "ttl": 0 < self.ttl <= LONGEST_TTL,
            "kind": _KIND.fullmatch(self.kind) is not None,
            "since": self.since.tzinfo is not None and _EARLIEST <= self.since <= _LATEST,
            "at": self.at.tzinfo is not None and _EARLIEST <= self.at <= _LATEST,
            "compared": self.compared is None or 0 <= self.compared <= LARGEST_NUMBER,
            "dead_guards": len(self.dead_guards) <= MOST_DEAD_GUARDS and all(map(_GUARD.fullmatch, self.dead_guards)),
            "silent": len(self.silent) <= MOST_DEAD_GUARDS,
            "together": len(self.together) <= _MOST_TOGETHER and sum(map(len, self.together)) <= _MOST_NAMES,
            "owed": sum(map(len, self.owed)) + len(self.owed) <= _MOST_OWED,
            "reason": len(self.reason) <= _LONGEST_TEXT,
        }
        for name, fine in possible.items():
            if not fine:
                raise ValueError(f"{name}: {getattr(self, name)!r:.200} is impossible")
        _check_words(id=self.id, run=self.run or "-", digest=self.digest or "-", window=self.window or "-")

    @property
    def held(self) -> bool:
        """Whether the lease is held, according to the record."""
        return self.kind not in _OVER

    @property
    def silence(self) -> float:
        """Seconds without a new record, counted by an observer from when it first saw this one, after which the holder
        is dead; 0 if it has ended. Another apply may then take over, including the gate and the statement that the
        holder left.
        """
        return self.ttl * PATIENCE if self.held else 0.0

    @property
    def shut(self) -> Gate:
        """The gate that writers obey. Whatever its kind, a record that names a statement which may still run does not
        let them in. Only an operator's ``break`` does.
        """
        if self.kind == "break" or not (self.held or self.statement_bound):
            return Gate.OPEN
        return Gate.CLOSED if self.gate is Gate.OPEN and self.statement_bound else self.gate

    def waited_for(self, window: str) -> bool:
        """Whether writers that this gate stops, and that came before it, keep the statements of a shared window from
        being sent. A record that names a statement stops all writers.
        """
        return self.window == window != "" and self.held and not self.statement_bound

    @property
    def statement_silence(self) -> float:
        """The same for a writer. It cannot end a statement that is still running, so the statement's bound is added."""
        return self.silence + self.statement_bound * PATIENCE

    @property
    def shut_for(self) -> float:
        """Seconds for which writers wait at its gate without a new record; 0 if it is open."""
        return 0.0 if self.shut is Gate.OPEN else self.statement_silence

    @property
    def statement_bound(self) -> float:
        """Seconds for which the statement in flight may still run; 0 without one. Whoever took a gate for dead has
        already waited for the end of the statement.
        """
        return self.running.until if self.running is not None and self.kind != "dead" else 0.0

    def __str__(self) -> str:
        since = self.since.astimezone(UTC)
        return f"{self.owner}, run {on_one_line(self.run)}, epoch {self.epoch}, since {since:%Y-%m-%d %H:%M:%S} UTC"


def record_name(seq: int) -> str:
    """The name of a record in its store."""
    return f"lease/{seq:020d}.json"


def tail(store: RecordStore, on_stray: Callable[[WindowError], None] | None = None) -> LeaseRecord | None:
    """The last record; ``None`` if there never was one. Raises ``WindowError`` if the store cannot be reached.

    A record with a number that no log reaches is an error, which names it: older versions take it for the tail, so no
    lease may be taken beside it. Writers pass ``on_stray``: they obey the gate of the log without that record.

    A record that cannot be read (empty after a power cut, damaged, or of a later format) is replaced by a stand-in with
    an unknown holder and a closed gate. Applies and writers wait for it as for any other holder, and it dies like any
    other.
    """
    for _ in range(ATTEMPTS):
        listed = [(seq, each) for each in store.listed("lease/") if (seq := _seq(each.name)) is not None]
        if not listed:
            return None
        strays = [seq for seq, _ in listed if seq >= MOST_RECORDS]
        if strays:
            # Records of ours may follow one that a stranger numbered just below the limit.
            seqs = [seq for seq, _ in listed if seq >= MOST_RECORDS // 10]
            which = "it" if len(seqs) == 1 else f"it and the records after it, {len(seqs):,} in all"
            error = WindowError(
                f"{store}/{record_name(seqs[0])} is not a record of tablectl: no log has so many", f"remove {which}"
            )
            if on_stray is None:
                raise error
            on_stray(error)
            listed = listed[: -len(strays)]
            if not listed:
                return None
        seq, newest = listed[-1]
        record = _stored(seq, store.read_listed(newest))
        if record is None:
            continue  # it was pruned, or all records were deleted, since the listing
        before = [seq for seq, _ in listed[:-1]]
        return _with_inheritance(store, record, before) if record.kind == UNREADABLE else record
    raise contended(store)


def record_at(store: RecordStore, seq: int) -> LeaseRecord | None:
    """The record with a number; ``None`` if it does not exist. A stand-in of kind ``unreadable`` if it cannot be
    read.
    """
    return _stored(seq, store.read(record_name(seq)))


def _stored(seq: int, data: bytes | None) -> LeaseRecord | None:
    if data is None:
        return None
    try:
        if not data:
            raise ValueError("it is empty, too large, or no plain file")
        record = parse_record(data)
        if record.seq != seq:
            raise ValueError(f"seq: it says that it is number {record.seq}")
    except ValueError as error:
        why = str(error)
        digest = hashlib.sha256(data).hexdigest()[:16]
        return LeaseRecord(
            seq=seq,
            epoch=1,
            id=f"{UNREADABLE}-{seq}-{digest}",
            owner=UNKNOWN_OWNER,
            run="unknown",
            digest="unknown",
            kind=UNREADABLE,
            gate=Gate.CLOSED,
            ttl=_UNREADABLE_TTL,
            owed=(),
            reason=f"record {record_name(seq)} cannot be read: {why}"[:_LONGEST_TEXT],
            since=_EARLIEST,
            at=_EARLIEST,
        )
    return record


def parse_record(data: bytes) -> LeaseRecord:
    """Parse a stored record. Unknown fields are ignored. Raises ``ValueError``."""
    body = read_json(data)
    if not isinstance(body, dict):
        raise ValueError("it is not a JSON object")
    found = _int(body, "format", 1)
    if found > FORMAT:
        raise ValueError(f"format: {found} is of a later version of tablectl")
    running = body.get("running")
    compared = body.get("compared")
    epoch = _int(body, "epoch")
    if epoch >= MOST_RECORDS:
        raise ValueError(f"epoch: {epoch} is impossible")
    # A gate that a later version adds blocks every writer
    text = _text(body, "gate")
    return LeaseRecord(
        seq=_int(body, "seq"),
        epoch=epoch,
        id=_text(body, "id"),
        owner=_owner(_object(body.get("owner"), "owner")),
        run=_text(body, "run"),
        digest=_text(body, "digest"),
        kind=_text(body, "kind"),
        gate=Gate(text) if text in set(Gate) else Gate.CLOSED,
        ttl=_number(body, "ttl"),
        owed=_texts(body, "owed"),
        reason=_text(body, "reason"),
        since=_time(body, "since"),
        at=_time(body, "at"),
        format=found,
        running=None if running is None else _running(_object(running, "running")),
        compared=None if compared is None else _int(body, "compared"),
        dead_guards=_texts(body, "dead_guards") if "dead_guards" in body else (),
        together=_texts(body, "together") if "together" in body else (),
        silent=_silent(body["silent"]) if "silent" in body else (),
        window=_text(body, "window") if "window" in body else "",
    )


def put(store: RecordStore, record: LeaseRecord, after: LeaseRecord | None) -> bool:
    """Append a record. Returns whether it is in the log at its number, directly behind the tail ``after``.

    "Exists" may be the answer to our own record: the first answer was lost and the library retried. And a put that
    raised may still have happened. So the record at that number is read, and its id tells whose it is. This also
    detects a store that overwrote another run's record, or let another run overwrite ours.

    The number may be free because its record was pruned while this process was paused. In that case either the record
    before it was pruned first, or there is a tail with a higher number. Both are checked after the put; what we put is
    then not a record of the log, and the result is False.
    """
    try:
        created = store.create(record_name(record.seq), dump_record(record))
    except WindowError:
        found = record_at(store, record.seq)
        if found is None:
            raise
        created = False
    else:
        found = record_at(store, record.seq)
    if found is None or found.id != record.id:
        if created and found is not None:
            raise _overwritten(store, record.seq)
        return False
    return _follows(store, record, after)


def _follows(store: RecordStore, record: LeaseRecord, after: LeaseRecord | None) -> bool:
    if after is None or after.kind == UNREADABLE:
        return _seqs(store)[-1:] == [record.seq]
    before = record_at(store, after.seq)
    return before is not None and before.id == after.id


def dump_record(record: LeaseRecord) -> bytes:
    """The record as stored."""
    return write_json(asdict(record), ascii=False).encode()


def prune(store: RecordStore, seq: int) -> None:
    """Delete the records far behind record ``seq``, on behalf of its holder. Never fails: the next holder deletes the
    rest.

    Deletes in the order of the numbers: if a record is gone, all records before it are gone, too. ``put`` relies on
    that.
    """
    try:
        for old in _seqs(store):
            if old <= seq - KEEP:
                store.delete(record_name(old))
    except WindowError as error:
        _log.debug("old lease records stay: %s", error.message)


def died(last: LeaseRecord, owner: Owner, reason: str, new_id: str, at: datetime) -> LeaseRecord:
    """The record that says that the holder of a tail is dead. It frees the lease and opens its gate."""
    return replace(
        last,
        seq=last.seq + 1,
        id=new_id,
        owner=owner,
        kind="dead",
        gate=Gate.OPEN,
        reason=reason[:_LONGEST_TEXT],
        at=at,
        format=FORMAT,
    )


def contended(store: RecordStore) -> WindowError:
    """The error if others made progress in each of our attempts."""
    return WindowError(f"the lease in {store} changes hands faster than it can be read", "try again")


def _overwritten(store: RecordStore, seq: int) -> WindowError:
    return WindowError(
        f"the lease record {store}/{record_name(seq)} was replaced after it was written: the store writes over what is "
        "there, though asked not to (If-None-Match)",
        "leases need put-if-absent: set `state:` in tablectl.yaml to a store that has it",
    )


def _seqs(store: RecordStore) -> list[int]:
    return [seq for name in store.names("lease/") if (seq := _seq(name)) is not None and seq < MOST_RECORDS]


def _seq(name: str) -> int | None:
    """The number in the name of a record; ``None`` if it is not one of ours."""
    match = _NAME.fullmatch(name)
    return (int(match["seq"]) or None) if match else None


def _with_inheritance(store: RecordStore, record: LeaseRecord, before: list[int]) -> LeaseRecord:
    """A stand-in with what the last readable record left behind: a damaged record must not lose it."""
    for seq in reversed(before[-KEEP:]):
        last = record_at(store, seq)
        if last is not None and last.kind != UNREADABLE:
            return replace(
                record,
                epoch=last.epoch,
                owed=last.owed,
                running=last.running,
                compared=last.compared,
                dead_guards=last.dead_guards,
                together=last.together,
                silent=last.silent,
            )
    return record


def _check_words(**words: str) -> None:
    for name, word in words.items():
        if not 0 < len(word) <= _LONGEST_WORD:
            raise ValueError(f"{name}: {word!r:.200} is impossible")


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name}: it is not an object")
    return value


def _int(body: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = body.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > LARGEST_NUMBER:
        raise ValueError(f"{name}: it is not a whole number up to {LARGEST_NUMBER}")
    return value


def _number(body: Mapping[str, Any], name: str) -> float:
    value = body.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or abs(value) > LARGEST_NUMBER:
        raise ValueError(f"{name}: it is not a number")
    if math.isnan(value):
        raise ValueError(f"{name}: it is not a number")
    return float(value)


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise ValueError(f"{name}: it is not a text of at most {_LONGEST_TEXT} characters")
    return value


def _texts(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = body.get(name)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{name}: it is not a list of texts")
    return tuple(value)


def _silent(value: object) -> tuple[SilentGuard, ...]:
    if not isinstance(value, list):
        raise ValueError("silent: it is not a list")
    each = [_object(one, "silent") for one in value]
    return tuple(SilentGuard(_text(one, "guard"), _int(one, "beat"), _number(one, "seconds")) for one in each)


def _time(body: Mapping[str, Any], name: str) -> datetime:
    return parse_time(_text(body, name))


def _running(body: Mapping[str, Any]) -> RunningStatement:
    version = body.get("version")
    return RunningStatement(
        _text(body, "engine"),
        _text(body, "tag"),
        _number(body, "until"),
        _text(body, "run") if "run" in body else "",
        None if version is None else _int(body, "version"),
    )


def _owner(body: Mapping[str, Any]) -> Owner:
    return Owner(
        who=_text(body, "who"),
        host=_text(body, "host"),
        pid=_int(body, "pid"),
        ci=_text(body, "ci"),
        tool=_text(body, "tool"),
    )
