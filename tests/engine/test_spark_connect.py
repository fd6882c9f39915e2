"""Statements of Spark Connect on a real server: ended by their tag, also by another client, and given up when it dies.

Each script is a process of its own: PySpark keeps classic and Connect sessions of one process apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tablectl.delta.credentials import server_text
from tablectl.engine import spark_connect as connect_module
from tablectl.engine.spark_connect import ConnectLink, any_running
from tablectl.log.reader import read_commits

SLOW = "INSERT INTO {table} SELECT id FROM range(1) WHERE java_method('java.lang.Thread', 'sleep', 90000L) IS NULL"
"""A minute and a half, then a commit: much longer than a busy machine takes for what a test does meanwhile."""


def run(script: str, *args: object) -> Any:
    """What a script prints, as JSON."""
    command = [sys.executable, "-c", script, *map(str, args)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


INTERRUPTED = """
import json, sys, threading, time
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
from tablectl.model.errors import EngineError
url, ours, others, slow = sys.argv[1:]
dead, next_run = open_spark(EngineOptions(remote=url)), open_spark(EngineOptions(remote=url))
driver = dead._link._driver
found = {"alive": dead.alive(), "bound": dead.bound, "driver": driver is not None and not driver.gone(), "errors": {}}
def send(table, tag):
    try:
        dead.execute(slow.format(table=table), tag)
    except EngineError as error:
        found["errors"][tag] = [error.condition, error.unanswered]
threads = [threading.Thread(target=send, args=pair) for pair in ((ours, "run-1"), (others, "run-2"))]
for each in threads:
    each.start()
def until(done):
    while not done():
        time.sleep(0.05)
sessions = lambda: dead._link._client._get_operation_statuses().operation_statuses
until(lambda: len([each for each in sessions() if each.state == 2]) == 2)
time.sleep(1)
found["other server"] = next_run.interrupt("run-1", dead.address.replace("127.0.0.1", "10.0.0.1"))
found["other user"] = next_run.interrupt("run-1", dead.address + "x")
found["no address"] = next_run.interrupt("run-1", "sc://somewhere")
found["another tag"] = next_run.interrupt("run-3")
next_run.interrupt("run-1", dead.address)
threads[0].join(60)
found["ended"] = not threads[0].is_alive()
found["the other goes on"] = threads[1].is_alive()
dead.interrupt("run-2")
until(lambda: dead.interrupt("run-2") is False)
until(lambda: next_run.interrupt("run-1", dead.address) is False)
threads[1].join(60)
dead.close()
next_run.close()
print(json.dumps(found))
"""


@pytest.mark.spark
def test_another_client_ends_what_carries_our_tag_and_nothing_else(
    spark: Any, connect_url: str, tmp_path: Path
) -> None:
    for name in ("ours", "others"):
        spark.sql(f"CREATE TABLE delta.`{tmp_path}/{name}` (id BIGINT) USING delta")
    tables = [f"delta.`{tmp_path}/{name}`" for name in ("ours", "others")]
    found = run(INTERRUPTED, connect_url, *tables, SLOW)
    assert (found["alive"], found["bound"]) == (True, 450)
    assert (found["other server"], found["other user"], found["no address"]) == (None, None, None)
    assert found["another tag"] is False
    assert found["driver"], "the port of the server's process is known, and answers"
    assert (found["ended"], found["the other goes on"]) == (True, True)
    assert found["errors"] == {tag: ["OPERATION_CANCELED", True] for tag in ("run-1", "run-2")}
    assert [len(read_commits(f"{tmp_path}/{name}", after=0)) for name in ("ours", "others")] == [0, 0]


CHECKED = """
import json, sys
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
from tablectl.model.errors import WindowError
url, table = sys.argv[1:]
engine = open_spark(EngineOptions(remote=url))
found = {"asked": 0}
def yes():
    found["asked"] += 1
def no():
    raise WindowError("the lease was lost")
engine.execute(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = '1')", "run-1", yes)
try:
    engine.execute(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = '2')", "run-1", no)
except WindowError as error:
    found["error"] = error.message
found["still works"] = engine.row("SELECT 1")[0]
found["runs"] = engine.interrupt("run-1")
engine.close()
print(json.dumps(found))
"""


@pytest.mark.spark
def test_a_request_is_sent_only_if_it_may_be_sent_at_the_last_moment(
    spark: Any, connect_url: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/ours` (id BIGINT) USING delta")
    found = run(CHECKED, connect_url, f"delta.`{tmp_path}/ours`")
    assert found == {"asked": 1, "error": "the lease was lost", "still works": "1", "runs": False}
    assert len(read_commits(f"{tmp_path}/ours", after=0)) == 1


DIES = """
import json, sys, time
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
from tablectl.model.errors import EngineError
from tests.engine.proxy import Proxy
port, how, table, slow = sys.argv[1:]
import threading
proxy = Proxy(int(port))
engine = open_spark(EngineOptions(remote=f"sc://127.0.0.1:{proxy.port}", heartbeat=0.5, dead_after=2))
found = {}
threading.Timer(1, getattr(proxy, how)).start()
started = time.monotonic()
try:
    engine.execute(slow.format(table=table), "run-1")
