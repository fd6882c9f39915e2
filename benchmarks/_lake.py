"""Delta logs as Delta Spark and delta-rs write them, without either: what the benchmarks read.

Only logs: nothing that is compared here ever opens a data file. Everything follows from a seed. What the files hold was
taken from tables that Delta Spark 4.4 and deltalake 1.6 wrote.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from _checkpoint import write_checkpoint

Json = dict[str, Any]
NEW_SPARK = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
OLD_SPARK = "Apache-Spark/3.4.1 Delta-Lake/2.4.0"
RUST = "delta-rs:py-1.6.6"
CHECKPOINT_INTERVAL = 10
_START = 1_700_000_000_000
TYPES = ("long", "string", "double", "date", "timestamp", "decimal(18,2)", "integer", "boolean")
_STEPS = (
    (8, 41, 4),
    (48, 121, 8),
    (124, 145, 4),
    (160, 577, 16),
    (640, 1409, 64),
    (1536, 2049, 128),
    (2304, 4097, 256),
)
_BOUNDS = [
    0,
    *(2**power for power in range(13, 23)),
    *(mib << 20 for steps in _STEPS for mib in range(*steps)),
    *(2**power for power in range(33, 39)),
]
"""The file sizes between which Delta Spark's checksums count."""
_FILES_IN_CHECKSUM = 50
"""Delta Spark puts the files themselves into the checksum of tables with so few."""


