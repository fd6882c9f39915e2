"""Rules about settings that conflict with each other, about partitions, too many or too small, and about upkeep. No
plan checks those of upkeep, which never changes a plan.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from tablectl.attributes.policy import declaration_of
from tablectl.attributes.predictive_optimization import why_maintained
from tablectl.attributes.value_types import STATS_KEYS, has_statistics, names_statistics
from tablectl.delta import keys
from tablectl.delta.names import ColumnPath, column_text, fold_column
from tablectl.delta.properties import DEFAULT_FILE_RETENTION, DEFAULT_LOG_RETENTION, split_columns
from tablectl.lint_rules.rule import Found, LintedState, LintRule, Mend

_WEEK = 7 * 86_400_000_000
_FORMATS = ((keys.iceberg_compat(1), "v1"), (keys.iceberg_compat(2), "v2"))
_MANY_VALUES = 10_000
_FEW_PARTITIONS = 50
_SMALL = 100_000_000
"""A partition with fewer bytes is tiny. Delta's guide recommends ten times as much."""
_BEST_PRACTICES = "docs.delta.io/best-practices, as of Delta 4.4"


@LintRule(
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
    harm="writers at risk",
)
def clustering_beside_partitioning(table: LintedState) -> Found:
    if table.columns and isinstance(table.partitioning, tuple):
        by = ", ".join(table.partitioning)
        yield f"clustering is declared, and the table is partitioned by {by}", "clustering"


@LintRule(
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
    harm="data or history at risk",
    mend=lambda _: (("properties", keys.MANIFEST, "false"),),
)
def vectors_beside_manifests(table: LintedState) -> Found:
    if table.is_true(keys.DELETION_VECTORS) and table.is_true(keys.MANIFEST):
        yield f"deletion vectors are on, and so is {keys.MANIFEST}", "deletion_vectors"


@LintRule(
    code="L003",
    name="VectorsBesideUniForm",
    severity="error",
    title="Deletion vectors with UniForm v1 or v2",
    breaks="Delta refuses it: `DELTA_ICEBERG_COMPAT_VIOLATION`. Iceberg clients would see deleted rows.",
    why="Iceberg compatibility 1 and 2 have no way to name deleted rows. Version 3 has.",
    fix="Declare `deletion_vectors: purged`, or `uniform: none`.",
    source="delta-1.3, delta-1.10",
    seen=("validate", "plan", "lint"),
    harm="data or history at risk",
    mend=lambda _: (("deletion_vectors", "", "purged"),),
)
def vectors_beside_uniform(table: LintedState) -> Found:
    for key, name in _FORMATS:
        if table.is_true(keys.DELETION_VECTORS) and table.is_true(key):
            yield f"deletion vectors are on, and the table is Iceberg {name} too", "deletion_vectors"


@LintRule(
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
)
def statistics_miss_clustering(table: LintedState) -> Found:
    """Columns that the plan itself sets are refused instead, and not reported."""
    if table.live is not None:
        if "clustering" in table.changed:
            return
        schema = table.live.schema
        missing = [each for each in table.columns if not has_statistics(each, schema, table.value)]
    else:
        named = table.value(STATS_KEYS[1])
        missing = [each for each in table.columns if named is not None and not names_statistics(each, named)]
    if missing:
        key = STATS_KEYS[0] if table.value(STATS_KEYS[1]) is None else STATS_KEYS[1]
        shown = ", ".join(map(column_text, missing))
        yield f"the table is clustered by {shown}, which {key} leaves without statistics", declaration_of(key)


@LintRule(
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
    mend=lambda table: (("retention", "log", file_span(table)),),
)
def log_shorter_than_tombstones(table: LintedState) -> Found:
    log, files = log_kept(table), files_kept(table)
    if isinstance(log, int) and isinstance(files, int) and log < files:
        text = f"the log is kept {log_span(table)}, deleted files {file_span(table)}"
        key = keys.LOG_RETENTION if table.value(keys.LOG_RETENTION) else keys.DELETED_FILE_RETENTION
        yield text, declaration_of(key)


