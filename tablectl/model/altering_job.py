"""Who alters a table: a series of commits that change its metadata or its protocol, or repeat them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AlteringKind = Literal["settings", "columns", "features", "clustering", "writes", "replaces", "overwrites", "optimizes"]
"""What the commits of a series have in common; it decides what stops them."""
LEAST_FAILED = 0.5
"""The expected number of failed writes a week from which on a series is a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteringJob:
    """Commits of one operation by one job, user or client, and what they are expected to cost the other writers."""

    kind: AlteringKind
    operation: str
    """As Delta records it: ``SET TBLPROPERTIES``."""
    who: str = ""
    """The job, notebook, user, stream, or the ``userMetadata``; empty if the commits name none."""
    client: str
    """``Delta Spark 4.4.0``."""
    keys: tuple[str, ...] = ()
    """The properties or the column that the newest commits name."""
    commits: int
    since: int
    """The time of the first one, in milliseconds since the epoch."""
    newest: int
    days: float
    """The length of the time in which all commits are known."""
    nothing: int = 0
    """How many of them repeat the state of the table."""
    failed: float
    """The expected number of writes that they fail in a week."""
    seconds: float
    """The seconds of work of these writes."""
    fails: tuple[str, ...] = ()
    """The writers that they are expected to fail, the most failures first."""