@dataclass
class Table:
    """One table's log, as long as it is written."""

    path: Path
    rng: random.Random
    columns: int = 10
    client: str = NEW_SPARK
    features: tuple[str, ...] = ()
    partitioned: bool = False
    clustered: bool = False
    properties: Json = field(default_factory=dict)
    checksums: bool = True
    interval: int = CHECKPOINT_INTERVAL
    types: Sequence[str] = TYPES
    version: int = -1
    files: dict[str, Json] = field(default_factory=dict)
    transactions: dict[str, Json] = field(default_factory=dict)
    counts: list[int] = field(default_factory=lambda: [0] * len(_BOUNDS))
    """Files by size, and their bytes, as the checksum has them."""
    sizes: list[int] = field(default_factory=lambda: [0] * len(_BOUNDS))

    def __post_init__(self) -> None:
        (self.path / "_delta_log").mkdir(parents=True)
        names = [f"column_{number}" for number in range(self.columns - 2)]
        typed = [("id", "long"), ("day", "date"), *((name, self.rng.choice(self.types)) for name in names)]
        self.schema = dict(typed)
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in typed]
        self.metadata: Json = {
            "id": self.uuid(),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": dumps({"type": "struct", "fields": fields}),
            "partitionColumns": ["day"] if self.partitioned else [],
            "configuration": self.properties,
            "createdTime": _START,
        }
        features = {*self.features, *({"clustering", "domainMetadata"} if self.clustered else ())}
        self.protocol: Json = {"minReaderVersion": 1, "minWriterVersion": 2}
        if features:
            self.protocol |= {"minWriterVersion": 7, "writerFeatures": ["appendOnly", "invariants", *sorted(features)]}
        if "deletionVectors" in features:
            self.protocol |= {"minReaderVersion": 3, "readerFeatures": ["deletionVectors"]}
        domain = {"clusteringColumns": [["id"], ["day"]], "domainName": "delta.clustering"}
        clustering = {"domain": "delta.clustering", "configuration": dumps(domain), "removed": False}
        self.domains: list[Json] = [clustering] if self.clustered else []
        first: list[Json] = [{"metaData": self.metadata}, {"protocol": self.protocol}]
        self.commit("CREATE TABLE", [*first, *({"domainMetadata": domain} for domain in self.domains)])

    def write(self, files: int = 1) -> None:
        """Append some files."""
        self.commit("WRITE", [{"add": self.new_file()} for _ in range(files)])

    def update(self, share: float = 0.3) -> None:
        """Replace some files, as MERGE does."""
        gone = [path for path in self.files if self.rng.random() < share]
        removes = [{"remove": {**_removed(self.files[path]), "deletionTimestamp": self.now}} for path in gone]
        self.commit("MERGE", [*removes, *({"add": self.new_file()} for _ in gone)])

    def stream(self, app: str) -> None:
        """Append a micro-batch."""
        last = self.transactions.get(app, {"version": -1})["version"]
        txn = {"appId": app, "version": last + 1, "lastUpdated": self.now}
        self.commit("STREAMING UPDATE", [{"txn": txn}, {"add": self.new_file()}])

    def set_properties(self, **properties: str) -> None:
        """``ALTER TABLE … SET TBLPROPERTIES``."""
        configuration = {**self.metadata["configuration"], **properties}
        self.metadata = {**self.metadata, "configuration": configuration}
        self.commit("SET TBLPROPERTIES", [{"metaData": self.metadata}])

    def commit(self, operation: str, actions: Sequence[Json]) -> None:
        """One version: its commit, its checksum, its checkpoint where one is due."""
        self.version += 1
        for action in actions:
            self._take(action)
        txn_id = self.uuid()
        info: Json = {
            "timestamp": self.now,
            "operation": operation,
            "operationParameters": {"mode": "Append", "partitionBy": "[]"} if operation == "WRITE" else {},
            "operationMetrics": {"numFiles": str(len(actions)), "numOutputRows": "1000", "numOutputBytes": "123456"},
            "engineInfo": self.client,
        }
        if self.client == RUST:
            info["clientVersion"] = "delta-rs.py-1.6.6"
        else:
            info |= {"readVersion": self.version - 1, "isolationLevel": "Serializable", "isBlindAppend": True}
            info["txnId"] = txn_id
        lines = [dumps({"commitInfo": info}), *map(dumps, actions)]
        self._file("json").write_text("\n".join(lines) + "\n")
        if self.checksums:
            self._file("crc").write_text(dumps(self.checksum(txn_id)))
        if self.interval and self.version and self.version % self.interval == 0:
            self.checkpoint()

    def checksum(self, txn_id: str) -> Json:
        """What Delta Spark writes next tos a commit."""
        histogram = {"sortedBinBoundaries": _BOUNDS, "fileCounts": self.counts, "totalBytes": self.sizes}
        few = len(self.files) <= _FILES_IN_CHECKSUM
        return {
            "txnId": txn_id,
            "tableSizeBytes": sum(self.sizes),
            "numFiles": len(self.files),
            "numDeletedRecordsOpt": 0,
            "numDeletionVectorsOpt": 0,
            "numMetadata": 1,
            "numProtocol": 1,
            "setTransactions": list(self.transactions.values()),
            "domainMetadata": self.domains,
            "metadata": self.metadata,
            "protocol": self.protocol,
            "fileSizeHistogram": histogram,
            "deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [len(self.files), *[0] * 9]},
            **({"allFiles": [{**file, "dataChange": False} for file in self.files.values()]} if few else {}),
        }

    def age(self, version: int, files: int) -> None:
        """Go on from a later version with so many files more, the log so far cleaned away."""
        for file in (self.path / "_delta_log").iterdir():
            file.unlink()
        self.version = version
        for _ in range(files):
            self._take({"add": self.new_file()})

    def checkpoint(self, *, parsed: bool = False) -> None:
        """A checkpoint of the newest version, and the hint that names it; with statistics as columns if asked for."""
        name = f"{self.version:020d}.checkpoint.parquet"
        size = write_checkpoint(
            self.path / "_delta_log" / name,
            state=[
                {"protocol": self.protocol},
                {"metaData": self.metadata},
                *({"domainMetadata": domain} for domain in self.domains),
                *({"txn": txn} for txn in self.transactions.values()),
            ],
            files=self.files.values(),
            parsed=self.schema if parsed else None,
        )
        hint = {"version": self.version, "size": size, "numOfAddFiles": len(self.files)}
        (self.path / "_delta_log" / "_last_checkpoint").write_text(dumps(hint))

    def new_file(self) -> Json:
        """An ``add`` action."""
        counted = {name: kind for name, kind in self.schema.items() if kind != "boolean"}
        low = {name: stat(kind, self.rng.randrange(10**8)) for name, kind in counted.items()}
        high = {name: stat(kind, self.rng.randrange(10**8, 10**9)) for name, kind in counted.items()}
        nulls = dict.fromkeys(self.schema, 0)
        stats = {"numRecords": 1000, "minValues": low, "maxValues": high, "nullCount": nulls, "tightBounds": True}
        day = "2024-01-01"
        folder = f"day={day}/" if self.partitioned else ""
        return {
            "path": f"{folder}part-00000-{self.uuid()}-c000.snappy.parquet",
            "partitionValues": {"day": day} if self.partitioned else {},
            "size": self.rng.randrange(10_000, 10**9),
            "modificationTime": self.now,
            "dataChange": True,
            "stats": dumps(stats),
        }

    @property
    def now(self) -> int:
        """The time of the newest commit."""
        return _START + 60_000 * self.version

    def uuid(self) -> str:
        """The next one of the seed."""
        return str(UUID(int=self.rng.getrandbits(128), version=4))

    def _take(self, action: Json) -> None:
        if "add" in action:
            self.files[action["add"]["path"]] = action["add"]
            self._count(action["add"], 1)
        elif "remove" in action:
            self._count(self.files.pop(action["remove"]["path"]), -1)
        elif "txn" in action:
            self.transactions[action["txn"]["appId"]] = action["txn"]

    def _count(self, file: Json, sign: int) -> None:
        place = bisect_right(_BOUNDS, file["size"]) - 1
        self.counts[place] += sign
        self.sizes[place] += sign * file["size"]

    def _file(self, suffix: str) -> Path:
        return self.path / "_delta_log" / f"{self.version:020d}.{suffix}"


def stat(kind: str, value: int) -> Any:
    """A value of a type's statistics."""
    match kind:
        case "string":
            return f"{value:08x}"
        case "double" | "decimal(18,2)":
            return value / 100
        case "date":
            return f"2024-{value % 12 + 1:02d}-{value % 28 + 1:02d}"
        case "timestamp":
            return f"2024-{value % 12 + 1:02d}-{value % 28 + 1:02d}T00:00:00.000Z"
        case _:
            return value


def _removed(file: Json) -> Json:
    kept = {key: file[key] for key in ("path", "partitionValues", "size")}
    return {**kept, "dataChange": True, "extendedFileMetadata": True}


def dumps(value: object) -> str:
    """JSON without blanks, as all writers write it."""
    return json.dumps(value, separators=(",", ":"))
