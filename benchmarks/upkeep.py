"""What OPTIMIZE costs those who write meanwhile: as a cron job, and as `tablectl upkeep --apply` with guards.

`python benchmarks/upkeep.py [--files 2000] [--minutes 10] [--apart]`. Four writers (append, MERGE, UPDATE, stream) work
back to back on one table in one JVM, each in a partition of its own with a quarter of the table's small files; with
`--apart`, all of these are in a partition that none of them writes. Once a minute a cron job calls OPTIMIZE, or
tablectl does what is due. Printed are the files before and after, the writes that failed, and the longest wait of a
writer. At the end the table must hold exactly what the writers were told had committed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _report import machine, say, table, time_text
from _results import FOLDER, append, small_spark
from _writers import CONFLICT, ROWS, Run, Writer

import tablectl

RESULTS = FOLDER / "upkeep.jsonl"
CRON, OURS = "cron job: OPTIMIZE", "tablectl upkeep, guards"
WRITERS = 4
OLD = 1_000_000_000
"""Rows from this id on are in the small files, in the partitions of the writers. No writer changes them."""
POLICY = """\
version: 1
tables:
  delta.`{place}`:
    upkeep: {{optimize: {{small_files: 30%, target: 128 MB}}, vacuum: {{every: 7 days}}}}
"""


class _Updating(Writer):
    """A job that changes its rows by UPDATE, after it has inserted them once."""

    @property
    def kind(self) -> Any:
        return "merge" if self.rows else "append"

    @property
    def mode(self) -> Any:
        return "rewrite"

    @property
    def hold(self) -> float:
        return 0.0

    def batch(self) -> dict[int, int]:
        return {key: self.random.randrange(1_000_000) for key in (self.rows or range(ROWS))}

    def write(self, session: Any, place: str, batch: dict[int, int]) -> None:
        if not self.rows:
            Writer.write(self, session, place, batch)
            return
        changed = self.random.randrange(1, 1000)
        batch.update({key: self.rows[key] + changed for key in batch})
        session.sql(
            f"UPDATE delta.`{place}` SET amount = amount + {changed} WHERE writer = {self.number} AND id < {OLD}"
        ).collect()


@dataclass(frozen=True, slots=True)
class Measured:
    """One run's figures."""

    way: str
    """Who merged the files."""
    small: int
    """The small files that the table was made with."""
    apart: bool
    """Whether no writer writes in their partition."""
    minutes: float
    before: int
    after: int
    lowest: int
    """The fewest files that the table had when a job ended."""
    committed: int
    failed: int
    lost: float
    """Seconds of the failed writes."""
    waited: float
    """Seconds of the longest guard."""
    waits: float
    """Seconds of all guards together."""
    jobs: int
    broken: tuple[str, ...]
    """Jobs that failed."""
    notes: tuple[str, ...] = ()


def measure(spark: Any, folder: Path, way: str, asked: argparse.Namespace, job: Callable[[str], list[str]]) -> Measured:
    """Writers for some minutes, and a job once a minute."""
    place, files, minutes = str(folder / "orders"), asked.files, asked.minutes
    _make_table(spark, place, files, "99" if asked.apart else f"CAST((id DIV 10) % {WRITERS} AS INT)")
    seeds = random.Random(7)
    kinds = (Writer, Writer, Writer, _Updating)
    writers = [kind(number, random.Random(seeds.random())) for number, kind in enumerate(kinds)]
    run = Run(spark, place, writers, guarded=way == OURS)
    before, broken, notes, counts = _count(spark, place), list[str](), list[str](), list[int]()
    jobs = 0
    with run.working():
        until = time.monotonic() + minutes * 60
        while time.monotonic() < until and not run.broken:
            began, jobs = time.monotonic(), jobs + 1
            try:
                notes += job(place)
            except Exception as error:  # noqa: BLE001  # a failure of the job is a figure
                broken.append(f"{type(error).__name__}: {str(error).splitlines()[0][:100]}")
            counts.append(_count(spark, place))
            written = ", ".join(str(writer.committed) for writer in writers)
            say(f"    job {jobs}: {time_text(time.monotonic() - began)}, {counts[-1]:,} files; writes {written}")
            threading.Event().wait(max(0.0, min(began + 60, until) - time.monotonic()))
    _check(spark, place, writers)
    failures = [each for writer in writers for each in writer.failures]
    unknown = [text for _, text in failures if not CONFLICT.search(text)]
    assert not unknown, unknown[0]
    guards = [each for writer in writers for each in writer.guards]
    return Measured(
        way=way,
        small=files,
        apart=asked.apart,
        minutes=minutes,
        before=before,
        after=_count(spark, place),
        lowest=min(counts),
        committed=sum(writer.committed for writer in writers),
        failed=len(failures),
        lost=sum(spent for spent, _ in failures),
        waited=max(guards),
        waits=sum(guards),
        jobs=jobs,
        broken=tuple(broken),
        notes=tuple(notes),
    )


