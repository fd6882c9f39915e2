"""What upkeep is due in a lake: one record per table whose policy declares any."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tablectl.model.errors import ExitCode
from tablectl.model.plan import TableFailure
from tablectl.model.report_methods import ReportMethods
from tablectl.model.upkeep import UpkeepTask, WriterFiles
from tablectl.support.frozen import frozen
from tablectl.support.json_text import OMITTED

UpkeepState = Literal["not readable", "refused", "due", "not due"]
UPKEEP_STATES: tuple[UpkeepState, ...] = ("not readable", "refused", "due", "not due")
"""From the most to the least important one."""


@frozen(kw_only=True)
class TableUpkeep:
    """One table. ``None`` and an empty text mean unknown or none."""

    table: str
    location: str = ""
    state: UpkeepState
    policy: str = ""
    """The file and line that name the table, or the pattern that matches it."""
    reason: str = ""
    """Why it is refused, or cannot be read."""
    tasks: tuple[UpkeepTask, ...] = ()
    files: int | None = None
    bytes: int | None = None
    small_files: int | None = None
    """Files below half of the target that an OPTIMIZE can merge with another one."""
    small_bytes: int | None = None
    unnamed_files: int | None = None
    """Files that no commit of the last 30 days names: failed writes left them, or running ones make them."""
    unnamed_bytes: int | None = None
    writers: tuple[WriterFiles, ...] = ()
    """The writers that added most files since the last OPTIMIZE or VACUUM, by the metrics of their commits."""
    failed_now: float | None = None
    """How many writes without a guard an OPTIMIZE is expected to fail at this hour."""
    failed_least: float | None = None
    """The same at the quietest hour."""
    quietest: int | None = None
    """The quietest hour of the week, from 0 for Monday 00:00 UTC."""
    unknown: str = ""
    """Why these numbers are unknown."""
    owner: str = field(default="", metadata=OMITTED)
    """Who is responsible for the table, by its policy."""


@dataclass(frozen=True, slots=True, repr=False)
class LakeUpkeep(ReportMethods):
    """All tables whose policy declares upkeep, the ones that need attention first."""

    tables: tuple[TableUpkeep, ...]
    env: str
    at: int
    """When the tables were read, in milliseconds since the epoch."""
    failures: tuple[TableFailure, ...] = ()
    """Patterns that could not be looked up."""
    unmatched: tuple[str, ...] = ()
    selected: bool = False
    """Whether only some tables of the policies were asked for."""

    def count(self, state: UpkeepState) -> int:
        """The number of tables in a state."""
        return sum(table.state == state for table in self.tables)

    @property
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, 3 if one is refused, otherwise 0: that something is due is not a failure."""
        if self.failures or self.count("not readable"):
            return ExitCode.ERROR
        return ExitCode.REFUSED if self.count("refused") else ExitCode.DONE
