"""Every pair of changes of two attributes, on real tables: the plan's words on protocol, readers and undo are compared
with the logs afterwards.

The statements are sent as the plan prints them, and then its rollback. The oracle reads the newest protocol from the
JSON of the log by itself.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.delta.names import parse_table
from tablectl.delta.protocol import leaves
from tablectl.delta.schema import own_metadata
from tablectl.engine.interface import Engine, EngineOptions
from tablectl.engine.spark import open_spark
from tablectl.model.errors import InputError
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.table import LiveTable
from tablectl.planning.undo import changes_between
from tablectl.reports.table_groups import plan_groups
from tests.builders import read_path

pytestmark = pytest.mark.spark

_MAPPED = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
TABLES: Mapping[str, str] = {
    "plain": "",
    "vectors": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "mapped": f"TBLPROPERTIES ({_MAPPED})",
    "numbered": "TBLPROPERTIES ('delta.minReaderVersion' = '1', 'delta.minWriterVersion' = '4')",
    "partitioned": "PARTITIONED BY (two) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "tracked": "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true')",
    "was mapped": f"TBLPROPERTIES ({_MAPPED})",
    "was iceberg": "TBLPROPERTIES ('delta.columnMapping.mode' = 'none', 'delta.feature.columnMapping' = 'supported', "
    "'delta.feature.icebergCompatV1' = 'supported', 'delta.feature.icebergCompatV2' = 'supported')",
}
AFTERWARDS: Mapping[str, tuple[str, ...]] = {
    "vectors": ("DELETE FROM {t} WHERE id = 3",),
    "was mapped": ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",),
}
SETTINGS: tuple[tuple[str, str], ...] = (
    ("isolation", "Serializable"),
    *(("deletion_vectors", value) for value in ("enabled", "disabled", "dropped")),
    ("clustering", "[id]"),
    ("partitioning", "[three]"),
    ("partitioning", "none"),
    ("row_tracking", "enabled"),
    ("row_tracking", "disabled"),
    ("column_mapping", "name"),
    ("column_mapping", "none"),
    ("uniform", "iceberg_v1"),
    ("uniform", "iceberg_v2"),
    ("data_skipping", "[id]"),
    ("properties", "{delta.enableChangeDataFeed: true}"),
    ("properties", "{delta.checkpointPolicy: v2}"),
)
Case = tuple[str, tuple[str, str], tuple[str, str]]
CASES: tuple[Case, ...] = tuple(
    (table, one, other)
    for table, (one, other) in itertools.product(TABLES, itertools.combinations(SETTINGS, 2))
    if one[0] != other[0]
)
USUAL: frozenset[Case] = frozenset(
    (table, (one, first), (other, second))
    for table, one, first, other, second in (
        ("vectors", "isolation", "Serializable", "column_mapping", "name"),
        ("plain", "deletion_vectors", "enabled", "row_tracking", "enabled"),
        ("plain", "clustering", "[id]", "uniform", "iceberg_v1"),
        ("numbered", "column_mapping", "name", "properties", "{delta.enableChangeDataFeed: true}"),
        ("mapped", "deletion_vectors", "enabled", "column_mapping", "none"),
        ("partitioned", "deletion_vectors", "disabled", "partitioning", "none"),
        ("tracked", "isolation", "Serializable", "row_tracking", "disabled"),
        ("was mapped", "column_mapping", "name", "data_skipping", "[id]"),
        ("was iceberg", "isolation", "Serializable", "uniform", "iceberg_v1"),
    )
)
"""One pair of each attribute, on each table. `make test` runs them; `make test-slow` runs all."""


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One table of each kind. Each case changes a copy."""
    root = tmp_path_factory.mktemp("pairs")
    for name, clauses in TABLES.items():
        table = f"delta.`{root / name}`"
        columns = "id, id % 2 AS two, id % 3 AS three"
        spark.sql(f"CREATE TABLE {table} USING delta {clauses} AS SELECT {columns} FROM range(0, 12, 1, 2)")
        for statement in AFTERWARDS.get(name, ()):
            spark.sql(statement.replace("{t}", table))
    return root


@pytest.fixture(scope="module")
def engine(spark: Any) -> Iterator[Engine]:
    made = open_spark(EngineOptions())
    yield made
    made.close()