def _keep_a_week(table: LintedState) -> Mend:
    log = log_kept(table)
    short = (("retention", "log", "7 days"),) if isinstance(log, int) and log < _WEEK else ()
    return (("retention", "deleted_files", "7 days"), *short)


@LintRule(
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
    harm="data or history at risk",
    mend=_keep_a_week,
)
def tombstones_short(table: LintedState) -> Found:
    kept = files_kept(table)
    if isinstance(kept, int) and kept < _WEEK:
        text = f"deleted files are kept {file_span(table)} only"
        yield text, declaration_of(keys.DELETED_FILE_RETENTION)


@LintRule(
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
    mend=lambda _: (("properties", keys.LOG_CLEANUP, "true"),),
)
def log_never_cleaned(table: LintedState) -> Found:
    if (table.value(keys.LOG_CLEANUP) or "").lower() == "false":
        yield f"{keys.LOG_CLEANUP} is off: the log grows without limit", declaration_of(keys.LOG_CLEANUP)


@LintRule(
    code="L017",
    name="ClusteringRewritesNothing",
    severity="note",
    title="New clustering columns do not rewrite data",
    breaks="Nothing fails; queries get no faster until data is clustered.",
    why="`CLUSTER BY` commits the columns and leaves every file as it is. OPTIMIZE clusters new files, and only "
    "OPTIMIZE FULL those that were clustered by other columns.",
    fix="Declare `optimize: incremental`, or `full` with `rewrite: allowed`; or `upkeep` with `optimize`.",
    source="delta-5",
    seen=("plan",),
)
def clustering_rewrites_nothing(table: LintedState) -> Found:
    live = table.live
    if live and table.touches("clustering") and table.columns and table.optimize == "never" and live.files != 0:
        yield "files stay as they are until OPTIMIZE clusters them", "clustering"


@LintRule(
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
)
def indexed_count_ignored(table: LintedState) -> Found:
    count = table.value(keys.INDEXED_COLUMNS)
    if count is not None and table.value(keys.STATISTICS_COLUMNS) is not None:
        text = f"{keys.INDEXED_COLUMNS} is {count}, and the list of statistics columns takes precedence"
        yield text, declaration_of(keys.INDEXED_COLUMNS)


@LintRule(
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
)
def time_travel_shorter_than_log(table: LintedState) -> Found:
    declared = table.declared.retention
    if not isinstance(declared, Mapping) or "log" not in declared:
        return
    log, files = log_kept(table), files_kept(table)
    if isinstance(log, int) and isinstance(files, int) and log > files:
        text = f"the log is kept {log_span(table)}, deleted files {file_span(table)}"
        yield text, "retention.log"


@LintRule(
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
    harm="data or history at risk",
    mend=lambda _: (("retention", "log", "30 days"),),
)
def log_short_for_streams(table: LintedState) -> Found:
    log = log_kept(table)
    streams = {each.app_id for commit in table.history for each in commit.transactions}
    if streams and isinstance(log, int) and log < _WEEK:
        text = f"the log is kept {log_span(table)}; recent streams: {len(streams)}"
        yield text, "retention.log"


def log_kept(table: LintedState) -> object | None:
    """For how many microseconds the log is kept; ``None`` if unknown."""
    return table.meaning(keys.LOG_RETENTION, DEFAULT_LOG_RETENTION)


def files_kept(table: LintedState) -> object | None:
    """For how many microseconds VACUUM keeps files; ``None`` if unknown."""
    return table.meaning(keys.DELETED_FILE_RETENTION, DEFAULT_FILE_RETENTION)


def file_span(table: LintedState) -> str:
    """``files_kept`` for people, as it is declared."""
    return _span(table.value(keys.DELETED_FILE_RETENTION) or DEFAULT_FILE_RETENTION)


def log_span(table: LintedState) -> str:
    """``log_kept`` for people, as it is declared."""
    return _span(table.value(keys.LOG_RETENTION) or DEFAULT_LOG_RETENTION)


