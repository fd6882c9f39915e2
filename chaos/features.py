"""What can meet in one run. `tests/pairs` combines these two by two on a fake lake, `make chaos` draws from them.

A new feature of an apply gets a line here, an arrangement in `tests/pairs/features.py`, and one in `chaos/scenario.py`
or a reason there why real processes cannot show it.
"""

from __future__ import annotations

from enum import Enum


class Feature(Enum):
    """One feature, or one thing that happens to a run."""

    GUARDED_PROCESS = "guarded process"
    """The apply runs in a process whose writes are guarded."""
    OWED_HOOKS = "owed hooks"
    """A dead run has paused jobs, and did not resume them."""
    ORPHAN = "orphaned statement"
    """A statement of a dead run still runs, and commits later."""
    SIGNAL = "signal"
    """The run is asked to stop while it works."""
    FAILING_STORE = "store that fails"
    """The lease records cannot be written for a while."""
    TOGETHER = "together"
    """All tables share one window."""
    CANARY = "canary"
    """One table goes first, and is watched."""
    QUIET = "quiet moment"
    """Each table starts when few writes are expected to fail."""
    CALENDAR = "calendar"
    """Changes are allowed for some minutes at a time."""
    STREAMS = "streams"
    """A declared stream must first read the table."""
    PACE = "pace"
    """Rewritten bytes per hour are limited."""
    REWRITE = "rewrite"
    """All data is rewritten, by other partition columns."""
    COPY = "copy beside"
    """All data is rewritten as a copy beside the table, while writers go on."""
    UNDO = "undo"
    """The plan takes back what an earlier run did."""
    MANAGED = "catalog-managed"
    """Commits go through a catalog."""
    RUNTIME = "runtime"
    """Databricks, with a runtime that is known."""
    CONSTRAINT = "constraint"
    """A CHECK constraint is added: its rows are counted before the gate closes."""
    DROPPED = "dropped feature"
    """A protocol feature is dropped, in several commits of one statement."""
    UPKEEP = "upkeep"
    """Files are merged and old ones deleted, by runs before the apply."""
    EMPTY_PATTERN = "pattern without tables"
    """A pattern of the policies matches no table."""
    ENDPOINT = "SQL endpoint"
    """The engine is a Thrift server: no one else can end its statements, and an answer is lost with its connection."""
