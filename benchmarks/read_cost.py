"""The reader alone: CPU for each of a thousand unchanged tables on a disk, from their logs and from the cache.

`python benchmarks/read_cost.py [--tables N] [--repeat N]` makes tables of five commits by hand: *A* with checksums, *B*
without. The *bound* is what no reader can avoid: list each log, read the bytes that its state is in, parse their JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablectl.delta.names import TableName
from tablectl.log.disk_cache import DiskCache
from tablectl.log.reader import ReadRequest, read_many
from tablectl.log.table_cache import NoCache, TableCache
from tablectl.model.table import Depth

_COMMITS = 5
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}


def _metadata(table: int) -> dict[str, Any]:
    fields = [{"name": f"c{column}", "type": "long", "nullable": True, "metadata": {}} for column in range(20)]
    schema = json.dumps({"type": "struct", "fields": fields})
    return {"id": f"id{table}", "schemaString": schema, "partitionColumns": [], "configuration": {"team": "web"}}


def _write(log: Path, table: int, *, checksums: bool) -> None:
    log.mkdir(parents=True)
    metadata = _metadata(table)
    for version in range(_COMMITS):
        txn = f"t{table}-{version}"
        actions: list[dict[str, Any]] = [{"commitInfo": {"operation": "WRITE", "txnId": txn, "timestamp": version}}]
        if version == 0:
            actions += [{"protocol": _PROTOCOL}, {"metaData": metadata}]
        actions.append({"add": {"path": f"p{version}", "size": 1, "dataChange": True, "partitionValues": {}}})
        (log / f"{version:020d}.json").write_text("".join(f"{json.dumps(action)}\n" for action in actions))
        if checksums:
            counts = {"numFiles": version + 1, "tableSizeBytes": version + 1, "numDeletionVectorsOpt": 0}
            body = {"txnId": txn, "protocol": _PROTOCOL, "metadata": metadata, "domainMetadata": [], **counts}
            (log / f"{version:020d}.crc").write_text(json.dumps(body))


def _microseconds(places: list[str], cache: TableCache, rounds: int) -> float:
    """CPU for each table, the least of ``rounds`` after a first one."""
    requests = [ReadRequest(TableName("", (place,)), place, lambda _live: Depth()) for place in places]
    seconds = []
    for _ in range(rounds + 1):
        start = time.process_time()
        for _ in read_many(requests, cache=cache):
            pass
        seconds.append(time.process_time() - start)
    return min(seconds[1:]) / len(places) * 1e6


def _bound(places: list[str], rounds: int, *, checksums: bool) -> float:
    """CPU for each table to list the log, and to read and parse the newest commit and its checksum, or all commits."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        for place in places:
            log = f"{place}/_delta_log"
            names = sorted(entry.name for entry in os.scandir(log))
            commits = [name for name in names if name.endswith(".json")]
            for name in [commits[-1], names[names.index(commits[-1]) - 1]] if checksums else commits:
                with open(f"{log}/{name}", "rb") as file:  # noqa: PTH123  # the least that Python can do
                    for line in file:
                        json.loads(line)
        seconds.append(time.process_time() - start)
    return min(seconds) / len(places) * 1e6


@dataclass(frozen=True, slots=True)
class ReadCost:
    """CPU for each table of a kind, in microseconds."""

    kind: str
    bound: float
    log: float
    cache: float


def measure(tables: int, repeat: int) -> list[ReadCost]:
    """Both kinds."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, checksums in (("A, with checksums", True), ("B, without", False)):
            places = [f"{folder}/{kind[0]}/t{table}" for table in range(tables)]
            for table, place in enumerate(places):
                _write(Path(place, "_delta_log"), table, checksums=checksums)
            bound = _bound(places, repeat, checksums=checksums)
            log = _microseconds(places, NoCache(), repeat)
            found.append(ReadCost(kind, bound, log, _microseconds(places, DiskCache(Path(folder, "cache")), repeat)))
    return found


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=4)
    asked = parser.parse_args()
    count: int = asked.tables
    sys.stdout.write(f"{count:,} unchanged tables of {_COMMITS} commits, CPU of the reader for each\n\n")
    for each in measure(count, asked.repeat):
        sys.stdout.write(
            f"{each.kind:20} bound {each.bound:5.0f} µs   log {each.log:5.0f} µs ({each.log / each.bound:.1f}×)   "
            f"cache {each.cache:5.0f} µs\n"
        )


if __name__ == "__main__":
    main()
