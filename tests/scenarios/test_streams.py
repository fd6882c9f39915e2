"""Declared streaming queries on real Delta and real Structured Streaming, with batches that the test starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.workflow.apply import Control
from tests.scenarios.test_canary import WatchingClock

pytestmark = pytest.mark.spark


def test_an_apply_waits_for_the_stream_that_it_stops_and_sees_another_continue(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path
) -> None:
    table, checkpoint, sink = tmp_path / "orders", tmp_path / "checkpoint", tmp_path / "sink"
    spark.sql(f"CREATE TABLE delta.`{table}` USING delta AS SELECT id, id % 2 AS day FROM range(0, 4, 1, 1)")

    def batch() -> None:
        """The query reads what there is, and ends."""
        rows = spark.readStream.format("delta").load(str(table))
        query = rows.writeStream.format("delta").option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start(str(sink)).awaitTermination()

    def insert(number: int) -> None:
        spark.sql(f"INSERT INTO delta.`{table}` VALUES ({number}, 1)")

    batch()
    insert(10)
    policies(f"""
  delta.`{table}`:
    isolation: Serializable
    streams: {{fraud: '{checkpoint}'}}
""")
    shown = re.sub(r"\s+", " ", cli("plan").out)
    assert "stream fraud has read version 0, by batch 0" in shown
    assert "it goes on" in shown

    # Nothing stops the query. It reads the rows that were written after the change.
    clock = WatchingClock(batch)
    watching = Control(clock=clock, notify=lambda event: insert(11) if event.step == "released" else None)
    report = tablectl.apply(directory=tmp_path, spark=spark, watch=5, control=watching)
    (run,) = report.tables
    (stream,) = run.streams
    assert (str(run.outcome), stream.stopped, stream.continued) == ("applied", False, True)
    assert (stream.before, stream.after, stream.read) == (0, 1, 3)
    assert spark.read.format("delta").load(str(sink)).count() == 6

    # New partitions stop it. The apply waits until it has read everything.
    insert(12)
    policies(f"""
  delta.`{table}`:
    isolation: Serializable
    partitioning: [day]
    rewrite: allowed
    streams: {{fraud: '{checkpoint}'}}
""")
    shown = re.sub(r"\s+", " ", cli("plan").out)
    assert "stream fraud has read version 3, by batch 1" in shown
    assert "stops it, because" in shown
    report = tablectl.apply(directory=tmp_path, spark=spark, control=Control(clock=WatchingClock(batch)))
    (run,) = report.tables
    assert str(run.outcome) == "applied", run.message
    assert [(each.stopped, each.before, each.after) for each in run.streams] == [(True, 1, 2)]
    assert spark.read.format("delta").load(str(sink)).count() == 7  # no row was lost
    with pytest.raises(Exception, match="DELTA_"):  # as the plan says
        batch()
