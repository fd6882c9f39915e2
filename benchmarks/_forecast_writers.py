"""Generated workloads for the forecast: writers with known timetables, their past as a Delta log, and real transactions
that are held in flight.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

HOUR = 3600.0
DAY = 24 * HOUR
WEEKS = 4
KINDS = ("append", "update", "merge")
OURS = re.compile(r"MetadataChanged|METADATA_CHANGED")
_OPERATIONS = {"append": "WRITE", "update": "UPDATE", "merge": "MERGE"}
_FIRST_FILE = 0.12
"""The part of a write after which its first file is there: 64 files on 8 cores, as in `_forecast_tables`."""
_ENGINE = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
_COLUMNS = (("w", "integer"), ("v", "long"))
_PATIENCE = 600.0
"""Seconds after which a transaction that is held goes on: only a wrong benchmark waits so long."""


@dataclass(frozen=True)
class Timetable:
    """One writer of a workload. It writes one transaction after the other."""

    kind: str
    active: frozenset[int]
    """The hours of the day in which it begins transactions."""
    lasts: float
    """The mean duration of a transaction, in seconds."""
    pause: float
    """The mean time between two of them, in seconds."""

    def text(self) -> str:
        """``merge, 24 min every 51 min, 10 h a day``."""
        return f"{self.kind}, {self.lasts / 60:.0f} min every {self.pause / 60:.0f} min, {len(self.active)} h a day"


@dataclass(frozen=True)
class Transaction:
    """One transaction of a writer, in seconds since the epoch."""

    writer: int
    start: float
    end: float


def generate(seed: int) -> tuple[Timetable, ...]:
    """The writers of a seed. Five of six workloads have a part of the day in which no transaction begins."""
    chosen = random.Random(seed)
    begin, length = chosen.randrange(24), chosen.randint(4, 10)
    gap = {(begin + hour) % 24 for hour in range(length)} if seed % 6 else set[int]()
    return tuple(_timetable(chosen, gap) for _ in range(chosen.randint(2, 5)))


def _timetable(chosen: random.Random, gap: set[int]) -> Timetable:
    begin, length = chosen.randrange(24), chosen.choice([4, 8, 12, 24])
    active = frozenset((begin + hour) % 24 for hour in range(length)) - gap
    if len(active) < 2:
        active = frozenset(range(24)) - gap
    return Timetable(chosen.choice(KINDS), active, chosen.uniform(120, 3000), chosen.uniform(2400, 9000))


def simulate(writers: Sequence[Timetable], start: float, end: float, seed: int) -> list[Transaction]:
    """What the writers do between two times: Poisson pauses, durations of 60 to 140 % of the mean."""
    found = []
    for number, each in enumerate(writers):
        chosen = random.Random(seed * 100 + number)
        now = start
        while True:
            now += chosen.expovariate(1 / each.pause)
            while int(now % DAY // HOUR) not in each.active:
                now = (now // HOUR + 1) * HOUR + chosen.uniform(0, 900)
            if now >= end:
                break
            found.append(Transaction(number, now, now + each.lasts * chosen.uniform(0.6, 1.4)))
            now = found[-1].end
    return sorted(found, key=lambda each: each.end)


def create(spark: Any, place: str, writers: int) -> None:
    """The table of a workload. Each writer has a partition with one row, so writers do not fail each other."""
    spark.sql(
        f"CREATE TABLE delta.`{place}` (w INT, v LONG) USING delta PARTITIONED BY (w) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    )
    spark.sql(f"INSERT INTO delta.`{place}` SELECT CAST(id AS INT), 0L FROM range({writers})")


def create_log(place: str, writers: int) -> None:
    """The log of the same table without Spark, for a simulated run."""
    log = Path(place) / "_delta_log"
    log.mkdir(parents=True)
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _COLUMNS]
    metadata: dict[str, Any] = {"id": f"table-{Path(place).name}", "format": {"provider": "parquet", "options": {}}}
    metadata |= {"schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": ["w"]}
    metadata |= {"configuration": {}, "createdTime": 0}
    info: dict[str, Any] = {"timestamp": 1, "operation": "CREATE TABLE", "engineInfo": _ENGINE}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    _commit(log, 0, [{"commitInfo": info}, {"protocol": protocol}, {"metaData": metadata}])
    info = {"timestamp": 2, "operation": "WRITE", "engineInfo": _ENGINE, "operationParameters": {"mode": "Append"}}
    files = [
        {"path": f"w={key}/first.parquet", "partitionValues": {"w": str(key)}, "size": 1, "dataChange": True}
        for key in range(writers)
    ]
    _commit(log, 1, [{"commitInfo": info}, *({"add": {**each, "modificationTime": 2}} for each in files)])


def write_past(place: str, writers: Sequence[Timetable], past: Sequence[Transaction]) -> None:
    """Add the commits of past transactions to the log of a table, with what Delta 4.4.0 records of each.

    Their files do not exist. A last commit, which has the stamp of an apply and is not a write, removes them again. A
    checkpoint follows, as Delta writes one every ten commits: without it, Spark replays the whole log for each commit.
    """
    log = Path(place) / "_delta_log"
    first = len(list(log.glob("*.json")))
    for old in log.glob("*.json"):
        _age(old, past[0].end)
    (log / f"{first - 1:020d}.crc").unlink(missing_ok=True)
    ends = [each.end for each in past]
    for number, each in enumerate(past):
        kind = writers[each.writer].kind
        times = (each.start + (each.end - each.start) * _FIRST_FILE, each.end)
        added = [
            {
                "add": {
                    "path": f"w={each.writer}/past-{number}-{part}.parquet",
                    "partitionValues": {"w": str(each.writer)},
                    "size": 1,
                    "modificationTime": round(at * 1000),
                    "dataChange": True,
                }
            }
            for part, at in enumerate(times)
        ]
        info: dict[str, Any] = {
            "timestamp": round(each.end * 1000),
            "operation": _OPERATIONS[kind],
            "operationParameters": {"mode": "Append"} if kind == "append" else {},
            "readVersion": first + bisect_right(ends, each.start) - 1,
            "isolationLevel": "Serializable",
            "isBlindAppend": kind == "append",
            "engineInfo": _ENGINE,
            "userName": f"writer {each.writer}",
            "operationMetrics": {"numOutputRows": "1"},
        }
        if kind != "append":  # Spark records no duration of an append
            info["operationMetrics"] = {"executionTimeMs": str(round((each.end - each.start) * 1000))}
        _commit(log, first + number, [{"commitInfo": info}, *added])
    gone = [
        {
            "remove": {
                "path": f"w={each.writer}/past-{number}-{part}.parquet",
                "dataChange": True,
                "deletionTimestamp": 0,
            }
        }
        for number, each in enumerate(past)
        for part in range(2)
    ]
    info = {"timestamp": round(ends[-1] * 1000), "operation": "DELETE", "engineInfo": _ENGINE}
    info["userMetadata"] = '{"tablectl":"the past is only in the log"}'
    _commit(log, first + len(past), [{"commitInfo": info}, *gone])
    DeltaTable(place).create_checkpoint()


def _age(commit: Path, end: float) -> None:
    """A commit of the table's creation, with the time of the first past commit."""
    lines = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["timestamp"] = round(end * 1000) - 1
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for checksum in commit.parent.glob(f".{commit.name}.crc"):  # Hadoop's, of the old bytes
        checksum.unlink()


