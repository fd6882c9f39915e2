"""``tablectl upkeep`` on real Delta: what is due is done once, no guarded writer fails, and a killed run is continued.

No one sleeps: a writer is held inside its transaction, and a killed run is waited out on a clock that passes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.applying.events import RunEvent
from tablectl.commands.run_plan import Control
from tablectl.log.reader import read_commits
from tests.interleaving import TIMEOUT, Writer
from tests.scenarios.conftest import operations
from tests.scenarios.test_guarded_writers import Apply, Lake, guarded, merge, told_to_wait, update
from tests.scenarios.test_kill import PassingClock

pytestmark = pytest.mark.spark

FILES = 40
LONG_AGO = 30 * 86_400
BOTH = "upkeep: {optimize: {small_files: 30%, target: 1 MB}, vacuum: {every: 7 days}}"


@dataclass
class Aged(Lake):
    """A table of many small files, which is a month old by its log, and a file that a failed write left long ago."""

    def make(self) -> None:
        rows = self.spark.range(0, FILES, 1, FILES).selectExpr("id", "id AS v")
        rows.write.format("delta").save(self.place)
        first = Path(self.place) / "_delta_log" / f"{0:020}.json"
        actions = [json.loads(line) for line in first.read_text(encoding="utf-8").splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] -= LONG_AGO * 1000
        first.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
        first.with_name(f".{first.name}.crc").unlink(missing_ok=True)
        self.left.write_bytes(b"of a write that failed")
        then = first.stat().st_mtime - LONG_AGO
        os.utime(self.left, (then, then))

    @property
    def left(self) -> Path:
        return Path(self.place) / "part-00000-left.parquet"

    @property
    def files(self) -> int:
        return len(self.spark.read.format("delta").load(self.place).inputFiles())


@pytest.fixture
def aged(spark: Any, tmp_path: Path) -> Aged:
    made = Aged(spark, tmp_path)
    made.make()
    made.declare(f" {{{BOTH}}}")
    (tmp_path / "tablectl.yaml").write_text("window: {upkeep: 30 minutes}\n", encoding="utf-8")
    return made


def test_what_is_due_is_listed_done_once_and_not_due_again(
    aged: Aged, cli: Callable[..., Any], log: Callable[[Path], list[dict[str, Any]]]
) -> None:
    [row] = cli("upkeep", "--list-files", "--format", "json").json()["tables"]
    assert (row["state"], [each["kind"] for each in row["tasks"] if each["due"]]) == ("due", ["optimize", "vacuum"])
    assert (row["files"], row["small_files"]) == (FILES, FILES)

    ran = cli("upkeep", "--apply", "--format", "json")
    assert ran.code == 0, ran.err
    [table] = ran.json()["tables"]
    assert (table["outcome"], table["message"]) == ("applied", "")
    assert operations(log(Path(aged.place))[1:]) == ["OPTIMIZE", "VACUUM START", "VACUUM END"]
    assert table["notes"][0].startswith(f"OPTIMIZE: {FILES} files (")
    assert "became 1, in 1 slice" in table["notes"][0]
    assert table["notes"][1].startswith("VACUUM: DRY RUN named 1 files")
    assert not aged.left.exists()
    assert (aged.files, aged.rows()) == (1, {number: number for number in range(FILES)})

    [row] = cli("upkeep", "--format", "json").json()["tables"]
    assert (row["state"], [each["due"] for each in row["tasks"]]) == ("not due", [False, False])
    assert cli("upkeep", "--apply").code == 0
    assert len(log(Path(aged.place))) == 4
    run = cli("runs", "--format", "json").json()["runs"][0]["stamp"]["run"]
    assert "nothing to undo" in cli("undo", run).err


def test_guarded_writes_before_and_during_optimize_do_not_fail(aged: Aged) -> None:
    aged.declare(" {upkeep: {optimize: {small_files: 30%, target: 1 MB}}}")
    before, during = (Writer(aged.spark, guarded(write, aged.place)) for write in (merge, update))
    with before:
        before.wait_inside()
        run = Apply(aged, tablectl.run_upkeep)
        run.wait_for("draining")
        with told_to_wait() as waiting, during:
            assert waiting.wait(TIMEOUT)
            assert before.release().error is None
            report = run.report()
            assert (report.exit_code, report.tables[0].message) == (0, ""), report
            during.wait_inside()
            assert during.release().error is None
    assert [each.operation for each in read_commits(aged.place, after=0)] == ["UPDATE", "OPTIMIZE", "MERGE"]
    assert aged.rows() == {**{number: number for number in range(FILES)}, 3: 177, 9: 90}


@pytest.mark.slow
def test_a_cron_job_next_to_the_same_write_fails_it(aged: Aged) -> None:
    """What upkeep is for: without a gate, the write loses."""
    with Writer(aged.spark, lambda session: merge(session, aged.place)) as writer:
        writer.wait_inside()
        aged.spark.sql(f"OPTIMIZE delta.`{aged.place}`")
        assert writer.release().condition.startswith("DELTA_CONCURRENT_")


def test_vacuum_waits_for_a_stream_and_is_refused_for_a_shallow_clone(aged: Aged, cli: Callable[..., Any]) -> None:
    spark, folder, place = aged.spark, aged.folder, aged.place
    rows = spark.readStream.format("delta").load(place)
    query = rows.writeStream.format("delta").option("checkpointLocation", str(folder / "seen"))
    query.trigger(availableNow=True).start(str(folder / "sink")).awaitTermination()
    spark.sql(
        f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.deletedFileRetentionDuration'='interval 0 hours')"
    )
    spark.sql(f"INSERT INTO delta.`{place}` VALUES (99, 99)")
    aged.declare(f" {{upkeep: {{vacuum: 7 days}}, streams: {{fraud: '{folder / 'seen'}'}}}}")
    [table] = cli("upkeep", "--apply", "--format", "json").json()["tables"]
    assert table["outcome"] == "waiting"
    assert "a stream may still need files that VACUUM deletes: fraud" in table["message"]

    spark.sql(f"CREATE TABLE delta.`{folder / 'clone'}` SHALLOW CLONE delta.`{place}`")
    aged.declare(f" {{upkeep: {{vacuum: 7 days}}}}\n  delta.`{folder / 'clone'}`: {{}}")
    ran = cli("upkeep", "--apply", "--format", "json")
    [table] = ran.json()["tables"]
    assert (ran.code, table["outcome"]) == (3, "refused")
    assert f"shallow clones read files of this table: delta.`{folder / 'clone'}`" in table["message"]
    assert aged.left.exists()


@pytest.mark.slow
def test_a_guarded_restore_waits_while_vacuum_deletes_and_an_append_does_not(aged: Aged) -> None:
    """Asked in the middle: between the last look and the deletion."""
    entered = dict[str, bool]()

    def tries(event: RunEvent) -> None:
        if event.step != "before upkeep.vacuum":
            return
        for mode in ("append", "any"):
            try:
                with ThreadPoolExecutor(1) as pool:  # not a part of the apply
                    pool.submit(enter, mode).result()
                entered[mode] = True
            except tablectl.GuardTimeout:
                entered[mode] = False

    def enter(mode: Any) -> None:
        with tablectl.guard(None, aged.place, mode, timeout=2):
            pass

    run = tablectl.run_upkeep(directory=aged.folder, spark=aged.spark, control=Control(notify=tries))
    assert (run.exit_code, entered) == (0, {"append": True, "any": False}), run
    with tablectl.guard(None, aged.place, "any", timeout=2):
        aged.spark.sql(f"RESTORE delta.`{aged.place}` TO VERSION AS OF 0")
    assert aged.rows() == {number: number for number in range(FILES)}


@pytest.mark.slow
def test_every_kind_of_shallow_clone_holds_the_vacuum_back(spark: Any, tmp_path: Path) -> None:
    """Each clone lies in a folder of its own, and only its policy leads to it."""
    lake, source = tmp_path / "lake", tmp_path / "lake" / "a b" / "s%41"
    spark.sql(
        f"CREATE TABLE delta.`{source}` (id BIGINT, day INT) USING delta PARTITIONED BY (day) "
        "TBLPROPERTIES ('delta.enableDeletionVectors'='true', "
        "'delta.deletedFileRetentionDuration'='interval 0 hours')"
    )
    spark.sql(f"INSERT INTO delta.`{source}` SELECT /*+ COALESCE(1) */ id, 1 FROM range(50)")
    spark.sql("CREATE DATABASE IF NOT EXISTS cdb")
    spark.sql("DROP TABLE IF EXISTS cdb.ext")
    spark.sql(f"CREATE TABLE cdb.ext USING delta LOCATION '{source}'")
    (tmp_path / "link").symlink_to(source)
    made = {
        "by path": f"delta.`{source}`",
        "by name": "cdb.ext",
        "of a version": f"delta.`{source}` VERSION AS OF 1",
        "through a link": f"delta.`{tmp_path}/link`",
    }
    for kind, where in made.items():
        spark.sql(f"CREATE TABLE delta.`{lake}/{kind}/t` SHALLOW CLONE {where}")
    spark.sql(f"DELETE FROM delta.`{lake}/by path/t` WHERE id = 7")  # a vector in the clone's own folder
    spark.sql(f"CREATE TABLE delta.`{lake}/of a clone/t` SHALLOW CLONE delta.`{lake}/by path/t`")
    spark.sql(f"CREATE TABLE delta.`{lake}/over a table/t` (id BIGINT) USING delta")
    spark.sql(f"CREATE OR REPLACE TABLE delta.`{lake}/over a table/t` SHALLOW CLONE delta.`{source}`")
    spark.sql(f"CREATE TABLE delta.`{lake}/cleaned up/t` SHALLOW CLONE delta.`{source}`")
    spark.sql(f"ALTER TABLE delta.`{lake}/cleaned up/t` SET TBLPROPERTIES ('delta.checkpointInterval'='1')")
    spark.sql(f"ALTER TABLE delta.`{lake}/cleaned up/t` SET TBLPROPERTIES ('x'='y')")
    log = lake / "cleaned up" / "t" / "_delta_log"
    for old in (0, 1):
        (log / f"{old:020}.json").unlink()
    spark.sql(f"DELETE FROM delta.`{source}`")
    for commit in (source / "_delta_log").glob("*.json"):
        text = commit.read_text(encoding="utf-8").splitlines()
        infos = [json.loads(line) for line in text]
        for action in infos:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] -= LONG_AGO * 1000
        commit.write_text("".join(json.dumps(action) + "\n" for action in infos), encoding="utf-8")
        commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    (tmp_path / "policies").mkdir()
    (tmp_path / "tablectl.yaml").write_text("policies: policies\n", encoding="utf-8")

    def declare(table: str, clone: str) -> None:
        tables = {f"delta.`{table}`": "{upkeep: {vacuum: 7 days}}", f"delta.`{clone}`": "{}"}
        body = "".join(f"  {name}: {policy}\n" for name, policy in tables.items())
        (tmp_path / "policies" / "p.yaml").write_text(f"version: 1\ntables:\n{body}", encoding="utf-8")

    seen = dict[str, str]()
    kinds = [*made, "of a clone", "over a table", "cleaned up"]
    for kind in kinds:
        declare(str(source), f"{lake}/{kind}/t")
        (row,) = tablectl.upkeep(directory=tmp_path).tables
        seen[kind] = f"{row.state}: {row.reason}"
    told = "shallow clones read files of this table"
    assert seen == {kind: f"refused: {told}: delta.`{lake}/{kind}/t`" for kind in kinds}

    # The vector that the clone of a clone reads lies in the folder of the clone between them.
    spark.sql(f"ALTER TABLE delta.`{lake}/by path/t` SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols'='3')")
    declare(f"{lake}/by path/t", f"{lake}/of a clone/t")
    ran = tablectl.upkeep(directory=tmp_path)
    assert [row.reason for row in ran.tables if row.state == "refused"] in (
        [f"{told}: delta.`{lake}/of a clone/t`"],
        [],  # its log is too young for a VACUUM
    )

    declare(str(source), f"{lake}/by name/t")
    run = tablectl.run_upkeep(directory=tmp_path, spark=spark)
    assert (int(run.exit_code), str(run.tables[0].outcome)) == (3, "refused")
    for kind in kinds:
        rows = spark.read.format("delta").load(f"{lake}/{kind}/t").count()
        assert rows == (49 if kind in {"by path", "of a clone"} else 50), kind


KILLED = """
import os, sys
import tablectl
from tablectl.commands.run_plan import Control

