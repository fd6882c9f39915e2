"""The records of advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tablectl.frozen import frozen
from tablectl.model.errors import ExitCode
from tablectl.model.plan import TableFailure, Value
from tablectl.model.report_methods import ReportMethods

Confidence = Literal["high", "medium", "low"]
Benefit = Literal["days of risk", "appends at risk", "writer-seconds a week", "bytes", "files", "clients"]
BENEFITS: tuple[Benefit, ...] = get_args(Benefit)
"""From the most to the least important one."""

_DAY = 86_400.0
_MEDIUM, _HIGH = 100, 300

Declared = tuple[str, str, Value]
"""An attribute or option, the key of a map (otherwise empty), and the value to declare."""


@frozen(kw_only=True)
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
    cost: tuple[str, ...] = ()
    observations: int
    confidence: Confidence
    computed: str
    """How the benefit was computed."""


@frozen(kw_only=True)
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
    """What cannot be told, with what would tell it."""
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
        """1 if a table cannot be read, otherwise 0: advice is no verdict."""
        return ExitCode.ERROR if self.failures or any(table.error for table in self.tables) else ExitCode.DONE


def confidence_of(observations: int, seconds: float) -> Confidence:
    """The confidence that a number of writes allows; always low if they cover less than a day."""
    if seconds < _DAY or observations < _MEDIUM:
        return "low"
    return "high" if observations >= _HIGH else "medium"
