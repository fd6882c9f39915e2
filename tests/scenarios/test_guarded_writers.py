"""An apply during writes on real Delta: who takes a guard never fails by it, who takes none may.

Every writer is held inside its transaction until the test lets it go; no one sleeps.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.applying.events import RunEvent
from tablectl.commands.run_plan import Control
from tablectl.log.reader import read_commits
from tablectl.model.run_report import RunReport
from tests.interleaving import TIMEOUT, Writer

pytestmark = pytest.mark.spark

CLOSED = """
    isolation: Serializable
    properties: {delta.checkpointRetentionDuration: interval 60 days}
"""
"""Every write in flight fails after this."""
VECTORS = """
    deletion_vectors: enabled
"""
"""Every write of Delta Spark 4.4 in flight commits after this."""

Write = Callable[[Any, str], object]


@dataclass
class Lake:
    """One table of the columns ``id`` and ``v``, four rows, each in a partition of its own, and the policy for it."""

    spark: Any
    folder: Path

    @property
    def place(self) -> str:
        return str(self.folder / "orders")

    def make(self) -> None:
        self.spark.sql(f"CREATE TABLE delta.`{self.place}` (id BIGINT, v BIGINT) USING delta PARTITIONED BY (id)")
        self.spark.sql(f"INSERT INTO delta.`{self.place}` SELECT id, id FROM range(4)")

    def declare(self, settings: str) -> None:
        (self.folder / "policies").mkdir(exist_ok=True)
        text = f"version: 1\ntables:\n  delta.`{self.place}`:{settings}"
        (self.folder / "policies" / "orders.yaml").write_text(text, encoding="utf-8")

    def operations(self) -> list[str]:
        """Of all commits since the table was filled, oldest first."""
        return [commit.operation for commit in reversed(read_commits(self.place, after=1))]

    def rows(self) -> dict[int, int]:
        return dict(self.spark.table(f"delta.`{self.place}`").collect())


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Lake:
    made = Lake(spark, tmp_path)
    made.make()
    made.declare(CLOSED)
    return made


@dataclass
class Apply:
    """``tablectl.apply``, or another run, in a thread of its own."""

    lake: Lake
    command: Callable[..., RunReport] = tablectl.apply
    steps: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    ended: list[RunReport | BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        def notify(event: RunEvent) -> None:
            self.steps.put(event.step)

        try:
            done = self.command(directory=self.lake.folder, spark=self.lake.spark, control=Control(notify=notify))
            self.ended.append(done)
        except BaseException as error:  # noqa: BLE001  # what ended it is the outcome
            self.ended.append(error)

    def wait_for(self, step: str) -> None:
        while self.steps.get(timeout=TIMEOUT) != step:
            pass

    def report(self) -> RunReport:
        self._thread.join(TIMEOUT)
        [report] = self.ended
        assert isinstance(report, RunReport), report
        return report


def append(session: Any, place: str) -> object:
    return session.sql(f"INSERT INTO delta.`{place}` SELECT hold(9), 90 FROM range(1)")


def append_elsewhere(session: Any, place: str) -> object:
    return session.sql(f"INSERT INTO delta.`{place}` SELECT hold(8), 80 FROM range(1)")


def update(session: Any, place: str) -> object:
    return session.sql(f"UPDATE delta.`{place}` SET v = 87 + hold(v) WHERE id = 3")


def merge(session: Any, place: str) -> object:
    return session.sql(
        f"MERGE INTO delta.`{place}` t USING (SELECT 3 AS id, hold(90) AS v UNION ALL SELECT 9, 90) s "
        "ON t.id = s.id AND t.id IN (3, 9) "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )


def append_batch(frame: Any, place: str) -> object:
    return frame.selectExpr("hold(id) AS id", "90L AS v").write.format("delta").mode("append").save(place)


def guarded(write: Write, place: str, mode: Any = "any") -> Callable[[Any], object]:
    def run(session: Any) -> object:
        with tablectl.guard(None, place, mode=mode):
            return write(session, place)

    return run


def stream(lake: Lake, *, guard: bool) -> Callable[[Any], object]:
    """One batch of one row out of another table."""
    source = lake.folder / "source"
    lake.spark.sql("SELECT 9L AS id").write.format("delta").save(str(source))
    place = lake.place

    def each(frame: Any, _number: int) -> None:
        append_batch(frame, place)

    def run(session: Any) -> object:
        batch = tablectl.guard_batch(each, place, "append") if guard else each
        query = session.readStream.format("delta").load(str(source)).writeStream.foreachBatch(batch)
        return (
            query.option("checkpointLocation", f"{source}-seen").trigger(availableNow=True).start().awaitTermination()
        )

    return run


@contextmanager
def told_to_wait() -> Iterator[threading.Event]:
    """Set once a guard tells that its write waits at a gate."""
    waiting = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "waits" in record.getMessage():
                waiting.set()

    listener, logger = Listener(), logging.getLogger("tablectl")
    logger.addHandler(listener)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield waiting
    finally:
        logger.setLevel(level)
        logger.removeHandler(listener)


KINDS = {
    "append": (append, "append", "WRITE"),
    "merge": (merge, "any", "MERGE"),
    "update": (update, "any", "UPDATE"),
}


@pytest.mark.parametrize(
    "kind", ["append", "merge", *(pytest.param(each, marks=pytest.mark.slow) for each in ("update", "foreachBatch"))]
)
def test_an_apply_waits_for_a_guarded_write(lake: Lake, kind: str) -> None:
    write, mode, operation = KINDS.get(kind, (append, "append", "WRITE"))
    job = stream(lake, guard=True) if kind == "foreachBatch" else guarded(write, lake.place, mode)
    with Writer(lake.spark, job) as writer:
        writer.wait_inside()
        apply = Apply(lake)
        apply.wait_for("draining")
        assert lake.operations() == []
        ended = writer.release()
        report = apply.report()
    assert ended.error is None
    assert report.exit_code == 0, report
    assert lake.operations() == [operation, "SET TBLPROPERTIES"]
    assert report.tables[0].possible_failures == ()
    assert 90 in lake.rows().values()


@pytest.mark.parametrize(
    "kind", ["merge", "foreachBatch", *(pytest.param(each, marks=pytest.mark.slow) for each in ("append", "update"))]
)
def test_an_unguarded_write_fails_and_the_guarded_one_next_to_it_does_not(lake: Lake, kind: str) -> None:
    write = KINDS.get(kind, (append, "", ""))[0]
    rude_job: Any = stream(lake, guard=False) if kind == "foreachBatch" else lambda session: write(session, lake.place)
    polite_job = guarded(append_elsewhere, lake.place, "append")
    with Writer(lake.spark, rude_job) as rude, Writer(lake.spark, polite_job) as polite:
        rude.wait_inside()
        polite.wait_inside()
        apply = Apply(lake)
        apply.wait_for("draining")
        assert polite.release().error is None
        report = apply.report()
        assert report.exit_code == 0, report
        assert rude.release().condition == "DELTA_METADATA_CHANGED"
    assert lake.operations() == ["WRITE", "SET TBLPROPERTIES"]
    assert lake.rows() == {0: 0, 1: 1, 2: 2, 3: 3, 8: 80}


def test_a_write_that_comes_to_a_shut_gate_waits_and_commits_after_the_window(lake: Lake) -> None:
    early, late = (Writer(lake.spark, guarded(write, lake.place)) for write in (append, update))
    with early:
        early.wait_inside()
        apply = Apply(lake)
        apply.wait_for("draining")
        with told_to_wait() as waiting, late:
            assert waiting.wait(TIMEOUT)
            assert early.release().error is None
            assert apply.report().exit_code == 0
            late.wait_inside()
            assert late.release().error is None
    assert lake.operations() == ["WRITE", "SET TBLPROPERTIES", "UPDATE"]


def test_a_handle_that_was_taken_before_the_guard_is_the_exception(lake: Lake) -> None:
    """It keeps the table as it was when it was taken, so the guard cannot help it (delta-0)."""
    from delta.tables import DeltaTable

    lake.declare(VECTORS)
    lake.spark.sql(f"INSERT INTO delta.`{lake.place}` SELECT /*+ COALESCE(1) */ 7, id FROM range(2)")
    session = lake.spark.newSession()
    before = DeltaTable.forPath(session, lake.place)
    assert Apply(lake).report().exit_code == 0
    a_row_of_two = "id = 7 AND v = 1"
    with tablectl.guard(None, lake.place), pytest.raises(Exception, match=r"FIELD_NOT_FOUND[\s\S]*row_index"):
        before.update(a_row_of_two, {"v": "90"})
    with tablectl.guard(None, lake.place):
        DeltaTable.forPath(session, lake.place).update(a_row_of_two, {"v": "90"})
    assert lake.operations() == ["WRITE", "SET TBLPROPERTIES", "UPDATE"]
