"""Whole runs through a Thrift server: random tables converge, a killed run is finished, an undo takes it back."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.commands.project import Project
from tablectl.commands.run_plan import Control
from tablectl.log.reader import read_commits
from tests.builders import read_path
from tests.scenarios.conftest import Ran
from tests.scenarios.test_kill import KILLED, PassingClock
from tools.workspace_trial import commands_in_a_folder, try_workspace

# `make test-sql-endpoint` runs them: they need minutes.
pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = 40


def layout(draw: random.Random) -> str:
    vectors = draw.choice(["true", "false"])
    properties = f"'delta.enableDeletionVectors' = '{vectors}', 'stray' = 'x', 'kept' = 'as it is'"
    return f"{draw.choice(['', 'CLUSTER BY (id)', 'PARTITIONED BY (day)'])} TBLPROPERTIES ({properties})"


def policy(draw: random.Random, made: str) -> str:
    """A policy that can be taken back: no feature stays without its property."""
    note = draw.choice(["it's", "back\\\\slash", "${env:HOME}", "007", "tick`s"])
    parts = [f'properties: {{owner.note: "{note}", stray: null}}']
    skipping = "[id]" if "PARTITIONED" in made else "[id, day]"  # partition columns have no statistics
    more = ["isolation: Serializable", "retention: {log: 60 days}", f"data_skipping: {skipping}"]
    parts += draw.sample(more, draw.randrange(3))
    if "CLUSTER" in made:
        parts.append(draw.choice(["clustering: [day]", "clustering: [day, id]"]))
    return ", ".join(parts)


def settings_of(table: Path) -> Any:
    live = read_path(str(table))
    return live.properties, live.clustering, live.partition_columns


@pytest.mark.parametrize("tables", [8, pytest.param(TABLES, marks=pytest.mark.slow)])
def test_a_killed_run_over_random_tables_is_finished_and_taken_back(
    spark: Any,
    thrift_server: str,
    cli: Callable[..., Ran],
    policies: Callable[[str], None],
    tmp_path: Path,
    tables: int,
) -> None:
    draw = random.Random(37)
    places = [tmp_path / f"t{each}" for each in range(tables)]
    declared = []
    for place in places:
        made = layout(draw)
        partitioned = made.startswith("PARTITIONED")
        head, _, properties = made.partition("TBLPROPERTIES")
        spark.sql(f"CREATE TABLE delta.`{place}` (id BIGINT, day STRING) USING delta {head} TBLPROPERTIES{properties}")
        assert partitioned == bool(read_path(str(place)).partition_columns)
        declared.append(f"  delta.`{place}`: {{{policy(draw, made)}}}\n")
    policies("".join(declared))
    (tmp_path / "tablectl.yaml").write_text(f"engine: {{thrift: '{thrift_server}'}}\n", encoding="utf-8")
    before = [settings_of(place) for place in places]

    assert cli("plan", "--out", "p.json").code == 0
    script = [sys.executable, "-c", KILLED, "after closed-set"]
    killed = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert killed.returncode == 9, killed.stderr
    again = tablectl.apply(tmp_path / "p.json", directory=tmp_path, control=Control(clock=PassingClock()))
    assert again.exit_code == 0, again
    assert "No changes" in cli("plan").out
    assert all(now != then for now, then in zip(map(settings_of, places), before, strict=True))

    runs = {stamp.run for place in places for each in read_commits(str(place), after=0) if (stamp := each.stamp)}
    assert len(runs) == 2, "the killed run, and the one that finished it"
    for run in (again.run, *(runs - {again.run})):
        assert cli("undo", run, "--write", "--yes", "--out", "undo.json").code == 0
        undone = tablectl.apply(tmp_path / "undo.json", directory=tmp_path, control=Control(clock=PassingClock()))
        assert undone.exit_code == 0, undone
    assert [settings_of(place) for place in places] == before


def test_a_rewrite_is_refused_before_anything_is_sent(
    spark: Any, thrift_server: str, cli: Callable[..., Ran], policies: Callable[[str], None], tmp_path: Path
) -> None:
    table = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, day STRING) USING delta")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 'a')")
    policies(f"  delta.`{table}`: {{partitioning: [day], rewrite: allowed, properties: {{owner.team: web}}}}\n")
    (tmp_path / "tablectl.yaml").write_text(f"engine: {{thrift: '{thrift_server}'}}\n", encoding="utf-8")
    ran = cli("apply", "--yes")
    assert ran.code != 0
    assert "takes a DataFrame" in ran.out + ran.err
    assert read_path(str(table)).version == 1, "nothing was changed"


def try_there(folder: Path, engine: str) -> Any:
    """The sheet of a trial with an engine; its slow writers are short."""
    (folder / "tablectl.yaml").write_text(f"engine: {engine}\nwindow: {{before: [['false']]}}\n", encoding="utf-8")
    with Project.open(folder) as project, commands_in_a_folder(folder, "") as commands:
        return try_workspace(project.engines.start(), commands, "spark_catalog", date(2026, 11, 24), 300_000_000)


def facts_of(sheet: Any, key: str) -> dict[str, Any]:
    return {fact[key]: fact for fact in sheet["facts"] if fact.get(key)}


def check_sheet(spark: Any, sheet: Any) -> None:
    """What holds on open-source Delta, whatever the endpoint."""
    assert sheet["dropped"] == "works"
    assert not [row[0] for row in spark.sql("SHOW SCHEMAS").collect() if row[0].startswith("tablectl_")]
    told = {form: fact["outcome"] for form, fact in facts_of(sheet, "form").items()}
    missing_here = {"cluster by auto", "replace partitions by columns", "replace partitions by auto"}
    missing_here |= {"set managed", "set managed truncate uniform history", "unset managed"}
    missing_here |= {form for form in told if "predictive" in form}
    too_young = {"drop feature truncate history"}
    never_here = {"set not null", "drop not null"}  # open-source Delta does not make a column required
    never_here.add("upgrade uniform")  # it needs delta-iceberg, which is not installed here
    assert {form for form, how in told.items() if how != "works"} == missing_here | too_young | never_here, [
        f"{form}: {how}" for form, how in told.items() if how != "works"
    ]
    assert told["set managed"] == "PARSE_SYNTAX_ERROR"
    assert told["drop constraint"] == "works"
    assert sheet["date"] == "2026-11-24"
    runs = facts_of(sheet, "run")
    assert [fact["outcome"] for fact in runs.values()] == ["works"] * 3, runs
    during, continued, undone = runs.values()
    assert during["writes"].keys() == {"works"}, "no guarded write failed"
    assert during["changed"]["delta.isolationLevel"] == [None, "Serializable"]
    assert (continued["commits"], undone["commits"]) == (
        ["SET TBLPROPERTIES", "UNSET TBLPROPERTIES"],
        ["SET TBLPROPERTIES"],
    ), "each statement once"


def test_a_trial_runs_through_a_thrift_server(spark: Any, thrift_server: str, tmp_path: Path) -> None:
    check_sheet(spark, try_there(tmp_path, f"{{thrift: '{thrift_server}'}}"))


def test_a_trial_runs_in_a_warehouse(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("databricks.sql")
    from tests.engine.warehouse_server import ID, WarehouseServer  # it needs the connector

    server = WarehouseServer(spark)
    monkeypatch.setenv("DATABRICKS_HOST", server.url)
    monkeypatch.setenv("DATABRICKS_TOKEN", "a token")
    check_sheet(spark, try_there(tmp_path, f"{{dialect: databricks, warehouse: '{ID}'}}"))
    server.close()
