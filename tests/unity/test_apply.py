"""Plan, apply while guarded jobs write, drift and undo on tables of the real server, by Spark with its connector."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.commands.project import Engines
from tablectl.policies.read_config import load_config
from tests.commands.conftest import Repository, Result
from tests.model.sql_forms import form_of
from tests.unity.conftest import Server
from tools.unity_server import Build

pytestmark = [pytest.mark.slow, pytest.mark.spark]
Cli = Callable[..., Result]
MANAGED = ("man0", "man1", "man2")
EXTERNAL = ("ext0", "ext1", "ext2")
HOSTILE = "a'b\"c"
CONFIG = """
engine:
  catalog: lake
  conf:
    spark.master: local[4]
    spark.jars: {jars}
    spark.sql.catalog.lake: io.unitycatalog.spark.UCSingleCatalog
    spark.sql.warehouse.dir: {home}/warehouse
catalogs:
  lake: {{type: unity, url: '{url}'}}
window: {{drain: 300}}
"""
POLICIES = """
version: 1
tables:
  sales.*: {{min_tables: 6, isolation: Serializable, properties: {{owner.team: {owner}}}}}
  sales.man?: {{clustering: [id]}}
"""


@dataclass(frozen=True)
class Lake:
    """Six tables of a server: three that the catalog manages and three external ones, with ten rows each."""

    server: Server
    config: str
    spark: Any

    def rows(self, table: str) -> int:
        found: int = self.spark.table(f"lake.sales.{table}").count()
        return found


@pytest.fixture(scope="module")
def lake(serving: Callable[..., Any], build: Build, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    home = tmp_path_factory.mktemp("lake")
    with serving() as server:
        server.make_schema("lake", "sales")
        config = CONFIG.format(jars=",".join(map(str, build.connector)), url=server.url, home=home)
        (home / "tablectl.yaml").write_text(config)
        engine = Engines(load_config(home, {})).open("")
        spark: Any = getattr(engine, "_session")  # noqa: B009
        catalog_managed = "TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')"
        for name in (*MANAGED, *EXTERNAL):
            how = catalog_managed if name in MANAGED else f"LOCATION 'file://{home}/{name}'"
            spark.sql(f"CREATE TABLE lake.sales.{name} (id BIGINT, day STRING) USING delta {how}")
            spark.sql(f"INSERT INTO lake.sales.{name} SELECT id, 'd' FROM range(10)")
        yield Lake(server, config, spark)
        engine.close()


@pytest.fixture
def place(repo: Repository, lake: Lake) -> Repository:
    (repo.root / "tablectl.yaml").write_text(lake.config)
    repo.policies(POLICIES.format(owner=json.dumps(HOSTILE)))
    return repo


@dataclass
class Writer:
    """Appends a row at a time under a guard, from one apply's begin to its end, and at least three rows."""

    lake: Lake
    table: str
    stop: threading.Event = field(default_factory=threading.Event)
    began: threading.Event = field(default_factory=threading.Event)
    written: int = 0
    failed: list[str] = field(default_factory=list)

    def run(self) -> None:
        session = self.lake.spark.newSession()
        while not self.stop.is_set() or self.written < 3:
            try:
                with tablectl.guard(session, f"lake.sales.{self.table}", "append"):
                    session.sql(f"INSERT INTO lake.sales.{self.table} VALUES (100, 'w')")
                self.written += 1
            except Exception as error:  # noqa: BLE001  # what a writer's user would see
                self.failed.append(str(error)[:500])
                self.stop.set()
                return
            finally:
                self.began.set()


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Prints a figure for the docs: what a test prints itself, the next command line would swallow."""

    def said(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}")  # noqa: T201

    return said


@pytest.fixture(autouse=True)
def _no_guard_fails_open(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A guard that cannot use its records warns and lets the write pass: then nothing was guarded."""
    yield
    found = [each.getMessage() for each in caplog.get_records("call") if each.levelno >= logging.WARNING]
    assert [each for each in found if each.startswith("lake.sales.")] == []


def while_jobs_write(
    lake: Lake, tables: tuple[str, ...], run: Callable[[], Result], say: Callable[[str], None]
) -> None:
    """An apply while guarded writers append to tables. All of it is applied, and every row arrives once."""
    before = {table: lake.rows(table) for table in tables}
    writers = [Writer(lake, table) for table in tables]
    threads = [threading.Thread(target=each.run) for each in writers]
    for thread in threads:
        thread.start()
    try:
        for each in writers:
            each.began.wait()
        done = run()
    finally:
        for each in writers:
            each.stop.set()
        for thread in threads:
            thread.join()
    assert [each.failed for each in writers] == [[] for _ in writers]
    assert {each.table: lake.rows(each.table) - before[each.table] for each in writers} == {
        each.table: each.written for each in writers
    }
    assert done.code == 0, done.out + done.err
    summary = " ".join(done.out[done.out.rindex("Apply: ") :].split())
    say(f"{sum(each.written for each in writers)} guarded writes, 0 failed. {summary}")


