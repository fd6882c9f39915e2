"""The engine on a SQL warehouse: the real connector and SDK against a stand-in that runs real Spark with Delta."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("databricks.sql")

from tablectl.commands.project import CatalogEngine
from tablectl.commands.run_plan import stamped
from tablectl.engine.interface import EngineOptions
from tablectl.engine.sql_endpoint import SqlEndpoint, open_endpoint
from tablectl.log.reader import read_commits
from tablectl.model.errors import EngineError
from tests.engine.contract import STAMP, EngineContract, create
from tests.engine.test_spark_connect import SLOW
from tests.engine.warehouse_server import ID, WarehouseServer, with_ids

# `make test-sql-endpoint` runs them: they need minutes.
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def workspace(spark: Any) -> Iterator[WarehouseServer]:
    server = WarehouseServer(spark)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _login(workspace: WarehouseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    log_in(monkeypatch, workspace.url)


def log_in(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", url)
    monkeypatch.setenv("DATABRICKS_TOKEN", "a token")


def connect(**options: Any) -> SqlEndpoint:
    return open_endpoint(f"warehouse://{ID}", EngineOptions(**options), {}, STAMP)


@pytest.fixture
def session(spark: Any) -> Any:
    """Where the tests make their tables."""
    return spark


@pytest.fixture
def engine() -> Iterator[SqlEndpoint]:
    engine = connect()
    yield engine
    engine.close()


class TestWarehouse(EngineContract):
    """A warehouse does what every engine does, but for a rewrite."""

    @pytest.fixture
    def engine(self, engine: SqlEndpoint) -> SqlEndpoint:
        return engine

    def test_an_overwrite_keeps_what_the_columns_say(self, session: Any, engine: CatalogEngine, tmp_path: Path) -> None:
        table = create(session, tmp_path / "t", "id BIGINT, day STRING")
        with pytest.raises(EngineError, match="takes a DataFrame"):
            engine.overwrite(table, [("id", {}), ("day", {})], ("day",))
        assert read_commits(str(tmp_path / "t"), after=0) == ()


def test_a_statement_whose_answer_is_lost_is_not_sent_again_and_found_by_its_tag(
    spark: Any, workspace: WarehouseServer, engine: SqlEndpoint, tmp_path: Path
) -> None:
    """The connector itself would repeat a request whose connection broke."""
    table = create(spark, tmp_path / "t")
    asked: list[str] = []
    workspace.drop_answer_to = lambda request: "a.lost" in request
    sql = f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('a.lost' = '1')"
    with pytest.raises(EngineError, match="broke") as caught:
        engine.execute(sql, "tablectl-run-lost", lambda: asked.append("asked"))
    workspace.drop_answer_to = lambda _: False
    assert (caught.value.unanswered, asked) == (True, ["asked"])
    (sent,) = [each for each in workspace.service.statements.values() if "a.lost" in each.sql]
    sent.over.wait()
    assert engine.interrupt("tablectl-run-lost") is False, "the history of queries says that it has ended"
    assert [each.user_metadata for each in read_commits(str(tmp_path / "t"), after=0)] == [STAMP]


def test_another_run_ends_the_statement_of_a_dead_one_by_its_tag(
    spark: Any, workspace: WarehouseServer, engine: SqlEndpoint, tmp_path: Path
) -> None:
    table = create(spark, tmp_path / "t", "id BIGINT")
    dead, errors = connect(), []

    def send() -> None:
        try:
            dead.execute(SLOW.format(table=table.sql), "tablectl-dead-1")
        except EngineError as error:
            errors.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    while not any(each.tags.get("tablectl") == "tablectl-dead-1" for each in workspace.service.statements.values()):
        thread.join(0.05)
    assert engine.interrupt("tablectl-dead-1", dead.address.replace(ID, "another")) is None
    assert engine.interrupt("tablectl-other", dead.address) is None, "the history does not show it"
    assert engine.interrupt("tablectl-dead-1", dead.address) is True, "it was asked to end"
    thread.join(60)
    for each in workspace.service.statements.values():
        each.over.wait()  # it is cancelled at once, and final when Spark has ended it
    assert engine.interrupt("tablectl-dead-1", dead.address) is False
    dead.close()
    assert [error.unanswered for error in errors] == [True]
    assert read_commits(str(tmp_path / "t"), after=0) == ()


def test_the_warehouse_ends_a_statement_after_the_bound(spark: Any, workspace: WarehouseServer, tmp_path: Path) -> None:
    table = create(spark, tmp_path / "t", "id BIGINT")
    engine = connect(statement_bound=1234.0)
    assert "SET STATEMENT_TIMEOUT = 1234" in [each.sql for each in workspace.service.statements.values()]
    engine.execute("SET STATEMENT_TIMEOUT = 1")  # of the connection that is used next
    with pytest.raises(EngineError, match="ended the statement") as caught:
        engine.execute(SLOW.format(table=table.sql), "tablectl-run-slow")
    assert caught.value.unanswered
    engine.close()


def test_without_stamps_a_run_finds_its_commits_by_the_ids_of_its_statements(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a warehouse that refuses the setting: the own run knows the ids, another one finds the tags in the history."""
    server = WarehouseServer(spark, stamps=False)
    log_in(monkeypatch, server.url)
    table = create(spark, tmp_path / "t")
    own, other = connect(), connect()
    sql = f"ALTER TABLE {table.sql} SET TBLPROPERTIES"
    own.execute(f"{sql} ('a' = '1')", "tablectl-run-1")
    other.execute(f"{sql} ('b' = '1')")  # without a tag: of no run
    server.drop_answer_to = lambda request: "a.lost" in request
    with pytest.raises(EngineError):
        own.execute(f"{sql} ('a.lost' = '1')", "tablectl-run-2")
    for each in server.service.statements.values():
        each.over.wait()
    with_ids(tmp_path / "t")
    commits = read_commits(str(tmp_path / "t"), after=0)
    assert [bool(each.user_metadata) for each in commits] == [False, False, False]
    assert [each.user_metadata for each in stamped(commits, own)] == [STAMP, "", STAMP]
    assert [each.user_metadata for each in stamped(commits, connect())] == [STAMP, "", STAMP], "by the tags alone"
    server.service.statements.clear()
    assert [each.user_metadata for each in stamped(commits[1:], connect())] == ["", ""], "the history has forgotten"
    for engine in (own, other):
        engine.close()
    server.close()


@pytest.mark.parametrize(("host", "why"), [("http://lake.example.com", "without encryption"), ("", "login fails")])
def test_a_login_that_cannot_be_used_is_one_sentence(monkeypatch: pytest.MonkeyPatch, host: str, why: str) -> None:
    log_in(monkeypatch, host)
    with pytest.raises(EngineError, match=why):
        connect()
