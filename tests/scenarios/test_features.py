"""Every feature that Delta 4.4 drops is dropped on real tables: broken off between its commits, finished, undone."""

from __future__ import annotations

from typing import Any

import pytest

import tablectl
from tablectl.delta.names import TableName
from tablectl.delta.protocol import FEATURES
from tablectl.log.reader import read_table
from tests.scenarios.test_dropped_and_clustered import a_day_later
from tests.scenarios.test_feature_chains import Lake, lake  # noqa: F401  # the fixture

pytestmark = pytest.mark.spark

EMPTY = ["Empty Commit"] * 3
WIDENED = ("ALTER TABLE {t} ALTER COLUMN small TYPE BIGINT", "INSERT INTO {t} SELECT 100, 1L")
DROPS: dict[str, tuple[str, str, tuple[str, ...], list[str]]] = {
    "typeWidening": (
        "features: {typeWidening: dropped}, rewrite: allowed",
        "'delta.enableTypeWidening' = 'true'",
        WIDENED,
        ["UNSET TBLPROPERTIES", "REORG", "DROP FEATURE", *EMPTY],
    ),
    "v2Checkpoint": (
        "features: {v2Checkpoint: dropped}",
        "'delta.checkpointPolicy' = 'v2'",
        (),
        ["SET TBLPROPERTIES", *EMPTY],
    ),
    "inCommitTimestamp": (
        "features: {inCommitTimestamp: dropped}",
        "'delta.enableInCommitTimestamps' = 'true'",
        (),
        ["UNSET TBLPROPERTIES"],
    ),
    "vacuumProtocolCheck": (
        "features: {vacuumProtocolCheck: dropped}",
        "'delta.feature.vacuumProtocolCheck' = 'supported'",
        (),
        EMPTY,
    ),
    "geospatial": ("features: {geospatial: dropped}", "'delta.feature.geospatial' = 'supported'", (), EMPTY),
    "materializePartitionColumns": (
        "features: {materializePartitionColumns: dropped}",
        "'delta.enableMaterializePartitionColumnsFeature' = 'true'",
        (),
        [],
    ),
    "coordinatedCommits-preview": (
        "features: {coordinatedCommits-preview: dropped}",
        "'delta.feature.coordinatedCommits-preview' = 'supported'",
        (),
        [],
    ),
    "domainMetadata": (
        "features: {domainMetadata: dropped}",
        "'delta.feature.domainMetadata' = 'supported'",
        (),
        [],
    ),
    "rowTracking": (
        "row_tracking: dropped",
        "'delta.enableRowTracking' = 'true'",
        (),
        ["SET TBLPROPERTIES", "ROW TRACKING UNBACKFILL"],
    ),
    "columnMapping": (
        "column_mapping: dropped, rewrite: allowed",
        "'delta.columnMapping.mode' = 'name'",
        ("ALTER TABLE {t} RENAME COLUMN small TO little",),
        ["REMOVE COLUMN MAPPING", *EMPTY],
    ),
    "checkConstraints": (
        "features: {checkConstraints: dropped}, constraints: {positive: none}",
        "'delta.feature.checkConstraints' = 'supported'",
        ("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)",),
        ["DROP CONSTRAINT"],
    ),
}


def protocol(lake: Lake) -> Any:  # noqa: F811
    return read_table(TableName("", (str(lake.table),)), str(lake.table)).protocol


def test_every_feature_that_can_be_dropped_is_tried() -> None:
    elsewhere = {"deletionVectors", "checkpointProtection", "typeWidening-preview"}
    assert {each.name for each in FEATURES if each.leaves != "never"} - elsewhere == DROPS.keys()


USUAL = frozenset({"typeWidening", "rowTracking", "checkConstraints", "domainMetadata"})
"""One of each way to drop. `make test-slow` tries all features."""


@pytest.mark.parametrize(
    "feature", [pytest.param(name, marks=[pytest.mark.slow] * (name not in USUAL)) for name in DROPS]
)
def test_a_feature_is_dropped_though_the_drop_breaks_off_between_its_commits(lake: Lake, feature: str) -> None:  # noqa: F811
    policy, properties, then, chain = DROPS[feature]
    lake.create("id, cast(id % 100 AS SMALLINT) AS small", f"TBLPROPERTIES ({properties})")
    for sql in then:
        lake.sql(sql)
    before = lake.rows()
    assert protocol(lake).has(feature)
    start = len(lake.since(-1)) - 1
    for commit in sorted({1, 2, len(chain) + 1} & set(range(1, len(chain) + 2))):
        broken = lake.apply(policy, breaking=commit)
        if broken.exit_code == 0:
            break  # the runs before left less than that to do
        expected = 5 if commit > 1 else 1  # without a commit, an apply did not begin
        assert (broken.exit_code, protocol(lake).has(feature)) == (expected, True), broken
        assert lake.rows() == before
    lake.reached(policy)
    assert not protocol(lake).has(feature)
    made = lake.since(start)
    # Delta names the commit that cleans the schema of widened types like the drop.
    assert (made.count("DROP FEATURE"), made[-1]) == (1 + chain.count("DROP FEATURE"), "DROP FEATURE")
    assert set(made) == {*chain, "DROP FEATURE"}
    assert lake.rows() == before