def _newest_protocol(table: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for file in sorted((table / "_delta_log").glob("*.json")):
        for line in file.read_text(encoding="utf-8").splitlines():
            found = json.loads(line).get("protocol", found)
    return found


def _needed_by_readers(protocol: Mapping[str, Any]) -> set[str]:
    """The features that a reader must know, by the protocol ("Table Features", "Column Mapping")."""
    version = protocol["minReaderVersion"]
    return set(protocol["readerFeatures"]) if version == 3 else {"columnMapping"} if version == 2 else set()


_LEGACY = ("appendOnly", "invariants"), ("checkConstraints",), ("changeDataFeed", "generatedColumns")


def _needed_by_writers(protocol: Mapping[str, Any]) -> set[str]:
    version = protocol["minWriterVersion"]
    if version == 7:
        return set(protocol["writerFeatures"])
    named = {name for names in _LEGACY[: version - 1] for name in names}
    return named | ({"columnMapping"} if version >= 5 and protocol["minReaderVersion"] >= 2 else set())


def _planned(root: Path, table: Path, *settings: tuple[str, str]) -> Plan:
    policy = ", ".join(f"{key}: {value}" for key, value in (*settings, ("rewrite", "allowed")))
    (root / "p.yaml").write_text(f"version: 1\ntables: {{'delta.`{table}`': {{{policy}}}}}\n", "utf-8")
    return tablectl.plan(root / "p.yaml", directory=root)


def _send(engine: Engine, spark: Any, plan: TablePlan, table: Path) -> None:
    for statement in plan.statements:
        if statement.due is not None:
            continue
        if statement.repartition is None:
            spark.sql(statement.sql)
        else:
            columns = own_metadata(read_path(str(table)).schema.text)
            engine.overwrite(parse_table(plan.name), columns, statement.repartition)


def _name(case: Case) -> str:
    table, *settings = case
    return " and ".join(f"{key} {value}" for key, value in settings) + f" on {table}"


@pytest.mark.parametrize(
    "case",
    [pytest.param(each, id=_name(each), marks=() if each in USUAL else pytest.mark.slow) for each in CASES],
)
def test_what_a_plan_says_of_a_pair_of_changes_is_what_the_log_says_afterwards(
    case: Case, lake: Path, engine: Engine, spark: Any, tmp_path: Path
) -> None:
    kind, *settings = case
    table = tmp_path / "t"
    shutil.copytree(lake / kind, table)
    try:
        plan = _planned(tmp_path, table, *settings)
    except InputError:
        return  # the two contradict each other on every table
    if len({change.attribute for each in plan.tables for change in each.changes}) < 2:
        return  # one of them is so already
    (planned,) = plan.tables
    if planned.refusals:
        return
    before, old = read_path(str(table), counts=True), _newest_protocol(table)
    _send(engine, spark, planned, table)
    after, new = read_path(str(table), counts=True), _newest_protocol(table)
    assert after.protocol == planned.protocol_after.protocol()
    (group,) = plan_groups(plan)
    said = [each.text for each in group.effects]
    _check_clients(said, old, new)
    if any(each.startswith("(spark") for each in planned.undo):
        return  # a rollback with a write that only tablectl makes
    for statement in planned.undo:
        spark.sql(statement)
    _check_undo(said, before, read_path(str(table), counts=True))


def _check_clients(said: list[str], old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """The words on who needs a newer client."""
    read = sorted(_needed_by_readers(new) - _needed_by_readers(old))
    readers = f"readers need protocol {new['minReaderVersion']}" + (f" with {', '.join(read)}" if read else "")
    if read or new["minReaderVersion"] > old["minReaderVersion"]:
        assert readers in said
        assert not [each for each in said if "readers need nothing new" in each]
    else:
        assert not [each for each in said if "readers need protocol" in each]
    written = sorted(_needed_by_writers(new) - _needed_by_writers(old))
    writers = f"writers need protocol {new['minWriterVersion']}" + (f" with {', '.join(written)}" if written else "")
    if written or new["minWriterVersion"] > old["minWriterVersion"]:
        assert writers in said
    else:
        assert not [each for each in said if "writers need protocol" in each]


def _check_undo(said: list[str], before: LiveTable, undone: LiveTable) -> None:
    """The words on a rollback, after it was made."""
    (words,) = [
        each for each in said if each.startswith(("can be undone", "cannot be undone in full", "a rollback leaves"))
    ]
    left = sorted(undone.protocol.features - before.protocol.features)
    values = [each.id for each in changes_between(before, undone, "oss")]
    if words.startswith("can be undone"):
        assert (left, values) == ([], [])
        return
    assert left or values or undone.protocol != before.protocol
    if words.startswith("cannot be undone in full"):  # features that DROP FEATURE alone removes do not stay for good
        left = [each for each in left if leaves(each) != "freely"]
    assert all(name in words for name in left)
