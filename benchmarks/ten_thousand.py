"""Ten thousand tables planned in one process: memory, and whether the time grows in line; and what upkeep is due there.

`python benchmarks/ten_thousand.py [--tables N] [--repeat N]`
"""

from __future__ import annotations

import argparse
import contextlib
import re
import tempfile
from collections import Counter
from pathlib import Path
from uuid import UUID

from _measure import TABLECTL, Cost, run
from _mix import Lake, build_lake, write_policies
from _report import machine, memory_text, ratio_text, say, table, time_text

_DISTINCT = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=2, help="runs of each, of which the least counts")
    options = parser.parse_args()
    say(machine())
    # Elsewhere than in the repository: upkeep looks for shallow clones in the policies of the working directory.
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder, contextlib.chdir(folder):
        lake = build_lake(Path(folder), min(options.tables, _DISTINCT))
        lake = multiply(lake, options.tables)
        say(lake.text() + "\n")
        compare(lake, options.repeat)


def multiply(lake: Lake, tables: int) -> Lake:
    """The same tables again and again, each with an id of its own in its commits and checksums."""
    locations = list(lake.locations)
    for number in range(len(locations), tables):
        source = locations[number % len(lake.locations)]
        target = lake.folder / "lake" / f"table_{number:05d}"
        copy_table(source, target, str(UUID(int=number)))
        locations.append(target)
    times, rest = divmod(tables, len(lake.locations))
    assert rest == 0, "a multiple of the distinct tables"
    return Lake(
        lake.folder,
        tuple(locations),
        Counter({words: count * times for words, count in lake.kinds.items()}),
        lake.files * times,
        lake.commits * times,
    )


def copy_table(source: Path, target: Path, table_id: str) -> None:
    """A table's log under another id; checkpoints keep theirs."""
    log = target / "_delta_log"
    log.mkdir(parents=True)
    first = (source / "_delta_log" / f"{0:020d}.json").read_bytes()
    before = re.search(rb'"metaData":\{"id":"([^"]+)"', first)
    assert before is not None
    for file in (source / "_delta_log").iterdir():
        data = file.read_bytes()
        (log / file.name).write_bytes(data.replace(before[1], table_id.encode()) if file.suffix != ".parquet" else data)


def compare(lake: Lake, repeat: int) -> None:
    count = len(lake.locations)
    rows, one, plan = [], 0.0, Cost(0.0, 0.0, 0)
    for tables in dict.fromkeys((count // 10, count * 3 // 10, count)):
        cost, text = run(*TABLECTL, "plan", str(write_policies(lake, tables)), repeat=repeat)
        one = one or cost.cpu / tables
        rows.append(row(f"{tables:,} tables", cost, tables, one))
        plan = cost
    upkeep = write_policies(lake, more="upkeep: {optimize: {small_files: 30%, every: 7 days}, vacuum: {every: 7 days}}")
    kept, due_text = run(*TABLECTL, "upkeep", str(upkeep), repeat=repeat)
    rows.append(row(f"{count:,}, tablectl upkeep", kept, count, one))
    changing = write_policies(lake, more="properties: {owner.reviewed: yesterday}")
    saved = lake.folder / "plan.json"
    changed, all_text = run(*TABLECTL, "plan", str(changing), "--out", str(saved), repeat=1)
    rows.append(row(f"{count:,}, all to change", changed, count, one))
    say(table(("tablectl plan", "wall", "CPU", "memory", "CPU per table", "ratio"), rows))
    say(f"{text.splitlines()[-1]}\n{due_text.splitlines()[-1]}")
    some, every = ratio_text(kept.cpu / plan.cpu), ratio_text(kept.cpu / changed.cpu)
    say(f"Upkeep took {some} the CPU of the plan, and {every} that of the plan that changes all tables.")
    say(f"{all_text.splitlines()[-1]}\nSaved in a plan file of {memory_text(saved.stat().st_size)}.")


def row(what: str, cost: Cost, tables: int, one: float) -> tuple[str, ...]:
    """CPU time tells how the work grows; wall time also what else the machine does."""
    each = cost.cpu / tables
    spent = (time_text(cost.seconds), time_text(cost.cpu), memory_text(cost.memory))
    return what, *spent, time_text(each), ratio_text(each / one)


if __name__ == "__main__":
    main()
