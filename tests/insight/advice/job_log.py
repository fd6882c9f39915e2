"""Logs of jobs that write a table, as Delta Spark writes them, for tests of advice."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tablectl.log.commit_files import read_past_commits
from tablectl.model.commits import PastCommits
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tests.commands.log_lake import append, create

MONDAY = 1_793_577_600_000
"""2 November 2026, 00:00 UTC."""
SECOND, MINUTE, DAY = 1000, 60_000, 86_400_000
COLUMNS = {"id": "long", "region": "string", "day": "date", "v": "long"}


@dataclass
class JobLog:
    """A table and its clock, in milliseconds."""

    path: Path
    now: int = MONDAY
    partitions: tuple[str, ...] = ()
    columns: dict[str, str] = field(default_factory=lambda: COLUMNS)
    properties: dict[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    files: int = 0
    """The size of the table after all, for its checksum."""
    bytes: int = 0

    def __post_init__(self) -> None:
        create(
            self.path,
            columns=self.columns,
            partitions=self.partitions,
            properties=self.properties,
            features=self.features,
        )

    def write(
        self,
        operation: str,
        predicate: str = "",
        *,
        took: int = 0,
        partition: dict[str, str] | None = None,
        read: int | None = None,
        blind: bool = False,
        removes: int = 1,
        **info: Any,
    ) -> int:
        """One commit, which took so many milliseconds, by the rules of Delta Spark 4.4."""
        values = partition or {}
        number = self.now
        actions: list[dict[str, Any]] = [
            {"remove": {"path": f"old-{number}-{i}.parquet", "partitionValues": values, "size": 10, "dataChange": True}}
            for i in range(0 if operation == "WRITE" else removes)
        ]
        actions.append(
            {"add": {"path": f"new-{number}.parquet", "partitionValues": values, "size": 10, "dataChange": True}}
        )
        version = append(self.path, operation, actions)
        file = self.path / "_delta_log" / f"{version:020d}.json"
        first, *rest = file.read_text().splitlines()
        body = json.loads(first)
        metrics = info.pop("metrics", {})
        body["commitInfo"] |= {
            "timestamp": self.now,
            "operationParameters": {"predicate": json.dumps([predicate]), "mode": "Append"}
            if predicate
            else {"mode": "Append"},
            "operationMetrics": {"executionTimeMs": str(took), **metrics} if took else metrics,
            "readVersion": version - 1 if read is None else read,
            "isBlindAppend": blind,
            **info,
        }
        file.write_text("\n".join([json.dumps(body), *rest]) + "\n")
        return version

    def wait(self, milliseconds: int) -> None:
        """Time passes."""
        self.now += milliseconds

    def regions(self, rounds: int, count: int = 4, took: int = 8 * SECOND) -> None:
        """So many jobs that each update their own region, one commit right after the other."""
        for _ in range(rounds):
            for region in range(count):
                self.wait(took)
                self.write(
                    "UPDATE", f"((region#12 = r{region}) AND (id#13L > 0))", took=took, partition=self.of(f"r{region}")
                )

    def past(self) -> PastCommits:
        """Its commits, as they are read."""
        with Stores(StoreOptions()) as stores:
            return read_past_commits(stores, str(self.path), 30, list_files=False)

    def of(self, region: str) -> dict[str, str]:
        """The partition values of a region."""
        return {"region": region} if "region" in self.partitions else {}
