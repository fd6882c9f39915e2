"""The records of a plan: what differs, what is done about it, what is refused. ``as_json`` writes and reads them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tablectl.delta.names import TableName, parse_table
from tablectl.delta.protocol import Client, Protocol
from tablectl.model.lint_rules import Severity
from tablectl.model.operations import MAPPING_KEY, VECTORS_KEY
from tablectl.model.table import ClusteringState, LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.model.writers import ClientFact, PartitionWriter, client_facts, partition_writers

Value = str | tuple[str, ...] | None
"""An attribute's value in a plan: text, a list of columns, or ``None`` for a property that is not set."""


class Phase(StrEnum):
    """When a statement runs, and with it which writers wait (docs/window.md)."""

    FREE = "free"
    """Nobody waits but writers that change the schema."""
    REWRITE = "rewrite"
    """Only writers that read nothing of the table go on."""
    CLOSED = "closed"
    """Every writer waits."""

    @property
    def rank(self) -> int:
        """Phases in the order they run; a higher one is stricter."""
        return list(Phase).index(self)


def strictest(*phases: Phase) -> Phase:
    """The latest of some phases."""
    return max(phases, key=lambda phase: phase.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFact:
    """What a change took for granted about a column that it names."""

    column: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One fact: an attribute of a table reads ``before`` and shall read ``after``."""

    attribute: str
    key: str = ""
    """The property key, for the attribute ``properties``; empty for the others."""
    before: Value
    after: Value
    via: tuple[Value, ...] = ()
    """States that this change's own statements leave on the way; a run stopped there goes on from there."""
    columns: tuple[ColumnFact, ...] = ()
    """The columns that ``after`` names, with their types when the plan was made."""

    @property
    def id(self) -> str:
        """Names the change within its table: ``isolation``, ``properties.owner.team``."""
        return f"{self.attribute}.{self.key}" if self.key else self.attribute


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEffect:
    """What a statement's commits hold, as far as others' transactions care (delta-2)."""

    sets: tuple[tuple[str, str], ...] = ()
    """Properties set, with their values."""
    removes: tuple[str, ...] = ()
    """Property keys removed."""
    features: tuple[str, ...] = ()
    """Protocol features added."""
    drops: tuple[str, ...] = ()
    """Protocol features taken away."""
    truncates_history: bool = False
    """Whether history is given up with them."""
    domains: tuple[str, ...] = ()
    """Metadata domains written."""
    uniform: int = 0
    """The version of Iceberg compatibility that a chain of commits brings; 0 without."""
    rewrites_files: bool = False
    """Whether data files are written anew, their rows unchanged."""
    clusters: bool = False
    """Whether that is done to cluster them."""
    repartitions: bool = False
    """Whether the whole table is written anew under other partition columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Data that a statement may write anew. ``None`` is unknown."""

    clusters: bool = False
    """Whether it is written in another order, rather than without the rows that vectors hide."""
    vectors: int | None
    """Deletion vectors to be merged into their files."""
    everything: bool = False
    """Whether all files are rewritten, and not only those with vectors."""
    files_at_most: int | None
    bytes_at_most: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Files whose entries in the log are written again, so that their rows get ids; the files stay as they are."""

    files_at_most: int
    bytes_at_most: int | None
    """What those files hold. ``None`` is unknown."""
    commits_at_most: int


ReaderKind = Literal["every", "with schema tracking", "on Databricks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One SQL statement of a plan, and all a reviewer must know of it."""

    id: str
    """Names the statement within its table; in a run each takes effect at most once."""
    verb: Literal[
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "CLUSTER BY",
        "REORG",
        "REMOVE COLUMN MAPPING",
        "OPTIMIZE",
        "DROP FEATURE",
        "OVERWRITE",
        "UPGRADE UNIFORM",
    ]
    sql: str
    phase: Phase
    reason: str
    """Why in this phase."""
    only_if: Literal["", "vectors remain"] = ""
    """What must hold in the live table when its turn comes; empty runs it always."""
    due: int | None = None
    """Milliseconds since the epoch before which it is not sent, since history must age first; 0 where that begins with
    this very plan, ``None`` where it waits for nothing.
    """
    serves: tuple[str, ...]
    """The ids of the changes it is for."""
    effect: CommitEffect
    fails: str
    """Who in flight would fail, and how; empty when nobody."""
    commits: tuple[str, ...]
    """The operations of the commits expected, at most, in their order."""
    readers: tuple[ReaderKind, ...] = ()
    """Which streams that read the table stop at it, all of them able to restart but ``every``."""
    implies: tuple[str, ...] = ()
    """What it makes of other attributes, in the words of a policy: ``column_mapping: name``."""
    handles: str = ""
    """What fails through a ``DeltaTable`` that was made before; empty when nothing does."""
    rewrite: Rewrite | None = None
    backfill: Backfill | None = None
    repartition: tuple[str, ...] | None = None
    """The partition columns of a write that is no SQL: ``sql`` then shows the DataFrame write that the engine makes."""
    undo: tuple[str, ...] = ()
    """The SQL that takes it back; empty where ``undo_note`` says why there is none."""
    undo_note: str = ""
    """What cannot be undone: it stays whatever is done, as a noun phrase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a change is not made. A table with a refusal is left out whole."""

    change: str
    """The id of the change."""
    reason: str
    way_out: str
    condition: str = ""
    """The error class the engine would have answered with, or the code of the finding that is an error here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something a reviewer should know about a planned table; ``code`` is stable (``model.lint``)."""

    code: str
    severity: Severity
    message: str
    about: str = ""
    """The id of the attribute or property it concerns; empty where it is the table as a whole."""
    reason: str = ""
    """Why the repository takes it so, where the configuration says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolFact:
    """A protocol, as plan files keep it."""

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
        """The protocol it records."""
        return Protocol(self.reader, self.writer, frozenset(self.reader_features), frozenset(self.writer_features))


Leaves = Literal["never", "truncating", "with history", "freely"]
"""How a feature leaves a protocol: not at all; by DROP FEATURE that leaves ``checkpointProtection`` behind, or takes
the history with it; by DROP FEATURE alone.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFact:
    """A protocol feature that a plan adds."""

    name: str
    reader: bool
    """Whether readers must know it too."""
    leaves: Leaves


ATTRIBUTE_KEYS = frozenset(
    {
        "delta.isolationlevel",
        "delta.enabledeletionvectors",
        "delta.enablerowtracking",
        "delta.columnmapping.mode",
        "delta.universalformat.enabledformats",
        "delta.enableicebergcompatv1",
        "delta.enableicebergcompatv2",
        "delta.enableicebergcompatv3",
    }
)
"""Folded keys of the properties that attributes other than ``properties`` speak for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a table's statements follow from, live facts and what the policy consents to: enough to derive them again
    when the plan is loaded.
    """

    protocol: ProtocolFact
    partitioned: bool
    clustered: bool
    """Whether the table is clustered already, be it without columns."""
    identity: bool
    schema_writers: bool
    overwrites: bool
    clients: tuple[ClientFact, ...]
    partition_writers: tuple[PartitionWriter, ...] = ()
    """Of a partitioned table, the newest first."""
    vectors: int | None
    files: int | None
    bytes: int | None
    nested: bool = True
    """Whether a column is a struct, or holds structs: their mapping lies in the column's type."""
    stored: tuple[tuple[str, str], ...] = ()
    """The text of each property that an attribute speaks for, where it is set: what an undo puts back."""
    marks: ClusteringState | None = None
    """By what the data is clustered, where that counts."""
    truncation: int = 0
    """When history may be given up, in milliseconds since the epoch; 0 where nothing is known to stand in the way."""
    options: TableOptions = NO_OPTIONS
    """What the policy says beside its attributes."""

    @classmethod
    def of(cls, live: LiveTable, options: TableOptions = NO_OPTIONS) -> Basis:
        """The basis of a live table."""
        return cls(
            protocol=ProtocolFact.of(live.protocol),
            partitioned=bool(live.partition_columns),
            clustered=live.clustering is not None,
            identity=live.schema.has_identity(),
            schema_writers=live.schema_writers,
            overwrites=live.overwrites,
            clients=client_facts(live),
            partition_writers=partition_writers(live),
            vectors=live.vectors,
            files=live.files,
            bytes=live.bytes,
            nested=any(len(path) > 1 for path, _ in live.schema.every_field()),
            stored=tuple(sorted(pair for pair in live.properties.items() if pair[0].lower() in ATTRIBUTE_KEYS)),
            marks=live.marks,
            truncation=live.truncation.due if live.truncation else 0,
            options=options,
        )

    @property
    def mapping(self) -> str:
        """How columns are mapped: ``none``, ``name`` or ``id``."""
        return (self.stored_text(MAPPING_KEY) or "none").lower()

    @property
    def writes_vectors(self) -> bool:
        """Whether new deletes may write deletion vectors."""
        return (self.stored_text(VECTORS_KEY) or "false").lower() == "true"

    def stored_text(self, key: str) -> str | None:
        """The text of a property that an attribute speaks for; ``None`` where it is not set."""
        return next((text for name, text in self.stored if name.lower() == key.lower()), None)

    def client_list(self) -> tuple[Client, ...]:
        """The clients as the rules take them."""
        return tuple(Client(client.engine, client.version) for client in self.clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """One table's part of a plan."""

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
    """Those that the plan adds to the protocol."""
    undo: tuple[str, ...] = ()
    """The SQL that takes back all of its statements that can be taken back, in the order in which it must run."""
    tags: tuple[str, ...] = ()
    """The tags of its policy: the calendar's rules may be about some of them."""

    @property
    def table(self) -> TableName:
        """The parsed name."""
        return parse_table(self.name)

    @property
    def applies(self) -> bool:
        """Whether an apply has anything to do here."""
        return bool(self.changes) and not self.refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFailure:
    """A table that could not be read; the other tables are planned all the same."""

    name: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything one apply may do. ``plan_file`` turns it into bytes and back."""

    format: int
    tool: str
    dialect: str
    policies: str
    """SHA-256 over the policies that were read."""
    env: str = ""
    """The environment of `tablectl.yaml` that it is for; empty where none was named."""
    tables: tuple[TablePlan, ...]
    """Tables with changes or refusals, by name."""
    failures: tuple[TableFailure, ...] = ()
    unchanged: tuple[str, ...] = ()
    """Tables that are already as declared."""
    unmatched: tuple[str, ...] = ()
    """Patterns that match no live table."""
