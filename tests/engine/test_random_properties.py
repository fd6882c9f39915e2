"""Random combinations of properties on random tables: the plan refuses what Delta rejects, and nothing else.

Each step changes a table as another tool would, draws a policy, and sends the statements of the plan, or those that the
plan would have if it refused nothing. Delta accepts them if they and the next append succeed: it takes some properties
and then fails every write after its commit. A difference shows the table's properties and the policy.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tablectl.attributes.policy import Policy, basis_of, declarable_keys
from tablectl.delta import keys
from tablectl.delta.dialects import DEFAULT_DIALECT
from tablectl.delta.names import TableName
from tablectl.delta.properties import find_known
from tablectl.engine.spark import SparkEngine, wrap_spark
from tablectl.log.reader import read_table
from tablectl.model.errors import EngineError
from tablectl.model.operations import Repartition
from tablectl.model.plan import TablePlan
from tablectl.model.table import Depth, LiveTable
from tablectl.planning.derive_statements import derive_table
from tablectl.planning.diff import diff
from tablectl.planning.plan_table import plan_table

_SMALL, _LARGE = 8, 400
_log = logging.getLogger(__name__)
_SPANS = ("interval 6 hours", "3 days", "interval 1 week", "20 days", "interval 30 days", "45 days", "P1D", "1 month")
_BOOLEANS = ("true", "false", None)
_PROPERTIES: dict[str, Sequence[str | None]] = {
    keys.APPEND_ONLY: _BOOLEANS,
    keys.AUTO_COMPACT: _BOOLEANS,
    keys.CHANGE_DATA_FEED: _BOOLEANS,
    keys.CHECKPOINT_POLICY: ("classic", "v2", None),
    keys.IN_COMMIT_TIMESTAMPS: _BOOLEANS,
    keys.INDEXED_COLUMNS: ("-1", "0", "1", "40", None),
    keys.LOG_CLEANUP: _BOOLEANS,
    keys.MANIFEST: ("true", "true", "false", None),
    keys.TRANSACTION_RETENTION: ("interval 5 days", None),
    "delta.autoOptimize": _BOOLEANS,
    "delta.autoOptimize.optimizeWrite": _BOOLEANS,
    "delta.castIcebergTimeType": _BOOLEANS,
    "delta.checkpoint.writeStatsAsJson": _BOOLEANS,
    "delta.checkpoint.writeStatsAsStruct": _BOOLEANS,
    "delta.checkpointInterval": ("1", "10", "+7", None),
    "delta.checkpointRetentionDuration": ("2 days 3 hours", "interval 1 second", None),
    "delta.dataSkippingStringPrefixLength": ("0", "16", None),
    "delta.dropFeatureTruncateHistory.retentionDuration": ("interval 24 hours", None),
    "delta.enableFullRetentionRollback": _BOOLEANS,
    "delta.enableMaterializePartitionColumnsFeature": _BOOLEANS,
    "delta.enableTypeWidening": _BOOLEANS,
    "delta.enableVariantShredding": _BOOLEANS,
    "delta.ignoreIcebergBucketPartition": _BOOLEANS,
    "delta.parquet.format.version": ("1.0.0", "2.6.0", "2.12.0", "3.0.0", None),
    "delta.randomPrefixLength": ("1", "5", None),
    "delta.randomizeFilePrefixes": _BOOLEANS,
    "delta.sampleRetentionDuration": ("interval 7 days", None),
    "delta.writePartitionColumnsToParquet": _BOOLEANS,
    "owner.team": ("payments", "it's", None),
}
_TABLES = (
    "(id BIGINT, day DATE, note STRING, s STRUCT<a: INT, f: BOOLEAN>) USING delta",
    "(id BIGINT, day DATE, note STRING) USING delta PARTITIONED BY (day)",
    "(id BIGINT, _change_type STRING) USING delta",
    "(id BIGINT, tiny TINYINT, list ARRAY<INT>, local TIMESTAMP_NTZ) USING delta",
)
_ELSEWHERE = (
    f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{keys.LOG_RETENTION}' = '60 days')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.universalFormat.enabledFormats' = 'hudi')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV1' = 'true')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV2' = 'true')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.rowTrackingSuspended' = 'true')",
    "ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('delta.appendOnly')",
    "INSERT INTO {t} (id) VALUES (1), (2), (3)",
    "DELETE FROM {t} WHERE id = 2",
)


def _drawn(chance: random.Random) -> Policy:
    """A policy of one to four values, of those that `validate` takes one by one."""
    properties = {
        key: chance.choice(_PROPERTIES[key]) for key in chance.sample(sorted(_PROPERTIES), chance.randint(0, 3))
    }
    others: dict[str, Callable[[], Any]] = {
        "isolation": lambda: chance.choice(("Serializable", "WriteSerializable", "default")),
        "deletion_vectors": lambda: chance.choice(("enabled", "disabled")),
        "column_mapping": lambda: "name",
        "row_tracking": lambda: chance.choice(("enabled", "disabled")),
        "data_skipping": lambda: chance.choice((("id",), ("id", "day"), ("s",), ("s.f",), ("note", "id"), "default")),
        "retention": lambda: {
            key: chance.choice((*_SPANS[:6], "default"))
            for key in chance.choice((("log",), ("deleted_files",), ("log", "deleted_files")))
        },
    }
    chosen = chance.sample(sorted(others), chance.randint(0 if properties else 1, 2))
    declared = {name: others[name]() for name in chosen}
    return Policy({**declared, **({"properties": properties} if properties else {})})


@dataclass
class _Lake:
    """The tables of one run, and what was compared on them."""

    engine: SparkEngine
    place: Path
    chance: random.Random
    made: int = 0
    compared: int = 0
    refused: int = 0

    def table(self) -> TableName:
        self.made += 1
        table = TableName("", (str(self.place / f"t{self.made}"),))
        self.engine.execute(f"CREATE TABLE {table.sql} {self.chance.choice(_TABLES)}")
        return table

    def elsewhere(self, table: TableName) -> None:
        """Something that another tool does to the table. Delta may reject it."""
        self.why_not([self.chance.choice(_ELSEWHERE).format(t=table.sql)])

    def why_not(self, statements: Sequence[str]) -> str:
        """Why Delta rejects the statements; empty if it takes them all."""
        for sql in statements:
            try:
                self.engine.execute(sql)
            except EngineError as error:
                return f"{sql}: {error.message}"
        return ""


def _live(table: TableName) -> LiveTable:
    return read_table(table, table.parts[0], Depth(look_back=20, counts=True))


def _stricter(plan: TablePlan) -> bool:
    """Whether a plan refuses on purpose what Delta takes: Delta compares a retention that is set alone with the default
    of the other one, and the plan with its value (docs/retention.md).
    """
    return bool(plan.refusals) and all("is not changed" in each.reason for each in plan.refusals)


def _differences(lake: _Lake, steps: int) -> Iterator[str]:
    """What the plan and Delta disagree about."""
    table = lake.table()
    while lake.compared < steps:
        for _ in range(lake.chance.randint(0, 2)):
            lake.elsewhere(table)
        live, policy = _live(table), _drawn(lake.chance)
        plan = plan_table(policy, live, DEFAULT_DIALECT)
        if plan is None:
            continue
        derived = derive_table(diff(policy, live), basis_of(live), live.name, DEFAULT_DIALECT)
        assert not any(isinstance(each.operation, Repartition) for each in derived.operations)
        append = f"INSERT INTO {table.sql} (id) VALUES (9)"
        if _stricter(plan):
            continue
        rejected = lake.why_not([*(statement.sql for statement in derived.statements), append])
        lake.compared += 1
        lake.refused += bool(plan.refusals)
        if bool(rejected) != bool(plan.refusals):
            reasons = [each.reason for each in plan.refusals]
            found = f"{dict(live.properties)} {live.vectors} vectors, {policy.declared}: {reasons} / {rejected[:600]}"
            _log.warning(found)  # `-o log_cli=true` shows it in the middle of a long run
            yield found
        if rejected or lake.chance.random() < 0.1:  # a table on which Delta failed once can fail always
            table = lake.table()


def test_every_property_that_a_policy_can_declare_is_drawn() -> None:
    known = (find_known(key, DEFAULT_DIALECT) for key in declarable_keys(DEFAULT_DIALECT))
    assert {each.key for each in known if each and not each.read_by} <= _PROPERTIES.keys()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("seed", "steps"), [(20, _SMALL), pytest.param(2_026, _LARGE, marks=pytest.mark.slow)], ids=["small", "large"]
)
def test_the_plan_refuses_what_delta_rejects_and_nothing_else(
    spark: Any, tmp_path: Path, seed: int, steps: int
) -> None:
    lake = _Lake(wrap_spark(spark), tmp_path, random.Random(seed))
    try:
        assert list(_differences(lake, steps)) == []
    finally:
        lake.engine.close()
    assert lake.refused >= max(steps // 12, 1)
