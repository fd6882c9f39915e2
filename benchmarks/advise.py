"""Whether advice is right: what it predicts, whether the first one is the best one, and whether it makes things worse.

Each seed is a workload on a real Delta table (``_advise_workloads``). It runs, and only the table and its log are kept.
``tablectl advise --list-files --write`` reads them, ``tablectl apply`` applies the first advice, and the same workload
runs again. The failures that the runner counted before and after are compared with the prediction. With
``--exhaustive``, each single change of a list is tried on a table of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import log2
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from _advise_workloads import LENGTH, START, Counters, Workload, create, generate, run, texts
from _forecast_writers import DAY, Timetable, create_log, simulate, write_past
from _report import machine, say, table
from pyspark.sql import SparkSession  # noqa: TID251  # what the writers work in

import tablectl
from tablectl.engine.port import Engine
from tablectl.engine.spark import SparkOptions, open_spark
from tablectl.log.commit_files import read_past_commits
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions

RESULTS = Path(__file__).parent / "results" / "advise.jsonl"
WEEK = 7 * DAY
_FLOOR = 60.0
"""Seconds a week, added to predicted and measured savings, because either can be zero."""
_HARM = 0.05
SINGLE_CHANGES = {
    "A02": "partitioning: [region]\n    rewrite: allowed",
    "A07": "clustering: [region]",
    "A05": "deletion_vectors: enabled",
}
"""The changes that are tried one by one, by the code of the advice that proposes them."""


@dataclass(frozen=True)
class Measured:
    """The result of one seed. Seconds are those of the virtual week."""

    seed: int
    workload: str
    healthy: bool
    jobs: tuple[str, ...]
    committed: int
    failed: int
    lost: float
    advice: str = ""
    """The code of the first advice that a policy can declare; empty if there is none."""
    predicted: float = 0.0
    """What it says that it saves."""
    failed_after: int | None = None
    lost_after: float | None = None
    single: dict[str, float] = field(default_factory=dict)
    """What is lost with each single change, with ``--exhaustive``."""


def measure(spark: Any, folder: Path, seed: int, *, exhaustive: bool) -> Measured:
    """One workload."""
    workload, place = generate(seed), folder / f"t{seed}"
    before = _run(spark, place, workload)
    code, predicted, policy = _advised(folder / f"r{seed}", place)
    after = None
    if policy:
        _apply(spark, folder / f"r{seed}", policy)
        after = run(spark, str(place), workload)
    single = {}
    for each, text in SINGLE_CHANGES.items() if exhaustive else ():
        other = folder / f"t{seed}-{each}"
        create(spark, str(other), workload)
        _apply(spark, folder / f"r{seed}-{each}", f"version: 1\ntables:\n  delta.`{other}`:\n    {text}\n")
        single[each] = _weekly(run(spark, str(other), workload))
    return Measured(
        seed,
        workload.name,
        workload.healthy,
        texts(workload.jobs),
        before.committed,
        before.failed,
        _weekly(before),
        code,
        predicted,
        None if after is None else after.failed,
        None if after is None else _weekly(after),
        single,
    )


def _run(spark: Any, place: Path, workload: Workload) -> Counters:
    create(spark, str(place), workload)
    return run(spark, str(place), workload)


def _weekly(counters: Counters) -> float:
    return round(counters.lost * WEEK / LENGTH, 1)


def _advised(directory: Path, place: Path) -> tuple[str, float, str]:
    """The code of the first advice that can be declared, what it predicts, and the policy that declares the advice."""
    directory.mkdir(parents=True)
    (found,) = tablectl.advise(tables=f"delta.`{place}`", directory=directory, list_files=True).tables
    first = next((each for each in found.advice if each.declare), None)
    if first is None:
        return "", 0.0, ""
    saves = first.amount if first.benefit == "writer-seconds a week" else 0.0
    return first.code, saves, f"version: 1\ntables:\n{_indented(found.yaml)}"


def _indented(entry: str) -> str:
    lines = entry.splitlines(keepends=True)
    return entry if entry.startswith("  ") else "".join(f"  {line}" for line in lines)


def _apply(spark: Any, directory: Path, policy: str) -> None:
    (directory / "policies").mkdir(parents=True, exist_ok=True)
    (directory / "policies" / "t.yaml").write_text(policy, encoding="utf-8")
    report = tablectl.apply(directory=directory, spark=spark)
    if report.exit_code != 0:
        raise SystemExit(f"the apply came to {[(str(each.outcome), each.message) for each in report.tables]}")


def speed(folder: Path, commits: int = 1000) -> str:
    """How long the advice on a table with so many commits takes, without Spark and without a checkpoint."""
    writers = tuple(Timetable("update", frozenset(range(24)), 300, 1500) for _ in range(4))
    place = str(folder / "t")
    create_log(place, len(writers))
    write_past(place, writers, simulate(writers, START - 10 * DAY, START, 1)[:commits])
    (folder / "r").mkdir()

    def read() -> None:
        with Stores(StoreOptions()) as stores:
            assert len(read_past_commits(stores, place, 30, list_files=False).commits) >= commits

    def advise() -> None:
        (found,) = tablectl.advise(tables=f"delta.`{place}`", directory=folder / "r", cache=False).tables
        assert found.commits >= commits, found

    rows = [(what, *(f"{each:.2f} s" for each in _least(act))) for what, act in (("read", read), ("advise", advise))]
    return table((f"{commits:,} commits", "wall", "CPU"), rows)


def _least(act: Callable[[], None]) -> tuple[float, float]:
    """Wall and CPU seconds, the least of five."""
    walls, times = [], []
    for _ in range(5):
        began, used = perf_counter(), process_time()
        act()
        walls.append(perf_counter() - began)
        times.append(process_time() - used)
    return min(walls), min(times)


# Results


def ratio(predicted: float, measured: float) -> float:
    """log2 of predicted to measured savings, each with a floor added."""
    return log2((predicted + _FLOOR) / (max(measured, 0.0) + _FLOOR))


def best(line: dict[str, Any]) -> str:
    """The single change after which least is lost; empty if none is 5 % better than no change."""
    if not line["single"]:
        return ""
    code = min(line["single"], key=lambda each: line["single"][each])
    return code if line["single"][code] < line["lost"] * (1 - _HARM) else ""


def summary(lines: Sequence[dict[str, Any]]) -> str:
    """The table of all seeds, and the five measures."""
    rows, errors = [], []
    for line in sorted(lines, key=lambda each: int(each["seed"])):
        after, error = "-", ""
        if line["lost_after"] is not None:
            errors.append(ratio(line["predicted"], line["lost"] - line["lost_after"]))
            after, error = f"{line['lost_after']:,.0f}", f"{errors[-1]:+.2f}"
        shown = (f"{line['lost']:,.0f}", line["advice"] or "-", f"{line['predicted']:,.0f}", after, error)
        rows.append((str(line["seed"]), line["workload"], str(line["committed"]), str(line["failed"]), *shown))
    head = ("seed", "workload", "commits", "failed", "lost s/week", "advice", "predicted", "lost after", "log2")
    tried = [line for line in lines if line["single"]]
    right = sum(best(line) == line["advice"] for line in tried)
    worse = [
        line for line in lines if line["lost_after"] is not None and line["lost_after"] > line["lost"] * (1 + _HARM)
    ]
    healthy = [line for line in lines if line["healthy"]]
    return (
        table(head, rows)
        + f"\n{len(rows)} workloads, {len(healthy)} of them healthy"
        + f"\nmedian |log2(predicted / measured)|: {median(map(abs, errors)) if errors else 0.0:.2f}"
        + f"\nfirst advice is the best single change: {right} of {len(tried)}"
        + f"\nworkloads more than {_HARM:.0%} worse afterwards: {len(worse)}"
        + f"\nhealthy workloads with advice: {sum(bool(line['advice']) for line in healthy)}\n"
    )


def read(path: Path) -> list[dict[str, Any]]:
    """The last line of each seed."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return list({line["seed"]: line for line in lines}.values())