def _commit(log: Path, version: int, actions: Sequence[dict[str, Any]]) -> None:
    # Without spaces, as Delta writes it: the times of files are searched in the text.
    text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
    (log / f"{version:020d}.json").write_text(text, encoding="utf-8")


@dataclass
class Held:
    """Real transactions of some writers, held in flight on one table."""

    spark: Any
    place: str
    writers: Sequence[Timetable]
    errors: dict[int, str] = field(default_factory=dict)
    """The error of each transaction that failed, by its number."""

    def around(self, flight: Sequence[Transaction], apply: Callable[[], None]) -> int:
        """Begin the transactions, wait until each has read the table, apply, let them commit. Returns how many failed
        because of the apply. Raises ``SystemExit`` if one fails for another reason.
        """
        folder = Path(tempfile.mkdtemp(prefix="held-", dir=Path(self.place).parent))
        threads = [
            threading.Thread(target=self._write, args=(number, self.writers[each.writer].kind, each.writer, folder))
            for number, each in enumerate(flight)
        ]
        for thread in threads:
            thread.start()
        try:
            self._until_inside(folder, len(flight))
            apply()
        finally:
            (folder / "go").touch()
            for thread in threads:
                thread.join()
        wrong = [text for text in self.errors.values() if not OURS.search(text)]
        if wrong:
            raise SystemExit(f"a writer failed for another reason: {wrong[0]}")
        failed, self.errors = len(self.errors), {}
        return failed

    def _until_inside(self, folder: Path, count: int) -> None:
        until = time.monotonic() + _PATIENCE
        while len(list(folder.glob("inside-*"))) < count:
            if self.errors or time.monotonic() > until:
                raise SystemExit(f"a writer never came inside: {self.errors}")
            time.sleep(0.02)

    def _write(self, number: int, kind: str, key: int, folder: Path) -> None:
        session = self.spark.newSession()
        session.udf.register("hold", _hold(str(folder), number), "long")
        table = f"delta.`{self.place}`"
        write = {
            "append": f"INSERT INTO {table} SELECT {key}, hold(id) FROM range(1)",
            "update": f"UPDATE {table} SET v = hold(v) WHERE w = {key}",
            "merge": f"MERGE INTO {table} t USING (SELECT 0L AS v) s ON t.w = {key} AND t.v = s.v "
            "WHEN MATCHED THEN UPDATE SET v = hold(t.v)",
        }
        try:
            session.sql(write[kind]).collect()
        except Exception as error:  # noqa: BLE001  # the outcome
            self.errors[number] = f"{type(error).__name__}: {error}"[:2000]


def _hold(folder: str, number: int) -> Callable[[int], int]:
    """A UDF that says that its transaction has begun, and comes back when it may go on."""

    def hold(value: int) -> int:
        import time  # noqa: PLC0415  # it runs in a process of its own
        from pathlib import Path  # noqa: PLC0415

        Path(folder, f"inside-{number}").touch()
        until = time.monotonic() + 600
        while not Path(folder, "go").exists() and time.monotonic() < until:
            time.sleep(0.02)
        return value

    return hold