@pytest.mark.parametrize(
    "feature",
    [
        "typeWidening",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("v2Checkpoint", "inCommitTimestamp", "rowTracking")),
    ],
)
def test_a_dropped_feature_comes_back_by_the_undo_of_the_plan_and_of_the_run(lake: Lake, feature: str) -> None:  # noqa: F811
    policy, properties, _, chain = DROPS[feature]
    lake.create("id, cast(id % 100 AS SMALLINT) AS small", f"TBLPROPERTIES ({properties})")
    before = lake.rows()
    lake.write_policy(policy)
    (planned,) = tablectl.plan(lake.root / "p.yaml", directory=lake.root).tables
    start = len(lake.since(-1)) - 1
    lake.reached(policy)
    dropped = [each for each in chain if each not in {"REORG", "DROP FEATURE"}]
    assert lake.since(start) == [*dropped, "DROP FEATURE"], "the commits that the plan names"
    planned_commits = [each.lower() for each in planned.statements[0].commits]
    assert [each.replace("row tracking unbackfill", "ROW TRACKING UNBACKFILL").lower() for each in planned_commits] == [
        each.lower() for each in lake.since(start)
    ]
    for sql in planned.undo:
        lake.spark.sql(sql)
    key, value = properties.replace("'", "").split(" = ")
    stored = dict(lake.spark.sql(f"SHOW TBLPROPERTIES delta.`{lake.table}`").collect())
    assert (protocol(lake).has(feature), stored[key]) == (True, value)
    assert lake.rows() == before


@pytest.mark.slow
def test_a_feature_leaves_nothing_behind_when_its_history_is_given_up(lake: Lake) -> None:  # noqa: F811
    policy = "features: {v2Checkpoint: dropped}, truncate_history: true"
    lake.create("id", "TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')")
    first = lake.apply(policy)
    assert (first.exit_code, [str(table.outcome) for table in first.tables]) == (0, ["waiting"]), first
    assert lake.apply(policy).tables[0].commits == (), "it waits without a commit"
    last = a_day_later(lake, policy)
    assert (last.exit_code, [str(table.outcome) for table in last.tables]) == (0, ["applied"]), last
    assert protocol(lake).features == {"appendOnly", "invariants"}
    assert tablectl.plan(lake.root / "p.yaml", directory=lake.root).tables == ()


def test_the_protection_that_a_drop_leaves_is_dropped_with_its_history(lake: Lake) -> None:  # noqa: F811
    lake.create("id", "TBLPROPERTIES ('delta.feature.vacuumProtocolCheck' = 'supported')")
    lake.reached("features: {vacuumProtocolCheck: dropped}")
    policy = "features: {checkpointProtection: dropped}, truncate_history: true"
    assert [str(table.outcome) for table in lake.apply(policy).tables] == ["waiting"]
    last = a_day_later(lake, policy)
    assert (last.exit_code, [str(table.outcome) for table in last.tables]) == (0, ["applied"]), last
    assert protocol(lake).features == {"appendOnly", "invariants"}


def test_an_added_feature_is_used_for_nothing(lake: Lake) -> None:  # noqa: F811
    lake.create("id")
    lake.reached("features: {v2Checkpoint: supported, inCommitTimestamp: supported}")
    assert protocol(lake).features == {"appendOnly", "invariants", "v2Checkpoint", "inCommitTimestamp"}
    lake.reached("features: {v2Checkpoint: dropped, inCommitTimestamp: dropped}")
    assert protocol(lake).features == {"appendOnly", "invariants", "checkpointProtection"}


def test_constraints_are_added_changed_and_dropped(lake: Lake) -> None:  # noqa: F811
    start = lake.create("id, named_struct('city', concat('c', id)) AS place, date'2020-01-01' AS day")
    policy = (
        """constraints: {positive: "id>= -0.5e0", dated: "day >= DATE '2000-01-01' AND place.city <> 'it\\\\'s)'"}"""
    )
    lake.reached(policy)
    assert lake.since(start) == ["ADD CONSTRAINT", "ADD CONSTRAINT"]
    lake.reached('constraints: {positive: "id <=> id", dated: "year(day) IN (2020, 2021) OR NOT (id != 3)"}')
    refused = lake.apply('constraints: {positive: "id > 10"}')
    assert refused.exit_code == 3, refused
    (table,) = refused.tables
    assert "constraints.positive: rows violate it, by the statistics of " in table.message
    assert "`id` goes from 0 to 29" in table.message
    lake.sql("DELETE FROM {t} WHERE id <= 10")
    lake.reached('constraints: {positive: "id > 10", dated: none}')
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        lake.sql("INSERT INTO {t} SELECT 5, named_struct('city', 'x'), date'2020-01-01'")


def test_a_column_becomes_nullable_and_only_a_constraint_makes_it_the_other_way(lake: Lake) -> None:  # noqa: F811
    lake.sql("CREATE TABLE {t} (id BIGINT NOT NULL, v INT) USING delta")
    lake.sql("INSERT INTO {t} VALUES (1, 1)")
    refused = lake.apply("constraints: {v: not null}")
    assert refused.exit_code == 3, refused
    lake.reached("constraints: {id: nullable, v_set: v IS NOT NULL}")
    lake.sql("INSERT INTO {t} VALUES (NULL, 1)")
