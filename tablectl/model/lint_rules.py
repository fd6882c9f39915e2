"""The lint rules: each code with its documentation, and the severity that a repository gives it. Codes are stable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Literal

from tablectl.delta import keys
from tablectl.delta.names import TableName, matches
from tablectl.frozen import frozen
from tablectl.model.table import LiveTable

Severity = Literal["note", "warning", "error", "ignored"]
"""The severity of a finding. An error excludes its table from the plan. An ignored finding is kept for the record."""

Seen = Literal["validate", "plan", "lint"]


@frozen(kw_only=True)
class LintRule:
    """One code: its documentation and its default severity."""

    code: str
    name: str
    """The name for machine-readable formats: ``StatisticsMissClustering``."""
    severity: Literal["note", "warning", "error"]
    title: str
    breaks: str
    """What goes wrong."""
    why: str
    fix: str
    source: str
    """The sources: ``delta-2.2`` and ``D60`` (docs/reference), or a public page."""
    seen: tuple[Seen, ...] = ("plan", "lint")
    """The commands that check the rule. ``plan`` checks only tables that it changes."""
    properties: tuple[str, ...] = ()
    """The table properties that the rule is about, in Delta's spelling."""


@frozen
class LintSetting:
    """The setting of one code in ``lint:`` of the configuration."""

    severity: Severity | None = None
    """``None`` only until the configuration is checked."""
    reason: str = ""
    tables: tuple[str, ...] = ()
    """Globs over table names, as in ``--select``; empty means every table."""

    def concerns(self, table: TableName) -> bool:
        """Whether the setting applies to a table."""
        return not self.tables or any(matches(table, glob) for glob in self.tables)


OwnChecks = Callable[[LiveTable], Iterable[tuple[str, str]]]
"""The rules of your own about one table: the code and the message of each finding."""


def _no_checks(_live: LiveTable) -> tuple[tuple[str, str], ...]:
    return ()


@frozen
class Severities:
    """The severity of each code in a repository, and the rules that it adds."""

    settings: Mapping[str, LintSetting] = field(default_factory=dict)
    own: OwnChecks = _no_checks
    """Bound to the policy of one table (``planning.own_rules``)."""

    def of(self, code: str, table: TableName) -> tuple[Severity, str]:
        """The severity of a code on a table, and the configured reason; empty if none is given."""
        setting = self.settings.get(code)
        if setting is None or setting.severity is None or not setting.concerns(table):
            return (RULES[code].severity if code in RULES else "warning"), ""
        return setting.severity, setting.reason


DEFAULT_SEVERITIES = Severities()

_BEST_PRACTICES = "docs.delta.io/best-practices, as of Delta 4.4"

