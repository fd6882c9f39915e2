"""What strangers do between two steps of a copy beside a table, on real Delta (tests/applying has every step)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event as Flag
from typing import Any
from urllib.parse import unquote

import pytest
from deltalake import DeltaTable

import tablectl.commands.run_plan
from tablectl.applying import copy_beside
from tablectl.applying.events import RunEvent
from tablectl.commands.run_plan import Control
from tablectl.delta.names import parse_table
from tablectl.engine.table_copy import DriverTableCopy
from tablectl.log.reader import read_table
from tablectl.model.run_report import RunOutcome, TableRun
from tests.scenarios.test_repartition import rows

pytestmark = pytest.mark.spark

COPY = "{copy: beside}"


def four_files(spark: Any, path: Path, more: str = "") -> str:
    name = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, d INT) USING delta {more}")
    for start in range(0, 40, 10):
        spark.sql(f"INSERT INTO {name} SELECT id, CAST(id % 2 AS INT) FROM range({start}, {start + 10}, 1, 1)")
    return name


def applied(spark: Any, notify: Callable[[RunEvent], None] = lambda _event: None, stop: Flag | None = None) -> TableRun:
    control = Control(notify=notify, stop=stop) if stop else Control(notify=notify)
    (run,) = tablectl.apply(spark=spark, control=control).tables
    return run


def live_files(name: str, path: Path) -> list[Path]:
    """By the log, with another client."""
    return [path / unquote(each) for each in DeltaTable(str(path)).get_add_actions().column("path").to_pylist()]


def columns(name: str, path: Path) -> tuple[str, ...]:
    return read_table(parse_table(name), str(path)).partition_columns


def age(path: Path, adds: Iterable[str], days: float = 8) -> None:
    """Make files look as if they were written some days ago."""
    old = time.time() - days * 86_400
    for add in adds:
        file = path / unquote(json.loads(add)["add"]["path"])
        if file.exists():
            os.utime(file, (old, old))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The new files of each part; a part has at most two files of the table."""
    monkeypatch.setattr(copy_beside, "_MOST_FILES", 2)
    made: list[tuple[str, ...]] = []
    write = DriverTableCopy.write

    def noted(self: DriverTableCopy, keys: Any) -> Any:
        made.append(write(self, keys))
        return made[-1]

    monkeypatch.setattr(DriverTableCopy, "write", noted)
    return made


def test_a_copy_that_takes_longer_than_a_week_with_a_vacuum_every_day_loses_no_file(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path, written: list[tuple[str, ...]]
) -> None:
    path = tmp_path / "t"
    name = four_files(spark, path)
    policies(f"  {name}: {{partitioning: [d], rewrite: {COPY}}}\n")
    held = rows(spark, name)
    steps: list[str] = []

    def notify(event: RunEvent) -> None:
        steps.append(event.step)
        if event.step == "gate closed":  # the first part is old while writers finish
            age(path, written[0])
            spark.sql(f"VACUUM {name}")
        if event.step == "before closed-overwrite":  # the second one behind the gate
            age(path, written[1])
            spark.sql(f"VACUUM {name}")

    run = applied(spark, notify)
    assert (run.outcome, run.message) == (RunOutcome.APPLIED, "")
    assert len(written) == 4, "both parts were made again"
    assert rows(spark, name) == held
    assert [each for each in live_files(name, path) if not each.exists()] == []
    assert columns(name, path) == ("d",)


@pytest.mark.slow
def test_a_copy_that_goes_on_after_a_week_takes_no_old_part(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path, written: list[tuple[str, ...]]
) -> None:
    path = tmp_path / "t"
    name = four_files(spark, path)
    policies(f"  {name}: {{partitioning: [d], rewrite: {COPY}}}\n")
    held, stop = rows(spark, name), Flag()
    run = applied(spark, lambda event: stop.set() if event.step == "gate closed" else None, stop)
    assert run.outcome is RunOutcome.INTERRUPTED
    for part in written:
        age(path, part)
    doomed = [add for part in written for add in part]
    commit = DriverTableCopy.commit

    def commit_and_vacuum(self: DriverTableCopy) -> int:
        """A VACUUM that listed the folder before the copy went on deletes what was old then."""
        version = commit(self)
        for add in doomed:
            (path / unquote(json.loads(add)["add"]["path"])).unlink(missing_ok=True)
        return version

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DriverTableCopy, "commit", commit_and_vacuum)
        run = applied(spark)
    assert (run.outcome, run.message) == (RunOutcome.APPLIED, "")
    assert rows(spark, name) == held
    assert [each for each in live_files(name, path) if not each.exists()] == []


