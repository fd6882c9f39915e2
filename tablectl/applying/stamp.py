"""The stamp in every commit of an apply: the Delta log is the journal (docs/window.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass

LONGEST_REASON = 500
"""Characters of an operator's reason: logs are read back cut to a length, and a stamp must be whole."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which run made a commit, from which plan, and what an operator took upon himself for it."""

    run: str
    plan: str
    """The plan's digest."""
    proceed: str = ""
    """Why the run was to go on over writers that did not end in time."""
    override: str = ""
    """Why it was to run outside the calendar."""

    def text(self) -> str:
        """For ``commitInfo.userMetadata``."""
        reasons = {"proceed": self.proceed, "override": self.override}
        body = {"plan": self.plan, "run": self.run, **{name: why for name, why in reasons.items() if why}}
        return json.dumps({"tablectl": body}, sort_keys=True, separators=(",", ":"))


def read_stamp(user_metadata: str) -> Stamp | None:
    """The stamp in a commit's user metadata; ``None`` where somebody else wrote it."""
    try:
        body = json.loads(user_metadata).get("tablectl")
        reasons = (str(body.get(name, "")) for name in ("proceed", "override"))
        return Stamp(str(body["run"]), str(body["plan"]), *reasons)
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return None
