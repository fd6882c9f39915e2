"""One changed policy among ten thousand: what a pull request costs, against one table alone and against `deltalake`.

`python benchmarks/pull_request.py [--tables N] [--repeat N]`
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from _measure import TABLECTL, Cost, run
from _mix import APPENDED, build_lake, write_policies
from _report import Line, costs, machine, say

_DELTALAKE = """
import sys
from deltalake import DeltaTable
table = DeltaTable(sys.argv[1])
table.metadata(), table.protocol(), table.schema()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, of which the least counts")
    options = parser.parse_args()
    say(f"{machine()}; {options.tables:,} tables in files of 100, one policy changed since the last commit")
    say(costs([Line(what, cost) for what, cost in measure(options.tables, options.repeat).items()], "whole process"))


def measure(tables: int, repeat: int) -> dict[str, Cost]:
    """What each command costs. Only the changed table has a log: no other one is read."""
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder, _inside(Path(folder)):
        lake = build_lake(Path(folder), 1, mix=(APPENDED,))
        table, policies = lake.locations[0], Path(folder, "policies")
        others = tuple(table.with_name(f"table_{number:05d}") for number in range(tables))
        write_policies(replace(lake, locations=others)).rename(policies)
        Path("tablectl.yaml").write_text("policies: policies\n")
        _commit("policies")
        changed = policies / "tables-00000.yaml"
        changed.write_text(changed.read_text().replace("tags: [benchmark]", "properties: {owner.reviewed: now}", 1))
        _commit("one table")
        name = f"lake.{table.name}"
        return {
            "deltalake, the one table": run(sys.executable, "-c", _DELTALAKE, str(table), repeat=repeat)[0],
            "plan --changed-since HEAD~1": run(*TABLECTL, "plan", "--changed-since", "HEAD~1", repeat=repeat)[0],
            "plan --select, the one table": run(*TABLECTL, "plan", "--select", name, repeat=repeat)[0],
            "conflicts, of the one table": run(*TABLECTL, "conflicts", name, repeat=repeat)[0],
            "validate, all policies": run(*TABLECTL, "validate", repeat=repeat)[0],
        }


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """A Git repository as working directory."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        _git("init", "--quiet")
        yield
    finally:
        os.chdir(before)


def _commit(message: str) -> None:
    _git("add", "policies", "tablectl.yaml")
    _git("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.com", "commit", "--quiet", "-m", message)


def _git(*arguments: str) -> None:
    subprocess.run(("git", *arguments), check=True)


if __name__ == "__main__":
    main()
