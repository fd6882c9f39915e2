"""How many writes fail at blocking commits at random moments, and at those that ``--when quiet`` chooses.

Three writers without a guard work on one Delta table, in threads of one JVM: a stream every 10 s that works for 3 s, a
MERGE every 40 s that works for 10 s, and an append every 25 s. Each apply sets one property. First come the applies
with ``--when quiet``, then as many without, each at a random moment of its share of the time.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _report import machine, say, table
from _results import FOLDER, small_spark

import tablectl
from tablectl.support.json_text import write_json

RESULTS = FOLDER / "between-commits.json"
WARM_UP = 600.0
_MOST = 1.5
"""A phase ends after so many times its seconds, with fewer commits."""
POLICY = "version: 1\ntables:\n  delta.`{place}`:\n    properties: {{owner.round: '{number}'}}\n"
SLEEP = "IF(reflect('java.lang.Thread', 'sleep', {}L) IS NULL, 0L, 1L)"
CHANGED = re.compile("MetadataChanged|METADATA_CHANGED")


@dataclass
class Writers:
    """The writers, until they are stopped."""

    spark: Any
    place: str
    folder: Path
    stop: threading.Event = field(default_factory=threading.Event)
    runs: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    other: list[str] = field(default_factory=list)
    """Errors of another kind."""

    def start(self) -> list[threading.Thread]:
        """Start all of them."""
        goal = f"delta.`{self.place}`"
        update = "WHEN MATCHED THEN UPDATE SET v = slow(t.v, 10D)"
        merge = f"MERGE INTO {goal} t USING (SELECT -1L AS k) s ON t.p = 'merged' AND t.k = s.k {update}"
        append = f"INSERT INTO {goal} SELECT 'added', 7L, {SLEEP.format(500)} FROM range(1)"
        works: tuple[Callable[[], None], ...] = (
            self._stream,
            lambda: self._every(40, "MERGE", merge),
            lambda: self._every(25, "append", append),
        )
        threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in threads:
            thread.start()
        return threads

    def _session(self) -> Any:
        session = self.spark.newSession()
        session.udf.register("slow", slow, "long")
        return session

    def _every(self, seconds: float, name: str, sql: str) -> None:
        session = self._session()
        due = time.monotonic()
        while not self.stop.wait(max(due - time.monotonic(), 0.0)):
            self._count(name, lambda: session.sql(sql).collect())
            while due <= time.monotonic():
                due += seconds

    def _stream(self) -> None:
        session = self._session()
        rows = session.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load()
        chosen = rows.selectExpr("'streamed' AS p", "value AS k", f"{SLEEP.format(300)} AS v")
        while not self.stop.is_set():
            query = (
                chosen.writeStream.format("delta")
                .option("checkpointLocation", str(self.folder / "checkpoint"))
                .trigger(processingTime="10 seconds")
                .start(self.place)
            )

            def follow(query: Any = query) -> None:
                while query.isActive and not self.stop.wait(0.5):
                    pass
                self.runs["stream"] += len(query.recentProgress)
                query.stop() if query.isActive else query.awaitTermination()

            self._count("stream", follow)

    def _count(self, name: str, work: Callable[[], object]) -> None:
        self.runs[name] += name != "stream"
        try:
            work()
        except Exception as error:  # noqa: BLE001  # the outcome
            if CHANGED.search(str(error)):
                self.failed[name] += 1
            elif not self.stop.is_set():
                self.other.append(f"{name}: {error}"[:300])


def slow(value: int, seconds: float) -> int:
    """A row that takes some seconds."""
    time.sleep(seconds)
    return value


def phase(
    writers: Writers, directory: Path, commits: int, seconds: float, *, chosen: bool, spark: Any
) -> dict[str, Any]:
    """So many applies, and the writes that failed meanwhile."""
    before, moments, done, missed = writers.failed.copy(), random.Random(1), 0, 0
    began = time.monotonic()
    for number in range(commits):
        if time.monotonic() - began > _MOST * seconds:
            break
        share = seconds / commits
        time.sleep(max(began + (number + moments.random()) * share - time.monotonic(), 0.0))
        declare(directory, writers.place, f"{chosen}-{number}")
        options: dict[str, Any] = {"when": "quiet", "within": "5m"} if chosen else {}
        found = tablectl.apply(directory=directory, spark=spark, **options)
        done, missed = done + (found.exit_code == 0), missed + (found.exit_code != 0)
        run = found.tables[0] if found.tables else None
        told = run.quiet.free if run and run.quiet else (run.message if run and found.exit_code else "random")
        lost = dict(writers.failed - before)
        say(f"{time.monotonic() - began:6.0f} s  {number + 1} of {commits}  {told}  failed {lost}")
    time.sleep(15)  # those in flight at the last one
    lost = writers.failed - before
    return {
        "chosen": chosen,
        "commits": done,
        "none": missed,
        "seconds": round(time.monotonic() - began),
        "failed": dict(lost),
    }


def declare(directory: Path, place: str, number: str) -> None:
    """The policy of the next apply."""
    (directory / "policies").mkdir(parents=True, exist_ok=True)
    (directory / "policies" / "t.yaml").write_text(POLICY.format(place=place, number=number), encoding="utf-8")


def main() -> int:
    """Run both phases, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600.0, help="for the commits of a phase, if all come at once")
    parser.add_argument("--warm-up", type=float, default=WARM_UP)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="tablectl-between-", ignore_cleanup_errors=True) as folder,
        small_spark() as spark,
    ):
        place = str(Path(folder, "t"))
        # Partitioned: at Serializable, the only level of open source Delta, an append fails a MERGE of all files.
        spark.sql(f"CREATE TABLE delta.`{place}` (p STRING, k LONG, v LONG) USING delta PARTITIONED BY (p)")
        spark.sql(f"INSERT INTO delta.`{place}` VALUES ('merged', -1L, 0L)")
        writers = Writers(spark, place, Path(folder))
        threads = writers.start()
        time.sleep(asked.warm_up)
        phases = [
            phase(writers, Path(folder, "repository"), asked.commits, asked.seconds, chosen=chosen, spark=spark)
            for chosen in (True, False)
        ]
        writers.stop.set()
        for thread in threads:
            thread.join(60)
    rows = [
        (
            "chosen" if each["chosen"] else "random",
            str(each["commits"]),
            str(each["none"]),
            str(each["seconds"]),
            str(sum(each["failed"].values())),
            ", ".join(f"{name} {count}" for name, count in sorted(each["failed"].items())) or "none",
        )
        for each in phases
    ]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(
        write_json({"phases": phases, "runs": dict(writers.runs), "other": writers.other[:20]}) + "\n", encoding="utf-8"
    )
    head = ("moments", "commits", "no moment", "seconds", "failed writes", "by writer")
    others = f"errors of another kind: {len(writers.other)} {writers.other[:2]}"
    say(f"{machine()}\n\n{table(head, rows)}\nruns: {dict(writers.runs)}; {others}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
