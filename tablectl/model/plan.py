"""The records of a plan: differences, the statements that resolve them, and refusals. ``json_text`` reads and writes
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tablectl.delta import keys
from tablectl.delta.names import TableName, parse_table
from tablectl.delta.protocol import Client, Leaves, Protocol
from tablectl.model.calendar import TableWindow
from tablectl.model.expected_loss import TableLoss
from tablectl.model.file_layout import ClusteringState
from tablectl.model.report_methods import ReportMethods
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.model.upkeep import UpkeepKind
from tablectl.model.writers_in_history import NO_EVIDENCE, ClientFact, PartitionWriter, WriterEvidence
from tablectl.support.typed_json import Omitted

Value = str | tuple[str, ...] | None
"""An attribute's value in a plan: text, a list of columns, or ``None`` for a property that is not set."""


Verb = Literal[
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "CLUSTER BY",
    "REORG",
    "REMOVE COLUMN MAPPING",
    "OPTIMIZE",
    "DROP FEATURE",
    "OVERWRITE",
    "UPGRADE UNIFORM",
    "REPLACE PARTITIONED BY",
    "PREDICTIVE OPTIMIZATION",
    "SET MANAGED",
    "UNSET MANAGED",
    "ADD CONSTRAINT",
    "DROP CONSTRAINT",
    "SET NOT NULL",
    "DROP NOT NULL",
    "VACUUM",
]
"""The kind of a statement."""

Severity = Literal["note", "warning", "error", "ignored"]
"""The severity of a finding. An error excludes its table from the plan. An ignored finding is kept for the record."""


class Phase(StrEnum):
    """When a statement runs, and with it which writers must wait (docs/window.md)."""

    FREE = "free"
    """Only writers that change the schema wait."""
    REWRITE = "rewrite"
    """Every writer waits, except those that read nothing from the table."""
    CLOSED = "closed"
    """Every writer waits."""

    @property
    def rank(self) -> int:
        """The position in run order. A higher rank is stricter."""
        return list(Phase).index(self)

    @property
    def word(self) -> str:
        """What people read: ``safe``, ``rewrite`` or ``blocking``. Plan files, leases and stamps hold the value."""
        return {"free": "safe", "closed": "blocking"}.get(self.value, self.value)


