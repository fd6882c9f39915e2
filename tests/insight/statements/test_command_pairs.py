"""Statements that change settings, files or the whole table, against others and against each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tablectl.conflicts.transactions import Conflict, ConflictResult
from tablectl.delta.names import parse_table
from tablectl.delta.protocol import Client
from tablectl.delta.schema import Field, Schema
from tablectl.insight.conflict_context import LEVEL, VECTORS, ConflictContext
from tablectl.insight.statements.command_actions import StatementError
from tablectl.insight.statements.pair_outcomes import PairOutcome, StatementPair, between
from tablectl.insight.statements.parse_writes import parse_statement
from tablectl.insight.statements.suggestions import Suggestions, suggest
from tablectl.insight.statements.target import StatementTable
from tablectl.model.operations import ClusterBy

_PARTITIONED = StatementTable(
    name=parse_table("lake.orders"),
    location="/lake/orders",
    schema=Schema((Field("id", "long"), Field("day", "date"), Field("amount", "long"))),
    partition_columns=("day",),
)
_FLAT = replace(_PARTITIONED, partition_columns=())
_SPARK = ConflictContext(client=Client("delta-spark", (4, 4, 0)))
_OLD = ConflictContext(client=Client("delta-spark", (4, 0, 1)))
_CLUSTERED = _SPARK.after([ClusterBy(("id",))])
_VECTORS = _SPARK.with_property(VECTORS, "true")
_RUNTIME = ConflictContext(client=Client("databricks", (15, 4)))
_COMMITS, _FAILS, _MAY, _UNKNOWN = (
    ConflictResult.COMMITS,
    ConflictResult.FAILS,
    ConflictResult.MAY_FAIL,
    ConflictResult.UNKNOWN,
)

_EMPTY = ["Empty Commit"] * 3
_UNBACKFILL = "row tracking unbackfill"
INSERT = "INSERT INTO lake.orders VALUES (1, DATE '2026-01-01', 1)"
UPDATE = "UPDATE lake.orders SET amount = 0 WHERE day = '2026-01-01'"
DELETE = "DELETE FROM lake.orders WHERE day = '2026-01-01' AND id = 1"
OVERWRITE = "INSERT OVERWRITE lake.orders SELECT 1, DATE '2026-01-01', 1"
USER_KEY = "ALTER TABLE lake.orders SET TBLPROPERTIES ('owner.team' = 'x')"
COLUMN = "ALTER TABLE lake.orders ADD COLUMNS (x INT)"


def sets(*pairs: str) -> str:
    values = ", ".join("'{}' = '{}'".format(*pair.split("=")) for pair in pairs)
    return f"ALTER TABLE lake.orders SET TBLPROPERTIES ({values})"


def pair(first: str, second: str, subject: StatementTable = _FLAT, setting: ConflictContext = _SPARK) -> StatementPair:
    return between(parse_statement(first), parse_statement(second), subject, setting)


def results(
    first: str, second: str, subject: StatementTable = _FLAT, setting: ConflictContext = _SPARK
) -> tuple[ConflictResult, ConflictResult]:
    one, two = pair(first, second, subject, setting).outcomes
    return one.result, two.result


def current(first: str, second: str, subject: StatementTable = _FLAT, setting: ConflictContext = _SPARK) -> PairOutcome:
    return pair(first, second, subject, setting).outcomes[0]


def ways(first: str, second: str, subject: StatementTable = _FLAT, setting: ConflictContext = _SPARK) -> Suggestions:
    return suggest(parse_statement(first), parse_statement(second), subject, setting)


@pytest.mark.parametrize(
    ("statement", "write", "said"),
    [
        (sets("delta.enableDeletionVectors=true"), INSERT, (_COMMITS, _COMMITS)),
        (sets("delta.enableDeletionVectors=true", "owner.team=x"), INSERT, (_COMMITS, _FAILS)),
        (sets("delta.enableRowTracking=true"), INSERT, (_COMMITS, _COMMITS)),
        (sets("delta.enableRowTracking=true"), UPDATE, (_COMMITS, _COMMITS)),
        (sets("delta.feature.vacuumProtocolCheck=supported"), INSERT, (_COMMITS, _COMMITS)),
        (sets("delta.feature.rowTracking=supported"), INSERT, (_COMMITS, _FAILS)),
        (sets("delta.isolationLevel=Serializable"), INSERT, (_COMMITS, _FAILS)),
        (sets("comment=orders"), INSERT, (_COMMITS, _FAILS)),
        ("COMMENT ON TABLE lake.orders IS 'orders'", INSERT, (_COMMITS, _FAILS)),
        ("ALTER TABLE lake.orders UNSET TBLPROPERTIES ('no.such')", INSERT, (_COMMITS, _COMMITS)),
        ("ALTER TABLE lake.orders CLUSTER BY (id)", UPDATE, (_COMMITS, _COMMITS)),
        ("ALTER TABLE lake.orders CLUSTER BY NONE", UPDATE, (_COMMITS, _COMMITS)),
        (COLUMN, UPDATE, (_COMMITS, _FAILS)),
        ("ALTER TABLE lake.orders ALTER COLUMN id TYPE DECIMAL(20, 0)", INSERT, (_COMMITS, _FAILS)),
        ("ALTER TABLE lake.orders ADD CONSTRAINT c CHECK (id > 0)", INSERT, (_FAILS, _FAILS)),
        ("ALTER TABLE lake.orders ALTER COLUMN id SET NOT NULL", INSERT, (_FAILS, _FAILS)),
        ("ALTER TABLE lake.orders ALTER COLUMN id DROP NOT NULL", INSERT, (_COMMITS, _FAILS)),
        ("ALTER TABLE lake.orders RENAME TO lake.sales", INSERT, (_COMMITS, _COMMITS)),
        ("OPTIMIZE lake.orders", INSERT, (_COMMITS, _COMMITS)),
        ("OPTIMIZE lake.orders", UPDATE, (_MAY, _FAILS)),
        ("OPTIMIZE lake.orders", DELETE, (_MAY, _FAILS)),
        ("OPTIMIZE lake.orders", "OPTIMIZE lake.orders ZORDER BY (id)", (_MAY, _MAY)),
        ("REORG TABLE lake.orders APPLY (PURGE)", INSERT, (_COMMITS, _COMMITS)),
        ("REORG TABLE lake.orders APPLY (PURGE)", UPDATE, (_MAY, _FAILS)),
        ("REORG TABLE lake.orders APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", INSERT, (_COMMITS, _FAILS)),
        ("RESTORE TABLE lake.orders TO VERSION AS OF 2", INSERT, (_FAILS, _MAY)),
        ("CREATE OR REPLACE TABLE lake.orders AS SELECT * FROM lake.orders", INSERT, (_FAILS, _FAILS)),
        ("CREATE OR REPLACE TABLE lake.orders SHALLOW CLONE lake.old", INSERT, (_FAILS, _MAY)),
        ("VACUUM lake.orders", INSERT, (_COMMITS, _COMMITS)),
        ("VACUUM lake.orders", COLUMN, (_MAY, _COMMITS)),
        ("VACUUM lake.orders", "RESTORE TABLE lake.orders TO VERSION AS OF 2", (_MAY, _FAILS)),
        (USER_KEY, "ALTER TABLE lake.orders UNSET TBLPROPERTIES ('no.such')", (_FAILS, _FAILS)),
        (USER_KEY, "OPTIMIZE lake.orders", (_COMMITS, _COMMITS)),
    ],
)
def test_statements_on_a_table_without_partitions(
    statement: str, write: str, said: tuple[ConflictResult, ConflictResult]
) -> None:
    assert results(statement, write) == said
    assert results(write, statement) == (said[1], said[0])


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("OPTIMIZE lake.orders WHERE day = '2026-01-02'", (_COMMITS, _COMMITS)),
        ("OPTIMIZE lake.orders WHERE day <= '2026-01-01'", (_MAY, _MAY)),
        ("OPTIMIZE lake.orders", (_MAY, _MAY)),
        ("REORG TABLE lake.orders WHERE day > DATE '2026-01-01' APPLY (PURGE)", (_COMMITS, _COMMITS)),
        ("ALTER TABLE lake.orders ADD CONSTRAINT c CHECK (id > 0)", (_FAILS, _FAILS)),
    ],
)
def test_partitions_keep_a_rewrite_apart(statement: str, said: tuple[ConflictResult, ConflictResult]) -> None:
    assert results(statement, UPDATE, _PARTITIONED) == said


def test_a_value_that_is_there_already_is_adopted() -> None:
    before = replace(_SPARK, properties={"owner.team": "x", "delta.logRetentionDuration": "interval 7 days"})
    assert results(USER_KEY, INSERT, setting=before) == (_COMMITS, _COMMITS)
    same = sets("DELTA.logretentionduration=interval 7 days")
    assert results(same, INSERT, setting=before) == (_COMMITS, _COMMITS)
    assert results("ALTER TABLE lake.orders UNSET TBLPROPERTIES (owner.team)", INSERT, setting=before)[1] is _FAILS


def test_an_old_client_fails_where_a_new_one_adopts() -> None:
    assert results(sets("delta.enableDeletionVectors=true"), INSERT, setting=_OLD) == (_COMMITS, _FAILS)


def test_both_change_the_clustering_columns() -> None:
    cluster = "ALTER TABLE lake.orders CLUSTER BY (amount)"
    for other in (cluster, OVERWRITE):
        outcome = current(cluster, other, setting=_CLUSTERED)
        assert (outcome.result, outcome.conflicts) == (_FAILS, (Conflict.TRANSACTION,))


def test_a_dropped_feature_fails_writers_with_its_first_commit() -> None:
    drop = "ALTER TABLE lake.orders DROP FEATURE deletionvectors"
    on = pair(drop, INSERT, setting=_VECTORS)
    assert [each.kind.value for each in on.first] == [
        "UNSET TBLPROPERTIES", "REORG", "Deletion Vector Tombstones", *["Empty Commit"] * 3, "DROP FEATURE",
    ]  # fmt: skip
    assert on.outcomes[1].conflicts == (Conflict.METADATA_CHANGED,)
    none_left = replace(_FLAT, vectors=0)
    off = pair(drop, INSERT, none_left, replace(_VECTORS, properties={VECTORS: "false"}))
    assert off.first[0].kind.value == "Deletion Vector Tombstones"
    assert off.outcomes[1].conflicts == (Conflict.PROTOCOL_CHANGED,)


def test_a_dropped_feature_that_is_used_meanwhile_is_revalidated() -> None:
    drop = "ALTER TABLE lake.orders DROP FEATURE deletionVectors"
    found = current(drop, sets("delta.enableDeletionVectors=true"), setting=replace(_VECTORS, properties={}))
    assert found.result is _MAY
    assert Conflict.REVALIDATION in found.conflicts
    assert Conflict.REVALIDATION in current(drop, DELETE, setting=_VECTORS).conflicts


@pytest.mark.parametrize(
    ("feature", "properties", "commits"),
    [
        ("v2Checkpoint", {"delta.checkpointPolicy": "v2"}, ["SET TBLPROPERTIES", *_EMPTY, "DROP FEATURE"]),
        ("v2Checkpoint", {}, [*_EMPTY, "DROP FEATURE"]),
        ("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"}, ["UNSET TBLPROPERTIES", "DROP FEATURE"]),
        ("typeWidening", {"delta.enableTypeWidening": "true"}, ["UNSET TBLPROPERTIES", *_EMPTY, "DROP FEATURE"]),
        ("columnMapping", {"delta.columnMapping.mode": "name"}, ["REMOVE COLUMN MAPPING", *_EMPTY, "DROP FEATURE"]),
        ("rowTracking", {"delta.enableRowTracking": "true"}, ["SET TBLPROPERTIES", _UNBACKFILL, "DROP FEATURE"]),
        ("checkConstraints", {}, ["DROP FEATURE"]),
        ("checkpointProtection", {}, ["Empty Commit", "UNSET TBLPROPERTIES", "DROP FEATURE"]),
    ],
)  # fmt: skip
def test_the_commits_of_each_dropped_feature(feature: str, properties: dict[str, str], commits: list[str]) -> None:
    setting = replace(_SPARK, properties=properties)
    found = pair(f"ALTER TABLE lake.orders DROP FEATURE {feature}", INSERT, setting=setting)
    assert [each.kind.value for each in found.first] == commits


def test_row_tracking_fails_only_while_another_changes_metadata() -> None:
    on = sets("delta.enableRowTracking=true")
    assert [each.kind.value for each in pair(on, INSERT).first] == [
        "UPGRADE PROTOCOL", "row tracking backfill", "SET TBLPROPERTIES",
    ]  # fmt: skip
    assert results(on, "OPTIMIZE lake.orders") == (_COMMITS, _COMMITS)
    assert results(on, USER_KEY)[0] is _FAILS


def test_before_4_1_writers_continue_only_if_row_tracking_is_the_sole_key_of_its_set() -> None:
    on = "delta.enableRowTracking=true"
    assert results(sets(on), INSERT, setting=_OLD)[1] is _COMMITS
    assert results(sets(on, "delta.feature.v2Checkpoint=supported"), INSERT, setting=_OLD)[1] is _FAILS


def test_uniform_is_made_of_three_commits() -> None:
    found = pair("REORG TABLE lake.orders APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", UPDATE)
    assert [each.kind.value for each in found.first] == ["REORG … UPGRADE UNIFORM", "REORG", "SET TBLPROPERTIES"]
    assert found.outcomes[0].result is _MAY
    assert "in its commit REORG" in found.outcomes[0].reason


def test_a_write_with_automatic_compaction_is_two_commits() -> None:
    on = _SPARK.with_property("delta.autoOptimize.autoCompact", "true")
    assert results("OPTIMIZE lake.orders", INSERT) == (_COMMITS, _COMMITS)
    assert results("OPTIMIZE lake.orders", INSERT, setting=on) == (_MAY, _COMMITS)
    weak = on.with_property(LEVEL, "WriteSerializable")
    outcome = current(UPDATE, INSERT, setting=weak)
    assert (outcome.result, outcome.conflicts[0]) == (_MAY, Conflict.APPEND)
    assert results(UPDATE, INSERT, setting=_SPARK.with_property(LEVEL, "WriteSerializable"))[0] is _COMMITS


def test_a_session_overrides_the_property_of_automatic_compaction() -> None:
    on = _SPARK.with_property("delta.autoOptimize.autoCompact", "true")
    assert results("OPTIMIZE lake.orders", INSERT, setting=replace(on, auto_compact=False))[0] is _COMMITS
    assert results("OPTIMIZE lake.orders", INSERT, setting=replace(_SPARK, auto_compact=True))[0] is _MAY


def test_automatic_compaction_keeps_to_the_partitions_of_the_write() -> None:
    on = replace(_SPARK, auto_compact=True)
    other = "INSERT INTO lake.orders VALUES (1, DATE '2026-01-02', 1)"
    assert results(UPDATE, other, _PARTITIONED, on) == (_COMMITS, _COMMITS)


def test_an_automatic_compaction_that_fails_leaves_the_statement_committed() -> None:
    outcome = current(INSERT, UPDATE, setting=replace(_SPARK, auto_compact=True))
    assert outcome.result is _COMMITS
    assert "automatic compaction after it may fail" in outcome.afterwards
    assert current(INSERT, USER_KEY, setting=replace(_SPARK, auto_compact=True)).afterwards == ""


def test_partition_of_an_optimize_is_suggested() -> None:
    found = ways("OPTIMIZE lake.orders ZORDER BY (id)", UPDATE, _PARTITIONED)
    (found_rewrite,) = found.rewrites
    assert found_rewrite.sql == ("OPTIMIZE lake.orders WHERE (day <> DATE '2026-01-01' OR day IS NULL) ZORDER BY (id)")


def test_what_a_policy_can_declare_is_left_to_apply() -> None:
    assert ways(USER_KEY, INSERT).by_apply == (0,)
    assert ways(INSERT, "ALTER TABLE lake.orders CLUSTER BY (id)").by_apply == ()
    assert ways(COLUMN, INSERT).by_apply == ()


def test_keys_of_databricks_are_not_documented() -> None:
    """It does not say whether a primary or foreign key makes a commit, nor does open-source Delta have them."""
    for key in (
        "ADD CONSTRAINT pk PRIMARY KEY (id)",
        "ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES other (id)",
        "DROP CONSTRAINT pk",
    ):
        assert results(f"ALTER TABLE lake.orders {key}", UPDATE, setting=_RUNTIME) == (_UNKNOWN, _UNKNOWN)
        assert results(f"ALTER TABLE lake.orders {key}", USER_KEY, setting=_RUNTIME)[0] is _UNKNOWN
    checked = _RUNTIME.with_property("delta.constraints.pk", "id > 0")
    assert results("ALTER TABLE lake.orders DROP CONSTRAINT pk", UPDATE, setting=checked)[1] is _FAILS
    assert results("ALTER TABLE lake.orders ADD CONSTRAINT pk PRIMARY KEY (id)", UPDATE) == (_COMMITS, _COMMITS)


def test_databricks_does_not_say_how_a_writer_fails_when_vectors_are_enabled() -> None:
    on = sets("delta.enableDeletionVectors=true")
    outcome = current(UPDATE, on, setting=_RUNTIME)
    assert outcome.result is _FAILS
    assert outcome.conflicts == (Conflict.METADATA_CHANGED, Conflict.PROTOCOL_CHANGED)
    assert current(UPDATE, USER_KEY, setting=_RUNTIME).conflicts == (Conflict.METADATA_CHANGED,)
    assert len(current(UPDATE, on, setting=_OLD).conflicts) == 1


def test_dropping_a_feature_whose_property_is_not_set_leaves_the_metadata_as_it_was() -> None:
    """Delta 4.1 adopts the metadata of the UNSET, which is equal, and fails only on the protocol (ConflictChecker)."""
    drop = "ALTER TABLE lake.orders DROP FEATURE deletionVectors"
    with_vectors = replace(_FLAT, vectors=5)
    unset = replace(_VECTORS, properties={})
    assert current(DELETE, drop, with_vectors, unset).exceptions == ("ProtocolChangedException",)
    assert current(DELETE, drop, with_vectors, _VECTORS).exceptions == ("MetadataChangedException",)


def test_databricks_documents_little_of_them() -> None:
    assert results(USER_KEY, INSERT, setting=_RUNTIME) == (_UNKNOWN, _FAILS)
    copy = "COPY INTO lake.orders FROM '/x' FILEFORMAT = CSV"
    assert results(copy, copy, setting=_RUNTIME) == (_UNKNOWN, _UNKNOWN)
    zorder = current("OPTIMIZE lake.orders ZORDER BY (id)", UPDATE, setting=_RUNTIME)
    assert (zorder.result, zorder.conflicts) == (_MAY, (Conflict.DELETE_READ,))
    replaced = current(
        "REPLACE TABLE lake.orders AS SELECT 1", "REPLACE TABLE lake.orders AS SELECT 2", setting=_RUNTIME
    )
    assert replaced.conflicts == (Conflict.PROTOCOL_CHANGED,)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO lake.orders REPLACE USING (day) SELECT 1, DATE '2026-01-01', 1",
        "INSERT INTO lake.orders AS x REPLACE ON x.day = src.day SELECT * FROM u AS src",
        "INSERT INTO TABLE lake.orders t REPLACE ON t.id = s.id AND t.day > '2026-01-01' SELECT * FROM u AS s",
    ],
)
def test_an_insert_that_replaces_what_its_query_matches_may_touch_any_row(sql: str) -> None:
    assert parse_statement(sql).verb == "INSERT … REPLACE ON"
    with pytest.raises(StatementError, match="has no INSERT … REPLACE ON or USING"):
        pair(sql, UPDATE, _PARTITIONED)
    assert results(sql, UPDATE, _PARTITIONED, setting=_RUNTIME) == (_MAY, _MAY)


def test_sql_records_blind_appends_even_where_others_write_that_do_not() -> None:
    weak = replace(_SPARK.with_property(LEVEL, "WriteSerializable"), blind=False)
    assert results(UPDATE, INSERT, setting=weak)[0] is _COMMITS


def test_removing_the_column_mapping_rewrites_the_table_first() -> None:
    mapped = _SPARK.with_property("delta.columnMapping.mode", "name")
    alone = pair(sets("delta.columnMapping.mode=none"), INSERT, setting=mapped)
    assert [each.kind.value for each in alone.first] == ["REMOVE COLUMN MAPPING"]
    assert [each.result for each in alone.outcomes] == [_FAILS, _FAILS]
    more = pair(sets("delta.columnMapping.mode=none", "owner.team=x"), INSERT, setting=mapped)
    assert [each.kind.value for each in more.first] == ["REMOVE COLUMN MAPPING", "SET TBLPROPERTIES"]


def test_a_higher_protocol_version_adds_what_it_implies() -> None:
    raised = pair(sets("delta.minReaderVersion=2", "delta.minWriterVersion=5"), USER_KEY)
    (commit,) = raised.first
    assert commit.protocol
    assert commit.protocol.adds == ("changeDataFeed", "checkConstraints", "columnMapping", "generatedColumns")
    assert raised.outcomes[0].conflicts == (Conflict.METADATA_CHANGED,)
    (lower,) = pair(sets("delta.minWriterVersion=1"), USER_KEY).first
    assert lower.protocol is None


def test_a_feature_that_is_there_adds_nothing() -> None:
    (again,) = pair(sets("delta.feature.DELETIONVECTORS=supported"), INSERT, setting=_VECTORS).first
    assert again.protocol is None
    assert results(sets("delta.feature.rowTracking=supported"), INSERT, setting=_VECTORS)[1] is _FAILS
