"""The aims for speed, and what this machine reaches: one table, measured in one run.

`python benchmarks/aims.py [--repeat N] [--lake N]` prints it. `--lake 100000` adds a lake of that many tables, which
takes 5 GB of disk and minutes to build. The aim for an apply is measured by `side_by_side.py`, which needs Spark.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import guard
import many_tables
import pull_request
import read_cost
import startup
import store_latency
import ten_thousand
from _measure import TABLECTL, run
from _mix import build_lake, write_policies
from _report import machine, say, table, time_text

_TABLES = 1000
_DISTINCT = 500


@dataclass(frozen=True, slots=True)
class Reached:
    """One line: the figure at the start of this work, the aim, and now."""

    what: str
    before: str
    aim: float
    now: float
    unit: str
    """``×``, ``s``, or ``requests``."""

    def cells(self) -> tuple[str, ...]:
        """For people."""
        return self.what, self.before, f"≤ {self._text(self.aim)}", self._text(self.now), self._met()

    def _text(self, value: float) -> str:
        return (
            time_text(value)
            if self.unit == "s"
            else f"{value:.3g} {self.unit}"
            if self.unit != "×"
            else f"{value:.2f}×"
        )

    def _met(self) -> str:
        return "yes" if self.now <= self.aim else "no"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the least counts")
    parser.add_argument("--lake", type=int, default=0, metavar="N", help="also plan a lake of N tables")
    options = parser.parse_args()
    say(f"{machine()}, load {os.getloadavg()[0]:.1f}")
    rows = []
    for each in _measured(options.repeat, options.lake):
        rows.append(each.cells())
        say(" | ".join(each.cells()))
    say()
    say(table(("", "before", "aim", "now", "met"), rows))


def _measured(repeat: int, lake: int) -> Iterator[Reached]:
    yield from _local(repeat)
    yield from _reader(repeat)
    yield from _store(repeat)
    yield from _short_commands(repeat)
    yield from _guard()
    if lake:
        yield from _large_lake(lake)


def _local(repeat: int) -> Iterator[Reached]:
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        lines, _ = many_tables.measure(build_lake(Path(folder), _TABLES), repeat)
    loop = lines[0].cost
    for line, before in zip(lines[2:], ("0.93×", "1.09×", "0.58×"), strict=True):
        yield Reached(
            f"{_TABLES:,} tables, {line.what}: wall, of a deltalake loop",
            before,
            0.4,
            line.cost.seconds / loop.seconds,
            "×",
        )


def _reader(repeat: int) -> Iterator[Reached]:
    for each in read_cost.measure(_TABLES, repeat):
        ratio = each.log / each.bound
        yield Reached(f"reader and diff of unchanged tables, {each.kind}: CPU, of the bound", "5–8×", 2.5, ratio, "×")
        yield Reached(f"the same from the cache, {each.kind}: CPU a table", "–", 0.0005, each.cache / 1e6, "s")


def _store(repeat: int) -> Iterator[Reached]:
    plan, drift, _, _, cached, loop = store_latency.many_tables(_TABLES, repeat)
    what = f"store with 30 ms, {_TABLES:,} tables with .crc"
    yield Reached(f"{what}: plan, wall", "8.9 s", 2.5, plan.cost.seconds, "s")
    yield Reached(
        f"{what}: plan, wall, of deltalake in 64 threads", "–", 1.0, plan.cost.seconds / loop.cost.seconds, "×"
    )
    yield Reached(f"{what}: plan, a table", "4", 3, plan.requests, "requests")
    yield Reached(f"{what}: drift, of plan's", "3.2×", 1.2, drift.requests / plan.requests, "×")
    yield Reached(f"{what}: second plan, a table", "4", 1, cached.requests, "requests")
    plan, *_, loop = store_latency.one_table(1000, repeat)
    yield Reached("store with 30 ms, 1 table, 1,000 commits: plan, wall", "3.6 s", 0.8, plan.cost.seconds, "s")
    yield Reached("the same, of deltalake", "1.8×", 1.0, plan.cost.seconds / loop.cost.seconds, "×")


def _short_commands(repeat: int) -> Iterator[Reached]:
    spent = startup.measure(5 * repeat)
    yield Reached("--help: CPU", "120 ms", 0.25, spent["tablectl --help"].cpu, "s")
    yield Reached("validate of one file: CPU", "200 ms", 0.5, spent["tablectl validate FILE"].cpu, "s")
    yield Reached(
        "plan of one table, clustering differs: CPU", "560 ms", 0.6, spent["tablectl plan, one table"].cpu, "s"
    )
    found = pull_request.measure(10_000, repeat)
    for what, cost in found.items():
        if what.startswith("conflicts"):
            yield Reached(f"10,000 policies, {what}: CPU", "2.3 s", 0.5, cost.cpu, "s")


def _guard() -> Iterator[Reached]:
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        yield Reached("first guard of a process, local disk", "343 ms", 0.12, guard.first_guard(Path(folder)), "s")
        for each in guard.on_a_store(Path(folder), 20):
            yield Reached(f"guard on a store with 30 ms, {each.what}", "167 ms", 0.07, each.seconds, "s")


def _large_lake(tables: int) -> Iterator[Reached]:
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        lake = ten_thousand.multiply(build_lake(Path(folder), _DISTINCT), tables)
        cost, _ = run(*TABLECTL, "plan", "--no-cache", str(write_policies(lake)), repeat=1)
    yield Reached(f"{tables:,} tables: plan, CPU", "270 s", 120 * tables / 100_000, cost.cpu, "s")
    yield Reached(f"{tables:,} tables: plan, memory in MB", "–", 500, cost.memory / 1e6, "MB")


if __name__ == "__main__":
    main()
