"""Results: one JSON line a round, lines that explain broken rounds, and the totals as in docs/benchmarks.md."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

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


Cause = Literal["harness", "product"]
CAUSES: tuple[Cause, ...] = get_args(Cause)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a round broke a promise: a fault of this harness, or one of tablectl that was corrected since."""

    mode: str
    seed: int
    cause: Cause
    why: str


def explain(path: Path, explanation: Explanation) -> None:
    """Add a line that explains the last broken round of a seed; the line of the round stays as it is.

    Raises ``ValueError`` if no such round is broken.
    """
    number = _last_broken(read(path), explanation)
    line = {"explains": number, **asdict(explanation)}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _last_broken(lines: Sequence[Mapping[str, Any]], of: Explanation) -> int:
    found = [
        number
        for number, line in enumerate(lines, start=1)
        if "explains" not in line and (line["mode"], line["seed"], line["verdict"]) == (of.mode, of.seed, "broken")
    ]
    if not found:
        raise ValueError(f"no round of {of.mode} with seed {of.seed} is broken")
    return found[-1]


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
    used = (int(line["seed"]) for line in read(path) if "explains" not in line and line["mode"] == mode)
    return max(used, default=0) + 1


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
    every = list(lines)
    rows = [line for line in every if "explains" not in line]
    head = ["fault", "rounds", "faults done", "commits told", "lost to a writer", *PROMISES]
    table = [head, ["---"] * len(head)]
    for fault, words in _FAULTS.items():
        of = [line for line in rows if line["fault"] == fault]
        if of:
            table.append([words, *_totals(of)])
    table.append(["all", *_totals(rows)])
    text = "\n".join("| " + " | ".join(row) + " |" for row in table)
    legend = "\n".join(f"* *{name}*: {words}" for name, words in PROMISES.items())
    broken = "".join(f"{line}\n" for line in _explained(every))
    listed = f"\nBroken rounds:\n\n{broken}" if broken else ""
    return f"{text}\n\nUnder each promise: the rounds that broke it.\n\n{legend}\n{listed}"


def _explained(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each broken round with its cause, and what became of its seed afterwards."""
    whys = {line["explains"]: line for line in lines if "explains" in line}
    for number, line in enumerate(lines, start=1):
        if line.get("verdict") != "broken":
            continue
        later = [
            each["verdict"]
            for each in lines[number:]
            if "explains" not in each and (each["mode"], each["seed"]) == (line["mode"], line["seed"])
        ]
        why = whys.get(number)
        words = f"{why['cause']}: {why['why']}" if why else "not explained"
        again = f"; the same seed again: {', '.join(later)}" if later else ""
        yield f"* {line['mode']} {line['seed']} ({line['fault']}), {', '.join(line['broken'])}: {words}{again}"


def _totals(of: Sequence[Mapping[str, Any]]) -> list[str]:
    told = sum(line.get("attempts", {}).get("ok", 0) for line in of)
    counts = [len(of), sum(line.get("hits", 0) for line in of), told, sum(line.get("conflicts", 0) for line in of)]
    counts += [sum(promise in line["broken"] for line in of) for promise in PROMISES]
    return [f"{count:,}" for count in counts]
