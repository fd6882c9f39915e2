"""What `tablectl plan` spends its CPU on: samples of one process, by part of the work.

`python benchmarks/plan_profile.py [--tables N] [--all]` samples the plan of a mixed lake by a timer of the CPU; with
`--all` every table is to change. Each sample counts for the innermost of the functions below that was running.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

from _mix import build_lake, write_policies
from _report import machine, say, table

PARTS = {
    "JSONDecoder.raw_decode": "JSON",
    "_find_and_load": "imports",
    "parse_schema": "schemas",
    "read_checkpoint": "checkpoints",
    "parse_checksum": "checksums",
    "parse_commit": "commits",
    "DiskLog.lines": "opening and reading files",
    "DiskLog.read": "opening and reading files",
    "DiskLog.names": "listing",
    "parse_listing": "listing",
    "parse_files": "policies",
    "resolve": "policies",
    "diff": "diff and plan",
    "plan_table": "diff and plan",
    "read_many": "the rest of the reader",
    "read_each": "the rest of the reader",
    "read_table": "the rest of the reader",
}
"""Functions, and what they are for."""
REST = "everything else"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--all", action="store_true", help="every table is to change")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        lake = build_lake(Path(folder), given.tables)
        policies = write_policies(lake, more="properties: {owner.reviewed: yesterday}" if given.all else "")
        (Path(folder) / "tablectl.yaml").write_text("stores: {processes: 1}\n")
        with contextlib.chdir(folder):
            found = _sampled(str(policies))
    all_samples = sum(found.values())
    rows = [(part, f"{count / all_samples:.0%}") for part, count in found.most_common()]
    say(f"{given.tables:,} tables, {all_samples:,} samples; {machine()}")
    say(table(("plan", "of all"), rows))


def part_of(running: Iterable[str]) -> str:
    """What the innermost known function is for; ``running`` are the qualified names of a stack, innermost first."""
    return next((PARTS[name] for name in running if name in PARTS), REST)


def _running(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield frame.f_code.co_qualname
        frame = frame.f_back


def _sampled(policies: str) -> Counter[str]:
    found = Counter[str]()

    def count(_signal: int, frame: FrameType | None) -> None:
        found[part_of(_running(frame))] += 1

    signal.signal(signal.SIGPROF, count)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    sys.argv = ["tablectl", "plan", policies]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            from tablectl.commands import main as command  # noqa: PLC0415  # the imports are sampled, too

            command()
    except SystemExit:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return found


if __name__ == "__main__":
    main()
