"""Generated workloads for advice: jobs that write one table in virtual time, with real transactions of Delta.

A job begins a transaction, works for some virtual minutes and commits. In between, other jobs begin and commit. Each
transaction is Delta's own (``OptimisticTransaction``): it reads when it begins, and tries to commit at its virtual end.
So Delta decides which ones fail, and nothing waits for the virtual time to pass. A transaction that fails begins again
at once, and the runner counts it.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from _forecast_writers import DAY, HOUR

MINUTE = 60.0
START = 1_790_812_800.0
"""A Thursday in October 2026, in seconds since the epoch."""
LENGTH = DAY
"""The virtual time of a workload."""
_FAILED = ("CONCURRENT", "Concurrent", "METADATA_CHANGED", "MetadataChanged")
HEALTHY = ("partitioned", "seldom", "appends", "short")
SICK = ("regions", "regions and appends", "wide regions")


@dataclass(frozen=True)
class Job:
    """A writer of a workload."""

    kind: str
    """``update`` of its own region, or ``append``."""
    region: int
    lasts: float
    """The mean duration of a transaction, in virtual seconds."""
    pause: float
    """The mean time between two of them."""


@dataclass(frozen=True)
class Workload:
    """The jobs of a seed, and whether the table has partitions from the beginning."""

    seed: int
    name: str
    jobs: tuple[Job, ...]
    partitioned: bool = False

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to improve."""
        return self.name in HEALTHY


@dataclass
class Counters:
    """What the runner counts."""

    failures: list[tuple[float, float]] = field(default_factory=list)
    """The virtual beginning and the duration of each transaction that failed."""
    commits: dict[int, tuple[float, float]] = field(default_factory=dict)
    """The virtual end and the duration of each commit, by version."""

    def weekly(self, length: float) -> float:
        """The seconds lost a week, by the transactions that began before a virtual time and failed."""
        return round(sum(lasts for begin, lasts in self.failures if begin < length) * 7 * DAY / length, 1)


def generate(seed: int) -> Workload:
    """Of 30 consecutive seeds, 8 are healthy."""
    chosen = random.Random(seed)
    healthy = seed % 30 in {3, 7, 11, 14, 18, 22, 25, 29}
    name = chosen.choice(HEALTHY if healthy else SICK)
    count = chosen.randint(3, 4) if name != "wide regions" else 5
    pause, lasts = _times(name, chosen)
    updates = [Job("update", number, lasts * chosen.uniform(0.7, 1.3), pause) for number in range(count)]
    appends = [Job("append", count, 5 * MINUTE, 2 * HOUR) for _ in range(2)]
    jobs = {"appends": appends, "regions and appends": [*updates, *appends]}.get(name, updates)
    return Workload(seed, name, tuple(jobs), partitioned=name == "partitioned")


def _times(name: str, chosen: random.Random) -> tuple[float, float]:
    """The mean pause between two updates of a job, and their mean duration."""
    # Below 30 writes nothing is advised: three jobs make about 33 in a day.
    pause, lasts = chosen.uniform(0.9, 1.6) * HOUR, chosen.uniform(10, 35) * MINUTE
    return {"seldom": (10 * HOUR, 10 * MINUTE), "short": (pause, lasts / 100)}.get(name, (pause, lasts))


def create(spark: Any, place: str, workload: Workload) -> None:
    """The table of a workload: a row for each region, in one file if it has no partitions."""
    layout = "PARTITIONED BY (region) " if workload.partitioned else ""
    spark.sql(
        f"CREATE TABLE delta.`{place}` (id BIGINT, region STRING, v BIGINT) USING delta {layout}"
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', 'delta.checkpointInterval' = '100')"
    )
    spark.sql(f"INSERT INTO delta.`{place}` SELECT id, concat('r', id), 0 FROM range(0, 8, 1, 1)")