def _make_table(spark: Any, place: str, files: int, writer: str) -> None:
    """Each of the small files is in the partition that an expression of its first id names."""
    spark.sql(
        f"CREATE TABLE delta.`{place}` (writer INT, id LONG, amount LONG) USING delta "
        "PARTITIONED BY (writer) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    )
    rows = spark.range(0, files * 10, 1, files)
    rows = rows.selectExpr(f"{writer} AS writer", f"id + {OLD} AS id", "id AS amount")
    rows.write.format("delta").mode("append").save(place)


def _count(spark: Any, place: str) -> int:
    return len(spark.read.format("delta").load(place).inputFiles())


def _check(spark: Any, place: str, writers: list[Writer]) -> None:
    rows = spark.read.format("delta").load(place).where(f"id < {OLD}").collect()
    found = {(row.writer, row.id): row.amount for row in rows}
    told = {(writer.number, key): amount for writer in writers for key, amount in writer.rows.items()}
    assert len(rows) == len(told), f"{len(rows)} rows, and the writers were told of {len(told)}"
    assert found == told


def cron(spark: Any) -> Callable[[str], list[str]]:
    """OPTIMIZE once a minute, in a session of its own."""
    session = spark.newSession()

    def job(place: str) -> list[str]:
        session.sql(f"OPTIMIZE delta.`{place}`").collect()
        return []

    return job


def ours(spark: Any, folder: Path) -> Callable[[str], list[str]]:
    """``tablectl upkeep --apply`` once a minute."""

    def job(place: str) -> list[str]:
        (folder / "policies.yaml").write_text(POLICY.format(place=place), encoding="utf-8")
        (folder / "tablectl.yaml").write_text("policies: policies.yaml\n", encoding="utf-8")
        report = tablectl.run_upkeep(directory=folder, spark=spark, driver="shared")
        wrong = [f"{each.outcome}: {each.message}" for each in report.tables if each.message]
        return [*wrong, *(note for each in report.tables for note in each.notes)]

    return job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000, help="small files of the table (default: 2000)")
    parser.add_argument("--minutes", type=float, default=10.0, help="for how long writers work (default: 10)")
    parser.add_argument("--apart", action="store_true", help="small files where no writer writes")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"a file of lines (default: {RESULTS.name})")
    options = parser.parse_args()
    say(machine())
    rows = []
    with small_spark() as spark:
        for way in (CRON, OURS):
            say(f"  {way}")
            folder = Path(tempfile.mkdtemp(prefix="tablectl-benchmark-"))
            try:
                job = ours(spark, folder) if way == OURS else cron(spark)
                found = measure(spark, folder, way, options, job)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            append(options.results, found)
            rows.append(_cells(found))
            for note in dict.fromkeys((*found.broken, *found.notes)):
                say(f"    {note}")
    say(table(("", "files", "lowest", "writes", "failed", "lost", "longest wait", "failed jobs"), rows))


def _cells(found: Measured) -> tuple[str, ...]:
    return (
        found.way,
        f"{found.before:,} to {found.after:,}",
        f"{found.lowest:,}",
        f"{found.committed:,}",
        f"{found.failed:,}",
        time_text(found.lost),
        time_text(found.waited),
        f"{len(found.broken)} of {found.jobs}",
    )


if __name__ == "__main__":
    main()
