"""What a writer notes of each of its attempts: before it, and what it was told after it. One JSON object a line."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Pairs = tuple[tuple[int, int], ...]
"""Ids and values."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One transaction of a writer; its id is the ``userMetadata`` of its commit."""

    id: str
    writer: int
    table: str
    """The name of the table's folder."""
    act: str
    """``append``, ``merge``, ``update``, ``delete`` or ``optimize``."""
    pairs: Pairs = ()
    """What is inserted, merged or set; of a delete the ids count."""
    began: float = 0.0
    """When it asked for its guard, in seconds since the epoch."""
    waited: float | None = None
    """Seconds until its guard let it through; ``None`` where it never did."""
    ended: float | None = None
    told: str = "unknown"
    """``ok``; ``failed``, with an error of Delta or Spark; ``unknown``, with no answer or one about the connection."""
    error: str = ""
    warnings: tuple[str, ...] = field(default=())
    """What the guard logged: for instance that it could not look at the gate."""


class Journal:
    """A file that attempts are appended to. Several processes may append; each line is written at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, event: str, attempt: str, **facts: Any) -> None:
        """Append one event of an attempt."""
        line = json.dumps({"event": event, "id": attempt, "at": time.time(), **facts})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def read_journal(path: Path) -> list[Attempt]:
    """The attempts of a journal, in the order in which they began. A line that was cut off by a kill is passed over."""
    if not path.exists():
        return []
    found: dict[str, dict[str, Any]] = {}
    for event in _events(path.read_text(encoding="utf-8").splitlines()):
        _take(found.setdefault(event["id"], {}), event)
    return [Attempt(**facts) for facts in found.values() if "table" in facts]


@dataclass(frozen=True, slots=True)
class HookCall:
    """One hook that ran."""

    hook: str
    """``before``: it paused the jobs of a table; ``after``: it resumed them."""
    table: str
    """The name of the table's folder."""
    run: str
    at: float
    """When it began, in seconds since the epoch."""


def read_hooks(path: Path) -> list[HookCall]:
    """The hooks of a journal in their order."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [HookCall(**event) for event in _events(lines)]


def _events(lines: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def _take(facts: dict[str, Any], event: Mapping[str, Any]) -> None:
    if event["event"] == "try":
        pairs = tuple((int(key), int(value)) for key, value in event["pairs"])
        facts |= {key: event[key] for key in ("id", "writer", "table", "act")} | {"pairs": pairs, "began": event["at"]}
    elif event["event"] == "inside":
        facts["waited"] = event["at"] - facts["began"]
    elif event["event"] == "told":
        facts |= {"told": event["told"], "error": event["error"], "ended": event["at"]}
    elif event["event"] == "warning":
        facts["warnings"] = (*facts.get("warnings", ()), event["text"])
