"""databricks-connect as an engine, against an open-source Spark Connect server: plan, apply, stamps, errors, clones,
statements that are ended by their tag. What it does not prove is the dialect of Databricks.

``tools.databricks_connect`` runs this file with the Python that databricks-connect needs, and sets the variable.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

URL = os.environ.get("TABLECTL_TEST_CONNECT_URL", "")
pytestmark = pytest.mark.skipif(not URL, reason="run by `make test-databricks-connect`")
SLOW = "INSERT INTO {table} SELECT id FROM range(1) WHERE java_method('java.lang.Thread', 'sleep', 20000L) IS NULL"
"""Twenty seconds, then a commit."""


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from databricks.connect import DatabricksSession  # installed only for this test

    made = DatabricksSession.builder.remote(URL).getOrCreate()
    yield made
    made.client.close()


@pytest.fixture
def table(session: Any, tmp_path: Path) -> str:
    session.sql(f"CREATE TABLE delta.`{tmp_path}/orders` USING delta AS SELECT id FROM range(3)").collect()
    return f"delta.`{tmp_path}/orders`"


def commits(table: str) -> list[dict[str, Any]]:
    """The ``commitInfo`` of each commit, oldest first."""
    log = Path(table.split("`")[1]) / "_delta_log"
    lines = (line for path in sorted(log.glob("*.json")) for line in path.read_text().splitlines())
    return [json.loads(line)["commitInfo"] for line in lines if '"commitInfo"' in line]


def test_a_policy_is_planned_applied_and_stamped(
    session: Any, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tablectl  # with the packages of this Python

    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    policy = "{isolation: Serializable, deletion_vectors: enabled}"
    (tmp_path / "policies" / "p.yaml").write_text(f"version: 1\ntables:\n  {table}: {policy}\n")
    plan = tablectl.plan(spark=session)
    (planned,) = plan.tables
    assert [change.id for change in planned.changes] == ["isolation", "deletion_vectors"]
    report = tablectl.apply(plan, spark=session)
    assert [str(each.outcome) for each in report.tables] == ["applied"]
    (made,) = [each for each in commits(table) if "tablectl" in each.get("userMetadata", "")]
    assert json.loads(made["userMetadata"])["tablectl"]
    assert tablectl.plan(spark=session).unchanged == (planned.name,)


def test_the_session_of_the_caller_gets_no_stamp_and_no_settings(session: Any, table: str) -> None:
    from tablectl.engine.spark import STAMP_KEY, wrap_spark  # as above

    engine = wrap_spark(session, stamp='{"tablectl":"x"}')
    engine.execute(f"ALTER TABLE {table} SET TBLPROPERTIES ('owner.team' = 'web')", "tablectl-run-1")
    engine.close()
    assert session.conf.get(STAMP_KEY, None) is None
    assert session.sql("SELECT 1").collect()[0][0] == 1, "the caller's session goes on"
    assert commits(table)[-1]["userMetadata"] == '{"tablectl":"x"}'


def test_an_error_has_the_class_of_delta(session: Any, table: str) -> None:
    from tablectl.engine.spark import wrap_spark  # as above
    from tablectl.model.errors import EngineError

    engine = wrap_spark(session)
    with pytest.raises(EngineError) as raised:
        engine.execute(f"ALTER TABLE {table} CLUSTER BY (nowhere)")
    engine.close()
    assert raised.value.condition == "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"


def test_a_running_statement_is_ended_by_its_tag(session: Any, table: str) -> None:
    from tablectl.engine.spark import wrap_spark  # as above
    from tablectl.model.errors import EngineError

    engine, raised = wrap_spark(session), list[EngineError]()

    def send() -> None:
        try:
            engine.execute(SLOW.format(table=table), "tablectl-run-2")
        except EngineError as error:
            raised.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    time.sleep(5)
    before = time.monotonic()
    engine.interrupt("tablectl-run-2")
    sender.join(15)
    assert not sender.is_alive()
    assert time.monotonic() - before < 12, "it was ended, and did not end by itself"
    assert [error.condition for error in raised] == ["OPERATION_CANCELED"]
    engine.close()
    assert [each["operation"] for each in commits(table)] == ["CREATE TABLE AS SELECT"]


def test_a_request_is_sent_only_if_it_may_be_sent_at_the_last_moment(session: Any, table: str) -> None:
    from tablectl.engine.spark import wrap_spark  # as above
    from tablectl.model.errors import WindowError

    engine = wrap_spark(session)

    def never() -> None:
        raise WindowError("the lease was lost")

    with pytest.raises(WindowError, match="lease was lost"):
        engine.execute(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = '1')", "tablectl-run-3", never)
    engine.close()
    assert len(commits(table)) == 1