def main() -> int:
    """Run the next seeds, add a line for each, and print all results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many further workloads to run; 0 prints the results")
    parser.add_argument("--first", type=int, help="the first seed; by default the first without a result")
    parser.add_argument("--speed", action="store_true", help="only measure how long reading 1,000 commits takes")
    parser.add_argument("--exhaustive", action="store_true", help="also try each single change")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.speed:
        with tempfile.TemporaryDirectory(prefix="tablectl-advise-") as folder:
            say(f"{machine()}\n\n{speed(Path(folder))}\n")
        return 0
    first = asked.first or max((int(each["seed"]) for each in read(asked.results)), default=0) + 1
    if asked.seeds:
        _measure_all(range(first, first + asked.seeds), asked.results, exhaustive=asked.exhaustive)
    say(machine() + "\n\n" + summary(read(asked.results)))
    return 0


def _measure_all(seeds: range, results: Path, *, exhaustive: bool) -> None:
    folder, engine = Path(tempfile.mkdtemp(prefix="tablectl-advise-")), _engine()
    spark = SparkSession.getActiveSession()
    try:
        results.parent.mkdir(parents=True, exist_ok=True)
        for seed in seeds:
            line = json.dumps(asdict(measure(spark, folder, seed, exhaustive=exhaustive)))
            with results.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
    finally:
        engine.close()
        shutil.rmtree(folder, ignore_errors=True)


def _engine() -> Engine:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # read when the session starts
    conf = {"spark.master": "local[8]", "spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}
    conf |= {"spark.databricks.delta.snapshotPartitions": "1", "spark.default.parallelism": "1"}
    return open_spark(SparkOptions(conf=conf))


if __name__ == "__main__":
    raise SystemExit(main())
