"""The stamp in every commit of an apply: the Delta log is the journal (docs/window.md)."""

from __future__ import annotations

from dataclasses import dataclass

from tablectl.support.json_text import read_json, write_json

LONGEST_REASON = 500
"""Maximum length of an operator's reason, in characters. User metadata read back from a log is cut to a fixed length,
and a stamp must be complete."""

LONGEST_OWNER = 300


@dataclass(frozen=True)  # writers read stamps, also on Python 3.9, which has no ``slots``
class Stamp:
    """The run that made a commit, its plan, and the operator's reasons for exceptions."""

    run: str
    plan: str
    """The plan's digest."""
    proceed: str = ""
    """The reason given with ``--proceed``, to continue despite writers that did not finish in time."""
    override: str = ""
    """The reason given with ``--override``, to run outside the calendar."""
    by: str = ""
    """Who applied, on which machine, in which CI job."""

    def text(self) -> str:
        """The stamp as the JSON text of ``commitInfo.userMetadata``."""
        reasons = {"proceed": self.proceed, "override": self.override, "by": self.by[:LONGEST_OWNER]}
        body = {"plan": self.plan, "run": self.run, **{name: why for name, why in reasons.items() if why}}
        # Spark replaces ${env:NAME} in the value of a setting when Delta reads it (``ConfigReader.scala``).
        return write_json({"tablectl": body}, sort=True).replace("$", "\\u0024")


def read_stamp(user_metadata: str) -> Stamp | None:
    """The stamp in a commit's user metadata; ``None`` if the commit was not made by an apply."""
    try:
        body = read_json(user_metadata).get("tablectl")
        reasons = (str(body.get(name, "")) for name in ("proceed", "override", "by"))
        return Stamp(str(body["run"]), str(body["plan"]), *reasons)
    except (ValueError, AttributeError, KeyError, TypeError):
        return None
