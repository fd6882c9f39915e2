"""The rules against real Spark and Delta: a loser held inside its transaction, another statement committed meanwhile.

The winner is read from the log that Delta wrote, the loser is described with its statement; what ``decide`` says is
what must happen. A disagreement is an error in the rules.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tablectl.attributes.policy import basis_of
from tablectl.conflicts.rules import decide_all
from tablectl.conflicts.transactions import Conflict
from tablectl.delta.names import TableName
from tablectl.log.reader import read_table
from tablectl.model.operations import ClusterBy, Operation, Purge, SetProperties, UnsetProperties
from tests.conflicts.interleavings import (
    APPEND_B,
    CASES,
    CURRENT,
    VECTORS_ON,
    Case,
    Lab,
    Lake,
    append_idempotently,
    cell_of,
    is_known,
    remember,
)
from tests.conflicts.log_records import Log
from tests.interleaving import Writer

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(spark, tmp_path_factory.mktemp("layouts"))


@pytest.fixture(scope="module")
def lab(spark: Any, lake: Lake) -> Lab:
    return Lab(spark, lake)


@pytest.mark.parametrize(
    "case", [pytest.param(each, id=each.id, marks=[pytest.mark.slow] if each.slow else []) for each in CASES]
)
def test_what_happens_is_what_the_rules_and_the_matrices_say(lab: Lab, tmp_path: Path, case: Case) -> None:
    if is_known(case):
        pytest.skip("measured before")
    happened, expected, told = lab.run(case, tmp_path)
    assert happened == (expected.conflict or ""), told
    found = cell_of(case)
    if found:
        cell, overlapping = found
        outcome = cell.overlapping if overlapping else cell.separate
        assert happened == (outcome.conflict or ""), f"{outcome} in the matrix"
    remember(case, happened)


def test_identity_marks_spoil_what_is_free_without_them(lab: Lab, tmp_path: Path) -> None:
    happened, expected, told = lab.run(
        Case("identity", "both", "update"), tmp_path, all_committed=[APPEND_B, VECTORS_ON]
    )
    assert happened == expected.conflict == Conflict.METADATA_CHANGED, told


def test_one_idempotent_write_twice_at_once(lake: Lake, spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    first = spark.createDataFrame([(8, "b", 8)], "id BIGINT, p STRING, v BIGINT")
    layout, log = lake.copy("plain", tmp_path / "t"), Log(tmp_path / "t")
    with Writer(spark, lambda session: append_idempotently(session, path)) as writer:
        writer.wait_inside()
        first.write.format("delta").mode("append").option("txnAppId", "q").option("txnVersion", 1).save(path)
        expected = decide_all([log.committed(log.newest())], CURRENT["idempotent"][1](layout, log))
        assert writer.release().condition == expected.conflict == Conflict.TRANSACTION


@pytest.mark.parametrize(
    ("layout", "operation"),
    [
        ("plain", SetProperties((("delta.enableDeletionVectors", "true"),))),
        ("plain", SetProperties((("delta.checkpointPolicy", "v2"), ("owner.team", "x")))),
        ("plain", UnsetProperties(("owner.team",))),
        ("plain", ClusterBy(("v",))),
        ("clustered", ClusterBy(("v",))),
        ("clustered", ClusterBy(())),
        ("vectors", Purge()),
    ],
)
def test_a_statement_commits_what_its_effect_says(
    lake: Lake, spark: Any, tmp_path: Path, layout: str, operation: Operation
) -> None:
    lake.copy(layout, tmp_path / "t")
    table = TableName("", (str(tmp_path / "t"),))
    spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('owner.team' = 'y')")
    basis = basis_of(read_table(table, str(tmp_path / "t")))
    before = Log(tmp_path / "t").newest()
    spark.sql(operation.sql(table))
    (said,) = operation.commits(basis)
    (made,) = [
        Log(tmp_path / "t").committed(version) for version in range(before + 1, Log(tmp_path / "t").newest() + 1)
    ]
    assert (said.kind, said.domains, said.blind) == (made.kind, made.domains, made.blind)
    assert (bool(said.added), bool(said.removed)) == (bool(made.added), bool(made.removed))
    assert set(said.protocol.adds if said.protocol else ()) == set(made.protocol.adds if made.protocol else ())
    assert (said.metadata is None) == (made.metadata is None)
    if said.metadata and made.metadata:
        assert said.metadata.sets == made.metadata.sets
        assert said.metadata.removes == made.metadata.removes


def test_row_tracking_on_commits_what_its_effect_says(lake: Lake, spark: Any, tmp_path: Path) -> None:
    lake.copy("plain", tmp_path / "t")
    table, log = TableName("", (str(tmp_path / "t"),)), Log(tmp_path / "t")
    basis, before = basis_of(read_table(table, str(tmp_path / "t"))), log.newest()
    operation = SetProperties((("delta.enableRowTracking", "true"),))
    spark.sql(operation.sql(table))
    made = [log.committed(version) for version in range(before + 1, log.newest() + 1)]
    said = operation.commits(basis)
    assert [committed.kind for committed in said] == [committed.kind for committed in made]
    assert [committed.metadata and committed.metadata.tag for committed in made] == [None, None, "row tracking"]
    assert said[-1].metadata is not None
    assert made[-1].metadata is not None
    keys = {key for key, _ in said[-1].metadata.sets}
    assert keys == {key for key, _ in made[-1].metadata.sets}
