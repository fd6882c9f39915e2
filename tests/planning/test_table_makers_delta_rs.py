"""The tables that real delta-rs makes from the settings of ``tablectl defaults delta-rs`` have an empty plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tablectl.attributes.policy import Policy
from tablectl.delta.names import parse_table
from tablectl.log.reader import read_table
from tablectl.model.table import Depth
from tablectl.planning.diff import diff
from tablectl.planning.new_table import birth_of
from tablectl.planning.table_makers import _DELTA_RS, MAKERS, BirthScope

DATA = pa.table({"id": [1, 2], "day": ["a", "b"]})
NAME = parse_table("lake.sales.orders")
VALUES = {
    "delta.columnMapping.mode": "name",
    "delta.dataSkippingStatsColumns": "id",
    "delta.isolationLevel": "Serializable",
    "delta.checkpointInterval": "20",
    "delta.dataSkippingNumIndexedCols": "5",
    "delta.randomPrefixLength": "3",
    "delta.targetFileSize": "10485760",
    **dict.fromkeys(
        (
            "delta.logRetentionDuration",
            "delta.deletedFileRetentionDuration",
            "delta.setTransactionRetentionDuration",
        ),
        "interval 3 days",
    ),
}


def made(folder: Path, policy: Policy) -> tuple[list[str], list[str]]:
    """The changes of a plan of the table that delta-rs makes, and what its settings leave out."""
    scope = BirthScope(target=NAME, birth=birth_of(policy), place="policies/a.yaml:1")
    written = MAKERS["delta-rs"].write((scope,), "oss", "")
    names: dict[str, Any] = {}
    exec(written.text, names)
    write_deltalake(str(folder), DATA, **names["NEW_TABLES"][NAME.text])
    live = read_table(NAME, str(folder), Depth(counts=True))
    return [each.id for each in diff(policy, live, "oss")], [each.what for each in written.left]


def test_the_plan_of_a_table_of_delta_rs_is_empty(tmp_path: Path) -> None:
    policy = Policy(
        {
            "isolation": "Serializable",
            "deletion_vectors": "enabled",
            "column_mapping": "name",
            "partitioning": ("day",),
            "data_skipping": ("id",),
            "row_tracking": "disabled",
            "uniform": "none",
            "clustering": "none",
            "retention": {"log": "interval 10 days", "deleted_files": "interval 2 days"},
            "properties": {
                "delta.appendOnly": "true",
                "delta.enableChangeDataFeed": "true",
                "delta.checkpointInterval": "20",
            },
        }
    )
    assert made(tmp_path, policy) == ([], [])


def test_what_the_plan_of_such_a_table_still_changes_is_what_the_settings_named(tmp_path: Path) -> None:
    policy = Policy(
        {
            "deletion_vectors": "enabled",
            "properties": {"owner.team": "ours", "delta.checkpointPolicy": "v2"},
            "features": {"v2Checkpoint": "supported"},
            "constraints": {"positive": "id > 0"},
        }
    )
    changes, left = made(tmp_path, policy)
    assert sorted(changes) == [
        "constraints.positive",
        "features.v2Checkpoint",
        "properties.delta.checkpointPolicy",
        "properties.owner.team",
    ]
    assert len(left) == len(changes)


@pytest.mark.parametrize("key", sorted(_DELTA_RS))
def test_delta_rs_takes_each_property_of_the_list(tmp_path: Path, key: str) -> None:
    value = next((text for name, text in VALUES.items() if name.lower() == key), "true")
    spelled = next(name for name in (*VALUES, *MEASURED) if name.lower() == key)
    write_deltalake(str(tmp_path / "t"), DATA, configuration={spelled: value})
    write_deltalake(str(tmp_path / "t"), DATA, mode="append")


MEASURED = (
    "delta.appendOnly",
    "delta.autoOptimize.autoCompact",
    "delta.autoOptimize.optimizeWrite",
    "delta.checkpoint.writeStatsAsJson",
    "delta.checkpoint.writeStatsAsStruct",
    "delta.enableChangeDataFeed",
    "delta.enableDeletionVectors",
    "delta.enableExpiredLogCleanup",
    "delta.randomizeFilePrefixes",
)
