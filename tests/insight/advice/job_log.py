"""Logs of jobs that write a table, as Delta Spark writes them, for tests of advice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tablectl.attributes.policy import Policy
from tablectl.delta.schema import Field
from tablectl.insight.advice.advice_records import Advice, TableFacts
from tablectl.insight.advice.advise import advise
from tablectl.insight.advice.jobs import find_jobs
from tablectl.log.column_values import column_values
from tablectl.log.recent_commits import read_past_commits
from tablectl.model.commit import WriteHistory
from tablectl.model.commit_contents import ColumnValues, PastCommits
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tests.builders import read_path
from tests.commands.log_lake import append, create

GB = 1_000_000_000
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
    ranges: dict[str, tuple[Any, Any]] = field(default_factory=lambda: {"region": ("r0", "r3")})
    """The least and the greatest values of each file; ``{}`` for files without statistics."""
    rows: int = 4
    """The rows of each file."""
    live: list[str] = field(default_factory=list)
    """The files of the current version, the oldest first."""

    def __post_init__(self) -> None:
        create(
            self.path,
            columns=self.columns,
            partitions=self.partitions,
            properties=self.properties,
            features=self.features,
        )
        first = self.path / "_delta_log" / f"{1:020d}.json"
        lines = [json.loads(each) for each in first.read_text().splitlines()]
        for each in lines:
            if "add" in each:
                each["add"] |= self.statistics(self.ranges)
                self.live.append(each["add"]["path"])
        first.write_text("".join(json.dumps(each) + "\n" for each in lines))

    def statistics(self, ranges: dict[str, tuple[Any, Any]]) -> dict[str, str]:
        """The entry of a file with its statistics."""
        least, greatest = ({name: ends[place] for name, ends in ranges.items()} for place in (0, 1))
        found = {
            "numRecords": self.rows,
            "minValues": least,
            "maxValues": greatest,
            "nullCount": dict.fromkeys(ranges, 0),
        }
        return {"stats": json.dumps(found)} if ranges else {}

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
        size: int = 10,
        ranges: dict[str, tuple[Any, Any]] | None = None,
        **info: Any,
    ) -> int:
        """One commit, which took so many milliseconds, by the rules of Delta Spark 4.4."""
        number, facts = self.now, {"partitionValues": partition or {}, "size": size, "dataChange": True}
        gone = [self.live.pop() if self.live else f"old-{number}-{i}.parquet" for i in range(removes)]
        if operation == "WRITE":
            self.live += reversed(gone)
            gone = []
        actions: list[dict[str, Any]] = [{"remove": {"path": each, **facts}} for each in gone]
        added = self.statistics(self.ranges if ranges is None else ranges)
        actions.append({"add": {"path": f"new-{number}.parquet", **facts, **added}})
        self.live.append(f"new-{number}.parquet")
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


def advised(
    log: JobLog, policy: Policy | None = None, dialect: str = "oss", options: TableOptions = NO_OPTIONS, **state: Any
) -> tuple[Sequence[Advice], Sequence[str]]:
    """The advice for a table with this log, whose current state is given, and what is unknown."""
    past, live = log.past(), read_path(str(log.path))
    written = WriteHistory(tuple(each.commit for each in past.commits), past.cut)

    def values(column: Field, updates: Mapping[int, frozenset[str]]) -> ColumnValues:
        with Stores(StoreOptions()) as stores:
            return column_values(stores, str(log.path), live.version, column, updates)

    return advise(
        TableFacts(
            live=replace(live, **{"files": 10, "bytes": GB, "vectors": 0, "past": written, **state}),
            past=past,
            jobs=find_jobs(past.commits),
            dialect=dialect,
            policy=policy or Policy(),
            options=options,
            values=values,
        )
    )


def codes(log: JobLog, **state: Any) -> list[str]:
    """The codes of the advice."""
    return [each.code for each in advised(log, **state)[0]]
