"""One table with very many files: what reading its protocol, metadata and clustering costs.

`python benchmarks/big_checkpoint.py [--files N] [--repeat N]`. deltalake does not tell clustering columns; it is asked
for the rest.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

from _lake import Table
from _measure import TABLECTL, run
from _report import Line, costs, machine, memory_text, ratio_text, say, table, time_text

_COLUMNS = 20
_CHECKPOINT = 3_000
_READS = 7

_SCRIPT = str(Path(__file__).parent / "_reads.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the least counts")
    options = parser.parse_args()
    say(machine())
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        with_checksums = Path(folder) / "with"
        size = build(with_checksums, options.files)
        without = Path(folder) / "without"
        copy_without_checksums(with_checksums, without)
        say(f"1 table, {options.files:,} files of {_COLUMNS} columns in its checkpoint ({memory_text(size)})\n")
        compare(with_checksums, without, options.repeat)


def build(path: Path, files: int) -> int:
    """A table as years of appends and the clean-up of its log leave it; the size of its checkpoint."""
    table = Table(
        path,
        random.Random(1),
        _COLUMNS,
        types=("long", "string", "double"),
        features=("deletionVectors",),
        clustered=True,
        interval=0,
    )
    table.age(_CHECKPOINT - 16, files)
    while table.version < _CHECKPOINT:
        table.write()
    table.checkpoint(parsed=True)
    for _ in range(4):
        table.write()
    return (path / "_delta_log" / f"{_CHECKPOINT:020d}.checkpoint.parquet").stat().st_size


def copy_without_checksums(path: Path, target: Path) -> None:
    """The same log as a writer without checksums leaves it, its files shared."""
    (target / "_delta_log").mkdir(parents=True)
    for file in (path / "_delta_log").iterdir():
        if file.suffix != ".crc":
            (target / "_delta_log" / file.name).hardlink_to(file)


def compare(with_checksums: Path, without: Path, repeat: int) -> None:
    rows, one = [], 0.0
    for what, by, location in (
        ("deltalake", "deltalake", with_checksums),
        ("tablectl", "tablectl", with_checksums),
        ("tablectl, no .crc", "tablectl", without),
    ):
        cost, text = run(sys.executable, _SCRIPT, by, str(location), str(_READS), repeat=repeat)
        first, another = json.loads(text)
        one = one or another
        rows.append((what, time_text(first), time_text(another), memory_text(cost.memory), ratio_text(one / another)))
    say(table(("reads in one process", "first", "others", "memory", "times faster"), rows))
    say("The first read without a checksum loads pyarrow. The ratio is of the reads after the first.\n")

    asked = [
        (what, fetched(location, 0), fetched(location, 20))
        for what, location in (("tablectl", with_checksums), ("tablectl, no .crc", without))
    ]
    say(table(("requests of a store", "as declared", "to change"), asked))
    say("A table to change is read with its twenty newest commits.\n")

    lines = []
    for what, location in (("tablectl plan", with_checksums), ("tablectl plan, no .crc", without)):
        policy = location.with_suffix(".yaml")
        policy.write_text(f"version: 1\ntables:\n  delta.`{location}`:\n    isolation: Serializable\n")
        lines.append(Line(what, run(*TABLECTL, "plan", str(policy), repeat=repeat)[0]))
    rust, _ = run(sys.executable, _SCRIPT, "deltalake", str(with_checksums), "1", repeat=repeat)
    lines.append(Line("deltalake", rust))
    say(costs(lines, "a process for one table"))


def fetched(location: Path, look_back: int) -> str:
    """Requests and bytes of one read."""
    count, size = json.loads(run(sys.executable, _SCRIPT, "fetched", str(location), str(look_back), repeat=1)[1])
    return f"{count}, {size / 1000:.0f} kB"


if __name__ == "__main__":
    main()