def _span(text: str) -> str:
    span = text.strip().removeprefix("interval").removeprefix("INTERVAL").strip()
    return re.sub(r"\b1 (\w+)s\b", r"1 \1", span)


@LintRule(
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
)
def partition_cardinality(table: LintedState) -> Found:
    layout = table.live and table.live.layout
    for column, count in layout.values if layout else ():
        if count >= _MANY_VALUES:
            yield f"the partition column {column} has {count:,} values", "partitioning"


@LintRule(
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
)
def tiny_partitions(table: LintedState) -> Found:
    layout = table.live and table.live.layout
    if layout and layout.partitions >= _FEW_PARTITIONS and layout.median < _SMALL:
        size = f"{layout.median / 1e6:.1f} MB" if layout.median >= 100_000 else f"{layout.median / 1e3:.1f} kB"
        yield f"{layout.partitions:,} partitions, half of which hold at most {size}", "partitioning"


@LintRule(
    code="L024",
    name="LockEnds",
    severity="note",
    title="A table is locked, or was",
    breaks="While the lock holds, every change of the table is refused. Afterwards the policy applies again, with all "
    "that was declared meanwhile.",
    why="The policy has `locked:`.",
    fix="Take an ended lock out of the policy, once its owner agrees; or give it a later day.",
    source="docs/policies.md",
    seen=("lint",),
)
def lock_ends(table: LintedState) -> Found:
    lock, today = table.lock, table.today
    if lock is None:
        return
    if not lock.holds(today):
        yield f"the lock ended on {lock.until}: it was {lock.text}", "locked"
    elif today is not None:
        left = (date.fromisoformat(lock.until) - today).days
        ends = "today" if left == 0 else "tomorrow" if left == 1 else f"in {left} days"
        yield f"the table is {lock.text}; the lock ends {ends}", "locked"


_DAY = 86_400 * 1_000_000


@LintRule(
    code="L030",
    name="UpkeepElsewhere",
    severity="warning",
    title="Upkeep of a table that its catalog maintains",
    breaks="`tablectl upkeep` refuses the table and exits with 3, each time.",
    why="Two that merge the same files fail each other. Delta Spark refuses OPTIMIZE and VACUUM on a catalog-managed "
    "table, and predictive optimization of Databricks runs them by itself.",
    fix="Declare `unmanaged: [upkeep]` for the table, or `predictive_optimization: disabled`.",
    source="docs/upkeep.md",
    seen=("plan", "lint"),
)
def upkeep_elsewhere(table: LintedState) -> Found:
    if table.upkeep is not None and table.live is not None:
        why = why_maintained(table.live, table.declared.predictive_optimization, table.dialect)
        if why:
            yield f"upkeep is declared, and {why}", "upkeep"


@LintRule(
    code="L032",
    name="VacuumWaitsForWrites",
    severity="warning",
    title="VACUUM of files that running writes may need",
    breaks="VACUUM waits while guarded writes run, so it may never run on a busy table. A write without a guard that "
    "takes longer than files are kept loses them.",
    why="VACUUM deletes files that are not committed once they are older than `retention.deleted_files`.",
    fix="Declare `retention.deleted_files` of a day or more.",
    source="docs/upkeep.md",
    seen=("validate", "plan", "lint"),
    harm="writers at risk",
)
def vacuum_waits_for_writes(table: LintedState) -> Found:
    kept = files_kept(table)
    if table.upkeep is not None and table.upkeep.vacuum is not None and isinstance(kept, int) and kept < _DAY:
        yield f"vacuum is declared, and deleted files are kept {file_span(table)}", "upkeep.vacuum"


