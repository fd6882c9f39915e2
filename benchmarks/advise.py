"""Whether advice is right: what it predicts, whether the first one is the best one, and whether it makes things worse.

Each seed is a workload on a real Delta table (``_advise_workloads``). It runs, and only the table and its log are kept.
``tablectl advise --list-files --out`` reads them, ``tablectl apply`` applies what it declares, and the same workload
runs again. The failures that the runner counted before and after are compared with the prediction. For each third seed,
each single change of a list is tried on a table of its own.

``--kinds`` needs no Spark: logs of kinds of lakes, each with the advice that an engineer would sign.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import import_module
from math import log2
from pathlib import Path
from statistics import median
from textwrap import dedent, indent
from time import perf_counter, process_time
from typing import Any

from _advise_workloads import LENGTH, START, Counters, Workload, create, generate, run, texts
from _forecast_writers import DAY, Timetable, create_log, simulate, write_past
from _report import machine, say, table
from _results import FOLDER, append, next_seed, read, small_spark

import tablectl
from tablectl.log.recent_commits import read_past_commits
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions

RESULTS = FOLDER / "advise.jsonl"
_FLOOR = 60.0
"""Seconds a week, added to predicted and measured savings, because either can be zero."""
_HARM = 0.05
_EXHAUSTIVE = 3
"""Of the seeds that this number divides, all single changes are tried."""
_TRIED = LENGTH / 3
"""For how long. The comparison is with the same virtual time without a change."""
SINGLE_CHANGES = {
    "A02": "partitioning: [region]\nrewrite: allowed\n",
    "A07": "clustering: [region]\n",
    "A05": "deletion_vectors: enabled\n",
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
    declared: str = ""
    """What a policy declares for the table, of all advice."""
    failed_after: int | None = None
    lost_after: float | None = None
    single: dict[str, float] = field(default_factory=dict)
    """What is lost with each single change, and under an empty code without any; empty if they were not tried."""


@dataclass(frozen=True)
class Advised:
    """What ``tablectl advise`` says of a table."""

    code: str = ""
    predicted: float = 0.0
    declared: str = ""


def measure(spark: Any, folder: Path, seed: int, keep: Path | None = None) -> Measured:
    """One workload. ``keep`` gets its table as it was when the advice was given."""
    workload, place = generate(seed), folder / f"t{seed}"
    create(spark, str(place), workload)
    before = run(spark, str(place), workload)
    if keep:
        shutil.rmtree(keep / place.name, ignore_errors=True)
        shutil.copytree(place, keep / place.name)
    advised = advice_on(place)
    after = _changed(spark, folder / f"r{seed}", place, advised.declared, workload) if advised.declared else None
    return Measured(
        seed=seed,
        workload=workload.name,
        healthy=workload.healthy,
        jobs=texts(workload.jobs),
        committed=len(before.commits),
        failed=len(before.failures),
        lost=before.weekly(LENGTH),
        advice=advised.code,
        predicted=advised.predicted,
        declared=advised.declared,
        failed_after=None if after is None else len(after.failures),
        lost_after=None if after is None else after.weekly(LENGTH),
        single={} if seed % _EXHAUSTIVE else {"": before.weekly(_TRIED), **_single_changes(spark, folder, workload)},
    )


def _changed(
    spark: Any, directory: Path, place: Path, declared: str, workload: Workload, length: float = LENGTH
) -> Counters:
    """The workload on a table, after an apply of what is declared for it."""
    _apply(spark, directory, place, declared)
    return run(spark, str(place), workload, length)


def _single_changes(spark: Any, folder: Path, workload: Workload) -> dict[str, float]:
    """What is lost with each single change, on tables of their own."""
    found = {}
    for code, declared in SINGLE_CHANGES.items():
        place = folder / f"t{workload.seed}-{code}"
        create(spark, str(place), workload)
        found[code] = _changed(spark, folder / f"r{place.name}", place, declared, workload, _TRIED).weekly(_TRIED)
    return found


def advice_on(place: Path) -> Advised:
    """The first advice that can be declared, and the policy of all advice."""
    with tempfile.TemporaryDirectory() as directory:
        (found,) = tablectl.advise(tables=f"delta.`{place}`", directory=directory, list_files=True).tables
    if found.error:
        raise SystemExit(f"{place} cannot be read: {found.error}")
    first = next((each for each in found.advice if each.declare), None)
    if first is None:
        return Advised()
    saves = first.amount if first.benefit == "writer-seconds a week" else 0.0
    return Advised(first.code, saves, dedent("".join(found.yaml.splitlines(keepends=True)[1:])))


def _apply(spark: Any, directory: Path, place: Path, declared: str) -> None:
    (directory / "policies").mkdir(parents=True)
    policy = f"version: 1\ntables:\n  delta.`{place}`:\n{indent(declared, '    ')}"
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
    lost = dict(line["single"])
    code = min(lost, key=lambda each: lost[each], default="")
    return code if code and lost[code] < lost[""] * (1 - _HARM) else ""


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


def advise_again(results: Path, kept: Path) -> None:
    """Give the advice on the tables that were kept again, with the code of now. What was measured stays true only if
    the same is declared: other seeds must run again.
    """
    for line in read(results):
        place = kept / f"t{line['seed']}"
        advised = advice_on(place) if place.exists() else None
        if advised is None or advised.declared != line["declared"]:
            say(f"seed {line['seed']} must run again: {'its table was not kept' if advised is None else 'new advice'}")
        else:
            append(results, Measured(**{**line, "advice": advised.code, "predicted": advised.predicted}))


def main() -> int:
    """Run the next seeds, add a line for each, and print all results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many further workloads to run; 0 prints the results")
    parser.add_argument("--first", type=int, help="the first seed; by default the first without a result")
    parser.add_argument("--parallel", type=int, default=2, help="how many workloads run at a time")
    parser.add_argument("--keep", type=Path, help="keep the tables here, as they were when the advice was given")
    parser.add_argument("--kept", type=Path, help="only give the advice on kept tables again")
    parser.add_argument("--speed", action="store_true", help="only measure how long reading 1,000 commits takes")
    parser.add_argument("--kinds", action="store_true", help="only print kinds of lakes, and what an engineer signs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.kinds:
        sys.path.insert(0, str(Path(__file__).parent.parent))
        say(import_module("tests.insight.advice.kinds").text())
        return 0
    with tempfile.TemporaryDirectory(prefix="tablectl-advise-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        if asked.speed:
            say(f"{machine()}\n\n{speed(folder)}\n")
            return 0
        if asked.kept:
            advise_again(asked.results, asked.kept)
        elif asked.seeds:
            first = asked.first or next_seed(asked.results)
            _measure_all(range(first, first + asked.seeds), asked, folder)
    say(machine() + "\n\n" + summary(read(asked.results)))
    return 0


def _measure_all(seeds: range, asked: argparse.Namespace, folder: Path) -> None:
    with small_spark() as spark, ThreadPoolExecutor(asked.parallel) as pool:
        running = {pool.submit(measure, spark, folder, seed, asked.keep): seed for seed in seeds}
        for done in as_completed(running):
            if error := done.exception():
                say(f"seed {running[done]}: {type(error).__name__}: {error}")
            else:
                append(asked.results, done.result())


if __name__ == "__main__":
    raise SystemExit(main())