class _Transaction:
    """A transaction of Delta's own: it reads the files of its condition now, and tries to commit later.

    Delta decides whether it fails. Its files are copies of those that it removes, so no query runs.
    """

    def __init__(self, spark: Any, place: str, job: Job, condition: Any) -> None:
        """``condition`` is a resolved expression; ``None`` for an append."""
        self._place = Path(place)
        self._job = job
        self._jvm, session = spark._jvm, spark._jsparkSession  # noqa: SLF001  # transactions have no Python API
        self._delta = self._jvm.org.apache.spark.sql.delta
        self._transaction = self._delta.DeltaLog.forTable(session, place).startTransaction()
        self._operation, self._files = self._append() if condition is None else self._update(condition)

    def _append(self) -> tuple[Any, list[Any]]:
        nothing = self._jvm.scala.Option.empty()
        write = getattr(self._delta, "DeltaOperations$Write")
        return write(self._jvm.org.apache.spark.sql.SaveMode.Append, *[nothing] * 8), []

    def _update(self, condition: Any) -> tuple[Any, list[Any]]:
        found = self._transaction.filterFiles(self._jvm.PythonUtils.toSeq([condition]), False)  # noqa: FBT003  # of Java
        update = getattr(self._delta, "DeltaOperations$Update")
        return update(self._jvm.scala.Option.apply(condition)), [found.apply(each) for each in range(found.size())]

    def commit(self) -> int | None:
        """The version of its commit; ``None`` if it fails because of another one."""
        action = self._delta.actions.Action
        changed = [json.loads(each.json())["add"] for each in self._files]
        written = [self._copy(each) for each in changed] or [self._row()]
        made = [each.remove() for each in self._files]
        made += [action.fromJson(json.dumps({"add": {**each, "dataChange": True}})) for each in written]
        try:
            return int(self._transaction.commit(self._jvm.PythonUtils.toSeq(made), self._operation))
        except Exception as error:
            if not any(each in str(error) for each in _FAILED):
                raise
            return None

    def _copy(self, file: dict[str, Any]) -> dict[str, Any]:
        new = str(Path(file["path"]).with_name(f"part-{uuid4()}.parquet"))
        shutil.copy(self._place / file["path"], self._place / new)
        # A file of a transaction's own snapshot may come without the statistics, which every UPDATE writes.
        rows = pq.read_table(self._place / file["path"]).to_pylist()
        return {**file, "path": new, "modificationTime": 0, "stats": json.dumps(_statistics(rows))}

    def _row(self) -> dict[str, Any]:
        """A file with one row of the job's region."""
        row: dict[str, Any] = {"id": 0, "region": f"r{self._job.region}", "v": 0}
        partitioned = self._transaction.metadata().partitionColumns().size() > 0
        partition = {"region": row.pop("region")} if partitioned else {}
        new = "".join(f"{name}={value}/" for name, value in partition.items()) + f"part-{uuid4()}.parquet"
        (self._place / new).parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist([row]), self._place / new)
        file = {"path": new, "partitionValues": partition, "size": (self._place / new).stat().st_size}
        return {**file, "modificationTime": 0, "stats": json.dumps(_statistics([row]))}


def _statistics(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    ends = {key: sorted(row[key] for row in rows) for key in rows[0]}
    least, greatest = ({key: values[end] for key, values in ends.items()} for end in (0, -1))
    return {
        "numRecords": len(rows),
        "minValues": least,
        "maxValues": greatest,
        "nullCount": dict.fromkeys(ends, 0),
    }


def _condition(spark: Any, place: str, job: Job) -> Any:
    """The condition of an update, as Spark resolves it; ``None`` for an append."""
    if job.kind == "append":
        return None
    rows = spark.read.format("delta").load(place).where(f"region = 'r{job.region}'")
    return rows._jdf.queryExecution().analyzed().condition()  # noqa: SLF001  # as above


def run(spark: Any, place: str, workload: Workload, length: float = LENGTH) -> Counters:
    """All jobs for some virtual time. Equal workloads have equal pauses and durations."""
    counters = Counters()
    plans = [_attempts(workload.seed, number, job) for number, job in enumerate(workload.jobs)]
    waiting = [(*next(plan), number) for number, plan in enumerate(plans)]
    events: list[tuple[float, int, float]] = [(begin, number, lasts) for begin, lasts, number in waiting]
    heapq.heapify(events)
    conditions = [_condition(spark, place, job) for job in workload.jobs]
    begun: dict[int, _Transaction] = {}
    while events:
        now, number, lasts = heapq.heappop(events)
        if number not in begun:
            if now < length:
                begun[number] = _Transaction(spark, place, workload.jobs[number], conditions[number])
                heapq.heappush(events, (now + lasts, number, lasts))
            continue
        version = begun.pop(number).commit()
        _date_files(place, now)
        if version is None:
            counters.failures.append((now - lasts, lasts))
            heapq.heappush(events, (now, number, lasts))
        else:
            counters.commits[version] = (now, lasts)
            pause, following = next(plans[number])
            heapq.heappush(events, (now + pause, number, following))
    _date_commits(place, counters)
    return counters


def _attempts(seed: int, number: int, job: Job) -> Iterator[tuple[float, float]]:
    """The pause before each transaction of a job, and its duration."""
    chosen = random.Random(seed * 100 + number)
    while True:
        yield chosen.expovariate(1 / job.pause), job.lasts * chosen.uniform(0.6, 1.4)


def _log(place: str) -> list[Path]:
    return sorted((Path(place) / "_delta_log").glob("*.json"))


def _date_files(place: str, now: float) -> None:
    """Give the files that are new the virtual time: their real time is after the virtual one."""
    for file in Path(place).rglob("*.parquet"):
        if file.stat().st_mtime > START + 2 * LENGTH:
            os.utime(file, (START + now, START + now))


def _date_commits(place: str, counters: Counters) -> None:
    """Give the commits the virtual times, as if the jobs had taken so long."""
    for file in _log(place):
        end, lasts = counters.commits.get(int(file.stem), (0.0, 0.0))
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            if info := line.get("commitInfo"):
                info["timestamp"] = round((START + end) * 1000)
                if lasts and info["operation"] == "UPDATE":  # Spark records no duration of an append
                    info["operationMetrics"] = {"executionTimeMs": str(round(lasts * 1000))}
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        for checksum in file.parent.glob(f".{file.name}.crc"):  # Hadoop's, of the old bytes
            checksum.unlink()


def texts(jobs: Sequence[Job]) -> tuple[str, ...]:
    """The jobs, for people."""
    return tuple(f"{job.kind}, {job.lasts / 60:.0f} min every {job.pause / 60:.0f} min" for job in jobs)
