"""Tables that are rewritten as a copy beside the live table, on real Delta: what is kept, and what may happen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest
from deltalake import DeltaTable

import tablectl.commands.run_plan
from tablectl.applying.events import RunEvent
from tablectl.commands.run_plan import Control
from tablectl.delta.names import parse_table
from tablectl.engine.spark import wrap_spark
from tablectl.engine.table_copy import DriverTableCopy
from tablectl.log.reader import read_table
from tablectl.model.run_report import RunOutcome
from tests.scenarios.test_repartition import last, metadata, rich, rows

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "kind", ["path", pytest.param("external", marks=pytest.mark.slow), pytest.param("managed", marks=pytest.mark.slow)]
)
def test_a_copied_table_keeps_all_that_it_had(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], log: Any, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "orders"
    name = f"delta.`{path}`" if kind == "path" else f"default.copied_{kind}"
    rich(spark, name, f"LOCATION '{path}'" if kind == "external" else "")
    if kind == "managed":
        path = Path(wrap_spark(spark).location(parse_table(name)).removeprefix("file:"))
    before, held = metadata(log(path)), rows(spark, name)
    protocol = last(log(path), "protocol")
    for policy, columns in (("[day, year]", ["day", "year"]), ("none", [])):
        version = read_table(parse_table(f"delta.`{path}`"), str(path)).version
        policies(f"  {name}: {{partitioning: {policy}, rewrite: {{copy: beside}}}}\n")
        applied = cli("apply", "--yes", "--format", "json")
        assert applied.code == 0, applied.out + applied.err
        assert cli("plan", "--detailed-exitcode").code == 0
        live = read_table(parse_table(f"delta.`{path}`"), str(path))
        assert (live.version, live.partition_columns) == (version + 1, tuple(columns))
        assert metadata(log(path)) == {**before, "partitionColumns": columns}
        assert (last(log(path), "protocol"), rows(spark, name)) == (protocol, held)
        assert "tablectl" in last(log(path), "commitInfo")["userMetadata"]
    spark.sql(f"INSERT INTO {name} (amount, day) VALUES (7, DATE'2030-01-01')")
    new = spark.sql(f"SELECT id, year, name FROM {name} WHERE amount = 7 AND day = DATE'2030-01-01'").collect()
    assert [(row.year, row.name) for row in new] == [(2030, "x")]
    assert spark.sql(f"SELECT count(DISTINCT id) = count(id) FROM {name}").collect()[0][0]
    with pytest.raises(Exception, match="positive"):
        spark.sql(f"INSERT INTO {name} (amount) VALUES (-1)")
    assert not list(path.glob("_tablectl/copy/*"))
    if kind != "path":
        spark.sql(f"DROP TABLE {name}")


def small(spark: Any, path: Path) -> str:
    """Four files, each with all days; deletion vectors and the change data feed are on."""
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, day STRING, v DOUBLE) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    nan = "CASE WHEN id % 5 = 0 THEN double('NaN') WHEN id % 7 = 0 THEN NULL ELSE id END"
    for start in range(0, 400, 100):
        spark.sql(f"INSERT INTO {name} SELECT id, concat('d', id % 3), {nan} FROM range({start}, {start + 100}, 1, 1)")
    spark.sql(f"INSERT INTO {name} SELECT 1000, 'd1', NULL FROM range(3)")
    return name


def declared(name: str) -> str:
    return f"  {name}: {{partitioning: [day], rewrite: {{copy: beside}}}}\n"


def test_what_writers_do_meanwhile_is_in_the_table(
    spark: Any,
    cli: Callable[..., Any],
    policies: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = small(spark, tmp_path / "t")
    policies(declared(name))
    steps: list[str] = []
    held: list[list[Any]] = []
    commit = DriverTableCopy.commit

    def notify(event: RunEvent) -> None:
        steps.append(event.step)
        if event.step == "copy" and steps.count("copy") == 1:
            spark.sql(f"INSERT INTO {name} VALUES (2000, 'd9', 1)")
            spark.sql(f"UPDATE {name} SET v = -1 WHERE id = 50")
            spark.sql(f"DELETE FROM {name} WHERE id = 51")
            spark.sql(
                f"MERGE INTO {name} t USING (SELECT id FROM range(90, 110)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = 7"
            )
        if event.step == "before closed-overwrite":
            spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 5")
            spark.sql(f"OPTIMIZE {name}")
            spark.sql(f"DELETE FROM {name} WHERE id % 100 = 3")

    def beaten(self: DriverTableCopy) -> int:
        if not held:  # a writer without a guard commits after the copy has followed it
            spark.sql(f"INSERT INTO {name} VALUES (3000, NULL, 2)")
            held.append(rows(spark, name))
        return commit(self)

    monkeypatch.setattr(DriverTableCopy, "commit", beaten)
    report = tablectl.apply(spark=spark, control=Control(notify=notify))
    (run,) = report.tables
    assert (run.outcome, report.exit_code, run.message) == (RunOutcome.APPLIED, 0, "")
    assert held == [rows(spark, name)]
    assert spark.sql(f"DESCRIBE DETAIL {name}").collect()[0].partitionColumns == ["day"]
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE day = 'd1' AND id = 1000").collect()[0][0] == 3
    # The copy was compared part by part: nothing is left to compare behind the gate.
    assert "compare" not in steps


def test_columns_that_change_meanwhile_are_followed(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path
) -> None:
    name = small(spark, tmp_path / "t")
    policies(declared(name))
    done: list[str] = []

    def notify(event: RunEvent) -> None:
        if event.step == "copy" and not done:
            spark.sql(f"ALTER TABLE {name} ADD COLUMN late STRING")
            spark.sql(f"INSERT INTO {name} VALUES (99, 'd1', 1, 'mine')")
            done.append("added")

    (run,) = tablectl.apply(spark=spark, control=Control(notify=notify)).tables
    assert (run.outcome, run.message) == (RunOutcome.APPLIED, "")
    assert spark.sql(f"SELECT late FROM {name} WHERE id = 99 AND v = 1 AND late IS NOT NULL").collect()[0][0] == "mine"
    assert spark.table(name).count() == 404


def test_a_stopped_copy_goes_on_and_one_whose_files_were_vacuumed_is_made_again(
    spark: Any,
    cli: Callable[..., Any],
    policies: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "t"
    name = small(spark, path)
    policies(declared(name))
    written: list[int] = []
    write = DriverTableCopy.write

    def counted(self: DriverTableCopy, keys: Any) -> Any:
        written.append(len(keys))
        return write(self, keys)

    monkeypatch.setattr(DriverTableCopy, "write", counted)

    def stopped() -> RunOutcome:
        stop = Flag()

        def notify(event: RunEvent) -> None:
            if event.step == "gate closed":
                stop.set()

        (run,) = tablectl.apply(spark=spark, control=Control(notify=notify, stop=stop)).tables
        return run.outcome

    held = rows(spark, name)
    assert stopped() is RunOutcome.INTERRUPTED
    files = sum(written)
    assert files == len(spark.table(name).inputFiles())
    assert rows(spark, name) == held
    assert (stopped(), sum(written)) == (RunOutcome.INTERRUPTED, files)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        spark.sql(f"VACUUM {name} RETAIN 0 HOURS")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    (run,) = tablectl.apply(spark=spark).tables
    assert (run.outcome, sum(written)) == (RunOutcome.APPLIED, 2 * files)
    assert rows(spark, name) == held


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("before the run", "the table holds 1 empty texts in `day`, which Delta stores as NULL"),
        pytest.param(
            "copy",
            "the copy is not what the table holds: empty texts in `day`, which Delta stores as NULL",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_empty_text_in_a_partition_column_is_refused_and_nothing_is_committed(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path, step: str, message: str
) -> None:
    name = small(spark, tmp_path / "t")
    policies(declared(name))
    written: list[int] = []

    def at(now: str) -> None:
        if now == step and not written:
            spark.sql(f"INSERT INTO {name} VALUES (1, '', 1)")
            written.append(read_table(parse_table(name), str(tmp_path / "t")).version)

    at("before the run")
    (run,) = tablectl.apply(spark=spark, control=Control(notify=lambda event: at(event.step))).tables
    assert run.outcome is RunOutcome.REFUSED
    assert run.message.startswith(message)
    assert [read_table(parse_table(name), str(tmp_path / "t")).version] == written


@pytest.mark.parametrize(
    ("properties", "verbs"),
    [
        pytest.param("{owner.team: web}", ["WRITE", "SET TBLPROPERTIES"], marks=pytest.mark.slow),
        ("{delta.appendOnly: null}", ["UNSET TBLPROPERTIES", "WRITE"]),
    ],
)
def test_guarded_writers_go_on_while_a_table_is_copied_whatever_else_its_plan_changes(
    spark: Any,
    cli: Callable[..., Any],
    policies: Callable[[str], None],
    tmp_path: Path,
    properties: str,
    verbs: list[str],
) -> None:
    path = tmp_path / "t"
    name = small(spark, path)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = '{'null' in properties}')")
    version = read_table(parse_table(name), str(path)).version
    policies(f"  {name}: {{partitioning: [day], rewrite: {{copy: beside}}, properties: {properties}}}\n")
    written: list[str] = []

    def notify(event: RunEvent) -> None:
        if event.step == "copy":
            with tablectl.guard(spark, name, "append"):  # fails at once if the gate is shut
                spark.sql(f"INSERT INTO {name} VALUES (7, 'd1', 1)")
            written.append(event.step)

    (run,) = tablectl.apply(spark=spark, control=Control(notify=notify)).tables
    assert (run.outcome, run.message) == (RunOutcome.APPLIED, "")
    assert written
    made = [row.operation for row in spark.sql(f"DESCRIBE HISTORY {name}").collect() if row.version > version]
    assert list(dict.fromkeys(reversed(made))) == verbs  # the writes are those of the writer and the copy
    assert read_table(parse_table(name), str(path)).partition_columns == ("day",)


def test_a_clustered_table_becomes_partitioned(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path
) -> None:
    path = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, day INT) USING delta CLUSTER BY (id)")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT id, id % 3 FROM range(30)")
    policies(f"  delta.`{path}`: {{clustering: none, partitioning: [day], rewrite: {{copy: beside}}}}\n")
    (run,) = tablectl.apply(spark=spark).tables
    assert (run.outcome, run.message) == (RunOutcome.APPLIED, "")
    live = read_table(parse_table(f"delta.`{path}`"), str(path))
    assert (live.partition_columns, live.clustering) == (("day",), ())
    assert DeltaTable(str(path)).metadata().partition_columns == ["day"]
    assert DeltaTable(str(path)).to_pyarrow_table().num_rows == 30


@pytest.mark.slow
def test_a_copy_that_fails_at_any_step_leaves_the_table_as_it_was_and_goes_on(
    spark: Any,
    cli: Callable[..., Any],
    policies: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "t"
    name = small(spark, path)
    steps = ("follow", "write", "compare", "use", "prepare", "commit")
    real = {step: getattr(DriverTableCopy, step) for step in steps}
    calls: list[str] = []
    fails_at = ("", 0)

    def step_of(step: str) -> Callable[..., Any]:
        def call(self: DriverTableCopy, *args: Any) -> Any:
            calls.append(step)
            if (step, calls.count(step)) == fails_at:
                raise RuntimeError(f"the driver died in {step}")
            return real[step](self, *args)

        return call

    for step in steps:
        monkeypatch.setattr(DriverTableCopy, step, step_of(step))
    # The first of each, and those behind the closed gate.
    points = [(step, 1) for step in steps] + [("follow", 2), ("follow", 3)]
    for number, point in enumerate(points):
        columns: tuple[str, ...] = ("day",) if number % 2 == 0 else ()
        policies(f"  {name}: {{partitioning: {'[day]' if columns else 'none'}, rewrite: {{copy: beside}}}}\n")
        spark.sql(f"INSERT INTO {name} VALUES ({5000 + number}, 'd1', 1)")
        held, version = rows(spark, name), read_table(parse_table(name), str(path)).version
        calls.clear()
        fails_at = point
        (failed,) = tablectl.apply(spark=spark).tables
        assert failed.outcome is RunOutcome.FAILED, point
        assert "the driver died" in failed.message
        live = read_table(parse_table(name), str(path))
        assert (live.version, rows(spark, name)) == (version, held), point
        calls.clear()
        fails_at = ("", 0)
        spark.sql(f"DELETE FROM {name} WHERE id = {5000 + number}")
        held = rows(spark, name)
        (run,) = tablectl.apply(spark=spark).tables
        assert (run.outcome, run.message) == (RunOutcome.APPLIED, ""), point
        assert rows(spark, name) == held, point
        assert read_table(parse_table(name), str(path)).partition_columns == columns


def test_commits_that_were_cleaned_up_meanwhile_are_found_in_the_whole_table(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path
) -> None:
    name = small(spark, tmp_path / "t")
    policies(declared(name))
    log = tmp_path / "t" / "_delta_log"
    cleaned: list[Path] = []
    held: list[Any] = []

    def notify(event: RunEvent) -> None:
        if event.step == "copy" and not cleaned:
            spark.sql(f"INSERT INTO {name} VALUES (99, 'd1', 1)")
            spark.sql(f"DELETE FROM {name} WHERE id = 51")
            spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
            spark.sql(f"UPDATE {name} SET v = -1 WHERE id = 50")
            checkpoint = max(log.glob("*.checkpoint*.parquet"))
            cleaned.extend(each for each in log.glob("*.json") if each.name[:20] < checkpoint.name[:20])
            for each in cleaned:
                each.unlink()
                each.with_name(f".{each.name}.crc").unlink(missing_ok=True)
            held.append(rows(spark, name))

    (run,) = tablectl.apply(spark=spark, control=Control(notify=notify)).tables
    assert (run.outcome, run.message) == (RunOutcome.APPLIED, "")
    assert len(cleaned) > 5
    assert [rows(spark, name)] == held
    assert spark.sql(f"DESCRIBE DETAIL {name}").collect()[0].partitionColumns == ["day"]


def test_a_stream_ends_at_the_cut_over_and_goes_on_with_a_new_checkpoint(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path
) -> None:
    table, sink = tmp_path / "t", tmp_path / "sink"
    name = small(spark, table)

    def batch(checkpoint: str, **options: Any) -> None:
        """The query reads what there is, and ends."""
        source = spark.readStream.format("delta").options(**options).load(str(table))
        query = source.writeStream.format("delta").option("checkpointLocation", str(tmp_path / checkpoint))
        query.trigger(availableNow=True).start(str(sink)).awaitTermination()

    batch("old")
    before = spark.table(f"delta.`{sink}`").count()
    policies(declared(name))
    (run,) = tablectl.apply(spark=spark).tables
    assert run.outcome is RunOutcome.APPLIED
    with pytest.raises(Exception, match=r"DELTA_SOURCE_TABLE_IGNORE_CHANGES|DELTA_SCHEMA_CHANGED"):
        batch("old")
    assert spark.table(f"delta.`{sink}`").count() == before
    spark.sql(f"INSERT INTO {name} VALUES (99, 'd1', 1)")
    version = read_table(parse_table(name), str(table)).version
    batch("new", startingVersion=version)
    assert spark.table(f"delta.`{sink}`").count() == before + 1
