"""What the benchmarks print: narrow aligned tables, ratios against the first line."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan

from _measure import Cost


@dataclass(frozen=True, slots=True)
class Line:
    """One measured thing; ``tables`` is how many tables the cost is for."""

    what: str
    cost: Cost
    tables: int = 1


def machine() -> str:
    """What the figures were measured on."""
    return f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"


def costs(lines: Sequence[Line], title: str = "") -> str:
    """What each line cost; the ratio is wall time per table, the first line being 1."""
    one = lines[0].cost.seconds / lines[0].tables
    many = any(line.tables != 1 for line in lines)
    rows = []
    for line in lines:
        each = line.cost.seconds / line.tables
        spent = (time_text(line.cost.seconds), time_text(line.cost.cpu), memory_text(line.cost.memory))
        rows.append((line.what, *spent, *([time_text(each)] if many else []), ratio_text(each / one)))
    return table((title, "wall", "CPU", "memory", *(["per table"] if many else []), "ratio"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as they must be: the first to the left, the others to the right."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in lines
    )


def time_text(seconds: float) -> str:
    """Two or three figures; not a number is not measured."""
    if isnan(seconds):
        return "–"
    if seconds >= 1:
        return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms"


def memory_text(size: int) -> str:
    """In MB of 10⁶ bytes; nothing is not measured."""
    return "–" if not size else f"{size / 1e6:.0f} MB"


def ratio_text(ratio: float) -> str:
    """How many times as much."""
    return f"{ratio:.1f}×" if ratio < 100 else f"{ratio:.0f}×"


def say(text: str = "") -> None:
    """To standard output, at once: a benchmark takes minutes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
