"""An object store whose every answer takes 30 ms: requests and time of plan and drift, against `deltalake`.

`python benchmarks/store_latency.py [--tables N] [--commits N] [--repeat N]`
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from _lake import RUST, Table
from _measure import TABLECTL, Cost, run
from _mix import DECLARED, Lake, build_lake, write_policies
from _report import machine, memory_text, ratio_text, say, table, time_text
from _slow_store import SlowStore, slow_store

MILLISECONDS = 30
_BUCKET = "s3://lake"
_CHANGED = "properties: {owner.reviewed: yesterday}"
_DELTALAKE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from deltalake import DeltaTable

def read(location):
    table = DeltaTable(location)
    table.metadata(), table.protocol(), table.schema()

with ThreadPoolExecutor(int(sys.argv[2])) as pool:
    list(pool.map(read, open(sys.argv[1]).read().splitlines()))
"""
"""The loop of a careful user: as many threads as pay, here 64."""
_THREADS = 64


@dataclass(frozen=True, slots=True)
class Measured:
    """One command over the tables of a store."""

    what: str
    cost: Cost
    requests: float
    """For each table."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--commits", type=int, default=1000, help="of the one table with many commits")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the least counts")
    options = parser.parse_args()
    say(f"{machine()}; a store that answers after {MILLISECONDS} ms")
    for title, found in (
        (f"{options.tables:,} tables with checksums", many_tables(options.tables, options.repeat)),
        (f"1 table, {options.commits:,} commits after its checkpoint", one_table(options.commits, options.repeat)),
    ):
        say(lines(title, found))


def many_tables(tables: int, repeat: int) -> tuple[Measured, ...]:
    """Tables of two to eight commits by Delta Spark, each with a checksum, all as their policies declare them."""
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        lake = build_lake(Path(folder), tables, mix=(DECLARED,))
        with slow_store(lake.folder, MILLISECONDS) as store:
            return _commands(lake, store, repeat)


def one_table(commits: int, repeat: int) -> tuple[Measured, ...]:
    """A table of delta-rs: a checkpoint, and then commits without checksums, any of which could hold the metadata."""
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        place = Path(folder, "lake", "table_00000")
        declared = {"delta.isolationLevel": "Serializable"}
        table = Table(place, random.Random(1), 10, RUST, properties=declared, checksums=False, interval=0)
        table.write()
        table.checkpoint()
        for _ in range(commits):
            table.write()
        lake = Lake(Path(folder), (place,), Counter[str](), (len(table.files),), commits + 1)
        with slow_store(lake.folder, MILLISECONDS) as store:
            return _commands(lake, store, repeat)


def _commands(lake: Lake, store: SlowStore, repeat: int) -> tuple[Measured, ...]:
    count = len(lake.locations)
    declared, changing = write_policies(lake, bucket=_BUCKET), write_policies(lake, more=_CHANGED, bucket=_BUCKET)
    listed = lake.folder / "tables.txt"
    listed.write_text("".join(f"{_BUCKET}/{place.relative_to(lake.folder)}\n" for place in lake.locations))
    cache = {"XDG_CACHE_HOME": str(lake.folder / "cache")}

    def measured(what: str, *command: str, expect: Sequence[int] = (0,), env: Mapping[str, str] = {}) -> Measured:
        store.requests()
        cost, _ = run(*command, repeat=repeat, expect=expect, env={**store.environment(), **env})
        return Measured(what, cost, len(store.requests()) / count / repeat)

    _fill = measured("", *TABLECTL, "plan", str(declared), env=cache)
    return (
        measured("plan, as declared", *TABLECTL, "plan", "--no-cache", str(declared)),
        measured("drift, as declared", *TABLECTL, "drift", "--no-cache", str(declared), expect=(0, 2)),
        measured("plan, all to change", *TABLECTL, "plan", "--no-cache", str(changing)),
        measured("drift, all differ", *TABLECTL, "drift", "--no-cache", str(changing), expect=(0, 2)),
        measured("plan, second time (cache)", *TABLECTL, "plan", str(declared), env=cache),
        measured(f"deltalake, {_THREADS} threads", sys.executable, "-c", _DELTALAKE, str(listed), str(_THREADS)),
    )


def lines(title: str, found: Sequence[Measured]) -> str:
    """Ratios are wall time against the last line, the loop."""
    loop = found[-1].cost.seconds
    rows = [
        (
            each.what,
            time_text(each.cost.seconds),
            time_text(each.cost.cpu),
            memory_text(each.cost.memory),
            f"{each.requests:.1f}",
            ratio_text(each.cost.seconds / loop),
        )
        for each in found
    ]
    return table((title, "wall", "CPU", "memory", "requests a table", "ratio"), rows)


if __name__ == "__main__":
    main()
