"""The state of a whole lake: one record per table, with a policy or without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tablectl.model.errors import ExitCode
from tablectl.model.plan import TableFailure
from tablectl.model.report_methods import ReportMethods
from tablectl.support.frozen import frozen
from tablectl.support.json_text import OMITTED

TableState = Literal[
    "as declared",
    "changed by others",
    "catalog differs",
    "not applied yet",
    "never applied",
    "unknown",
    "no policy",
    "not readable",
]
"""``as declared``: nothing differs from the policy. ``changed by others``: drift. ``not applied yet`` and ``never
applied``: the policy was not applied since it declares this, or at all. ``unknown``: it differs, and the history does
not show why.
"""
STATES: tuple[TableState, ...] = (
    "not readable",
    "changed by others",
    "catalog differs",
    "unknown",
    "not applied yet",
    "never applied",
    "no policy",
    "as declared",
)
"""From the most to the least important one."""


@frozen(kw_only=True)
class TableStatus:
    """One table. ``None`` and an empty text mean unknown or none."""

    table: str
    location: str = ""
    state: TableState
    policy: str = ""
    """The file and line that name the table, or the pattern that matches it."""
    version: int | None = None
    differences: tuple[str, ...] = ()
    """``isolation: declared Serializable, found default``."""
    changed_by: str = ""
    changed_at: int | None = None
    """Milliseconds since the epoch, like all times."""
    applied_at: int | None = None
    """The newest commit of an apply among the commits that were read."""
    applied_run: str = ""
    written_at: int | None = None
    """The newest commit of others, among the commits that were read."""
    reader: int | None = None
    writer: int | None = None
    features: tuple[str, ...] = ()
    locked_out: tuple[str, ...] = ()
    """Clients that the policy declares and that cannot read or write the table as it is."""
    isolation: str = ""
    findings: tuple[str, ...] = ()
    """The codes of lint."""
    files: int | None = None
    bytes: int | None = None
    file_bytes: int | None = None
    """The average size of a file."""
    vectors: int | None = None
    """Deletion vectors that readers must merge."""
    unclustered_bytes: int | None = None
    """Data that is not clustered by the table's columns; read with ``--debt`` only."""
    log_retention: str = ""
    file_retention: str = ""
    error: str = ""
    created_at: int | None = field(default=None, metadata=OMITTED)
    """The first commit. Read of tables without a policy, and of those to which none was ever applied."""
    created_by: str = field(default="", metadata=OMITTED)
    slipped: str = field(default="", metadata=OMITTED)
    """Set for such a table that is younger than the last apply of any table: the command that adopts or changes it."""
    owner: str = field(default="", metadata=OMITTED)
    """Who is responsible for the table, by its policy."""
    upkeep: tuple[str, ...] = field(default=(), metadata=OMITTED)
    """What upkeep is due by the policy: ``vacuum since 2026-11-21 11:00:00 UTC``; read with ``--debt`` only."""
    small_files: int | None = field(default=None, metadata=OMITTED)
    """Files that an OPTIMIZE by the policy would merge, as above."""
    vacuum_bytes: int | None = field(default=None, metadata=OMITTED)
    """The bytes that a VACUUM would delete, by the metrics of commits, as above."""
    log_files: int | None = field(default=None, metadata=OMITTED)
    """The commits in the log, as above."""
    copy: str = field(default="", metadata=OMITTED)
    """A copy beside the table that is not in place: how many parts, and since when."""


@dataclass(frozen=True, slots=True, repr=False)
class LakeStatus(ReportMethods):
    """All tables, the ones that need attention first."""

    tables: tuple[TableStatus, ...]
    env: str
    at: int
    """When the tables were read, in milliseconds since the epoch."""
    failures: tuple[TableFailure, ...] = ()
    """Patterns that could not be looked up."""
    unmatched: tuple[str, ...] = ()

    def count(self, *states: TableState) -> int:
        """The number of tables in one of these states."""
        return sum(table.state in states for table in self.tables)

    @property
    def managed(self) -> int:
        """The number of tables that a policy declares."""
        return sum(table.state != "no policy" and bool(table.policy) for table in self.tables)

    @property
    def unmanaged(self) -> int:
        """The number of tables that were created since the last apply, and not as a policy declares."""
        return sum(bool(table.slipped) for table in self.tables)

    @property
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, otherwise 0: status reports, and judges nothing."""
        return ExitCode.ERROR if self.failures or self.count("not readable") else ExitCode.DONE