except EngineError as error:
    found["error"] = [error.unanswered, error.message]
found["seconds"] = time.monotonic() - started
found["alive"] = engine.alive()
started = time.monotonic()
found["interrupted"] = engine.interrupt("run-1") if how == "cut" else None
engine.close()
found["closing"] = time.monotonic() - started
print(json.dumps(found))
sys.stdout.flush()
"""


@pytest.mark.spark
@pytest.mark.parametrize("how", ["cut", "freeze"])
def test_a_server_that_does_not_answer_is_given_up_soon(
    spark: Any, connect_port: int, tmp_path: Path, how: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/t` (id BIGINT) USING delta")
    found = run(DIES, connect_port, how, f"delta.`{tmp_path}/t`", SLOW)
    assert found["error"][0], "no one knows what became of the statement"
    assert found["seconds"] < 60, "it waited for the end of the statement"
    assert (found["alive"], found["interrupted"]) == (False, None)
    assert found["closing"] < 60


@pytest.mark.parametrize(
    ("url", "text"),
    [("sc://host:15002/;token=secret", "sc://host:15002"), ("sc://host", "sc://host"), ("odd", "odd")],
)
def test_an_address_is_shown_without_its_token(url: str, text: str) -> None:
    assert server_text(url) == text


class Server:
    """Answers ``GetStatus`` as Spark 4.2 does: by its own protobuf messages."""

    def __init__(self, *states: str) -> None:
        self._states = states

    def _get_operation_statuses(self, _operations: list[str] | None) -> Any:
        from pyspark.sql.connect.proto import GetStatusResponse  # slow to import

        one = GetStatusResponse.OperationStatus
        listed = [
            one(operation_id=each, state=one.OperationState.Value(f"OPERATION_STATE_{each}")) for each in self._states
        ]
        return GetStatusResponse(operation_statuses=listed)


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED", "TERMINATING", "UNKNOWN"])
def test_an_operation_whose_result_a_dead_client_never_took_does_not_run(state: str) -> None:
    assert any_running(Server(state), []) is False
    assert any_running(Server(state, "RUNNING"), []) is True


def test_a_server_before_spark_4_2_cannot_tell_what_runs() -> None:
    assert any_running(object(), []) is None


class LostSession:
    """A session whose server was started again, and does not know it any more."""

    def __init__(self) -> None:
        self.client = self.conf = self
        self._stub, self._session_id, self._user_id = object(), "0" * 36, "ann"
        self._builder = self
        self.host = "spark:15002"
        self.lost = False

    def get(self, _key: str, _default: object) -> str:
        if self.lost:
            raise RuntimeError("[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid. Session changed")
        return "UTC"

    def set_retry_policies(self, _policies: object) -> None:
        """Nothing is retried here."""

    def interrupt_tag(self, tag: str) -> list[str]:
        assert not self.lost, f"{tag}: a server is not asked about a session that it does not know"
        raise ConnectionRefusedError


@pytest.mark.parametrize("gone", [True, False])
def test_a_server_whose_process_is_gone_runs_no_statement(gone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that only does not answer may run it."""
    asked: list[str] = []

    class Driver:
        def gone(self) -> bool:
            return gone

    def find(_setting: object, server: str) -> Driver:
        asked.append(server)
        return Driver()

    monkeypatch.setattr(connect_module, "find_driver", find)
    link = ConnectLink(LostSession(), every=3600, dead_after=7200)
    try:
        assert link.interrupt("tablectl-r1-1", "") is None
        link.find_driver()
        assert asked == ["spark"]
        assert link.interrupt("tablectl-r1-1", "") is (False if gone else None)
        assert link.interrupt("tablectl-r1-1", "connect spark:15002 " + "1" * 36 + " ben") is None
    finally:
        link.heartbeat.stop()


def test_a_server_that_was_started_again_is_dead_for_its_old_session_and_runs_nothing_of_it() -> None:
    session = LostSession()
    link = ConnectLink(session, every=3600, dead_after=7200)
    try:
        link.heartbeat.ask()
        assert link.alive()
        session.lost = True
        link.heartbeat.ask()
        assert (link.alive(), link.heartbeat.alive()) == (False, True), "it answers, but not for this session"
        assert link.why_dead() == "the engine was started again, and does not know the session of this run any more"
        assert link.interrupt("tablectl-r1-1", "") is False
    finally:
        link.heartbeat.stop()
