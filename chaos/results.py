"""Results: one JSON line a round, and their totals as the table of docs/benchmarks.md."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chaos.check import PROMISES, Violation
from chaos.server import ROOT

FILE = ROOT / "benchmarks" / "results" / "chaos.jsonl"
_SHOWN = 20
"""Violations of a round that its line holds."""


def append(path: Path, facts: Mapping[str, Any], violations: Sequence[Violation]) -> None:
    """Add a round's line."""
    broken = Counter(each.promise for each in violations)
    line = {
        **facts,
        "code": code_version(),
        "verdict": "broken" if violations else "kept",
        "broken": dict(broken),
        "violations": [str(each)[:500] for each in violations[:_SHOWN]],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def code_version() -> str:
    """The commit of this checkout, with a mark where files are changed."""
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def read(path: Path) -> list[dict[str, Any]]:
    """All lines of a results file; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def next_seed(path: Path, mode: str) -> int:
    """The first seed that no line of a mode has used."""
    return max((int(line["seed"]) for line in read(path) if line["mode"] == mode), default=0) + 1


_FAULTS = {
    "kill": "kill -9 of the apply",
    "pause": "apply stopped and continued",
    "cut": "apply cut off from the server",
    "server": "kill -9 of the server",
    "store": "apply cut off from its records",
    "none": "no fault (control)",
    "races equal": "races, equal plans",
    "races different": "races, different plans",
}


def summary(lines: Iterable[Mapping[str, Any]]) -> str:
    """The totals by fault, as a table in Markdown, and what was broken."""
    rows = list(lines)
    head = ["fault", "rounds", "faults done", "commits told", "lost to a writer", *PROMISES]
    table = [head, ["---"] * len(head)]
    for fault, words in _FAULTS.items():
        of = [line for line in rows if line["fault"] == fault]
        if of:
            table.append([words, *_totals(of)])
    table.append(["all", *_totals(rows)])
    text = "\n".join("| " + " | ".join(row) + " |" for row in table)
    legend = "\n".join(f"* *{name}*: {words}" for name, words in PROMISES.items())
    return f"{text}\n\nUnder each promise: the rounds that broke it.\n\n{legend}\n"


def _totals(of: Sequence[Mapping[str, Any]]) -> list[str]:
    told = sum(line.get("attempts", {}).get("ok", 0) for line in of)
    counts = [len(of), sum(line.get("hits", 0) for line in of), told, sum(line.get("conflicts", 0) for line in of)]
    counts += [sum(promise in line["broken"] for line in of) for promise in PROMISES]
    return [f"{count:,}" for count in counts]
