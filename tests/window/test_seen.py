"""Writers, as a table's history knows them."""

from __future__ import annotations

from typing import Any

import pytest

from tablectl.model.live import AppTransaction, Client, Commit
from tablectl.window.report import WriterRun
from tablectl.window.seen import expected, is_writer, name_of, writers_seen
from tablectl.window.stamp import Stamp

SPARK = Client("delta-spark", (4, 4, 0))


def commit(version: int, operation: str = "WRITE", user: str = "etl", app: str = "", **more: Any) -> Commit:
    transactions = (AppTransaction(app, 1),) if app else ()
    facts: dict[str, Any] = {"changes_data": True, "client": SPARK, "transactions": transactions, **more}
    return Commit(version, 1000 + version, operation, user, **facts)


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (commit(1), "WRITE by etl"),
        (commit(1, user=""), "WRITE by Delta Spark 4.4.0"),
        (commit(1, "STREAMING UPDATE", app="4f1c"), "STREAMING UPDATE of 4f1c"),
        (commit(1, "", ""), "commits by Delta Spark 4.4.0"),
        (commit(1, "x" * 500, "y" * 500), f"{'x' * 59}… by {'y' * 59}…"),
    ],
)
def test_what_tells_writers_apart(one: Commit, name: str) -> None:
    assert name_of(one) == name


@pytest.mark.parametrize(
    ("one", "writes"),
    [
        (commit(1), True),
        (commit(0, "CREATE TABLE AS SELECT"), False),
        (commit(1, "SET TBLPROPERTIES", changes_data=False), False),
        (commit(1, "REORG", user_metadata=Stamp("r", "d").text()), False),
        (commit(1, user_metadata="nightly"), True),
    ],
)
def test_who_is_a_writer(one: Commit, writes: bool) -> None:
    assert is_writer(one) is writes


def test_writers_before_and_after() -> None:
    before = [commit(1), commit(2, "MERGE"), commit(3), commit(4, "STREAMING UPDATE", app="4f1c")]
    after = [commit(7), commit(8, "DELETE", "somebody new")]
    found = writers_seen(before, after)
    assert found == (
        WriterRun(name="MERGE by etl", commits=1, last=1002, back=False),
        WriterRun(name="STREAMING UPDATE of 4f1c", commits=1, last=1004, back=False),
        WriterRun(name="WRITE by etl", commits=2, last=1003, back=True),
    )
    assert [writer.name for writer in expected(found)] == ["WRITE by etl"]


def test_no_history_knows_nobody() -> None:
    assert writers_seen([], [commit(1)]) == ()
