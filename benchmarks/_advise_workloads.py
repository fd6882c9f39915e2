"""Generated workloads for advice: jobs that write one table in virtual time, with real transactions of Delta.

A job begins a transaction, works for some virtual minutes and commits. In between, other jobs begin and commit. Each
transaction is real: it is held in a UDF until its virtual end. So Delta decides which ones fail, and nothing waits for
the virtual time to pass. A transaction that fails begins again at once, and the runner counts it.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _forecast_writers import DAY, HOUR, _hold

MINUTE = 60.0
START = 1_790_812_800.0
"""A Thursday in October 2026, in seconds since the epoch."""
LENGTH = DAY
"""The virtual time of a workload."""
_PATIENCE = 600.0
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

    committed: int = 0
    failed: int = 0
    lost: float = 0.0
    """Virtual seconds of the transactions that failed."""
    commits: dict[int, tuple[float, float]] = field(default_factory=dict)
    """The virtual end and the duration of each commit, by version."""


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
    """A real transaction that is held until it is released."""

    def __init__(self, session: Any, place: str, job: Job, folder: Path) -> None:
        """``session`` is the job's own."""
        self._folder = folder
        self._error = ""
        self._thread = threading.Thread(target=self._write, args=(session, place, job), daemon=True)
        self._thread.start()
        until = time.monotonic() + _PATIENCE
        while not (folder / "inside-0").exists():
            if not self._thread.is_alive() or time.monotonic() > until:
                raise SystemExit(f"a transaction never began: {self._error}")
            time.sleep(0.01)

    def release(self) -> bool:
        """Let it commit. Returns whether it did. Raises ``SystemExit`` if it failed for another reason."""
        (self._folder / "go").touch()
        self._thread.join()
        if self._error and not any(each in self._error for each in _FAILED):
            raise SystemExit(f"a writer failed for another reason: {self._error}")
        return not self._error

    def _write(self, session: Any, place: str, job: Job) -> None:
        session.udf.register("hold", _hold(str(self._folder), 0), "long")
        write = {
            "append": f"INSERT INTO delta.`{place}` SELECT hold(id), 'r{job.region}', 0L FROM range(1)",
            "update": f"UPDATE delta.`{place}` SET v = hold(v) WHERE region = 'r{job.region}'",
        }
        try:
            session.sql(write[job.kind])
        except Exception as error:  # noqa: BLE001  # the outcome
            self._error = f"{type(error).__name__}: {error}"[:2000]


def run(spark: Any, place: str, workload: Workload) -> Counters:
    """All jobs for the virtual time. Equal workloads have equal pauses and durations."""
    counters = Counters()
    plans = [_attempts(workload.seed, number, job) for number, job in enumerate(workload.jobs)]
    waiting = [(*next(plan), number) for number, plan in enumerate(plans)]
    events: list[tuple[float, int, float]] = [(begin, number, lasts) for begin, lasts, number in waiting]
    heapq.heapify(events)
    held: dict[int, _Transaction] = {}
    sessions = [spark.newSession() for _ in workload.jobs]
    with tempfile.TemporaryDirectory(prefix="advise-", dir=Path(place).parent) as folder:
        while events:
            now, number, lasts = heapq.heappop(events)
            if number not in held:
                if now < LENGTH:
                    inside = Path(tempfile.mkdtemp(dir=folder))
                    held[number] = _Transaction(sessions[number], place, workload.jobs[number], inside)
                    heapq.heappush(events, (now + lasts, number, lasts))
                continue
            committed = held.pop(number).release()
            _date_files(place, now)
            if committed:
                counters.committed += 1
                counters.commits[_newest(place)] = (now, lasts)
                pause, following = next(plans[number])
                heapq.heappush(events, (now + pause, number, following))
            else:
                counters.failed += 1
                counters.lost += lasts
                heapq.heappush(events, (now, number, lasts))
    _date_commits(place, counters)
    return counters


def _attempts(seed: int, number: int, job: Job) -> Iterator[tuple[float, float]]:
    """The pause before each transaction of a job, and its duration."""
    chosen = random.Random(seed * 100 + number)
    while True:
        yield chosen.expovariate(1 / job.pause), job.lasts * chosen.uniform(0.6, 1.4)


def _log(place: str) -> list[Path]:
    return sorted((Path(place) / "_delta_log").glob("*.json"))


def _newest(place: str) -> int:
    return int(_log(place)[-1].stem)


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
                if lasts and "executionTimeMs" in info.get("operationMetrics", {}):
                    info["operationMetrics"]["executionTimeMs"] = str(round(lasts * 1000))
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        for checksum in file.parent.glob(f".{file.name}.crc"):  # Hadoop's, of the old bytes
            checksum.unlink()


def texts(jobs: Sequence[Job]) -> tuple[str, ...]:
    """The jobs, for people."""
    return tuple(f"{job.kind}, {job.lasts / 60:.0f} min every {job.pause / 60:.0f} min" for job in jobs)
