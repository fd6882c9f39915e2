"""The stamp in every commit of an apply: the Delta log is the journal (DESIGN 1, window.md 6.1)."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which run made a commit, and from which plan."""

    run: str
    plan: str
    """The plan's digest."""

    def text(self) -> str:
        """For ``commitInfo.userMetadata``."""
        return json.dumps({"tablectl": {"plan": self.plan, "run": self.run}}, sort_keys=True, separators=(",", ":"))


def read_stamp(user_metadata: str) -> Stamp | None:
    """The stamp in a commit's user metadata; ``None`` where somebody else wrote it."""
    try:
        body = json.loads(user_metadata).get("tablectl")
        return Stamp(str(body["run"]), str(body["plan"]))
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return None
