"""A small reader of Delta logs, independent of the one that it checks: JSON commits, settings, rows.

Sources: the Delta protocol (https://github.com/delta-io/delta/blob/master/PROTOCOL.md), sections "Actions", "Deletion
Vector Format" and "Reader Requirements for Column Mapping"; for the bitmaps https://github.com/RoaringBitmap/RoaringFormatSpec.
It reads every commit from version 0 and refuses logs that were truncated.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

Json = Mapping[str, Any]
Row = tuple[int, int, int, int]
"""The columns ``w`` (writer), ``id``, ``v`` (value) and ``m`` of the harness's tables."""
COLUMNS = ("w", "id", "v", "m")

_CLUSTERING = "delta.clustering"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85 = bytes.maketrans(_Z85, _B85)
_VECTOR_MAGIC = 1681511377
_COOKIE_RUNS, _COOKIE = 12347, 12346
_NO_OFFSETS_BELOW = 4


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table."""

    version: int
    actions: tuple[Json, ...]
    at: float
    """When its file was written, in seconds since the epoch: its own timestamp is that of the commit's preparation."""

    @property
    def info(self) -> Json:
        """The commit's ``commitInfo``; empty where there is none."""
        return next((action["commitInfo"] for action in self.actions if "commitInfo" in action), {})

    @property
    def operation(self) -> str:
        """Its operation, as its writer named it."""
        return str(self.info.get("operation", ""))

    @property
    def user(self) -> str:
        """Its ``userMetadata``: the stamp of an apply, or the id of a writer's attempt."""
        return str(self.info.get("userMetadata") or "")

    @property
    def stamp(self) -> tuple[str, str] | None:
        """Run and plan of the apply that made it; ``None`` for anybody else's commit."""
        try:
            body = json.loads(self.user)["tablectl"]
            return str(body["run"]), str(body["plan"])
        except (ValueError, TypeError, KeyError):
            return None

    @property
    def sets(self) -> bool:
        """Whether it writes metadata, protocol or clustering columns."""
        return any("metaData" in action or "protocol" in action or _clusters(action) for action in self.actions)


@dataclass(frozen=True, slots=True)
class Log:
    """All commits of a table, from version 0 to the newest."""

    place: Path
    commits: tuple[Commit, ...]

    def since(self, version: int) -> tuple[Commit, ...]:
        """The commits above a version."""
        return tuple(commit for commit in self.commits if commit.version > version)


class LogError(Exception):
    """A log that this reader cannot replay."""


def read_log(place: Path) -> Log:
    """The log of the table in a folder. Raises ``LogError`` for a gap, and where version 0 is gone."""
    files = sorted(
        path for path in (place / "_delta_log").glob("*.json") if path.stem.isdigit() and len(path.stem) == 20
    )
    commits = tuple(Commit(int(path.stem), tuple(_lines(path)), path.stat().st_mtime) for path in files)
    if [commit.version for commit in commits] != list(range(len(commits))) or not commits:
        raise LogError(f"{place}: the versions are {[commit.version for commit in commits]}")
    return Log(place, commits)


def _lines(path: Path) -> Iterator[Json]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def _clusters(action: Json) -> bool:
    return "domainMetadata" in action and action["domainMetadata"].get("domain") == _CLUSTERING


Settings = dict[str, str]
"""What metadata commits set: one text for each property, feature, column, partition columns and clustering columns."""


def settings_after(before: Settings, commit: Commit) -> Settings:
    """The settings of a table after a commit."""
    after = dict(before)
    for action in commit.actions:
        if "protocol" in action:
            after = {key: value for key, value in after.items() if not key.startswith(("protocol.", "feature."))}
            after |= _protocol(action["protocol"])
        elif "metaData" in action:
            kept = ("protocol.", "feature.", "clustering")
            after = {key: value for key, value in after.items() if key.startswith(kept)} | _metadata(action["metaData"])
        elif _clusters(action):
            domain = action["domainMetadata"]
            after.pop("clustering", None)
            if not domain.get("removed"):
                columns = json.loads(domain["configuration"]).get("clusteringColumns", [])
                after["clustering"] = json.dumps(columns)
    return after


def _protocol(body: Json) -> Settings:
    found = {f"protocol.{key}": str(body[key]) for key in ("minReaderVersion", "minWriterVersion") if key in body}
    for kind in ("readerFeatures", "writerFeatures"):
        found |= {f"feature.{kind}.{name}": "yes" for name in body.get(kind) or ()}
    return found


def _metadata(body: Json) -> Settings:
    found = {f"property.{key}": str(value) for key, value in (body.get("configuration") or {}).items()}
    found["partitioning"] = json.dumps(body.get("partitionColumns") or [])
    for field in json.loads(body["schemaString"])["fields"]:
        found[f"column.{field['name']}"] = json.dumps(field, sort_keys=True)
    return found


def settings_at(log: Log, version: int) -> Settings:
    """The settings of a table at a version."""
    found: Settings = {}
    for commit in log.commits[: version + 1]:
        found = settings_after(found, commit)
    return found


