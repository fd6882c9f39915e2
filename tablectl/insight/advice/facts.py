"""What advice is computed from."""

from __future__ import annotations

from tablectl.attributes.policy import Policy
from tablectl.delta.dialects import dialect_of
from tablectl.delta.protocol import Client
from tablectl.delta.schema import Field
from tablectl.frozen import frozen
from tablectl.insight.advice.jobs import Jobs
from tablectl.insight.matrix.context import ConflictContext
from tablectl.model.commit_files import PastCommits
from tablectl.model.streams import StreamState
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

LEAST_WRITES = 30
"""With fewer writes of the kind in question, nothing is advised."""
LEAST_SECONDS = 60.0
"""Writer-seconds a week, below which an advice is not worth its change."""
LEAST_SHARE = 0.05
"""The share of all writer-seconds, below which the same holds."""


@frozen(kw_only=True)
class TableFacts:
    """One table: its state, its past, and what its policy says."""

    live: LiveTable
    """With its size, and with its layout or its clustering."""
    past: PastCommits
    jobs: Jobs | None
    """``None`` if no commit has a usable time."""
    dialect: str
    policy: Policy
    options: TableOptions
    streams: tuple[StreamState, ...] = ()
    """How far the streams are that the policy declares."""

    @property
    def context(self) -> ConflictContext:
        """The settings of the table, for the client that writes it most, or for that of the dialect."""
        runtime = dialect_of(self.dialect).runtime
        jobs = self.jobs.jobs if self.jobs else ()
        client = jobs[0].writes[0].commit.client if jobs else Client("unknown")
        return ConflictContext.of(self.live, Client(runtime.name) if runtime else client)

    def field(self, column: str) -> Field | None:
        """A top-level column by its name, which ignores letter case."""
        return next((each for each in self.live.schema.fields if each.name.lower() == column.lower()), None)


def enough(seconds: float, jobs: Jobs) -> bool:
    """Whether a saving is worth a change."""
    total = sum(job.seconds for job in jobs.jobs) / jobs.weeks if jobs.weeks > 0 else 0.0
    return seconds >= LEAST_SECONDS and seconds >= LEAST_SHARE * total
