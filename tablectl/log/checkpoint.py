"""Reads checkpoints of every kind with pyarrow. Import this module only to read one: pyarrow is slow to import.

Delta protocol, "Checkpoints": classic and multi-part checkpoints are Parquet files with one column per kind of action.
A V2 checkpoint is Parquet or JSON, with the file actions in Parquet sidecars. Only the required columns are read, only
in row groups where they have values, and only until all their values were found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from tablectl.delta.protocol import Protocol
from tablectl.log.checked_parquet import CheckedParquet, Spent, open_checked
from tablectl.log.history import read_commit
from tablectl.log.listing import Checkpoint, DamagedCheckpointError
from tablectl.log.parse_action import (
    DOMAINS,
    STATE_BYTES,
    STATISTICS,
    Counts,
    DomainMetadata,
    FileAction,
    Metadata,
    expect_object,
    expect_text,
    parse_domain,
    parse_file,
    parse_json,
    parse_metadata,
    parse_protocol,
    vector_id,
)
from tablectl.storage.table_log import TableLog

_STATE = {"metaData": "metaData.id", "protocol": "protocol.minReaderVersion", "domainMetadata": "domainMetadata.domain"}
"""Each column of the state, with a leaf that every action sets. Where the leaf is null, the row holds another action.

The columns are in the order in which Delta Spark stores them, so that one request to an object store fetches them all.
"""
_READ = {
    "protocol": ("protocol",),
    "metaData": ("metaData.id", "metaData.schemaString", "metaData.partitionColumns", "metaData.configuration"),
    "domainMetadata": ("domainMetadata",),
}
"""The columns to read for each of them."""
_FILES = ("add.path", "add.size", "add.deletionVector")
_CHECKPOINT_ONLY = frozenset({"checkpointMetadata", "sidecar"})
_BATCH = 1 << 16
_STATE_BATCH = 1 << 13
"""Delta Spark writes the state before all files, so usually one small batch is enough. delta-rs writes it last."""
_DAMAGE = (pa.ArrowException, OSError, ValueError, EOFError, LookupError, TypeError, ArithmeticError, MemoryError)
"""The errors that pyarrow and its values raise for a damaged file, found by flipping every bit of sample files."""


def _damaged(log: TableLog, checkpoint: Checkpoint, name: str, reason: str) -> DamagedCheckpointError:
    return DamagedCheckpointError(f"{log.file(name)}: the checkpoint cannot be read: {reason}", checkpoint.files)


def read_checkpoint(
    log: TableLog, checkpoint: Checkpoint
) -> tuple[Protocol | None, Metadata | None, tuple[DomainMetadata, ...]]:
    """The state in a checkpoint. Raises ``LiveError`` with the name of a damaged file."""
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    domains: list[DomainMetadata] = []
    spent = Spent()
    for name in checkpoint.files:
        if name.endswith(".json"):
            found = read_commit(log, name, checkpoint.version)
            if all(action.get("checkpointMetadata") is None for action in _json_actions(log, name)):
                raise _damaged(log, checkpoint, name, "it has no checkpointMetadata, so it is not complete")
            return found.protocol, found.metadata, found.domains
        with _parquet(log, checkpoint, name, spent) as file:
            for column, value in _state_rows(file):
                if column == "protocol":
                    protocol = parse_protocol(value)
                elif column == "metaData":
                    # The action in its JSON form. In Parquet a map is a list of pairs, and some writers set empty
                    # columns to null.
                    action = expect_object(value, "metaData")
                    columns, pairs = action.get("partitionColumns"), action.get("configuration")
                    metadata = parse_metadata(
                        {**action, "partitionColumns": columns or [], "configuration": dict(pairs or ())}
                    )
                else:
                    domain = parse_domain(value)
                    spent.domains += 1
                    spent.domain_text += len(domain.name) + len(domain.configuration)
                    if spent.domains > DOMAINS or spent.domain_text > STATE_BYTES:
                        raise ValueError(
                            f"{spent.domains:,} domains of {spent.domain_text:,} characters, more than any table has"
                        )
                    domains.append(domain)
    return protocol, metadata, tuple(domains)


def count_files(log: TableLog, checkpoint: Checkpoint, seen: set[tuple[str, str]]) -> Counts:
    """The totals of the checkpoint's files, except for files that later commits added or removed (``seen``)."""
    total = Counts()
    for name in checkpoint.files:
        if name.endswith(".json"):
            inline = list(_files_in_json(log, name, checkpoint, seen))
            vectors = sum(bool(file.key[1]) for file in inline)
            total = total.plus(Counts(len(inline), sum(file.size for file in inline), vectors))
            sidecars = _sidecars_in_json(log, checkpoint, name)
        else:
            with _parquet(log, checkpoint, name) as file:
                total = total.plus(_count(file, seen))
                sidecars = _sidecars_in_parquet(file)
        for counted in log.each(lambda sidecar: _count_sidecar(log, checkpoint, sidecar, seen), sidecars):
            total = total.plus(counted)
    return total


