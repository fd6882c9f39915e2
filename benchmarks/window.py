"""What an apply costs those who write meanwhile, against a loop of ALTERs; without guards, and with them.

N writers (appends, MERGEs, streams; short and long transactions) work back to back on one table in one JVM while its
settings change. A control run, in which nothing changes, shows what the writers do to each other. Counted are the
transactions that failed because of a commit of the loop or the apply, the seconds of writer work lost with them, and
the metadata commits. At the end of every run the table must hold exactly what the writers were told had committed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _report import machine, say, table, time_text
from _writers import CONFLICT, LONG, ROWS, Run, Writer
from pyspark.sql import SparkSession  # noqa: TID251  # what the writers work in

import tablectl
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
from tablectl.log.reader import read_commits

OURS = re.compile(r"\b(SET TBLPROPERTIES|UNSET TBLPROPERTIES|CLUSTER BY|REORG|OPTIMIZE|DROP FEATURE|CHANGE COLUMN)\b")
"""In the text of a conflict: the commit that caused it, none of which the writers make."""
POLICY = """\
version: 1
tables:
  delta.`{place}`:
    isolation: Serializable
    deletion_vectors: purged
    properties:
      delta.checkpointRetentionDuration: interval 60 days
      delta.sampleRetentionDuration: interval 14 days
      delta.dataSkippingNumIndexedCols: 8
      delta.checkpointInterval: 20
      owner.team: payments
      owner.tier: gold
"""
LOOP = (
    "SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')",
    "SET TBLPROPERTIES ('delta.checkpointRetentionDuration' = 'interval 60 days')",
    "SET TBLPROPERTIES ('delta.sampleRetentionDuration' = 'interval 14 days')",
    "SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '8')",
    "SET TBLPROPERTIES ('delta.checkpointInterval' = '20')",
    "SET TBLPROPERTIES ('owner.team' = 'payments')",
    "SET TBLPROPERTIES ('owner.tier' = 'gold')",
    "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
)


WAITED = 0.1
"""Seconds: a guard that took longer has waited at a gate."""


@dataclass(frozen=True)
class Measured:
    """One run's figures."""

    failed: int
    """Transactions that a commit of the change failed."""
    lost: float
    others: int
    """Transactions that writers failed each other."""
    committed: int
    commits: int
    """Metadata commits of the change."""
    window: float
    """Seconds in which a commit of the change could fail writers: the loop's whole length, the apply's window."""
    guard: float
    """Median seconds that a guard took, almost all of them without an apply."""
    waited: float
    """Seconds of all guards together, almost all of them at the apply's gate."""
    waits: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Median, 95th percentile and maximum of the guards that took longer than ``WAITED`` seconds."""


def measure(
    spark: Any, folder: Path, count: int, change: Callable[[str], float], *, guarded: bool, seed: int
) -> Measured:
    """One run on a table of its own."""
    place = str(folder / "orders")
    _make_table(spark, place)
    chosen = random.Random(seed)
    writers = [Writer(number, random.Random(chosen.random())) for number in range(count)]
    run = Run(spark, place, writers, guarded)
    before = max(commit.version for commit in read_commits(place, after=-1))
    with run.working():
        window = change(place)
    _check(spark, place, writers)
    failures = [failure for writer in writers for failure in writer.failures]
    ours = [(spent, text) for spent, text in failures if OURS.search(text)]
    guards = [spent for writer in writers for spent in writer.guards]
    return Measured(
        failed=len(ours),
        lost=sum(spent for spent, _ in ours),
        others=len(failures) - len(ours),
        committed=sum(writer.committed for writer in writers),
        commits=sum(commit.changes_metadata for commit in read_commits(place, after=before)),
        window=window,
        guard=statistics.median(guards),
        waited=sum(guards),
        waits=_percentiles([spent for spent in guards if spent >= WAITED]),
    )


def _percentiles(seconds: list[float]) -> tuple[float, float, float]:
    ordered = sorted(seconds) or [0.0]
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], ordered[-1]


def _make_table(spark: Any, place: str) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{place}` (writer INT, id LONG, amount LONG) USING delta PARTITIONED BY (writer) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"INSERT INTO delta.`{place}` SELECT -1, id, id FROM range(0, 10000, 1, 2)")
    spark.sql(f"DELETE FROM delta.`{place}` WHERE writer = -1 AND id % 100 = 0")


def _check(spark: Any, place: str, writers: list[Writer]) -> None:
    """Rows and sums are what the writers were told, or the benchmark's figures mean nothing."""
    found = spark.sql(f"SELECT writer, count(*), sum(amount) FROM delta.`{place}` WHERE writer >= 0 GROUP BY writer")
    held = {row[0]: (row[1], row[2]) for row in found.collect()}
    told = {writer.number: (len(writer.rows), sum(writer.rows.values())) for writer in writers}
    if held != told:
        raise SystemExit(f"the table does not hold what its writers were told: {held} instead of {told}")


