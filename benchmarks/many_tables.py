"""Many small tables: `tablectl plan` against what one would do instead.

`python benchmarks/many_tables.py [--tables N] [--sample N] [--repeat N]`; without pyspark, or with `--sample 0`, Spark
is left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from math import nan
from pathlib import Path
from random import Random

from _measure import TABLECTL, Cost, run
from _mix import Lake, build_lake, write_policies
from _report import Line, costs, machine, say

_WARM_UP = 10
_SPARK = str(Path(__file__).parent / "_spark.py")
_CHANGED = "properties: {owner.reviewed: yesterday}"
_DELTALAKE = """
import sys
from deltalake import DeltaTable
for location in open(sys.argv[1]).read().splitlines():
    table = DeltaTable(location)
    table.metadata(), table.protocol(), table.schema()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--sample", type=int, default=30, help="tables that Spark describes")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the least counts")
    options = parser.parse_args()
    say(machine())
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        lake = build_lake(Path(folder), options.tables)
        say(lake.text() + "\n")
        compare(lake, options.sample if find_spec("pyspark") else 0, options.repeat)


def compare(lake: Lake, sample: int, repeat: int) -> None:
    lines, text = measure(lake, repeat)
    if sample:
        lines += [Line(f"DESCRIBE DETAIL of {sample}", describe(lake, sample), sample)]
    say(costs(lines, "whole process"))
    say(f"The plan: {text.splitlines()[-1].removeprefix('Plan: ')}")
    if sample:
        say("DESCRIBE DETAIL: in a warm session, on tables that it has not seen yet; its start is not counted.")


def measure(lake: Lake, repeat: int) -> tuple[list[Line], str]:
    """The loop first, then the commands; and what `plan` printed."""
    count = len(lake.locations)
    declared, changing = write_policies(lake), write_policies(lake, more=_CHANGED)
    listed = write_list(lake, range(count))
    rust, _ = run(sys.executable, "-c", _DELTALAKE, str(listed), repeat=repeat)
    plan, text = run(*TABLECTL, "plan", "--no-cache", str(declared), repeat=repeat)
    lines = [Line("deltalake loop", rust, count), Line("tablectl plan", plan, count)]
    for command in ("plan", "drift", "lint"):
        cost, _ = run(*TABLECTL, command, "--no-cache", str(changing), repeat=repeat, expect=(0, 1, 2))
        lines.append(Line(f"{command}, all to change", cost, count))
    return lines, text


def describe(lake: Lake, sample: int) -> Cost:
    """What Spark takes for some tables of all kinds, and that it finds in them what was built."""
    count = len(lake.locations)
    chosen = Random(1).sample(range(count), min(sample + _WARM_UP, count))
    _, text = run(sys.executable, _SPARK, str(write_list(lake, chosen)), repeat=1)
    found = json.loads(text.splitlines()[-1])
    assert found["files"] == [lake.files[number] for number in chosen]
    return Cost(sum(found["seconds"][_WARM_UP:]), nan, 0)


def write_list(lake: Lake, chosen: Iterable[int]) -> Path:
    """The locations of some tables, one a line."""
    listed = lake.folder / "tables.txt"
    listed.write_text("".join(f"{lake.locations[number]}\n" for number in chosen))
    return listed


if __name__ == "__main__":
    main()