_RULES: Sequence[LintRule] = (
    LintRule(
        code="P001",
        name="ReadersNeedNewerProtocol",
        severity="warning",
        title="Readers need a newer protocol",
        breaks="Clients that do not know the features named can no longer read the table once the plan is applied.",
        why="A reader must know every reader feature of a table's protocol, whether its data uses it or not. "
        "Turning the property off again leaves the feature in the protocol.",
        fix="Upgrade readers first. Declare `clients:` with the versions that must keep working, and tablectl "
        "refuses a change that locks one of them out; `allowed_features:` refuses every feature that is not in it.",
        source="delta-1.0, delta-1.13",
        seen=("plan",),
    ),
    LintRule(
        code="P002",
        name="WritersNeedNewerProtocol",
        severity="note",
        title="Writers need a newer protocol",
        breaks="Clients that do not know the features named can no longer write the table once the plan is applied.",
        why="A writer must know every feature of a table's protocol. Turning the property off again leaves the feature "
        "in the protocol.",
        fix="Upgrade writers first. Declare `clients:` with the versions that must keep working.",
        source="delta-1.0, delta-1.13",
        seen=("plan",),
    ),
    LintRule(
        code="P003",
        name="ClientNotDocumented",
        severity="warning",
        title="Whether a client knows a feature is not documented",
        breaks="Possibly the client: its support was not checked.",
        why="`clients:` names it, the plan adds the feature, and no documentation that tablectl was made from says "
        "whether that version knows it. tablectl never assumes support.",
        fix="Test it on a copy of the table, or ask its vendor. Then set this code to `ignore` with what you found "
        "as the reason, or take the client off `clients:`.",
        source="the table of clients in this page",
        seen=("plan",),
    ),
    LintRule(
        code="P004",
        name="WriterLockedOut",
        severity="warning",
        title="A recent writer does not support the new protocol",
        breaks="The next write of that client fails, with an unsupported feature or an invalid protocol version.",
        why="The table's history names the client and its version, and by its documentation, or by a probe, "
        "that version does not know a feature that the plan adds. A version newer than the newest one known counts as "
        "that one. About a client of unknown kind nothing is known. Where every writer of the table is locked out, the "
        "plan is refused, unless the policy says `allow: [lockout]`.",
        fix="Upgrade that job before the apply, or leave the feature off. Under `clients:` it would be a refusal.",
        source="the table of clients in this page; delta-2.1",
        seen=("plan",),
    ),
    LintRule(
        code="P005",
        name="ReaderMissesDeletes",
        severity="warning",
        title="A client may return deleted rows once deletion vectors are off",
        breaks="Queries of that client return rows that were deleted, without an error.",
        why="`clients:` names a client that ignores deletion vectors where `delta.enableDeletionVectors` is false. The "
        "current version holds none, and the last checkpoint may: it is as old as the commits since. Where vectors "
        "remain in the current version, the plan is refused.",
        fix="Let a checkpoint be written after the last purge and before the apply (every "
        "`delta.checkpointInterval` commits), or upgrade the client to a version that was tried.",
        source="github.com/trinodb/trino/issues/30685; the table of clients in this page",
        seen=("plan",),
        properties=(
            "delta.checkpointInterval",
            keys.DELETION_VECTORS,
        ),
    ),
    LintRule(
        code="P006",
        name="PartitionWritersFail",
        severity="warning",
        title="Writers that name partition columns fail for good",
        breaks="Each later write that names the old partition columns fails with `DELTA_METADATA_MISMATCH`, with a "
        "guard and without: `partitionBy(...)` of batches and streams, and `partition_by=` of deltalake.",
        why="Delta compares the columns that a write names with those of the table. The last 30 days have such "
        "writes, or a stream, of which the log does not tell. Without `allow: [partition_writers]` it is a refusal.",
        fix="Take the columns out of that code: a write that names none takes those of the table.",
        source="ImplicitMetadataOperation.scala of Delta 4.4; docs/partitioning.md",
        seen=("plan",),
    ),
    LintRule(
        code="L001",
        name="ClusteringBesidePartitioning",
        severity="error",
        title="Clustering and partitioning together",
        breaks="The plan is refused: `DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED`.",
        why="Delta clusters only tables without partitions. A policy that declares both is an error of its own.",
        fix="Declare one of the two, and the other as `none`. To go from partitions to clustering, declare "
        "`partitioning: none` with `rewrite: allowed` in the same policy.",
        source="delta-1.4, delta-1.5",
        seen=("lint",),
    ),
    LintRule(
        code="L002",
        name="VectorsBesideManifests",
        severity="error",
        title="Deletion vectors with symlink manifests",
        breaks="Delta refuses the two together, and readers of manifests would see deleted rows.",
        why="A manifest lists whole files and cannot say that a row in one is deleted.",
        fix="Declare `delta.compatibility.symlinkFormatManifest.enabled: false`, or `deletion_vectors: purged`.",
        source="delta-1.3",
        seen=("validate", "lint"),
        properties=(keys.MANIFEST,),
    ),
    LintRule(
        code="L003",
        name="VectorsBesideUniForm",
        severity="error",
        title="Deletion vectors with UniForm v1 or v2",
        breaks="Delta refuses it: `DELTA_ICEBERG_COMPAT_VIOLATION`. Iceberg clients would see deleted rows.",
        why="Iceberg compatibility 1 and 2 have no way to name deleted rows. Version 3 has.",
        fix="Declare `deletion_vectors: purged`, or `uniform: none`.",
        source="delta-1.3, delta-1.10",
        seen=("validate", "plan", "lint"),
    ),
    LintRule(
        code="L004",
        name="StatisticsMissClustering",
        severity="warning",
        title="A clustering column without statistics",
        breaks="Files written from now on are not skipped by the clustering columns, and the next `CLUSTER BY` that "
        "names them fails with `DELTA_CLUSTERING_COLUMN_MISSING_STATS`.",
        why="`delta.dataSkippingStatsColumns`, or else the first `delta.dataSkippingNumIndexedCols` (32) leaf columns, "
        "decide which columns get statistics. Delta does not check a change of these against the clustering.",
        fix="Name the clustering columns in `data_skipping`, or raise `delta.dataSkippingNumIndexedCols`.",
        source="delta-1.4, delta-1.9",
        seen=("validate", "plan", "lint"),
        properties=(
            keys.INDEXED_COLUMNS,
            keys.STATISTICS_COLUMNS,
        ),
    ),
    LintRule(
        code="L005",
        name="LogShorterThanTombstones",
        severity="warning",
        title="The log is kept for a shorter time than deleted files",
        breaks="Storage holds deleted files that no readable version needs. Delta refuses the "
        "setting where its check of the two is on.",
        why="Time travel needs the log and the files. `delta.logRetentionDuration` (30 days) bounds the one, "
        "`delta.deletedFileRetentionDuration` (1 week) the other.",
        fix="Keep the log at least as long as deleted files.",
        source="delta-1.9; DeltaConfig.scala, validateTombstoneAndLogRetentionDurationCompatibility",
        seen=("validate", "plan", "lint"),
        properties=(
            keys.DELETED_FILE_RETENTION,
            keys.LOG_RETENTION,
        ),
    ),
    LintRule(
        code="L006",
        name="TombstonesShort",
        severity="warning",
        title="Deleted files are kept for less than a week",
        breaks="VACUUM deletes files under readers and writers that still use them: queries, and streams that were "
        "stopped, fail with missing files; uncommitted files of long writes are lost.",
        why="VACUUM takes `delta.deletedFileRetentionDuration` as the limit that its safety check guards. A week is "
        "Delta's default.",
        fix="Declare at least `interval 7 days`, or know that no query, write or stopped stream lasts longer.",
        source="delta-1.9; VacuumCommand.scala, checkRetentionPeriodSafety",
        seen=("validate", "plan", "lint"),
        properties=(keys.DELETED_FILE_RETENTION,),
    ),
    LintRule(
        code="L007",
        name="PartitionCardinality",
        severity="warning",
        title="A partition column of high cardinality",
        breaks="Each value is a directory with files of its own: planning, listing and the log grow with the values, "
        "and every write makes at least one file for each value that it touches.",
        why="10,000 values and more were found in the log.",
        fix="Partition by something coarser (a date instead of an id), or cluster by the column instead: "
        "`partitioning: none` and `clustering: [...]` with `rewrite: allowed`.",
        source=f"{_BEST_PRACTICES}; D60",
        seen=("lint",),
    ),
    LintRule(
        code="L008",
        name="TinyPartitions",
        severity="warning",
        title="Tiny partitions",
        breaks="Many small files: queries spend their time in opening them, and OPTIMIZE cannot join files of two "
        "partitions.",
        why="Of at least 50 partitions, half hold less than 100 MB each. Delta's guide asks for 1 GB a partition.",
        fix="Partition by something coarser, or cluster instead of partitioning.",
        source=_BEST_PRACTICES,
        seen=("lint",),
    ),
    LintRule(
        code="L009",
        name="SerializableUnderAppends",
        severity="note",
        title="Serializable under many blind appends",
        breaks="At Serializable, every append that commits while an UPDATE, DELETE, MERGE or INSERT … SELECT from the "
        "table runs makes that one fail with ConcurrentAppendException.",
        why="Of the last 20 commits at least 5 only appended, and others read the table. Under WriteSerializable a "
        "blind append conflicts with nothing.",
        fix="Where the order of history matters, keep the level: partition by what statements filter on, name the "
        "partitions by literals, and retry. On Databricks `isolation: WriteSerializable` lets appends pass; "
        "open-source Delta cannot set it.",
        source="delta-3; D9, D31, D56",
    ),
    LintRule(
        code="L010",
        name="IdentityBesideWriters",
        severity="warning",
        title="Identity columns with concurrent writers",
        breaks="Inserts that draw identity values fail each other and every ALTER with MetadataChangedException.",
        why="Each of them commits the new high-water mark as metadata, and two metadata changes always conflict. "
        "Databricks supports no concurrent transactions on such tables at all. The history shows transactions that "
        "others committed under.",
        fix="Let only one job insert, or replace the identity column with a UUID or a hash of the key.",
        source="delta-1.12; D23",
    ),
    LintRule(
        code="L011",
        name="AppendOnlyUnderDeletes",
        severity="warning",
        title="Append-only on a table whose history has deletes",
        breaks="The jobs that did them fail from now on: `DELTA_CANNOT_MODIFY_APPEND_ONLY`.",
        why="`delta.appendOnly` refuses every commit that removes rows: DELETE, UPDATE, MERGE and overwrites.",
        fix="Stop those jobs first, or leave the property off.",
        source="delta-1.8",
        seen=("plan",),
        properties=(keys.APPEND_ONLY,),
    ),
    LintRule(
        code="L012",
        name="StreamsForgotten",
        severity="warning",
        title="Delta forgets idle streams",
        breaks="A stream that writes nothing for longer is not recognised when it comes back: a batch that was "
        "written already may be written again.",
        why="The table remembers the last batch of each stream as a `txn` action. "
        "`delta.setTransactionRetentionDuration` lets it forget them.",
        fix="Set it longer than any stream may be idle (weeks, not hours), or leave it unset.",
        source="delta-1.9, delta-6",
        properties=(keys.TRANSACTION_RETENTION,),
    ),
    LintRule(
        code="L013",
        name="OverwritesClearClustering",
        severity="warning",
        title="Overwrites clear the clustering",
        breaks="The next full overwrite removes the clustering columns, and each one is drift from the policy.",
        why="`INSERT OVERWRITE` and `mode('overwrite')` without a condition write an empty list of clustering columns. "
        "The history has such overwrites.",
        fix="Let that job name the columns (`clusterBy`), or overwrite by DELETE and INSERT, or by `replaceWhere`.",
        source="delta-1.4",
    ),
    LintRule(
        code="L014",
        name="IsolationMeansTwoThings",
        severity="warning",
        title="An isolation level that two engines read differently",
        breaks="Writers of one table run at two levels: what one of them rules out, another lets pass.",
        why="Where `delta.isolationLevel` is not set, open-source Delta takes Serializable and Databricks "
        "WriteSerializable. The history has writers of both.",
        fix="Pin it: `isolation: Serializable`.",
        source="delta-1.2; D6",
        properties=(keys.ISOLATION_LEVEL,),
    ),
    LintRule(
        code="L015",
        name="AutoCompactionBesideRewrites",
        severity="note",
        title="Auto compaction with statements that rewrite rows",
        breaks="UPDATE, DELETE and MERGE in flight fail with ConcurrentAppendException or ConcurrentDeleteRead"
        "Exception when a compaction commits first.",
        why="A compaction adds and removes files like any rewrite, and runs after writes, at times you do not choose. "
        "The history has statements that rewrite rows.",
        fix="Turn `delta.autoOptimize.autoCompact` off and run OPTIMIZE when those statements do not, or partition "
        "so that they touch different partitions.",
        source="delta-2.6, delta-3; D34",
        properties=(keys.AUTO_COMPACT,),
    ),
    LintRule(
        code="L016",
        name="LogNeverCleaned",
        severity="note",
        title="The log is never cleaned",
        breaks="`_delta_log` grows without limit: every listing of it, and with it every first read of the table, gets "
        "slower.",
        why="`delta.enableExpiredLogCleanup` is false.",
        fix="Leave it on and lengthen `retention.log` as far as time travel is needed.",
        source="delta-1.9",
        seen=("validate", "plan", "lint"),
        properties=(keys.LOG_CLEANUP,),
    ),
    LintRule(
        code="L017",
        name="ClusteringRewritesNothing",
        severity="note",
        title="New clustering columns do not rewrite data",
        breaks="Nothing fails; queries get no faster until data is clustered.",
        why="`CLUSTER BY` commits the columns and leaves every file as it is. OPTIMIZE clusters new files, and only "
        "OPTIMIZE FULL those that were clustered by other columns.",
        fix="Declare `optimize: incremental`, or `full` with `rewrite: allowed`; or run OPTIMIZE yourself.",
        source="delta-5",
        seen=("plan",),
    ),
    LintRule(
        code="L018",
        name="ClientDataOld",
        severity="note",
        title="What is known of a client is older than 180 days",
        breaks="Nothing by itself: a newer release of the client may know more features than tablectl knows "
        "of, and tablectl may refuse a change that it supports.",
        why="`clients:` or the history names the client, and the table's newest commit is more than 180 days younger "
        "than the newest day in the client's entry. The commit's own timestamp is the clock: lint reads no other.",
        fix="Upgrade tablectl. In its repository, `make probe-clients` tries the newest releases and rewrites the "
        "data.",
        source="the table of clients in this page",
        seen=("lint",),
    ),
    LintRule(
        code="L019",
        name="IndexedCountIgnored",
        severity="note",
        title="A number of indexed columns, and a list of them",
        breaks="Nothing fails: `delta.dataSkippingNumIndexedCols` has no effect.",
        why="`delta.dataSkippingStatsColumns`, which `data_skipping` declares, takes precedence over the number.",
        fix="Unset the number, or declare `data_skipping: default`.",
        source="delta-1.9",
        seen=("validate", "plan", "lint"),
        properties=(
            keys.INDEXED_COLUMNS,
            keys.STATISTICS_COLUMNS,
        ),
    ),
    LintRule(
        code="L020",
        name="TimeTravelShorterThanLog",
        severity="note",
        title="Time travel is shorter than the log",
        breaks="After a VACUUM, a query of a version older than deleted files fails on a missing file.",
        why="`retention.log` bounds which versions the log knows, `retention.deleted_files` which of their files "
        "VACUUM keeps. The shorter one bounds time travel.",
        fix="Declare `deleted_files` as long as time travel is needed; storage grows with it.",
        source="delta-1.9",
        seen=("validate", "plan", "lint"),
    ),
    LintRule(
        code="L021",
        name="LogShortForStreams",
        severity="warning",
        title="The log is kept for less than a week on a table with streams",
        breaks="A stream that reads the table and stops for longer than the log is kept cannot continue from its "
        "checkpoint.",
        why="A stream continues from the version that its checkpoint names, and reads every commit since then.",
        fix="Declare `retention.log` longer than any stream may stop.",
        source="delta-1.9, delta-6",
        seen=("plan", "lint"),
    ),
    LintRule(
        code="L022",
        name="TextThatClientsIgnore",
        severity="warning",
        title="A stored value has a text that some clients ignore",
        breaks="delta-rs, and Polars through it, works with its default: `60 days` of retention is 30 days for its "
        "clean-up of the log, and `TRUE` lets it delete rows of an append-only table.",
        why="Delta Spark reads intervals without the word `interval` and booleans in any letter case, and stores them "
        "as typed. delta-rs reads only `interval`, one number and one unit in lower case, and `true` or `false`.",
        fix="Declare the value in `retention` or `properties`: an apply writes the text that every client reads. Write "
        "other keys yourself with ALTER TABLE … SET TBLPROPERTIES.",
        source="delta-1.17",
    ),
    LintRule(
        code="B001",
        name="DbtSetsItToo",
        severity="note",
        title="A policy and dbt set the same value",
        breaks="Nothing now. The next change of one of the two makes them overwrite each other.",
        why="dbt sets the configuration of a model whenever it builds it, and an apply sets what the policy declares.",
        fix="Remove one of the two: `tablectl import --from-dbt` prints the lines of dbt.",
        source="https://docs.getdbt.com/reference/resource-configs/databricks-configs",
        seen=("lint",),
    ),
    LintRule(
        code="B002",
        name="DbtSetsAnotherValue",
        severity="warning",
        title="A policy and dbt set different values",
        breaks="Each build of the model undoes the apply, and each apply undoes the build. Both commits change "
        "metadata, and make concurrent writes fail.",
        why="dbt sets the configuration of a model whenever it builds it, and an apply sets what the policy declares.",
        fix="Decide who owns the setting, and remove the other line.",
        source="https://docs.getdbt.com/reference/resource-configs/databricks-configs",
        seen=("lint",),
    ),
    LintRule(
        code="B003",
        name="OwnersAlternate",
        severity="warning",
        title="A setting of dbt and of a policy alternates in the history",
        breaks="Every change is a metadata commit, with which concurrent writes fail.",
        why="The table's recent commits set the value, then another one, then a third time.",
        fix="Decide who owns the setting, and remove the other line.",
        source="the operation parameters of the table's log",
        seen=("lint",),
    ),
    LintRule(
        code="R001",
        name="OwnRuleFailed",
        severity="warning",
        title="A rule of your own failed",
        breaks="Nothing by itself: what the rule would have found is unknown.",
        why="The rule, a function of an installed package, could not be loaded, raised an error, or returned something "
        "other than texts. The message names it. Other rules and the plan go on.",
        fix="Correct the package of the rule. With `lint: {R001: error}`, no table is applied while a rule fails.",
        source="docs/lint-rules.md",
    ),
    LintRule(
        code="D001",
        name="StatementNotVerified",
        severity="note",
        title="A statement is documented, not verified here",
        breaks="Possibly the apply: the statement may fail, or do something else than documented.",
        why="The statement follows the documentation of Databricks, and no test of tablectl has run one of its form "
        "there. `tablectl/model/statement_forms.py` holds each form with its source.",
        fix="Try the plan on a copy of the table first. `make test-workspace` runs the forms in a workspace of yours.",
        source="docs.databricks.com, as cited for each form",
        seen=("plan",),
    ),
    LintRule(
        code="D002",
        name="RuntimeTooOld",
        severity="warning",
        title="The engine's Databricks Runtime does not have what the policy needs",
        breaks="A plan that has to make this change is refused.",
        why="`engine.runtime` is older than the first runtime that has the statement, by the source in the message.",
        fix="Run applies with a newer runtime and set `engine.runtime`, or leave the setting out. Where a table has "
        "the value already, nothing has to be done.",
        source="docs/databricks.md, and the source in the message",
        seen=("validate", "lint"),
    ),
    LintRule(
        code="D003",
        name="RuntimeUnknown",
        severity="note",
        title="No source says which Databricks Runtime has what the policy needs",
        breaks="Possibly the apply: an older runtime may reject the statement.",
        why="The documentation that tablectl was made from names no runtime. tablectl refuses nothing because of "
        "something unknown.",
        fix="Try the statement on a copy of the table.",
        source="docs/databricks.md",
        seen=("validate", "lint"),
    ),
    LintRule(
        code="D004",
        name="LeftToPredictiveOptimization",
        severity="note",
        title="OPTIMIZE is left to predictive optimization",
        breaks="Nothing: data is clustered later, by Databricks.",
        why="The policy asks for OPTIMIZE, and predictive optimization is on for the table. It runs OPTIMIZE by "
        "itself; a second one would cost without an effect.",
        fix="Leave `optimize` out, or declare `predictive_optimization: disabled`.",
        source="docs.databricks.com/aws/en/optimizations/predictive-optimization, seen on 2026-11-22",
        seen=("plan", "lint"),
    ),
    LintRule(
        code="D005",
        name="WaitsForManagedTable",
        severity="note",
        title="A setting of managed tables waits for the next plan",
        breaks="Nothing: the next plan has the change.",
        why="`SET MANAGED` moves the table, so no statement of the run can follow it, and only managed tables have "
        "predictive optimization and automatic clustering.",
        fix="Apply, then plan again.",
        source="docs.databricks.com/aws/en/tables/convert-external-managed, seen on 2026-11-22",
        seen=("plan",),
    ),
)

RULES: Mapping[str, LintRule] = MappingProxyType({rule.code: rule for rule in _RULES})
"""Every rule by code, in documentation order."""
