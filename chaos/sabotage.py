"""``python -m chaos sabotage``: one-line defects of the window, put in one at a time; each must be noticed.

Each defect is put into a copy of the checkout. The unit tests nearest to it run there first; where they pass, three
rounds with faults follow. A defect that neither notices is a gap in the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos.defects import DEFECTS, Defect
from chaos.server import ROOT

_COPIED = ("tablectl", "tablectl_guard", "tests", "chaos", "packages", "pyproject.toml")
_LONGEST = 900.0
"""Seconds for the tests of one defect; where they hang, the defect is noticed, too."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """What became of one defect."""

    defect: Defect
    by: str
    """The first test or round that failed; empty if nothing did."""


def put_in(defect: Defect, root: Path) -> None:
    """Change the one place. Raises ``ValueError`` if the code has no such place, or several."""
    path = root / defect.file
    text = path.read_text(encoding="utf-8")
    if text.count(defect.line) != 1:
        raise ValueError(f"{defect.file} has {text.count(defect.line)} places with {defect.line!r}")
    path.write_text(text.replace(defect.line, defect.becomes), encoding="utf-8")


def sabotage(defects: Iterable[Defect] = DEFECTS, rounds: int = 3) -> Iterator[Noticed]:
    """Each defect, and what noticed it."""
    for defect in defects:
        with tempfile.TemporaryDirectory(prefix="sabotage-") as folder:
            root = Path(folder)
            for name in _COPIED:
                source = ROOT / name
                if source.is_dir():
                    shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy2(source, root / name)
            put_in(defect, root)
            yield Noticed(defect, _by_tests(defect, root) or _by_rounds(root, rounds))


def _by_tests(defect: Defect, root: Path) -> str:
    command = ["-m", "pytest", "-x", "-rf", "-p", "no:cacheprovider", "-m", "not spark and not slow", *defect.tests]
    try:
        done = _python(command, root, _LONGEST)
    except subprocess.TimeoutExpired:
        return f"{', '.join(defect.tests)} did not end"
    if done.returncode == 0:
        return ""
    failed = next((line for line in done.stdout.splitlines() if line.startswith("FAILED ")), "")
    if done.returncode != 1 or not failed:
        raise RuntimeError(f"{defect.file}: the tests did not run: {(done.stdout + done.stderr)[-2000:]}")
    return failed.split()[1]


def _by_rounds(root: Path, rounds: int) -> str:
    if not rounds:
        return ""
    results = str(root / "results.jsonl")
    done = _python(["-m", "chaos", "--rounds", str(rounds), "--only", "kill", "--results", results], root, None)
    broken = next((line for line in done.stdout.splitlines() if "BROKEN" in line), "")
    return f"round {broken}" if broken else ""


def _python(arguments: list[str], root: Path, seconds: float | None) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "ignore", *arguments]
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, timeout=seconds, check=False)


def report(noticed: Iterable[Noticed]) -> int:
    """Print a line for each defect and the total. Returns how many nothing noticed."""
    every = 0
    missed = 0
    for each in noticed:
        every += 1
        missed += not each.by
        print(f"{each.defect.what}: {each.by or 'NOT NOTICED'}", flush=True)
    print(f"{every - missed} of {every} defects were noticed", flush=True)
    return missed