def test_files_that_are_deleted_at_the_moment_of_the_commit_are_written_again(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path, written: list[tuple[str, ...]]
) -> None:
    path = tmp_path / "t"
    name = four_files(spark, path, "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    policies(f"  {name}: {{partitioning: [d], rewrite: {COPY}}}\n")
    held, before = rows(spark, name), read_table(parse_table(name), str(path)).version
    commit = DriverTableCopy.commit

    def commit_and_vacuum(self: DriverTableCopy) -> int:
        version = commit(self)
        (path / unquote(json.loads(written[0][0])["add"]["path"])).unlink()
        return version

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DriverTableCopy, "commit", commit_and_vacuum)
        run = applied(spark)
    assert run.outcome is RunOutcome.UNVERIFIED
    assert run.message == (
        f"a VACUUM has deleted files of version {before + 1} at the moment of its commit; their rows were written "
        f"again from version {before}, as version {before + 2}"
    )
    assert f"RESTORE TABLE {parse_table(name).sql} TO VERSION AS OF {before}" in run.hint
    assert rows(spark, name) == held
    assert [each for each in live_files(name, path) if not each.exists()] == []
    changes = spark.sql(f"SELECT count(*) FROM table_changes_by_path('{path}', {before + 2})").collect()
    assert changes[0][0] == 0, "a stream of changes does not see the rows again"
    spark.sql(f"INSERT INTO {name} VALUES (99, 1)")
    assert spark.table(name).count() == len(held) + 1


def test_readers_do_not_skip_files_by_the_statistics_of_a_record_that_a_stranger_wrote(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path, written: list[tuple[str, ...]]
) -> None:
    path = tmp_path / "t"
    name = four_files(spark, path)
    policies(f"  {name}: {{partitioning: [d], rewrite: {COPY}}}\n")
    stop = Flag()
    run = applied(spark, lambda event: stop.set() if event.step == "gate closed" else None, stop)
    assert run.outcome is RunOutcome.INTERRUPTED
    for record in path.glob("_tablectl/copy/*.json"):
        part = json.loads(record.read_text())
        adds = [json.loads(each) for each in part["adds"]]
        for each in adds:
            stats = json.loads(each["add"]["stats"])
            each["add"]["stats"] = json.dumps({**stats, "numRecords": 1, "maxValues": {"id": -1}})
        record.write_text(json.dumps({**part, "adds": [json.dumps(each) for each in adds]}))
    made = len(written)
    assert applied(spark).outcome is RunOutcome.APPLIED
    assert len(written) == made, "the parts were taken"
    assert spark.sql(f"SELECT id FROM {name} WHERE id = 5").count() == 1
    assert DeltaTable(str(path)).get_add_actions(flatten=True).column("max.id").to_pylist() != [-1] * 4
    assert sum(DeltaTable(str(path)).get_add_actions().column("num_records").to_pylist()) == 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("SET TBLPROPERTIES ('delta.appendOnly' = 'true')", "the table is append-only"),
        ("SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", "row tracking is on"),
        ("CLUSTER BY (x)", "the table is clustered by x"),
        ("DROP COLUMN d", "column d is gone"),
    ],
)
def test_what_changes_behind_the_gate_is_decided_again(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path, change: str, why: str
) -> None:
    path = tmp_path / "t"
    name = f"delta.`{path}`"
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" if "DROP" in change else ""
    spark.sql(f"CREATE TABLE {name} (id BIGINT, d INT, x STRING) USING delta CLUSTER BY (id) {mapped}")
    spark.sql(f"ALTER TABLE {name} CLUSTER BY NONE")
    spark.sql(f"INSERT INTO {name} SELECT id, CAST(id % 2 AS INT), 'x' FROM range(10)")
    policies(f"  {name}: {{partitioning: [d], rewrite: {COPY}}}\n")
    done: list[str] = []

    def notify(event: RunEvent) -> None:
        if event.step == "before closed-overwrite" and not done:
            done.append(event.step)
            spark.sql(f"ALTER TABLE {name} {change}")

    run = applied(spark, notify)
    assert run.outcome in {RunOutcome.REFUSED, RunOutcome.STALE}
    assert why in run.message
    assert columns(name, path) == ()
    assert spark.table(name).count() == 10


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [("[d, region]", "[d]"), ("[d]", "[d, region]")])
def test_a_part_of_other_partition_columns_is_not_taken(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path, first: str, then: str
) -> None:
    path = tmp_path / "t"
    name = four_files(spark, path)
    spark.sql(f"ALTER TABLE {name} ADD COLUMN region INT")
    policies(f"  {name}: {{partitioning: {first}, rewrite: {COPY}}}\n")
    stop = Flag()
    run = applied(spark, lambda event: stop.set() if event.step == "gate closed" else None, stop)
    assert run.outcome is RunOutcome.INTERRUPTED
    spark.sql(f"INSERT INTO {name} VALUES (50, 1, 7)")
    held = rows(spark, name)
    policies(f"  {name}: {{partitioning: {then}, rewrite: {COPY}}}\n")
    assert applied(spark).outcome is RunOutcome.APPLIED
    assert rows(spark, name) == held
    wanted = list(columns(name, path))
    assert DeltaTable(str(path)).metadata().partition_columns == wanted
    assert DeltaTable(str(path)).to_pyarrow_table().num_rows == 41
    spark.sql(f"DELETE FROM {name} WHERE region = 7")
    assert spark.table(name).count() == 40