def checkpoint_files(
    log: TableLog, checkpoint: Checkpoint, seen: set[tuple[str, str]], columns: Sequence[str]
) -> Iterator[FileAction]:
    """The checkpoint's files with the given columns, except for files that later commits added or removed
    (``seen``).
    """
    for name in checkpoint.files:
        if name.endswith(".json"):
            yield from _files_in_json(log, name, checkpoint, seen, statistics=STATISTICS[0] in columns)
            sidecars = _sidecars_in_json(log, checkpoint, name)
        else:
            with _parquet(log, checkpoint, name) as file:
                yield from _files(file, seen, columns)
                sidecars = _sidecars_in_parquet(file)
        for sidecar in sidecars:
            with _parquet(log, checkpoint, f"_sidecars/{sidecar}") as file:
                yield from _files(file, seen, columns)


def _files(file: CheckedParquet, seen: set[tuple[str, str]], columns: Sequence[str]) -> Iterator[FileAction]:
    if "add" not in file.columns:
        return
    _expect_leaves(file, ["add.path", "add.size"])
    for batch in file.rows([*_FILES, *columns]):
        for row in batch.column("add").drop_null().to_pylist():
            vector = row.get("deletionVector")
            row["deletionVector"] = None if vector is None or vector.get("storageType") is None else vector
            action = parse_file("add", row, statistics=STATISTICS[0] in columns)
            if action.key not in seen:
                yield action


