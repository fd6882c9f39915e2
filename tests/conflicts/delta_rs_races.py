"""delta-rs as the current transaction: what the real ``deltalake`` does after another one committed.

One process, two handles. The current transaction has a handle on the older version and runs in a thread; one that
reads its rows from a stream is held inside its transaction, and the others begin to commit after the other. Each
outcome is compared with the rules and with ``measured_delta_rs.json``, which remembers it for
``docs/generated/conflicts.md``: ``TABLECTL_MEASURED=write pytest tests/conflicts/test_delta_rs_races.py``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from tablectl.conflicts.rules import decide
from tablectl.conflicts.transactions import ConflictOutcome, CurrentTransaction, Level, Reads
from tablectl.engine.errors import engine_error
from tablectl.model.commit_contents import Kind, Partition
from tests.conflicts.examples import append, client
from tests.conflicts.log_records import Log

MEASURED = Path(__file__).parent / "measured_delta_rs.json"
VERSION: str = metadata.version("deltalake")
_CLIENT: dict[str, Any] = {"client": client(f"delta-rs {VERSION}"), "partitioned": True}
_SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
_WAIT = 60.0


def _rows(letter: str = "a", number: int = 9) -> pa.Table:
    return pa.table({"id": [number], "p": [letter]}, schema=_SCHEMA)


# What commits in between.


def _commit(path: Path, *actions: dict[str, Any], operation: str = "SET TBLPROPERTIES") -> None:
    log = Log(path)
    info = {"commitInfo": {"timestamp": 1, "operation": operation, "operationParameters": {}, "isBlindAppend": True}}
    file = path / "_delta_log" / f"{log.newest() + 1:020}.json"
    file.write_text("\n".join(json.dumps(action) for action in (info, *actions)), encoding="utf-8")


def _set(path: Path) -> None:
    known = Log(path).last("metaData", Log(path).newest() + 1)
    _commit(path, {"metaData": {**known, "configuration": {"owner.team": "x"}}})


def _set_same(path: Path) -> None:
    _commit(path, {"metaData": Log(path).last("metaData", Log(path).newest() + 1)})


def _raise(path: Path) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", "invariants"]}
    _commit(path, {"protocol": protocol}, operation="UPGRADE PROTOCOL")


def _txn(path: Path) -> None:
    _commit(path, {"txn": {"appId": "q", "version": 1}}, operation="STREAMING UPDATE")


def _merge(table: DeltaTable, rows: Any, on: str) -> None:
    merger = table.merge(rows, on, source_alias="s", target_alias="t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()


COMMITTED: Mapping[str, Callable[[Path], object]] = {
    "SET of a property": _set,
    "SET of the value already there": _set_same,
    "UPGRADE PROTOCOL": _raise,
    "a stream's batch": _txn,
    "append to a": lambda path: write_deltalake(path, _rows("a"), mode="append"),
    "append to b": lambda path: write_deltalake(path, _rows("b"), mode="append"),
    "delete of a": lambda path: DeltaTable(path).delete("p = 'a'"),
    "delete of rows of a": lambda path: DeltaTable(path).delete("p = 'a' AND id = 1"),
    "delete of rows of b": lambda path: DeltaTable(path).delete("p = 'b' AND id = 3"),
    "update of a": lambda path: DeltaTable(path).update(updates={"id": "id + 1"}, predicate="p = 'a'"),
    "update of b": lambda path: DeltaTable(path).update(updates={"id": "id + 1"}, predicate="p = 'b'"),
    "merge into a": lambda path: _merge(DeltaTable(path), _rows("a", 1), "t.id = s.id AND t.p = 'a'"),
    "overwrite": lambda path: write_deltalake(path, _rows("a"), mode="overwrite"),
    "overwrite of b": lambda path: write_deltalake(path, _rows("b"), mode="overwrite", predicate="p = 'b'"),
    "optimize": lambda path: DeltaTable(path).optimize.compact(),
}


# Who is in flight.

Run = Callable[[DeltaTable, Any], object]
"""Runs a write on a handle of the older version; the second argument is a stream of rows that is held."""


@dataclass(frozen=True)
class Current:
    """A write, and how the rules take it."""

    run: Run
    kind: Kind
    letters: str = ""
    """The partitions that it reads; empty for none."""
    removes: str = ""
    named: bool = True
    """Whether its condition names these partitions."""
    id: int | None = None
    """The one row that its condition selects; the file with ``id`` has no other."""
    app_ids: tuple[str, ...] = ()
    held: bool = False
    """Whether it reads the stream."""

    def described(self, log: Log) -> CurrentTransaction:
        live = [(path, values) for path, values in log.files(log.newest()).items()]
        live = live[self.id - 1 : self.id] if self.id else live
        partitions: tuple[Partition, ...] | None = tuple((letter,) for letter in self.letters) if self.named else None
        read = tuple(path for path, values in live if str(values["p"]) in self.letters)
        removed = tuple(path for path, values in live if str(values["p"]) in self.removes)
        reads = Reads(partitions=partitions, files=read) if self.letters else Reads()
        changes = self.kind is not Kind.OPTIMIZE
        more = {"kind": self.kind, "reads": reads, "removes": removed, "data_change": changes}
        return append(**more, app_ids=self.app_ids, **_CLIENT)


def _append_once(table: DeltaTable, rows: Any) -> None:
    properties = CommitProperties(app_transactions=[Transaction("q", 1)])
    write_deltalake(table, rows, mode="append", commit_properties=properties)


CURRENT: Mapping[str, Current] = {
    "append": Current(lambda table, rows: write_deltalake(table, rows, mode="append"), Kind.APPEND, held=True),
    "append of a stream": Current(_append_once, Kind.STREAMING_APPEND, app_ids=("q",), held=True),
    "update of a": Current(
        lambda table, _: table.update(updates={"id": "id + 1"}, predicate="p = 'a'"), Kind.UPDATE, "a", "a"
    ),
    "update of rows": Current(
        lambda table, _: table.update(updates={"id": "id + 1"}, predicate="id = 1"),
        Kind.UPDATE,
        "ab",
        "ab",
        named=False,
        id=1,
    ),
    "delete of b": Current(lambda table, _: table.delete("p = 'b'"), Kind.DELETE, "b", "b"),
    "delete of rows of b": Current(lambda table, _: table.delete("p = 'b' AND id = 3"), Kind.DELETE, "b", "b", id=3),
    "merge": Current(lambda table, rows: _merge(table, rows, "t.p = s.p"), Kind.MERGE, "ab", "ab", named=False),
    "merge into a": Current(lambda table, rows: _merge(table, rows, "t.id = s.id AND t.p = 'a'"), Kind.MERGE, "a", "a"),
    "overwrite of a": Current(
        lambda table, rows: write_deltalake(table, rows, mode="overwrite", predicate="p = 'a'"),
        Kind.REPLACE_WHERE,
        "a",
        "a",
        held=True,
    ),
    "compaction of b": Current(
        lambda table, _: table.optimize.compact(partition_filters=[("p", "=", "b")]), Kind.OPTIMIZE, "b", "b"
    ),
}


@dataclass(frozen=True)
class Race:
    """One cell."""

    current: str
    committed: str
    level: Level

    @property
    def id(self) -> str:
        """Its key in ``measured_delta_rs.json``."""
        return f"{self.level}: {self.current} in flight, {self.committed} commits"


RACES = tuple(Race(*each) for each in product(CURRENT, COMMITTED, list(Level)[:2]))


@dataclass(frozen=True)
class Raced:
    """What happened, and what the rules say."""

    condition: str
    """Empty where the current transaction committed."""
    message: str
    expected: ConflictOutcome


def run_race(race: Race, path: Path) -> Raced:
    """Make a table of four files, hold the write, let the other commit, and let the write go on."""
    configuration = {"delta.isolationLevel": race.level.value}
    for number, letter in enumerate("aabb", 1):
        write_deltalake(path, _rows(letter, number), mode="append", partition_by=["p"], configuration=configuration)
    handle, log, current = DeltaTable(path), Log(path), CURRENT[race.current]
    described = current.described(log)
    inside, released = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def stream() -> Iterator[pa.RecordBatch]:
        inside.set()
        assert released.wait(_WAIT)
        yield from _rows().to_batches()

    def run() -> None:
        rows = pa.RecordBatchReader.from_batches(_SCHEMA, stream()) if current.held else _rows()
        try:
            if not current.held:
                inside.set()
                assert released.wait(_WAIT)
            current.run(handle, rows)
        except Exception as error:  # noqa: BLE001  # whatever ended the write is the outcome
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert inside.wait(_WAIT), "the write never began"
    COMMITTED[race.committed](path)
    made = log.committed(log.newest())
    released.set()
    thread.join(_WAIT)
    assert not thread.is_alive(), "the write never ended"
    expected = decide(made, described)
    if not errors:
        return Raced("", "", expected)
    if not isinstance(errors[0], CommitFailedError):
        raise errors[0]
    return Raced(engine_error(errors[0]).condition, str(errors[0]), expected)


def measured() -> dict[str, Any]:
    """What was measured: the version of ``deltalake``, the day, and cell → error class."""
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def remember(outcomes: Mapping[str, str]) -> None:
    """Write down the outcomes of all races."""
    day = datetime.now(UTC).date().isoformat()
    made = {"deltalake": VERSION, "day": day, "races": dict(sorted(outcomes.items()))}
    MEASURED.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