@LintRule(
    code="L040",
    name="ColumnsDifferInCaseAlone",
    severity="error",
    title="Columns whose names differ in letter case alone",
    breaks="Delta Spark fails every SELECT, INSERT and ALTER of the table, also where `spark.sql.caseSensitive` is on: "
    "it takes the names for one. Nothing that a policy declares can be applied.",
    why="Other engines, such as delta-rs, write such a schema. Delta Spark refuses it: measured with Delta 4.4.0.",
    fix="Write the table again with other names, with the client that made it.",
    source="https://github.com/delta-io/delta/blob/v4.4.0/spark/src/main/scala/org/apache/spark/sql/delta/schema/"
    "SchemaMergingUtils.scala",
    seen=("plan", "lint"),
    harm="clients locked out",
)
def columns_differ_in_case_alone(table: LintedState) -> Found:
    spelled: dict[ColumnPath, ColumnPath] = {}
    twice = set[ColumnPath]()
    for path, _ in table.live.schema.every_field() if table.live else ():
        folded = fold_column(path)
        first = spelled.setdefault(folded, path)
        if first is not path and not any(folded[:depth] in twice for depth in range(1, len(folded) + 1)):
            twice.add(folded)
            yield f"the columns {column_text(first)} and {column_text(path)} are one for Spark", ""


@LintRule(
    code="L041",
    name="StatisticsOfNoColumn",
    severity="error",
    title="A list of statistics columns that Delta refuses",
    breaks="The plan is refused: Delta checks the stored list with each change of metadata, so every SET, UNSET and "
    "ALTER COLUMN fails with `DELTA_COLUMN_NOT_FOUND_IN_SCHEMA`, or for a partition column with "
    "`DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN`. Reads and appends go on.",
    why="Other clients, such as delta-rs, store any text as `delta.dataSkippingStatsColumns`.",
    fix="Declare `data_skipping` with columns of the table, or `data_skipping: default`.",
    source="https://github.com/delta-io/delta/blob/v4.4.0/spark/src/main/scala/org/apache/spark/sql/delta/stats/"
    "StatisticsCollection.scala",
    seen=("plan", "lint"),
    harm="writers at risk",
    properties=(keys.STATISTICS_COLUMNS,),
)
def statistics_of_no_column(table: LintedState) -> Found:
    stored = table.value(keys.STATISTICS_COLUMNS)
    if table.live is None or stored is None or stored != table.live.property(keys.STATISTICS_COLUMNS):
        return  # ``data_skipping`` refuses bad columns of its own
    try:
        named = split_columns(stored)
    except ValueError:
        return
    partitions = {name.lower() for name in table.live.partition_columns}
    for path in named:
        if table.live.schema.find(path) is None:
            yield f"{keys.STATISTICS_COLUMNS} names {column_text(path)}, which the table does not have", ""
        elif len(path) == 1 and path[0].lower() in partitions:
            yield f"{keys.STATISTICS_COLUMNS} names the partition column {column_text(path)}", ""


@LintRule(
    code="L042",
    name="IcebergCompatWithoutMapping",
    severity="error",
    title="Iceberg compatibility without column mapping",
    breaks="The plan is refused: Delta Spark fails every commit to the table, those of writers too, with "
    "`DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY`.",
    why="Other clients, such as delta-rs, store `delta.enableIcebergCompatV1`, `delta.enableIcebergCompatV2` or "
    "`delta.enableIcebergCompatV3` alone, without what it requires.",
    fix="Declare `uniform: none`, which unsets it, or `column_mapping: name` too.",
    source="https://github.com/delta-io/delta/blob/v4.4.0/spark/src/main/scala/org/apache/spark/sql/delta/"
    "IcebergCompat.scala",
    seen=("plan", "lint"),
    harm="clients locked out",
    properties=keys.ICEBERG_COMPATS,
)
def iceberg_compat_without_mapping(table: LintedState) -> Found:
    if table.live is None or (table.value(keys.COLUMN_MAPPING) or "none").lower() != "none":
        return
    for key in keys.ICEBERG_COMPATS:
        stored = (table.live.property(key) or "").lower() == "true"
        if stored and (table.value(key) or "").lower() == "true":
            yield f"{key} is true, and the columns are not mapped", ""
