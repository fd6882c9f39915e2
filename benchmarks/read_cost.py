"""The reader and the diff alone: CPU for each of many unchanged tables on a disk, from their logs and from the cache.

`python benchmarks/read_cost.py [--tables N] [--repeat N]` plans tables that are as declared, in one process whose
libraries and policies are loaded. The *bound* is what no reader can avoid: list each log, read the bytes that its state
is in, and parse their JSON with Python's parser.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from _mix import KINDS, Kind, Lake, build_lake, write_policies

from tablectl.commands.plan import plan_located
from tablectl.commands.project import Project
from tablectl.commands.read_tables import LocatedTable, locate_tables
from tablectl.commands.selection import Selection

_SETTINGS = """\
engine: {remote: sc://unused}
cache: %s
stores: {processes: 1}
"""
_APPENDED, _RUST = KINDS[0], KINDS[-1]


@dataclass(frozen=True, slots=True)
class ReadCost:
    """CPU for each table of a kind, in microseconds."""

    kind: str
    bound: float
    log: float
    cache: float


def measure(tables: int, repeat: int) -> list[ReadCost]:
    """Tables with checksums, and tables without."""
    kinds = (("with checksums", _APPENDED), ("without", _RUST))
    return [_measured(what, kind, tables, repeat) for what, kind in kinds]


def _measured(what: str, kind: Kind, tables: int, repeat: int) -> ReadCost:
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        lake = build_lake(Path(folder), tables, mix=(kind,))
        bound = _least(lambda: _bound(lake.locations, checksums=kind is _APPENDED), repeat)
        log, cache = (_planned(lake, repeat, cached=cached) for cached in (False, True))
    return ReadCost(what, *(seconds / tables * 1e6 for seconds in (bound, log, cache)))


def _planned(lake: Lake, repeat: int, *, cached: bool) -> float:
    """The least CPU of planning all tables, in seconds, without the first time."""
    policies = write_policies(lake)
    (lake.folder / "tablectl.yaml").write_text(_SETTINGS % (lake.folder / "cache"))
    with Project.open(lake.folder, cached=cached) as project:
        specs = project.policies(policies)
        located = locate_tables(project, specs, Selection())
        # One in twenty differs from its policy: its commits are read, too.
        changing = {table.name for table in plan_located(project, located, losses=False).tables}
        unchanged = tuple(each for each in located.tables if each[0].name.text not in changing)
        rest = LocatedTable(tables=unchanged, failures=(), unmatched=(), others=(), policies=located.policies)
        seconds = _least(lambda: plan_located(project, rest, losses=False), repeat)
    return seconds * len(located.tables) / len(unchanged)


def _least(work: Callable[[], object], repeat: int) -> float:
    seconds = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def _bound(places: Iterable[Path], *, checksums: bool) -> None:
    """List each log; read and parse the newest commit and its checksum, or all commits."""
    for place in places:
        log = f"{place}/_delta_log"
        names = sorted(entry.name for entry in os.scandir(log))
        commits = [name for name in names if name.endswith(".json")]
        for name in [commits[-1], f"{commits[-1][:20]}.crc"] if checksums else commits:
            with open(f"{log}/{name}", "rb") as file:  # noqa: PTH123  # the least that Python can do
                for line in file:
                    json.loads(line)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=4)
    asked = parser.parse_args()
    count: int = asked.tables
    sys.stdout.write(f"{count:,} unchanged tables of a kind, CPU of reader and diff for each\n\n")
    for each in measure(count, asked.repeat):
        sys.stdout.write(
            f"{each.kind:20} bound {each.bound:5.0f} µs   log {each.log:5.0f} µs ({each.log / each.bound:.1f}×)   "
            f"cache {each.cache:5.0f} µs\n"
        )


if __name__ == "__main__":
    main()