def forms(cli: Cli, plan: str) -> set[str]:
    """The forms of the statements that a plan file sends to catalog-managed tables."""
    tables = json.loads(cli("show", plan, "--format", "json").out)["tables"]
    assert not any(each["refusals"] for each in tables)
    assert "D001" not in {finding["code"] for each in tables for finding in each["findings"]}
    managed = [each for each in tables if each["name"].startswith("lake.sales.man")]
    return {form_of(statement["sql"]).id for each in managed for statement in each["statements"]}


def test_an_apply_while_guarded_jobs_write_and_its_undo(
    cli: Cli, place: Repository, lake: Lake, say: Callable[[str], None]
) -> None:
    doctor = json.loads(cli("doctor", "--engine", "--format", "json").out)["checks"]
    assert "Spark lists it, 1 schema" in [each["found"] for each in doctor if each["subject"] == "connector of lake"]
    plan = json.loads(cli("plan", "--format", "json", "--out", "p.json").out)
    assert [each["name"] for each in plan["tables"]] == [f"lake.sales.{name}" for name in (*EXTERNAL, *MANAGED)]

    while_jobs_write(lake, ("man0", "ext0"), lambda: cli("apply", "p.json"), say)
    assert cli("drift").code == 0
    for name in ("man1", "ext1"):
        found = dict(lake.spark.sql(f"SHOW TBLPROPERTIES lake.sales.{name}").collect())
        assert (found["owner.team"], found["delta.isolationLevel"]) == (HOSTILE, "Serializable")

    (run,) = json.loads(cli("runs", "--format", "json").out)["runs"]
    assert len(run["tables"]) == 6
    undone = cli("undo", run["stamp"]["run"], "--write", "--yes", "--out", "u.json")
    assert undone.code == 0, undone.out + undone.err
    while_jobs_write(lake, ("man0", "ext0"), lambda: cli("apply", "u.json"), say)
    found = dict(lake.spark.sql("SHOW TBLPROPERTIES lake.sales.man1").collect())
    assert "owner.team" not in found
    assert cli("drift").code == 0
    assert forms(cli, "p.json") | forms(cli, "u.json") == {
        "set properties",
        "unset properties",
        "cluster by",
        "cluster by none",
    }, "all that a plan does not refuse, so no plan calls them unverified"


def test_settings_of_the_catalog_are_declared_away_while_jobs_write(
    cli: Cli, place: Repository, lake: Lake, say: Callable[[str], None]
) -> None:
    """Of them, these two are not in the catalog's contract. Delta rewrites all data to remove the mapping."""
    away = "{column_mapping: none, row_tracking: disabled, rewrite: allowed}"
    place.policies(f"version: 1\ntables:\n  sales.man1: {away}\n")
    while_jobs_write(lake, ("man1",), lambda: cli("apply", "--yes"), say)
    assert cli("drift").code == 0
    found = dict(lake.spark.sql("SHOW TBLPROPERTIES lake.sales.man1").collect())
    assert (found["delta.columnMapping.mode"], found["delta.enableRowTracking"]) == ("none", "false")


def test_a_value_that_the_contract_forbids_is_refused_because_it_would_poison_the_table(
    cli: Cli, place: Repository, lake: Lake
) -> None:
    place.policies("version: 1\ntables:\n  sales.man2: {deletion_vectors: disabled}\n")
    ran = cli("plan", "--format", "json")
    (table,) = json.loads(ran.out)["tables"]
    assert (ran.code, [each["change"] for each in table["refusals"]]) == (3, ["deletion_vectors"])

    # What the refusal says is what the server does, if another program sets the value.
    lake.spark.sql("ALTER TABLE lake.sales.man2 SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
    with pytest.raises(Exception, match="MANAGED table required property"):
        lake.spark.sql("ALTER TABLE lake.sales.man2 SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    place.policies("version: 1\ntables:\n  sales.man2: {deletion_vectors: enabled}\n")
    assert cli("apply", "--yes").code == 0
    lake.spark.sql("ALTER TABLE lake.sales.man2 SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")


def test_import_writes_policies_that_change_nothing(cli: Cli, place: Repository, lake: Lake) -> None:
    (place.root / "policies" / "lake.yaml").unlink()
    ran = cli("import", "--all", "--out", "policies/all.yaml")
    assert ran.code == 0, ran.err
    text = Path("policies/all.yaml").read_text()
    assert text.count("settings of the catalog or Delta itself") == len(MANAGED)
    assert cli("plan", "--detailed-exitcode").code == 0