def notify(event):
    if event.step == sys.argv[1]:
        os._exit(9)

tablectl.run_upkeep(control=Control(notify=notify))
"""


@pytest.mark.parametrize(
    ("step", "left"),
    [
        pytest.param("before upkeep.optimize", ["OPTIMIZE", "VACUUM START", "VACUUM END"], marks=pytest.mark.slow),
        ("after upkeep.optimize", ["VACUUM START", "VACUUM END"]),
    ],
)
def test_a_killed_run_is_continued_by_the_same_command(
    aged: Aged, connect_url: str, log: Callable[[Path], list[dict[str, Any]]], step: str, left: list[str]
) -> None:
    settings = f"engine: {{remote: '{connect_url}'}}\nwindow: {{upkeep: 30 minutes}}\n"
    (aged.folder / "tablectl.yaml").write_text(settings, encoding="utf-8")
    script = [sys.executable, "-c", KILLED, step]
    killed = subprocess.run(script, cwd=aged.folder, capture_output=True, text=True, timeout=600, check=False)
    assert killed.returncode == 9, killed.stderr
    done = len(log(Path(aged.place)))

    again = tablectl.run_upkeep(directory=aged.folder, spark=aged.spark, control=Control(clock=PassingClock()))

    assert (again.exit_code, again.tables[0].message) == (0, ""), again
    assert operations(log(Path(aged.place))[done:]) == left
    assert operations(log(Path(aged.place))[1:]) == ["OPTIMIZE", "VACUUM START", "VACUUM END"]
    assert aged.files == 1