def named_files(log: TableLog, checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    """The path, decoded, and the deletion vector of each file that a checkpoint names, tombstones included."""
    for name in checkpoint.files:
        if name.endswith(".json"):
            yield from (each.key for each in read_commit(log, name, checkpoint.version, with_files=True).files)
            sidecars = _sidecars_in_json(log, checkpoint, name)
        else:
            with _parquet(log, checkpoint, name) as file:
                yield from _named(file)
                sidecars = _sidecars_in_parquet(file)
        for sidecar in sidecars:
            with _parquet(log, checkpoint, f"_sidecars/{sidecar}") as file:
                yield from _named(file)


def _named(file: CheckedParquet) -> Iterator[tuple[str, str]]:
    for kind in ("add", "remove"):
        if kind not in file.columns:
            continue
        _expect_leaves(file, [f"{kind}.path"])
        for batch in file.rows([f"{kind}.path", f"{kind}.deletionVector"]):
            for row in batch.column(kind).drop_null().to_pylist():
                if kind == "remove" and row.get("path") is None:
                    continue  # some writers store an action that is not there as an empty one
                vector = row.get("deletionVector")
                known = vector is not None and vector.get("storageType") is not None
                yield unquote(expect_text(row.get("path"), "path")), vector_id(vector) if known else ""


def _count_sidecar(log: TableLog, checkpoint: Checkpoint, name: str, seen: set[tuple[str, str]]) -> Counts:
    with _parquet(log, checkpoint, f"_sidecars/{name}") as file:
        return _count(file, seen)


@contextmanager
def _parquet(log: TableLog, checkpoint: Checkpoint, name: str, spent: Spent | None = None) -> Iterator[CheckedParquet]:
    """Opens a Parquet file of the log. Any error in its content becomes a ``LiveError``."""
    try:
        with open_checked(log.open(name), spent or Spent(), prefetch=spent is None) as file:
            yield file
    except _DAMAGE as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise _damaged(log, checkpoint, name, first) from error


def _state_rows(file: CheckedParquet) -> Iterator[tuple[str, Any]]:
    columns = [column for column in _STATE if column in file.columns]
    _expect_leaves(file, [_STATE[column] for column in columns])
    for group in range(file.groups):
        left = _held(file, group, columns)
        paths = [path for column in left for path in _READ[column]]
        batches = file.state(group, paths, _STATE_BATCH) if left else ()
        for batch in batches:
            for column in left:
                for value in _values(batch.column(column)):
                    yield column, value
                    left[column] -= 1
            if not any(left.values()):
                break


def _expect_leaves(file: CheckedParquet, leaves: Iterable[str]) -> None:
    known = file.paths
    for leaf in leaves:
        if leaf not in known:
            raise ValueError(f"there is no column {leaf}")


def _held(file: CheckedParquet, group: int, columns: Sequence[str]) -> dict[str, int]:
    """The number of values in each state column of a row group, counted by one leaf each. Columns without values are
    omitted.

    The footer's statistics would give it too. But no checksum protects a footer: one damaged bit could hide a value,
    and other damage makes pyarrow end the process when it is asked for statistics.
    """
    held = dict.fromkeys(columns, 0)
    leaves = [_STATE[column] for column in columns]
    for batch in file.state(group, leaves, _BATCH) if leaves else ():
        for column in columns:
            held[column] += len(batch.column(column)) - batch.column(column).null_count
    return {column: count for column, count in held.items() if count}


def _values(column: Any) -> Iterator[Any]:
    """The values of a column that are not null, found by bisection, because they are few."""
    if column.null_count == len(column):
        return
    if len(column) == 1:
        yield column[0].as_py()
        return
    half = len(column) // 2
    yield from _values(column.slice(0, half))
    yield from _values(column.slice(half))


def _count(file: CheckedParquet, seen: set[tuple[str, str]]) -> Counts:
    if "add" not in file.columns:
        return Counts()
    _expect_leaves(file, ["add.path", "add.size"])
    total = Counts()
    for batch in file.rows(_FILES):
        adds = batch.column("add").drop_null()
        total = total.plus(_count_rows(adds.to_pylist(), seen) if seen else _count_columns(adds))
    return total


def _count_columns(adds: Any) -> Counts:
    import pyarrow.compute as pc  # noqa: PLC0415  # slow to import, and needed only for counting

    vectors = 0
    if "deletionVector" in [field.name for field in adds.type]:
        storage = pc.struct_field(adds, ["deletionVector", "storageType"])
        vectors = len(storage) - storage.null_count
    return Counts(len(adds), pc.sum(pc.struct_field(adds, "size")).as_py() or 0, vectors)


def _count_rows(rows: list[Any], seen: set[tuple[str, str]]) -> Counts:
    files = size = vectors = 0
    for row in rows:
        vector = row.get("deletionVector")
        vector = None if vector is None or vector.get("storageType") is None else vector
        if (unquote(expect_text(row.get("path"), "path")), vector_id(vector)) in seen:
            continue
        files, size, vectors = files + 1, size + (row.get("size") or 0), vectors + (vector is not None)
    return Counts(files, size, vectors)


def _sidecars_in_parquet(file: CheckedParquet) -> list[str]:
    if "sidecar" not in file.columns:
        return []
    rows = (
        row
        for group in range(file.groups)
        for batch in file.state(group, ["sidecar.path"], _BATCH)
        for row in batch.column("sidecar").drop_null().to_pylist()
    )
    return list(dict.fromkeys(_sidecar_name(row) for row in rows))


def _files_in_json(
    log: TableLog, name: str, checkpoint: Checkpoint, seen: set[tuple[str, str]], *, statistics: bool = False
) -> Iterator[FileAction]:
    """The files that a V2 checkpoint names in itself and not in a sidecar."""
    files = read_commit(log, name, checkpoint.version, with_files=True, statistics=statistics).files
    return (file for file in files if file.added and file.key not in seen)


def _sidecars_in_json(log: TableLog, checkpoint: Checkpoint, name: str) -> list[str]:
    try:
        found = [action["sidecar"] for action in _json_actions(log, name) if action.get("sidecar") is not None]
        return list(dict.fromkeys(map(_sidecar_name, found)))
    except ValueError as error:
        raise _damaged(log, checkpoint, name, str(error)) from error


def _json_actions(log: TableLog, name: str) -> list[dict[str, Any]]:
    """The actions in a JSON checkpoint that do not occur in commits."""
    with closing(log.lines(name)) as lines:
        actions = (expect_object(parse_json(line), "the line") for line in lines if line.strip())
        return [action for action in actions if action.keys() & _CHECKPOINT_ONLY]


def _sidecar_name(value: object) -> str:
    """The file name of a sidecar. Sidecars are in ``_sidecars`` whatever directory their path names (Delta protocol,
    "Sidecar File Information").
    """
    path = unquote(expect_text(expect_object(value, "sidecar").get("path"), "the sidecar's path"))
    name = path.rsplit("/", 1)[-1]
    if name in {"", ".", ".."}:
        raise ValueError("a sidecar has no name")
    return name
