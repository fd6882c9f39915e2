"""The engine on Spark's own Thrift server, with real Delta: the contract of every engine, and what this one adds."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablectl.commands.project import CatalogEngine
from tablectl.delta.names import TableName
from tablectl.engine.interface import EngineOptions
from tablectl.engine.sql_endpoint import SqlEndpoint, open_endpoint
from tablectl.log.reader import read_commits
from tablectl.model.errors import EngineError
from tests.engine.contract import STAMP, EngineContract, create
from tests.engine.proxy import Proxy
from tests.engine.test_spark_connect import SLOW

# `make test-sql-endpoint` runs them: they need minutes.
pytestmark = [pytest.mark.spark, pytest.mark.slow]


def connect(server: str, stamp: str = STAMP, **options: Any) -> SqlEndpoint:
    return open_endpoint(f"thrift://{server}", EngineOptions(**options), {}, stamp)


@pytest.fixture
def session(spark: Any) -> Any:
    """Where the tests make their tables."""
    return spark


class TestThriftServer(EngineContract):
    """A Thrift server does what every engine does, but for a rewrite."""

    @pytest.fixture
    def engine(self, thrift_server: str) -> Iterator[SqlEndpoint]:
        engine = connect(thrift_server)
        yield engine
        engine.close()

    def test_an_overwrite_keeps_what_the_columns_say(self, session: Any, engine: CatalogEngine, tmp_path: Path) -> None:
        table = create(session, tmp_path / "t", "id BIGINT, day STRING")
        with pytest.raises(EngineError, match="takes a DataFrame") as caught:
            engine.overwrite(table, [("id", {}), ("day", {})], ("day",))
        assert caught.value.hint == "apply it through Spark or Spark Connect", "and nothing that Databricks alone has"
        assert read_commits(str(tmp_path / "t"), after=0) == ()

    def test_values_come_as_text(self, engine: SqlEndpoint) -> None:
        assert engine.row("SELECT 1, true, NULL, 'x', 1.50") == ("1", "True", None, "x", "1.50")

    def test_it_is_the_drivers_of_the_writers_and_has_a_bound(self, engine: SqlEndpoint) -> None:
        assert (engine.shared, engine.stated, engine.bound, engine.address) == (True, True, 3600.0, "")
        assert engine.log_store("file") == engine.log_store("s3a") == ""


def slow(table: TableName) -> str:
    return SLOW.format(table=table.sql)


def running(spark: Any) -> list[str]:
    """The statements of ``SLOW`` that run in the server's JVM."""
    tracker = spark.sparkContext.statusTracker()
    jobs = spark._jsc.sc().statusTracker().getActiveJobIds()
    return [str(each) for each in jobs if tracker.getJobInfo(each) is not None]


def test_the_server_ends_a_statement_after_the_bound(spark: Any, thrift_server: str, tmp_path: Path) -> None:
    table = create(spark, tmp_path / "t", "id BIGINT")
    engine = connect(thrift_server, statement_bound=1234.0, commit_bound=1.0)
    assert engine.row("SET spark.sql.thriftServer.queryTimeout")[1] == "1234"
    with pytest.raises(
        EngineError, match=r"took too long \(`engine.statement_bound`, `engine.commit_bound`\)"
    ) as caught:
        engine.execute(slow(table), "run-1", quick=True)
    assert (caught.value.unanswered, engine.interrupt("run-1")) == (True, None), "it may go on for a moment"
    assert (engine.interrupt("run-2"), engine.interrupt("run-1", "this process")) == (False, None)
    engine.close()
    assert read_commits(str(tmp_path / "t"), after=0) == ()


@pytest.mark.parametrize("how", ["cut", "freeze"])
def test_a_server_that_does_not_answer_is_given_up_soon(
    spark: Any, thrift_port: int, thrift_server: str, tmp_path: Path, how: str
) -> None:
    table = create(spark, tmp_path / "t", "id BIGINT")
    proxy = Proxy(thrift_port)
    engine = connect(f"127.0.0.1:{proxy.port}", heartbeat=1.0, dead_after=10.0)
    threading.Timer(1, getattr(proxy, how)).start()
    with pytest.raises(EngineError) as caught:
        engine.execute(slow(table), "run-1")
    assert caught.value.unanswered, "no one knows what became of the statement"
    assert engine.interrupt("run-1") is None
    engine.close()
    proxy.cut()


def test_a_statement_is_sent_once_though_its_answer_is_lost(
    spark: Any, thrift_port: int, thrift_server: str, tmp_path: Path
) -> None:
    table = create(spark, tmp_path / "t", "id BIGINT")
    proxy = Proxy(thrift_port)
    engine = connect(f"127.0.0.1:{proxy.port}", heartbeat=60.0, dead_after=5.0)
    asked: list[str] = []

    def sent() -> None:
        asked.append("asked")
        threading.Timer(0.5, proxy.cut).start()

    with pytest.raises(EngineError) as caught:
        engine.execute(slow(table), "run-1", sent)
    assert (caught.value.unanswered, asked) == (True, ["asked"])
    engine.close()


KILLED = """
import sys
from tablectl.engine.interface import EngineOptions
from tablectl.engine.sql_endpoint import open_endpoint
server, statement = sys.argv[1:]
engine = open_endpoint(f"thrift://{server}", EngineOptions(), {})
engine.execute(statement, "run-1", lambda: print("sending", flush=True))
"""


def test_the_server_ends_the_statement_of_a_client_that_was_killed(
    spark: Any, thrift_server: str, tmp_path: Path
) -> None:
    """It closes the session with its connection: sooner than after the bound of an hour."""
    table = create(spark, tmp_path / "t", "id BIGINT")
    killed = subprocess.Popen([sys.executable, "-c", KILLED, thrift_server, slow(table)], stdout=subprocess.PIPE)
    assert killed.stdout is not None
    assert killed.stdout.readline() == b"sending\n"
    wait = threading.Event()
    while not running(spark):
        wait.wait(0.1)
    killed.kill()
    killed.wait()
    while running(spark):
        wait.wait(0.1)
    assert read_commits(str(tmp_path / "t"), after=0) == ()


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(EngineError, match=r"no SQL endpoint answers at thrift://127\.0\.0\.1:1: ") as caught:
        connect("127.0.0.1:1")
    assert "engine.thrift" in caught.value.hint
