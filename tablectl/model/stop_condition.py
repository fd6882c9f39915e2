"""``--stop-if-failed`` and ``--stop-if-silent``: what must be observed of the first tables for an apply to start no
further table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tablectl.support.frozen import frozen

Term = Literal["failed", "silent"]
LONGEST_SOAK = 10_080
"""The maximum number of minutes for which tables are watched: a week."""


@frozen
class Count:
    """How many of something were observed."""

    number: int
    unknown: bool = False
    """Whether there may be more, because something could not be observed."""


Counts = Mapping[Term, Count]


@frozen
class StopCondition:
    """Two thresholds, one of which must be reached. 0 switches a threshold off."""

    failed: int = 1
    """Tables that were not changed as planned, or on which something failed since."""
    silent: int = 0
    """Writers and streams that have not committed for twice their usual gap."""

    @property
    def text(self) -> str:
        """``failed 1 or silent 3``; empty if both are off."""
        return " or ".join(f"{term} {limit}" for term, limit in self._limits().items())

    def reached(self, counts: Counts) -> tuple[Term, ...]:
        """The thresholds that are reached."""
        return tuple(term for term, limit in self._limits().items() if counts[term].number >= limit)

    def unknown(self, counts: Counts) -> tuple[Term, ...]:
        """The thresholds that may be reached: a count can only be higher than what was observed."""
        reached = self.reached(counts)
        return tuple(term for term in self._limits() if term not in reached and counts[term].unknown)

    def _limits(self) -> Mapping[Term, int]:
        limits: Mapping[Term, int] = {"failed": self.failed, "silent": self.silent}
        return {term: limit for term, limit in limits.items() if limit}
