"""Reads how far a Structured Streaming query has read or written a table, from its checkpoint and the table's log.

Spark writes ``offsets/N`` before batch N and ``commits/N`` after it. An offset of a Delta source names the version of
the next file to read (Delta: ``DeltaSourceOffset``). A Delta sink commits each batch with a ``txn`` action, whose
application id is the query's id in ``metadata`` (Delta: ``DeltaSink``). Checkpoints are written by others: every file
and every number in it is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tablectl.log.catalog_managed import open_log
from tablectl.log.history import History
from tablectl.log.open_version import commits_between, read_twice
from tablectl.log.parse_action import parse_json
from tablectl.model.commit import AppTransaction, Commit
from tablectl.model.errors import LiveError, one_line
from tablectl.model.safe_text import cut
from tablectl.model.stream_progress import StreamPosition, StreamState, StreamWriter, UnknownStream, usual_gap
from tablectl.storage.log_stores import Stores
from tablectl.storage.table_log import TableLog, VanishedError

_OFFSET_BYTES = 1 << 20
_METADATA_BYTES = 1 << 16
_MOST_BATCHES = 100_000
"""Spark keeps 100 batches."""
_FEW_BATCHES = 10
"""The newest batches that show how often the query runs."""
_MOST_SOURCES = 1000
_LOOK_BACK = 500
"""The newest commits that show whether a query writes the table."""
_LARGEST = 2**63 - 1
_AFTER_VERSION = _LARGEST - 100
"""Delta's index after the last file of a version (``DeltaSourceOffset.END_INDEX``)."""


def read_streams(
    stores: Stores, checkpoints: Iterable[tuple[str, str]], table_id: str, location: str
) -> tuple[StreamState, ...]:
    """How far the queries with some names and checkpoints have read or written a table. Never raises ``LiveError``."""
    found: list[StreamState] = []
    for name, checkpoint in checkpoints:
        try:
            found.append(_read(stores, name, checkpoint, table_id, location))
        except LiveError as error:
            found.append(UnknownStream(name, checkpoint, one_line(error)))
    return tuple(found)


def _read(stores: Stores, name: str, checkpoint: str, table_id: str, location: str) -> StreamPosition | StreamWriter:
    query = _query(stores.open(checkpoint, ""), checkpoint)
    offsets = stores.open(checkpoint, "offsets")
    for _ in range(2):  # Spark may have deleted the oldest batches meanwhile
        finished = _batches(stores.open(checkpoint, "commits")) & _batches(offsets)
        if not finished:
            return StreamPosition(name, checkpoint, query, -1, 0, None)
        batch = max(finished)
        try:
            at, sources = _offset(offsets, str(batch), table_id)
        except VanishedError:
            continue
        if sources:
            # A query may read the table several times: it has read what all of its sources have read
            known = [each for each in sources if each is not None]
            return StreamPosition(
                name,
                checkpoint,
                query,
                batch,
                at,
                min(known) if len(known) == len(sources) else None,
                _gap(offsets, finished, at),
            )
        commit, written = _written(stores, location, checkpoint, query)
        return StreamWriter(name, checkpoint, query, written.version, commit.version, commit.timestamp)
    raise LiveError(f"{checkpoint}: its batches are deleted faster than they can be read", "try again")


def _gap(offsets: TableLog, finished: set[int], newest: int) -> float | None:
    """The usual gap between the beginnings of the newest batches, in seconds."""
    times = [newest]
    for batch in sorted(finished, reverse=True)[1:_FEW_BATCHES]:
        try:
            lines = offsets.read(str(batch), _OFFSET_BYTES).split(b"\n")
        except VanishedError:
            break
        times.append(_time(lines, offsets.file(str(batch))))
    return usual_gap([each / 1000 for each in times if each])


def _query(folder: TableLog, checkpoint: str) -> str:
    try:
        found = _object(folder.read("metadata", _METADATA_BYTES), folder.file("metadata"))
    except VanishedError:
        raise LiveError(
            f"{checkpoint}: no checkpoint of a streaming query: it has no file `metadata`",
            "declare the `checkpointLocation` of the query",
        ) from None
    query = found.get("id")
    return cut(query) if isinstance(query, str) else ""


def _batches(folder: TableLog) -> set[int]:
    names = folder.names()
    if len(names) > _MOST_BATCHES:
        raise LiveError(f"{folder.file('')}: has more than {_MOST_BATCHES:,} files; Spark keeps 100 batches")
    return {int(name) for name in names if name.isascii() and name.isdigit() and len(name) <= len(str(_LARGEST))}


def _offset(offsets: TableLog, batch: str, table_id: str) -> tuple[int, tuple[int | None, ...]]:
    """When a batch began, and the version that each of its sources which are this table has read completely."""
    file = offsets.file(batch)
    lines = offsets.read(batch, _OFFSET_BYTES).split(b"\n")
    if lines[0].strip() != b"v1":
        raise LiveError(f"{file}: its format is {cut(ascii(lines[0].decode(errors='replace')))}, and only v1 is known")
    if len(lines) > _MOST_SOURCES:
        raise LiveError(f"{file}: has more than {_MOST_SOURCES:,} sources")
    sources = [_json(line, file) for line in lines[2:] if line.strip() not in {b"", b"-"}]
    ours = [each for each in sources if isinstance(each, dict) and each.get("reservoirId") == table_id]
    return _time(lines, file), tuple(_version(each, file) for each in ours)


def _written(stores: Stores, location: str, checkpoint: str, query: str) -> tuple[Commit, AppTransaction]:
    """The newest commit of a query, and its ``txn``. Raises ``LiveError`` if none of the newest commits is of it."""
    log = open_log(stores, location, stores.managed(location))

    def read() -> tuple[Commit, AppTransaction] | None:
        wanted = commits_between(log, -1, None, _LOOK_BACK)
        recent = History(log, wanted).recent(_LOOK_BACK) if wanted else ()
        pairs = ((each.commit, txn) for each in recent for txn in each.commit.transactions)
        return next((pair for pair in pairs if pair[1].app_id == query), None)

    found = read_twice(read, read) if query else None
    if found is None:
        raise LiveError(
            f"{checkpoint}: the query does not read this table, because none of its sources has the table's id; and "
            f"it does not write it, because none of the newest {_LOOK_BACK} commits is a batch of it"
        )
    return found


def _time(lines: Sequence[bytes], file: str) -> int:
    """When a batch began, in milliseconds since the epoch; 0 if unknown."""
    return _whole(_object(lines[1], file).get("batchTimestampMs")) if len(lines) > 1 else 0


def _version(offset: Mapping[str, Any], file: str) -> int | None:
    version, index = _whole(offset.get("reservoirVersion")), offset.get("index")
    if not isinstance(index, int) or isinstance(index, bool) or abs(index) > _LARGEST:
        raise LiveError(f"{file}: an offset has no valid index")
    if index >= _AFTER_VERSION:
        return version
    return None if offset.get("isStartingVersion") is True else version - 1


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST else 0


def _object(raw: bytes, file: str) -> Mapping[str, Any]:
    found = _json(raw, file)
    if not isinstance(found, dict):
        raise LiveError(f"{file}: is not a JSON object")
    return found


def _json(raw: bytes, file: str) -> object:
    try:
        return parse_json(raw)
    except (ValueError, RecursionError) as error:
        raise LiveError(f"{file}: is not JSON: {type(error).__name__}") from error