def nothing(_place: str) -> float:
    """The control: as long as a loop takes, about."""
    time.sleep(5)
    return 0.0


def loop(spark: Any) -> Callable[[str], float]:
    """What people do: one ALTER after the other, each again until it gets through."""

    def change(place: str) -> float:
        started = time.monotonic()
        for clause in LOOP:
            _insist(spark, f"ALTER TABLE delta.`{place}` {clause}")
        _insist(spark, f"REORG TABLE delta.`{place}` APPLY (PURGE)")
        return time.monotonic() - started

    return change


def _insist(spark: Any, statement: str) -> None:
    for _ in range(20):
        try:
            spark.sql(statement).collect()
        except Exception as error:
            if not CONFLICT.search(f"{type(error).__name__} {error}"):
                raise
        else:
            return
    raise SystemExit(f"met a conflict twenty times: {statement}")


def apply(spark: Any) -> Callable[[str], float]:
    """The same settings by policy."""

    def change(place: str) -> float:
        repository = Path(place).parent / "repository"
        (repository / "policies").mkdir(parents=True)
        (repository / "policies" / "orders.yaml").write_text(POLICY.format(place=place), encoding="utf-8")
        report = tablectl.apply(directory=repository, spark=spark)
        if report.exit_code != 0:
            raise SystemExit(f"the apply came to {report}")
        return sum(each.window_ms or 0 for each in report.tables) / 1000

    return change


def main() -> int:
    """Run all and print the table; 1 where an apply failed a guarded writer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # read when the session starts
    engine = open_spark(EngineOptions(conf={"spark.master": "local[16]", "spark.sql.shuffle.partitions": "2"}))
    spark = SparkSession.getActiveSession()
    say(f"{machine()}; {ROWS} rows a transaction, every fourth writer holds its own for {LONG:g} s\n")
    cases = (
        ("control", nothing, False),
        ("(a) ALTER loop", loop(spark), False),
        ("(b) apply", apply(spark), False),
        ("(c) apply, guarded", apply(spark), True),
    )
    harmed = 0
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as temporary:
        for count in asked.writers:
            rows: list[tuple[str, ...]] = []
            for name, change, guarded in cases:
                folder = Path(temporary) / f"{count}-{len(rows)}"
                folder.mkdir()
                found = measure(spark, folder, count, change, guarded=guarded, seed=asked.seed + count)
                shutil.rmtree(folder)
                rows.append(_row(name, found, guarded=guarded))
                harmed += found.failed if guarded else 0
            say(table((f"{count} writer{'s' if count > 1 else ''}", *_HEAD), rows))
    say("failed, lost: by a commit of the change; others: by each other; guard: the median; waited: all together.")
    say(f"p50, p95, max: of the guards that waited, which took {WAITED:g} s or more.")
    engine.close()
    return 1 if harmed else 0


_HEAD = ("done", "others", "failed", "lost", "commits", "window", "guard", "waited", "p50", "p95", "max")


def _row(name: str, found: Measured, *, guarded: bool) -> tuple[str, ...]:
    return (
        name,
        str(found.committed),
        str(found.others),
        str(found.failed),
        time_text(found.lost) if found.failed else "–",
        str(found.commits),
        time_text(found.window) if found.window else "–",
        time_text(found.guard) if guarded else "–",
        time_text(found.waited) if guarded else "–",
        *(time_text(each) if guarded else "–" for each in found.waits),
    )


if __name__ == "__main__":
    sys.exit(main())
