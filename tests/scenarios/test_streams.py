"""Declared streaming queries on real Delta and real Structured Streaming, with batches that the test starts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.applying.events import RunEvent
from tablectl.commands.run_plan import Control
from tests.docs.pages import ROOT, blocks
from tests.scenarios.test_canary import WatchingClock

pytestmark = pytest.mark.spark


def with_documented_hooks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of "Stop and start" in docs/many-tables.md, and the file to which ``systemctl`` writes."""
    page = blocks(ROOT / "docs" / "many-tables.md")
    (settings,) = [each.text for each in page if each.language == "yaml" and "hook_timeout" in each.text]
    (script,) = [each.text for each in page if each.language == "sh" and "systemctl" in each.text]
    (folder / "tablectl.yaml").write_text(settings)
    _program(folder / "streams.sh", script)
    (folder / "bin").mkdir()
    _program(folder / "bin" / "systemctl", f'#!/bin/sh\necho "$@" >> {folder}/commanded\n')
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=os.pathsep)
    return folder / "commanded"


def _program(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


def test_an_apply_waits_for_the_stream_that_it_stops_and_sees_another_continue(
    spark: Any,
    cli: Callable[..., Any],
    policies: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, checkpoint, sink = tmp_path / "orders", tmp_path / "checkpoint", tmp_path / "sink"
    commanded = with_documented_hooks(tmp_path, monkeypatch)
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
    def go_on(event: RunEvent) -> None:
        if event.step == "released":
            insert(11)
            batch()

    report = tablectl.apply(directory=tmp_path, spark=spark, control=Control(notify=go_on))
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
    assert commanded.read_text() == "stop stream-fraud.service\nstart stream-fraud.service\n"
    assert spark.read.format("delta").load(str(sink)).count() == 7  # no row was lost
    with pytest.raises(Exception, match="DELTA_"):  # as the plan says
        batch()


@pytest.mark.slow
def test_a_stream_that_writes_the_table_is_seen_to_continue_by_its_batches(
    spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path
) -> None:
    source, table = tmp_path / "source", tmp_path / "orders"
    spark.sql(f"CREATE TABLE delta.`{source}` USING delta AS SELECT id FROM range(0, 4, 1, 1)")
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta")

    def batch(checkpoint: str) -> None:
        """A query writes what there is, and ends."""
        spark.sql(f"INSERT INTO delta.`{source}` VALUES (1)")
        query = spark.readStream.format("delta").load(str(source)).writeStream.format("delta")
        query = query.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True)
        query.start(str(table)).awaitTermination()

    def applied(level: str, later: Callable[[], None]) -> tuple[Any, ...]:
        policies(f"""
  delta.`{table}`:
    properties: {{owner.level: '{level}'}}
    streams: {{ingest: '{tmp_path / "ingest"}'}}
""")
        control = Control(notify=lambda event: later() if event.step == "released" else None)
        (run,) = tablectl.apply(directory=tmp_path, spark=spark, control=control).tables
        assert str(run.outcome) == "applied", run.message
        (stream,) = run.streams
        return stream.before, stream.after, stream.continued, stream.note

    batch("ingest")
    policies(f"""
  delta.`{table}`:
    properties: {{owner.level: 'a'}}
    streams: {{ingest: '{tmp_path / "ingest"}'}}
""")
    shown = re.sub(r"\s+", " ", cli("plan").out)
    assert "stream ingest has written batch 0 in version 1" in shown
    assert "it writes the table and does not read it" in shown

    assert applied("a", lambda: batch("ingest"))[:3] == (0, 1, True)
    assert applied("b", lambda: batch("another"))[:3] == (1, 1, None)  # stopped, while another query writes
    (tmp_path / "ingest").rename(tmp_path / "lost")
    assert "has an unknown position" in applied("c", lambda: None)[3]
    assert applied("d", lambda: batch("ingest"))[2:3] == (True,)  # a new query, which was unknown before
    (tmp_path / "ingest").rename(tmp_path / "lost again")
    (tmp_path / "lost").rename(tmp_path / "ingest")

    def begin_again() -> None:
        (tmp_path / "ingest").rename(tmp_path / "lost")
        batch("ingest")

    before, after, continued, note = applied("e", begin_again)
    assert (before, after, continued) == (1, 0, False)
    assert note.startswith("began again with a new checkpoint")
