"""Other partition columns for a table that is written all the time: today's rewrite against a copy beside the table.

Four guarded writers (append, MERGE, UPDATE, DELETE) work the whole time, each on ids of its own. While the copy is made
one more writer appends without a guard; today's rewrite would fail by it, so there it does not run. At the end the
table must hold exactly what the writers were told. Printed are how long the gate was shut, and the writes that
failed: by each other (others), and by the commit of the apply.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _report import machine, say, table, time_text
from pyspark.sql import SparkSession  # noqa: TID251  # what the writers work in

import tablectl
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
from tablectl.writers.options import ModeName

DAYS = 30
PAUSE, RARE = 2.0, 5.0
"""Seconds between two writes of a writer, and of the one without a guard."""
OURS = re.compile(r"METADATA_CHANGED|MetadataChanged|\"mode\":\"Overwrite\"")
"""In the text of a conflict: the commit that caused it is that of the apply."""
KINDS = ("append", "merge", "update", "delete")
UNGUARDED = "no guard"
NOTE = "concat(uuid(), uuid(), uuid())"
"""108 characters that do not compress: most rows are not three numbers."""
CONFIG = "window:\n  cutover: {cutover}\n"
POLICY = "version: 1\ntables:\n  delta.`{place}`:\n    partitioning: [day]\n    rewrite: {rewrite}\n"


@dataclass
class Writer:
    """One writer, and what it was told."""

    kind: str
    first: int
    """Its ids are ``first`` up to ``first + span``."""
    span: int
    held: dict[int, int] = field(default_factory=dict)
    """The rows with its ids, by what it was told."""
    committed: int = 0
    failures: list[str] = field(default_factory=list)
    """Writes that the commit of the apply failed."""
    others: int = 0
    """Writes that another writer failed."""
    longest: float = 0.0
    """Seconds of its longest wait at the gate."""

    def write(self, session: Any, place: str, chosen: random.Random) -> None:
        """One transaction."""
        name, ids = f"delta.`{place}`", range(self.first, self.first + self.span)
        if self.kind in {"append", UNGUARDED}:
            new = 10**12 + self.first + self.committed
            self._try(lambda: session.sql(f"INSERT INTO {name} VALUES ({new}, {new % DAYS}, 1, NULL)"), {new: 1})
            return
        start = chosen.choice(ids)
        touched = [id_ for id_ in range(start, start + 20) if id_ in self.held]
        between = f"id >= {start} AND id < {start + 20} AND id < {self.first + self.span}"
        if self.kind == "delete":
            self._try(lambda: session.sql(f"DELETE FROM {name} WHERE {between}"), dict.fromkeys(touched))
            return
        changed: dict[int, int | None] = {id_: self.held[id_] + 1 for id_ in touched}
        if self.kind == "update":
            self._try(lambda: session.sql(f"UPDATE {name} SET amount = amount + 1 WHERE {between}"), changed)
            return
        merge = (
            f"MERGE INTO {name} t USING (SELECT id FROM range({start}, {min(start + 20, ids.stop)})) s ON t.id = s.id "
            f"AND t.{between.replace(' AND id', ' AND t.id')} WHEN MATCHED THEN UPDATE SET amount = amount + 1"
        )
        self._try(lambda: session.sql(merge), changed)

    def _try(self, work: Callable[[], Any], told: dict[int, Any]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  # whatever it is, the write failed
            text = str(error)
            if OURS.search(text):
                self.failures.append(text[:200])
            else:
                self.others += 1
            return
        self.committed += 1
        for id_, amount in told.items():
            if amount is None:
                self.held.pop(id_, None)
            else:
                self.held[id_] = amount


class Work:
    """The writers, each in a thread and a session of its own."""

    def __init__(self, spark: Any, place: str, writers: list[Writer]) -> None:
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(spark.newSession(), place, each, number))
            for number, each in enumerate(writers)
        ]

    def __enter__(self) -> None:
        for each in self._threads:
            each.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._threads:
            each.join()

    def _run(self, session: Any, place: str, writer: Writer, seed: int) -> None:
        chosen = random.Random(seed)
        mode: ModeName = "append" if writer.kind == "append" else "rewrite"
        while not self._over.wait(RARE if writer.kind == UNGUARDED else PAUSE):
            started = time.monotonic()
            with tablectl.guard(None, place, mode=mode) if writer.kind != UNGUARDED else nullcontext():
                writer.longest = max(writer.longest, time.monotonic() - started)
                writer.write(session, place, chosen)


def measure(spark: Any, folder: Path, rows: int, files: int, *, copied: bool, cutover: int) -> tuple[str, ...]:
    """One run on a table of its own: a row of the report."""
    place = str(folder / "orders")
    spark.sql(
        f"CREATE TABLE delta.`{place}` (id BIGINT, day INT, amount BIGINT, note STRING) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(
        f"INSERT INTO delta.`{place}` SELECT id, CAST(id % {DAYS} AS INT), id, {NOTE} FROM range(0, {rows}, 1, {files})"
    )
    span = rows // len(KINDS)
    writers = [Writer(kind, number * span, span) for number, kind in enumerate(KINDS)]
    for each in writers:
        each.held = {id_: id_ for id_ in range(each.first, each.first + each.span)}
    if copied:
        writers.append(Writer(UNGUARDED, 10**9, 0))
    repository = folder / "repository"
    (repository / "policies").mkdir(parents=True)
    (repository / "tablectl.yaml").write_text(CONFIG.format(cutover=cutover), encoding="utf-8")
    rewrite = "{copy: beside}" if copied else "allowed"
    (repository / "policies" / "orders.yaml").write_text(POLICY.format(place=place, rewrite=rewrite), encoding="utf-8")
    started = time.monotonic()
    with Work(spark, place, writers):
        report = tablectl.apply(directory=repository, spark=spark)
        whole = time.monotonic() - started
        time.sleep(3)  # the writers go on
    if report.exit_code != 0:
        raise SystemExit(f"the apply came to {report.tables[0].outcome}: {report.tables[0].message}")
    _check(spark, place, writers)
    guarded = [each for each in writers if each.kind != UNGUARDED]
    return (
        "copy beside" if copied else "rewrite: allowed",
        time_text(whole),
        time_text((report.tables[0].window_ms or 0) / 1000),
        time_text(max(each.longest for each in guarded)),
        str(sum(each.committed for each in writers)),
        str(sum(each.others for each in writers)),
        str(sum(len(each.failures) for each in guarded)),
        str(sum(len(each.failures) for each in writers if each.kind == UNGUARDED)) if copied else "–",
    )


def _check(spark: Any, place: str, writers: list[Writer]) -> None:
    """The rows are what the writers were told, or the figures mean nothing."""
    for each in writers:
        ids = f"id >= {each.first} AND id < {each.first + each.span}" if each.span else "false"
        new = f"id >= {10**12 + each.first} AND id < {10**12 + each.first + 10**6}"
        found = spark.sql(
            f"SELECT count(*), count(DISTINCT id), sum(amount), sum(id) FROM delta.`{place}` WHERE {ids} OR {new}"
        )
        held = (len(each.held), len(each.held), sum(each.held.values()) or None, sum(each.held) or None)
        if tuple(found.collect()[0]) != held:
            raise SystemExit(f"{each.kind}: the table holds {found.collect()[0]} instead of {held}")


def main() -> int:
    """Run both, for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--cutover", type=int, default=5)
    asked = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # read when the session starts
    conf = {"spark.master": "local[4]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g"}
    engine = open_spark(EngineOptions(conf=conf | {"spark.ui.enabled": "false"}))
    spark = SparkSession.getActiveSession()
    say(f"{machine()}; {asked.files} files, {DAYS} days, four guarded writers; `window.cutover: {asked.cutover}`\n")
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as temporary:
        for rows in asked.rows:
            lines = []
            for copied in (False, True):
                folder = Path(temporary) / f"{rows}-{copied}"
                folder.mkdir()
                lines.append(measure(spark, folder, rows, asked.files, copied=copied, cutover=asked.cutover))
                shutil.rmtree(folder)
            say(table((f"{rows:,} rows", *_HEAD), lines))
    engine.close()
    return 0


_HEAD = ("apply", "gate shut", "longest wait", "writes", "others", "failed", "failed, no guard")

if __name__ == "__main__":
    sys.exit(main())