@pytest.mark.parametrize("rewrite", [COPY, pytest.param("allowed", marks=pytest.mark.slow)])
def test_rows_that_no_rewrite_keeps_are_refused_before_the_gate_shuts(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path, rewrite: str
) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    path = tmp_path / "t"
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (ts TIMESTAMP, s STRING, day DATE GENERATED ALWAYS AS (CAST(ts AS DATE))) USING delta"
    )
    steps: list[str] = []
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        long = "CONCAT(REPEAT('x', 250), ':=')"
        for value in ("''", "'__HIVE_DEFAULT_PARTITION__'", long, "REPEAT('x', 253)", "NULL"):
            spark.sql(f"INSERT INTO {name} (ts, s) SELECT TIMESTAMP'2026-01-02 03:00:00', {value}")
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        policies(f"  {name}: {{partitioning: [s], rewrite: {rewrite}}}\n")
        run = applied(spark, lambda event: steps.append(event.step))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert run.outcome is RunOutcome.REFUSED
    assert run.message == (
        "the table holds 1 empty texts in `s`, which Delta stores as NULL in a partition column; 1 texts "
        "__HIVE_DEFAULT_PARTITION__ in `s`, which Delta stores as NULL in a partition column; 1 texts in `s` that are "
        "too long for the name of a folder; 5 values in the generated column `day` other than its expression gives in "
        "this session's time zone, which Delta refuses"
    )
    assert "gate closed" not in steps
    assert columns(name, path) == ()


@pytest.mark.slow
@pytest.mark.parametrize("rewrite", [COPY, "allowed"])
def test_a_text_that_just_fits_into_the_name_of_a_folder_is_kept(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path, rewrite: str
) -> None:
    path = tmp_path / "t"
    name = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, s STRING) USING delta")
    spark.sql(f"INSERT INTO {name} VALUES (1, REPEAT('x', 253)), (2, CONCAT(REPEAT('é', 125), ':')), (3, NULL)")
    held = rows(spark, name)
    policies(f"  {name}: {{partitioning: [s], rewrite: {rewrite}}}\n")
    run = applied(spark)
    assert (run.outcome, run.message, rows(spark, name)) == (RunOutcome.APPLIED, "", held)