def rows_at(log: Log, version: int) -> list[Row]:
    """The rows of a table at a version, from its Parquet files and deletion vectors."""
    files: dict[str, Json] = {}
    schema, partitions = "", list[str]()
    for commit in log.commits[: version + 1]:
        for action in commit.actions:
            if "remove" in action:
                files.pop(action["remove"]["path"], None)
        for action in commit.actions:
            if "add" in action:
                files[action["add"]["path"]] = action["add"]
            elif "metaData" in action:
                schema, partitions = action["metaData"]["schemaString"], action["metaData"]["partitionColumns"]
    physical = _physical_names(schema)
    return [row for add in files.values() for row in _file_rows(log.place, add, physical, partitions)]


def _physical_names(schema: str) -> dict[str, str]:
    fields = json.loads(schema)["fields"]
    return {field["name"]: field["metadata"].get("delta.columnMapping.physicalName", field["name"]) for field in fields}


def _file_rows(place: Path, add: Json, physical: Mapping[str, str], partitions: Sequence[str]) -> Iterator[Row]:
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  # half a second, and only rows need it

    given = {name: _whole(add["partitionValues"].get(physical[name])) for name in partitions}
    stored = [physical[name] for name in COLUMNS if name not in given]
    with ParquetFile(place / unquote(add["path"])) as file:
        table = file.read(columns=stored)
    columns = [
        [given[name]] * table.num_rows if name in given else table.column(physical[name]).to_pylist()
        for name in COLUMNS
    ]
    gone = deleted_positions(place, add.get("deletionVector"))
    for position, row in enumerate(zip(*columns, strict=True)):
        if position not in gone:
            yield row


def _whole(text: str | None) -> int | None:
    return int(text) if text else None


def deleted_positions(place: Path, vector: Json | None) -> frozenset[int]:
    """The positions of a file that its deletion vector marks as deleted."""
    if not vector:
        return frozenset()
    pointer = str(vector["pathOrInlineDv"])
    if vector["storageType"] == "i":
        return _bitmap_array(base64.b85decode(pointer.encode().translate(_FROM_Z85)))
    if vector["storageType"] == "u":
        name = UUID(bytes=base64.b85decode(pointer[-20:].encode().translate(_FROM_Z85)))
        path = place / pointer[:-20] / f"deletion_vector_{name}.bin"
    else:
        path = Path(unquote(pointer.removeprefix("file:")))
    data, offset = path.read_bytes(), int(vector.get("offset", 1))
    (size,) = struct.unpack_from(">i", data, offset)
    return _bitmap_array(data[offset + 4 : offset + 4 + size])


def _bitmap_array(data: bytes) -> frozenset[int]:
    """A RoaringBitmapArray in its portable form: the count of 32-bit bitmaps, each behind its upper 32 bits."""
    magic, count = struct.unpack_from("<iq", data, 0)
    if magic != _VECTOR_MAGIC:
        raise LogError(f"a deletion vector begins with {magic}")
    at, found = 12, set[int]()
    for _ in range(count):
        (upper,) = struct.unpack_from("<i", data, at)
        values, at = _bitmap(data, at + 4)
        found.update(upper << 32 | value for value in values)
    return frozenset(found)


def _bitmap(data: bytes, at: int) -> tuple[list[int], int]:
    """The values of one 32-bit Roaring bitmap, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    runs = b""
    if cookie & 0xFFFF == _COOKIE_RUNS:
        count = (cookie >> 16) + 1
        runs, at = data[at + 4 : at + 4 + (count + 7) // 8], at + 4 + (count + 7) // 8
    elif cookie == _COOKIE:
        (count,) = struct.unpack_from("<I", data, at + 4)
        at += 8
    else:
        raise LogError(f"a Roaring bitmap begins with {cookie}")
    heads = [struct.unpack_from("<HH", data, at + 4 * index) for index in range(count)]
    at += 4 * count + (4 * count if not runs or count >= _NO_OFFSETS_BELOW else 0)
    found: list[int] = []
    for index, (key, less) in enumerate(heads):
        is_run = bool(runs) and bool(runs[index // 8] >> (index % 8) & 1)
        low, at = _container(data, at, less + 1, is_run=is_run)
        found += [key << 16 | value for value in low]
    return found, at


def _container(data: bytes, at: int, cardinality: int, *, is_run: bool) -> tuple[list[int], int]:
    if is_run:
        (count,) = struct.unpack_from("<H", data, at)
        pairs = [struct.unpack_from("<HH", data, at + 2 + 4 * index) for index in range(count)]
        return [start + step for start, more in pairs for step in range(more + 1)], at + 2 + 4 * count
    if cardinality > 4096:
        bits = int.from_bytes(data[at : at + 8192], "little")
        return [value for value in range(65536) if bits >> value & 1], at + 8192
    return list(struct.unpack_from(f"<{cardinality}H", data, at)), at + 2 * cardinality
