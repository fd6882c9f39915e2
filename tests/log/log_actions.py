"""The actions of logs made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LOCATION = "memory:///lake/t"
SPARK = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
Action = dict[str, Any]


def protocol(reader: int = 1, writer: int = 7, *features: str, readers: tuple[str, ...] = ()) -> Action:
    value: Action = {"minReaderVersion": reader, "minWriterVersion": writer, "writerFeatures": [*features, *readers]}
    return {"protocol": {**value, "readerFeatures": list(readers)} if reader >= 3 else value}


CLUSTERED = protocol(1, 7, "clustering", "domainMetadata")
PLAIN = protocol(1, 2)


def metadata(table: str = "one", columns: tuple[str, ...] = ("a", "b"), /, **properties: str) -> Action:
    fields = [{"name": column, "type": "long", "nullable": True, "metadata": {}} for column in columns]
    schema = json.dumps({"type": "struct", "fields": fields})
    return {"metaData": {"id": table, "schemaString": schema, "partitionColumns": [], "configuration": properties}}


def clustering(*columns: str, removed: bool = False) -> Action:
    text = json.dumps({"clusteringColumns": [[column] for column in columns]})
    return {"domainMetadata": {"domain": "delta.clustering", "configuration": text, "removed": removed}}


def info(txn: str = "", operation: str = "WRITE", **more: Any) -> Action:
    return {"commitInfo": {"operation": operation, "engineInfo": SPARK, **({"txnId": txn} if txn else {}), **more}}


def checksum(txn: str, state: Mapping[str, Any], domains: list[Action] | None = None, **more: Any) -> Action:
    known = {} if domains is None else {"domainMetadata": [domain["domainMetadata"] for domain in domains]}
    counts = {"numFiles": 4, "tableSizeBytes": 40, "numDeletionVectorsOpt": 1}
    return {"txnId": txn, "metadata": state["metaData"], **CLUSTERED, **counts, **known, **more}


def crc(version: int) -> str:
    return f"{version:020d}.crc"


def add(path: str, size: int, **more: Any) -> Action:
    return {"add": {"path": path, "size": size, "dataChange": True, **more}}
