"""The trial in a workspace, on an engine that only remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tablectl.delta.names import TableName
from tablectl.model.errors import EngineError, UsageError
from tablectl.policies.read_config import load_config
from tests.model.sql_forms import FORMS, form_of
from tools.workspace_trial import Commands, commands_in_a_folder, try_workspace

TODAY = date(2026, 11, 23)


class Engine:
    """Accepts everything, or refuses one kind of statement."""

    def __init__(self, refuses: str = "") -> None:
        self.asked: list[str] = []
        self._refuses = refuses

    def execute(self, sql: str) -> None:
        self.asked.append(sql)
        if self._refuses and self._refuses in sql:
            raise EngineError(f"[NOT_HERE] `secret_catalog` has no {self._refuses}", condition="NOT_HERE")

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        self.asked.append(sql)
        if "TBLPROPERTIES" in sql:
            changes = sum(each.startswith("ALTER") for each in self.asked)
            return [("delta.minWriterVersion", str(changes)), ("owner.team", "secret")]
        if "version()" in sql:
            return [("17.3.x-photon",)]
        return [(1, "now", "me", "me", "SET TBLPROPERTIES"), (0, "now", "me", "me", "CREATE TABLE AS SELECT")]

    def location(self, table: TableName) -> str:
        return "/lake/trial"


def ended(arguments: Sequence[str]) -> tuple[int, str]:
    """A command that succeeds, or is killed."""
    return (-9, "") if arguments[0] == "-c" else (0, '{"run": "0123456789ab"}')


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path, ended)


def schema_of(engine: Engine) -> str:
    return engine.asked[0].removeprefix("CREATE SCHEMA ")


def test_every_form_is_tried_in_a_schema_of_its_own(commands: Commands) -> None:
    engine = Engine()
    sheet = try_workspace(engine, commands, "main", TODAY, slow_rows=1)
    assert [fact["form"] for fact in sheet["facts"] if fact["form"]] == [form.id for form in FORMS]
    schema = schema_of(engine)
    assert schema.startswith("`main`.`tablectl_")
    changing = [sql for sql in engine.asked if not sql.startswith(("DESCRIBE", "SHOW", "SELECT"))]
    assert all(schema in sql for sql in changing)
    tried = [sql for sql in changing if not sql.startswith(("CREATE", "DROP", "UPDATE", "INSERT"))]
    assert {form_of(sql).id for sql in tried if " ADD COLUMNS " not in sql} == {form.id for form in FORMS}
    assert f"DROP SCHEMA {schema} CASCADE" in engine.asked


def test_the_sheet_has_no_names_and_no_messages(commands: Commands) -> None:
    engine = Engine("SET MANAGED")
    sheet = try_workspace(engine, commands, "secret_catalog.secret_schema", TODAY, slow_rows=1)
    assert "secret" not in json.dumps(sheet)
    (fact,) = [each for each in sheet["facts"] if each["form"] == "set managed"]
    assert (fact["outcome"], fact["changed"]) == ("NOT_HERE", {"delta.minWriterVersion": ["5", "6"]} | fact["changed"])


def test_a_schema_that_exists_is_never_dropped(commands: Commands) -> None:
    engine = Engine("CREATE SCHEMA")
    with pytest.raises(EngineError):
        try_workspace(engine, commands, "main.sales", TODAY)
    assert engine.asked == ["CREATE SCHEMA `main`.`sales`"]


def test_the_schema_is_dropped_whatever_happens(commands: Commands) -> None:
    engine = Engine("CREATE TABLE")
    with pytest.raises(EngineError):
        try_workspace(engine, commands, "main", TODAY)
    assert engine.asked[-1] == f"DROP SCHEMA {schema_of(engine)} CASCADE"


@pytest.mark.parametrize("place", ["", "a.b.c", "a..b"])
def test_other_names_are_refused(commands: Commands, place: str) -> None:
    with pytest.raises(UsageError, match="does not name a catalog or a schema"):
        try_workspace(Engine(), commands, place, TODAY)


def test_the_sheet_says_when_and_where_a_form_was_run(commands: Commands) -> None:
    sheet = json.loads(json.dumps(try_workspace(Engine("SET MANAGED"), commands, "main", TODAY, slow_rows=1)))
    assert (sheet["sheet"], sheet["date"], sheet["runtime"]) == (1, "2026-11-23", "17.3.x-photon")
    outcomes = {fact["form"]: fact["outcome"] for fact in sheet["facts"] if fact["form"]}
    assert (outcomes["set properties"], outcomes["set managed"]) == ("works", "NOT_HERE")


CONFIG = """\
engine: {warehouse: '12', statement_bound: 100}
window: {before: [[pause, jobs]], calendar: wrong}
notify: [{command: [post]}]
catalogs: {main: {type: unity, url: 'https://lake.example.com'}}
env: {prod: {engine: {warehouse: '34'}, window: {after: [[resume]]}}, dev: {engine: {thrift: 'a:1'}}}
"""


def test_the_commands_of_a_trial_have_the_engine_and_the_catalogs_and_no_hook(tmp_path: Path) -> None:
    (tmp_path / "tablectl.yaml").write_text(CONFIG, "utf-8")
    with commands_in_a_folder(tmp_path, "prod", environ={"TABLECTL_STATE": "s3://the/users"}) as commands:
        config = json.loads((commands.folder / "tablectl.yaml").read_text("utf-8"))
        code, out = commands.run(("-c", "import os; print(os.environ['TABLECTL_STATE'], os.environ['TABLECTL_ENV'])"))
    assert not commands.folder.exists()
    assert (code, out) == (0, f"{commands.folder}/records prod\n")
    assert config == {
        "engine": {"warehouse": "12", "statement_bound": "100"},
        "catalogs": {"main": {"type": "unity", "url": "https://lake.example.com"}},
        "env": {"prod": {"engine": {"warehouse": "34"}}},
        "policies": "policies.yaml",
        "window": {"ttl": 10},
    }


def test_a_server_that_a_flag_names_replaces_that_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "tablectl.yaml").write_text(CONFIG, "utf-8")
    with commands_in_a_folder(tmp_path, "prod", "databricks", environ={}) as commands:
        config = json.loads((commands.folder / "tablectl.yaml").read_text("utf-8"))
        read = load_config(commands.folder, {"TABLECTL_ENV": "prod"})
    assert config["env"]["prod"]["engine"] == {"remote": "databricks"}
    assert (read.engine.remote, read.engine.warehouse, read.engine.statement_bound) == ("databricks", None, 100)
