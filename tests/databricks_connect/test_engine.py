"""databricks-connect as an engine, against an open-source Spark Connect server: what every engine does, and what only
Connect does. What it does not prove is the dialect of Databricks.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark, wrap_spark
from tablectl.engine.spark_connect import address_of
from tablectl.model.errors import EngineError
from tests.engine.contract import EngineContract

Commits = Callable[[], list[dict[str, Any]]]
STARTED = "tablectl.test.started"
SLOW = f"""INSERT INTO {{table}} SELECT id FROM range(1)
WHERE coalesce(java_method('java.lang.System', 'setProperty', '{STARTED}', '{{tag}}'), 'new') <> ''
AND java_method('java.lang.Thread', 'sleep', 20000L) IS NULL"""
"""Says in its server that it runs; twenty seconds later, a commit."""


class TestDatabricksConnect(EngineContract):
    """databricks-connect does what every engine does."""


def until_it_runs(session: Any, tag: str) -> None:
    """Wait until the slow statement with a tag runs in the server."""
    deadline = time.monotonic() + 120
    while session.sql(f"SELECT java_method('java.lang.System', 'getProperty', '{STARTED}')").collect()[0][0] != tag:
        assert time.monotonic() < deadline, "the statement did not start"
        time.sleep(0.1)


@pytest.fixture
def databricks(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """``engine.remote: databricks`` leads to the server: databricks-connect takes it from the environment."""
    monkeypatch.setenv("SPARK_REMOTE", url)
    return "databricks"


def test_the_configured_engine_is_a_session_of_databricks_connect(databricks: str, table: str) -> None:
    engine = open_spark(EngineOptions("databricks", databricks, statement_bound=3600), "stamp")
    assert engine.row(f"SELECT count(*) FROM {table}") == ("3",)
    assert (engine.bound, engine.timeout) == (3600, ("spark.databricks.execution.timeout", "3600"))
    assert engine._session.conf.get("spark.databricks.execution.timeout") == "3600"
    engine.close()


def test_how_long_databricks_runs_a_statement_without_its_client_is_unknown(databricks: str) -> None:
    engine = open_spark(EngineOptions("databricks", databricks))
    assert (engine.bound, engine.timeout) == (None, None)
    engine.close()


def test_the_session_of_the_caller_gets_no_settings(session: Any, table: str, commits: Commits) -> None:
    session.conf.set("spark.databricks.delta.write.txnAppId", "nightly")
    engine = wrap_spark(session, stamp="ours")
    assert engine._session is not session
    engine.execute(f"ALTER TABLE {table} SET TBLPROPERTIES ('owner.team' = 'web')", "tablectl-run-1")
    engine.close()
    assert session.conf.get("spark.databricks.delta.write.txnAppId") == "nightly"
    session.conf.unset("spark.databricks.delta.write.txnAppId")
    assert commits()[-1]["userMetadata"] == "ours"


def test_a_running_statement_is_ended_by_its_tag(session: Any, table: str, commits: Commits) -> None:
    engine, raised = wrap_spark(session), list[EngineError]()

    def send() -> None:
        try:
            engine.execute(SLOW.format(table=table, tag="tablectl-run-2"), "tablectl-run-2")
        except EngineError as error:
            raised.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    until_it_runs(session, "tablectl-run-2")
    engine.interrupt("tablectl-run-2")
    sender.join(15)
    assert not sender.is_alive(), "it was ended, and did not end by itself"
    assert [error.condition for error in raised] == ["OPERATION_CANCELED"]
    engine.close()
    assert [each["operation"] for each in commits()] == ["CREATE TABLE AS SELECT"]


SENDS = """
import sys
from tablectl.engine.spark_connect import address_of
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
engine = open_spark(EngineOptions(remote="databricks"))
print(engine.address, flush=True)
engine.execute(sys.argv[1], "tablectl-run-3")
"""


def test_the_statement_of_a_killed_process_is_ended_by_the_next_one(
    session: Any, databricks: str, table: str, commits: Commits
) -> None:
    command = [sys.executable, "-c", SENDS, SLOW.format(table=table, tag="tablectl-run-3")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dead:
        assert dead.stdout is not None
        address = dead.stdout.readline().strip()
        until_it_runs(session, "tablectl-run-3")
        started = time.monotonic()
        os.kill(dead.pid, signal.SIGKILL)
    successor = open_spark(EngineOptions(remote=databricks))
    assert successor.interrupt("tablectl-run-3", f"{address}x") is None, "the session of another user"
    # Clients of Spark 4.0 cannot ask a server what runs.
    answers = {successor.interrupt("tablectl-run-3", address)}
    while False not in answers and None not in answers:
        answers.add(successor.interrupt("tablectl-run-3", address))
    successor.close()
    time.sleep(max(0.0, 22 - (time.monotonic() - started)))  # until it would have committed
    assert [each["operation"] for each in commits()] == ["CREATE TABLE AS SELECT"]


GIVEN_UP = """
import json, os, sys, threading, time
from databricks.connect import DatabricksSession
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import wrap_spark
from tablectl.model.errors import EngineError
port, how, slow = sys.argv[1:]
from tests.engine.proxy import Proxy
proxy = Proxy(int(port))
theirs = DatabricksSession.builder.remote(f"sc://127.0.0.1:{proxy.port}").create()
engine = wrap_spark(theirs, options=EngineOptions(heartbeat=0.5, dead_after=2))
threading.Timer(1, getattr(proxy, how)).start()
try:
    engine.execute(slow, "tablectl-run-4")
except EngineError as error:
    while engine.alive():  # a connection that is refused ends the call before that is known
        time.sleep(0.1)
    print(json.dumps(error.unanswered), flush=True)
os._exit(0)  # the session of the caller would wait for its server
"""


@pytest.mark.parametrize("how", ["cut", "freeze"])
def test_a_server_that_does_not_answer_is_given_up_soon(url: str, table: str, how: str) -> None:
    slow = SLOW.format(table=table, tag=f"tablectl-{how}")
    command = [sys.executable, "-c", GIVEN_UP, str(urlsplit(url).port), how, slow]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "true\n", done.stderr


def test_clusters_of_one_workspace_are_different_addresses() -> None:
    """A session is known to its own cluster alone: another one would answer that nothing runs."""
    auth = pytest.importorskip("databricks.connect.auth")  # installed only for these tests

    config = SimpleNamespace(host="https://lake.example.com", hostname="lake.example.com", workspace_id=None)

    def address(**headers: str) -> str:
        given = {f"x-databricks-{name}-id": value for name, value in headers.items()}
        return address_of(
            SimpleNamespace(
                _builder=auth.DatabricksChannelBuilder(config, headers=given), _session_id="s", _user_id=None
            )
        )

    compute = "00000000-0000-4000-8000-000000000000"
    assert address() == "connect lake.example.com s "
    assert len({address(), address(cluster="a"), address(cluster="b"), address(session=compute)}) == 4
