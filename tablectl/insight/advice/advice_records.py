"""The records of advice, and what it is computed from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from tablectl.attributes.policy import Policy
from tablectl.delta.dialects import dialect_of
from tablectl.delta.protocol import Client
from tablectl.delta.schema import Field
from tablectl.insight.advice.jobs import Jobs
from tablectl.insight.conflict_context import ConflictContext
from tablectl.model.commit_contents import ColumnValues, PastCommits
from tablectl.model.errors import ExitCode
from tablectl.model.plan import TableFailure, Value
from tablectl.model.report_methods import ReportMethods
from tablectl.model.stream_progress import StreamState
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

Confidence = Literal["high", "medium", "low"]
Benefit = Literal[
    "days of risk", "appends at risk", "writer-seconds a week", "bytes a week", "bytes", "files", "clients"
]
BENEFITS: tuple[Benefit, ...] = get_args(Benefit)
"""From the most to the least important one."""

_DAY = 86_400.0
_MEDIUM, _HIGH = 100, 300

Declared = tuple[str, str, Value]
"""An attribute or option, the key of a map (otherwise empty), and the value to declare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One change of a table, or of a job that writes it."""

    code: str
    """``A02``: the section of docs/advise.md."""
    title: str
    declare: tuple[Declared, ...] = ()
    """What to declare; empty if no policy can declare it."""
    do: str = ""
    """What to do besides, or instead."""
    evidence: tuple[str, ...]
    """What the log shows, without literals."""
    benefit: Benefit
    amount: float
    """How much of it."""
    leaves: float | None = None
    """How much of what it saves is left; ``None`` if that was not computed."""
    cost: tuple[str, ...] = ()
    observations: int
    confidence: Confidence
    computed: str
    """How the benefit was computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAdvice:
    """The advice for one table, the best first."""

    table: str
    location: str
    commits: int
    """The number of commits that were read."""
    since: int = 0
    """The time of the oldest of them, in milliseconds since the epoch; 0 if unknown."""
    advice: tuple[Advice, ...] = ()
    untold: tuple[str, ...] = ()
    """What is unknown, with what would answer it."""
    yaml: str = ""
    """The entry for a policy file that declares all of it; empty if there is nothing to declare."""
    error: str = ""
    """Why the table cannot be read; empty if it can."""


@dataclass(frozen=True, slots=True, repr=False)
class LakeAdvice(ReportMethods):
    """The advice for all tables."""

    tables: tuple[TableAdvice, ...]
    failures: tuple[TableFailure, ...] = ()
    unmatched: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, otherwise 0: advice does not judge."""
        return ExitCode.ERROR if self.failures or any(table.error for table in self.tables) else ExitCode.DONE


def confidence_of(observations: int, seconds: float) -> Confidence:
    """The confidence that a number of writes allows; always low if they cover less than a day."""
    if seconds < _DAY or observations < _MEDIUM:
        return "low"
    return "high" if observations >= _HIGH else "medium"


def _not_read(_column: Field, _updates: Mapping[int, frozenset[str]]) -> ColumnValues:
    return ColumnValues()


LEAST_WRITES = 30
"""With fewer writes of the kind in question, nothing is advised."""
LEAST_SECONDS = 60.0
"""Writer-seconds a week, below which an advice is not worth its change."""
LEAST_SHARE = 0.05
"""The share of all writer-seconds, below which the same holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    values: Callable[[Field, Mapping[int, frozenset[str]]], ColumnValues] = _not_read
    """Reads what the statistics of the files tell of a column, given the literals of UPDATE commits by version."""

    @property
    def context(self) -> ConflictContext:
        """The settings of the table, for the client that writes it most, or for that of the dialect."""
        runtime = dialect_of(self.dialect).runtime
        jobs = self.jobs.jobs if self.jobs else ()
        client = jobs[0].writes[0].commit.client if jobs else Client("unknown")
        return ConflictContext.of(self.live, Client(runtime.name) if runtime else client)

    def field(self, column: str) -> Field | None:
        """A top-level column by its name, which ignores letter case, or by the name that it had before column mapping:
        older commits have that one in their conditions.
        """
        fields, folded = self.live.schema.fields, column.lower()
        by_name = (each for each in fields if each.name.lower() == folded)
        return next(by_name, None) or next((each for each in fields if each.physical.lower() == folded), None)


def enough(seconds: float, jobs: Jobs) -> bool:
    """Whether a saving is worth a change."""
    total = sum(job.seconds for job in jobs.jobs) / jobs.weeks if jobs.weeks > 0 else 0.0
    return seconds >= LEAST_SECONDS and seconds >= LEAST_SHARE * total