def strictest(*phases: Phase) -> Phase:
    """The latest of some phases."""
    return max(phases, key=lambda phase: phase.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFact:
    """The assumption of a change about a column that it names."""

    column: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference: an attribute of a table has the value ``before``, and the policy declares ``after``."""

    attribute: str
    key: str = ""
    """The property key, for the attribute ``properties``; empty for the others."""
    before: Value
    after: Value
    via: tuple[Value, ...] = ()
    """Intermediate values that the change's own statements leave. A run that stopped at one of them continues from
    there.
    """
    columns: tuple[ColumnFact, ...] = ()
    """The columns that ``after`` names, with their types when the plan was made."""

    @property
    def id(self) -> str:
        """Identifies the change within its table: ``isolation``, ``properties.owner.team``."""
        return f"{self.attribute}.{self.key}" if self.key else self.attribute


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEffect:
    """The contents of a statement's commits that matter for concurrent transactions (delta-2)."""

    sets: tuple[tuple[str, str], ...] = ()
    """Properties set, with their values."""
    removes: tuple[str, ...] = ()
    """Property keys removed."""
    features: tuple[str, ...] = ()
    """Protocol features added."""
    drops: tuple[str, ...] = ()
    """Protocol features removed."""
    truncates_history: bool = False
    """Whether the removal also deletes history."""
    domains: tuple[str, ...] = ()
    """Metadata domains written."""
    uniform: int = 0
    """The version of Iceberg compatibility that the commits add; 0 for none."""
    rewrites_files: bool = False
    """Whether data files are rewritten with unchanged rows."""
    clusters: bool = False
    """Whether the rewrite clusters the data."""
    repartitions: bool = False
    """Whether the whole table is rewritten with other partition columns."""
    in_catalog: bool = False
    """Whether it changes the catalog's entry of the table, and makes no commit that a source names."""
    moves: bool = False
    """Whether the table's location is another one afterwards."""
    scans: Omitted[bool] = False
    """Whether it reads all rows of the table before its commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Data that a statement may rewrite. ``None`` means unknown."""

    clusters: bool = False
    """Whether the rewrite clusters the data. Otherwise it merges deletion vectors."""
    vectors: int | None
    """Deletion vectors to merge into their files."""
    everything: bool = False
    """Whether all files are rewritten, instead of only those with deletion vectors."""
    files_at_most: int | None
    bytes_at_most: int | None
    copies: Omitted[bool] = False
    """Whether the rows are copied beside the live table, and only the last changes behind the gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Files whose log entries are written again so that their rows get ids. The files themselves do not change."""

    files_at_most: int
    bytes_at_most: int | None
    """The total size of these files. ``None`` means unknown."""
    commits_at_most: int


ReaderKind = Literal["every", "with schema tracking", "on Databricks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a plan, with everything that a reviewer needs to know about it."""

    id: str
    """Identifies the statement within its table. A run applies each statement at most once."""
    verb: Verb
    sql: str
    phase: Phase
    reason: str
    """Why the statement runs in this phase."""
    only_if: Literal["", "vectors remain"] = ""
    """The condition on the live table when the statement is due to run; empty means that it always runs."""
    evidence: str = ""
    """Whether tests of tablectl run statements of this form on the product; empty if they do."""
    due: int | None = None
    """Milliseconds since the epoch. The statement is not sent before this time, because history must age first. 0 if
    the aging begins with this plan, ``None`` if the statement does not wait.
    """
    serves: tuple[str, ...]
    """The ids of the changes that the statement makes."""
    effect: CommitEffect
    fails: str
    """Which concurrent writers would fail, and how; empty if none."""
    commits: tuple[str, ...]
    """The operations of the expected commits, in order. Fewer commits are possible."""
    readers: tuple[ReaderKind, ...] = ()
    """The kinds of streams on the table that stop at this statement. All of them can restart, except ``every``."""
    implies: tuple[str, ...] = ()
    """Changes of other attributes that the statement causes, in policy syntax: ``column_mapping: name``."""
    stale_handles: str = ""
    """Operations that fail through a ``DeltaTable`` created before the statement; empty if none."""
    rewrite: Rewrite | None = None
    backfill: Backfill | None = None
    repartition: tuple[str, ...] | None = None
    """The partition columns of a DataFrame write; ``None`` for SQL. For a DataFrame write, ``sql`` shows the write that
    the engine makes.
    """
    undo: tuple[str, ...] = ()
    """The SQL that undoes the statement; empty if ``undo_note`` says why there is none."""
    undo_note: str = ""
    """What cannot be undone and stays, as a noun phrase."""
    lost: Omitted[tuple[str, ...]] = ()
    """The ids of the changes whose old value no statement brings back."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a change cannot be made, and what to do instead."""

    reason: str
    fix: str
    condition: str = ""
    """As in ``Refusal.condition``."""

    def about(self, change: str) -> Refusal:
        """The refusal of the change with this id."""
        return Refusal(change=change, reason=self.reason, fix=self.fix, condition=self.condition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a change is not made. A table with a refusal is excluded from the apply as a whole."""

    change: str
    """The id of the change."""
    reason: str
    fix: str
    condition: str = ""
    """The error class that the engine would return, or the code of a finding with severity error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Information about a planned table for reviewers. ``code`` is stable (``lint_rules``)."""

    code: str
    severity: Severity
    message: str
    about: str = ""
    """The id of the attribute or property; empty if the finding concerns the whole table."""
    reason: str = ""
    """The configured reason for the severity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolFact:
    """A protocol in a plan file."""

    reader: int
    writer: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()

    @classmethod
    def of(cls, protocol: Protocol) -> ProtocolFact:
        """The record of a live table's protocol."""
        return cls(
            reader=protocol.reader,
            writer=protocol.writer,
            reader_features=tuple(sorted(protocol.reader_features)),
            writer_features=tuple(sorted(protocol.writer_features)),
        )

    def protocol(self) -> Protocol:
        """The protocol of the record."""
        return Protocol(self.reader, self.writer, frozenset(self.reader_features), frozenset(self.writer_features))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFact:
    """A protocol feature that a plan adds."""

    name: str
    reader: bool
    """Whether readers must support it too."""
    leaves: Leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The inputs from which a table's statements are derived: live facts and the options of the policy. They are enough
    to derive the statements again when the plan is loaded.
    """

    protocol: ProtocolFact
    partitioned: bool
    clustered: bool
    """Whether clustering is enabled, even with no columns."""
    identity: bool
    schema_writers: bool
    overwrites: bool
    clients: tuple[ClientFact, ...]
    partition_writers: tuple[PartitionWriter, ...] = ()
    """The partition writers of a partitioned table, the newest first."""
    evidence: WriterEvidence = NO_EVIDENCE
    """The commits from which the writers are known."""
    vectors: int | None
    files: int | None
    bytes: int | None
    nested: bool = True
    """Whether a column is a struct or contains structs. The column mapping of nested fields is part of the column's
    type.
    """
    stored: tuple[tuple[str, str], ...] = ()
    """The text of each property that is set and belongs to an attribute or uses a protocol feature. An undo restores
    it. Also the keys that a change has to remove by their exact text: old names, and CHECK constraints whose key
    another client wrote in a letter case that no statement about constraints finds.
    """
    widened: Omitted[bool] = False
    """Whether the schema says that a column's type was widened: files may have the narrower one."""
    marks: ClusteringState | None = None
    """How the data is clustered, if the plan needs it."""
    truncation: int = 0
    """When history may be deleted, in milliseconds since the epoch; 0 if no known commit delays it."""
    options: TableOptions = NO_OPTIONS
    """The policy's options, as opposed to its attributes."""
    metadata_version: int | None = None
    """The version of the last commit that changed metadata, as the catalog names it; ``None`` if the table's commits do
    not go through its catalog.
    """
    runtime: str = ""
    """The Databricks Runtime that the statements are for, as in ``engine.runtime``; empty if it is not stated."""

    @property
    def mapping(self) -> str:
        """The column mapping mode: ``none``, ``name`` or ``id``."""
        return (self.stored_text(keys.COLUMN_MAPPING) or "none").lower()

    @property
    def writes_vectors(self) -> bool:
        """Whether deletes may write new deletion vectors."""
        return (self.stored_text(keys.DELETION_VECTORS) or "false").lower() == "true"

    def stored_text(self, key: str) -> str | None:
        """The stored text of a property that belongs to an attribute, by its exact key; ``None`` if it is not set."""
        return dict(self.stored).get(key)

    def client_list(self) -> tuple[Client, ...]:
        """The clients, in the form that the conflict rules take."""
        return tuple(Client(client.engine, client.version) for client in self.clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenWriter:
    """A writer in the log that fails on every run after the apply."""

    client: str
    """``delta-rs 1.6.6``."""
    who: str = ""
    """``job nightly`` (``Commit.source``); empty if its commits do not say."""
    last: int = 0
    """When it wrote last, in milliseconds since the epoch; 0 if unknown."""
    version: int
    """The version that it wrote then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwritten:
    """A value that others set on the table, and that the plan changes."""

    change: str
    """The id of the change."""
    who: str = ""
    """What committed it (``Commit.source``), or the client if the commit does not say."""
    at: int = 0
    """When, in milliseconds since the epoch; 0 if unknown."""
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """The plan of one table."""

    name: str
    location: str
    table_id: str
    version: int
    """The version that was read."""
    basis: Basis
    changes: tuple[Change, ...]
    statements: tuple[Statement, ...]
    refusals: tuple[Refusal, ...] = ()
    findings: tuple[Finding, ...] = ()
    protocol_after: ProtocolFact
    features: tuple[FeatureFact, ...] = ()
    """The features that the plan adds to the protocol."""
    undo: tuple[str, ...] = ()
    """The SQL that undoes all reversible statements of the table, in the order in which it must run."""
    tags: tuple[str, ...] = ()
    """The tags of the table's policy. Rules of the calendar can refer to them."""
    owner: Omitted[str] = ""
    """Who is responsible for the table, by its policy; empty if no policy says."""
    window: Omitted[TableWindow | None] = None
    """The window settings of the table's policy; ``None`` for those of the configuration alone."""
    loss: TableLoss | None = None
    """What the statements are expected to cost writers without a guard; ``None`` if no statement fails a write, or if
    the commits of the last 30 days were not read.
    """
    broken: Omitted[tuple[BrokenWriter, ...]] = ()
    """The writers in the log that fail on every run after the apply, the newest first: their clients are locked out,
    or they name the partition columns. At most 20.
    """
    overwrites: Omitted[tuple[Overwritten, ...]] = ()
    """The values of other people that the changes overwrite, as far as the known commits show it."""

    @property
    def table(self) -> TableName:
        """The parsed name."""
        return parse_table(self.name)

    @property
    def applies(self) -> bool:
        """Whether an apply changes this table."""
        return bool(self.changes) and not self.refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFailure:
    """A table that could not be read. The other tables are still planned."""

    name: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class LintedTable:
    """The findings on one table."""

    name: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepForecast:
    """What the first run of one kind of upkeep would do on a table, by its log."""

    kind: UpkeepKind
    declared: str
    """When a run does it, as the policy says: ``every 7 days``."""
    kept: str = ""
    """For how long VACUUM keeps files that no version needs; empty for OPTIMIZE."""
    since: int = 0
    """From when on it is due, in milliseconds since the epoch; 0 for at once, or if unknown."""
    files: int | None = None
    """The files that it would delete or rewrite, at most; ``None`` if unknown."""
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BesidesSettings:
    """What the policy of a table turns on or off besides the settings that an apply changes."""

    name: str
    changes: tuple[Change, ...] = ()
    """What differs from the policies that the plan is compared with: ``upkeep.vacuum``, ``locked``, ``tags``."""
    upkeep: tuple[UpkeepForecast, ...] = ()
    """The declared upkeep, if the merge turns it on or may do so."""
    findings: tuple[Finding, ...] = ()
    """What the lint rules find about it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(ReportMethods):
    """Everything that one apply may do. ``plan_file`` converts it to bytes and back."""

    format: int
    tool: str
    dialect: str
    policies: str
    """SHA-256 of the policies: of all, or with `changed_since` of those of the plan's tables."""
    env: str = ""
    """The environment of `tablectl.yaml` that the plan is for; empty if none was selected."""
    tables: tuple[TablePlan, ...]
    """Tables with changes or refusals, by name."""
    failures: tuple[TableFailure, ...] = ()
    unchanged: tuple[str, ...] = ()
    """Tables that already match their policies."""
    unmatched: tuple[str, ...] = ()
    """Patterns that match no live table."""
    standing: Omitted[tuple[LintedTable, ...]] = ()
    """Unchanged tables, by name, with the findings that no change waits for: errors, settings that do not hold, clients
    of the policy that have no access. They refuse nothing. Not written if empty.
    """
    shard: Omitted[str] = ""
    """The part of all tables that this is the plan of, such as ``2/8``; empty for all of them. Not written if empty."""
    changed_since: Omitted[str] = ""
    """The commit since which the policies of the plan's tables changed; empty for a plan of all policies. Not written
    if empty.
    """
    besides: Omitted[tuple[BesidesSettings, ...]] = ()
    """By name, what the policies turn on or off besides settings. Not written if empty."""
    compared: Omitted[bool] = False
    """Whether ``besides`` is the difference from the base branch, or from `changed_since`. Otherwise it is all declared
    upkeep. Not written if false.
    """
