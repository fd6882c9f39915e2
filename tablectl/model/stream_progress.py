"""Structured Streaming queries that read or write a table, and how far they are, by their checkpoints and its log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tablectl.model.safe_text import time_text


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """How far a query is."""

    name: str
    """As the policy declares it."""
    checkpoint: str
    query: str
    """The id of the query: the application id of its commits in a Delta sink."""
    batch: int
    """The last batch that it has finished; -1 if none."""
    at: int
    """When that batch began, in milliseconds since the epoch; 0 if unknown."""
    read: int | None
    """The newest version of the table that it has read completely; ``None`` while it reads the rows that the table had
    when the query was first started.
    """
    gap: float | None = None
    """Seconds between its batches, usually; ``None`` if it has finished too few."""

    def passed(self, version: int) -> bool:
        """Whether it has read a version completely."""
        return self.read is not None and self.read >= version

    @property
    def text(self) -> str:
        """``has read version 7, by batch 12 at 2026-11-22 10:00:00 UTC``."""
        if self.batch < 0:
            return "has finished no batch"
        what = "is still reading the initial rows" if self.read is None else f"has read version {self.read}"
        when = time_text(self.at)
        return f"{what}, by batch {self.batch}{f' at {when}' if when else ''}"


@dataclass(frozen=True, slots=True)
class StreamWriter:
    """How far a query is that writes the table and does not read it. Its Delta sink leaves a ``txn`` action in each
    commit.
    """

    name: str
    """As the policy declares it."""
    checkpoint: str
    query: str
    """The id of the query: the application id of its commits."""
    batch: int
    """The last batch that it has committed to the table."""
    version: int
    """The version of that commit."""
    at: int
    """The time of that commit, in milliseconds since the epoch; 0 if unknown."""

    @property
    def text(self) -> str:
        """``has written batch 12 in version 7 at 2026-11-22 10:00:00 UTC``."""
        when = time_text(self.at)
        return f"has written batch {self.batch} in version {self.version}{f' at {when}' if when else ''}"


@dataclass(frozen=True, slots=True)
class UnknownStream:
    """A query whose progress is unknown."""

    name: str
    checkpoint: str
    why: str

    @property
    def text(self) -> str:
        """``has an unknown position: …``."""
        return f"has an unknown position: {self.why}"


StreamState = StreamPosition | StreamWriter | UnknownStream


LATE = 2
"""What happens regularly is late after so many of its usual gaps."""
_LEAST_TIMES = 3
"""Fewer times have no usual gap."""
_USUAL = 0.9
"""The share of the gaps that are not longer than the usual one: a nightly pause is not unusual."""


def usual_gap(times: Iterable[float]) -> float | None:
    """The gap that nine in ten gaps between some moments do not exceed; ``None`` if there are too few moments."""
    ordered = sorted(times)
    gaps = sorted(later - earlier for earlier, later in pairwise(ordered))
    return gaps[int(len(gaps) * _USUAL)] if len(ordered) >= _LEAST_TIMES else None
