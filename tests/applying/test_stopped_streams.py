"""Declared streaming queries: an apply waits for those that it stops, and says which continued."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tablectl.applying.events import RunEvent
from tablectl.leases.lease import Lease
from tablectl.model.calendar import TableWindow
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.run_report import RunReport, StreamRun
from tablectl.model.stream_progress import StreamPosition, StreamState, StreamWriter, UnknownStream
from tablectl.planning import derive_statements
from tablectl.policies.config import WindowConfig
from tests.applying.lake_run import Run, only, outcomes
from tests.leases.lease_fakes import claim, try_acquire

STREAMS = (("fraud", "/checkpoints/fraud"),)


@pytest.fixture
def run() -> Run:
    """A table with three versions of data."""
    made = Run(config=WindowConfig(drain=300)).tables("a")
    for _ in range(3):
        made.lake.tables["/lake/a"].commit("WRITE", "etl")
    return made


def reads(run: Run, version: int | None, batch: int = 0) -> None:
    """The stream has read so far."""
    run.lake.positions["fraud"] = lambda checkpoint: StreamPosition("fraud", checkpoint, "q", batch, 0, version)


def planned(run: Run, monkeypatch: pytest.MonkeyPatch, *, stops: bool) -> Plan:
    """A plan whose statements stop the stream, or do not."""
    monkeypatch.setattr(derive_statements, "stops_of", lambda *_: ("a stop",) if stops else ())
    (table,) = run.plan().tables
    return replace(run.plan(), tables=(with_streams(table, STREAMS),))


def with_streams(table: TablePlan, streams: tuple[tuple[str, str], ...]) -> TablePlan:
    options = replace(table.basis.options, streams=streams)
    return replace(table, basis=replace(table.basis, options=options))


def stream(report: RunReport) -> StreamRun:
    (found,) = only(report, "a").streams
    return found


def test_a_table_waits_until_its_stream_has_read_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads(run, 1)
    run.clock.later(60, lambda: reads(run, 3, batch=1))
    held: set[Any] = set()
    before = run.clock.on_sleep

    def look() -> None:
        before()
        held.update(run.kinds("a"))

    run.clock.on_sleep = look
    report = run.apply(planned(run, monkeypatch, stops=True))
    assert outcomes(report) == {"a": "applied"}
    assert run.clock.now == pytest.approx(1060, abs=6)
    assert not held  # no lease was taken while it waited
    said = {event.words for event in run.told if event.step == "stream"}
    assert said == {"the stream fraud has read version 1, by batch 0, and must read version 3: the statements stop it"}


def test_a_stream_that_does_not_catch_up_in_time_leaves_the_table_unchanged(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads(run, 1)
    report = run.apply(planned(run, monkeypatch, stops=True))
    assert outcomes(report) == {"a": "no window"}
    assert only(report, "a").message.startswith("after 5 min, the stream fraud has read version 1, by batch 0")
    assert report.exit_code is ExitCode.WINDOW
    assert run.clock.now == pytest.approx(1300, abs=6)
    assert run.lake.tables["/lake/a"].stamped == []


def test_data_that_is_written_while_it_waits_is_not_waited_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads(run, 1)
    run.clock.later(20, lambda: run.lake.tables["/lake/a"].commit("WRITE", "etl"))
    run.clock.later(30, lambda: reads(run, 3))
    assert outcomes(run.apply(planned(run, monkeypatch, stops=True))) == {"a": "applied"}


def test_an_unknown_position_counts_as_behind(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.lake.positions["fraud"] = lambda checkpoint: UnknownStream("fraud", checkpoint, "access is denied")
    report = run.apply(planned(run, monkeypatch, stops=True))
    assert outcomes(report) == {"a": "no window"}
    assert "the stream fraud has an unknown position: access is denied" in only(report, "a").message


def test_a_failed_look_at_the_table_is_not_the_last_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads(run, 3)
    plan, table = planned(run, monkeypatch, stops=True), run.lake.tables["/lake/a"]
    table.broken = "503"
    run.clock.later(5, lambda: setattr(table, "broken", ""))
    assert outcomes(run.apply(plan)) == {"a": "applied"}
    words = [event.words for event in run.told if event.step == "stream"]
    assert words[0] == "the stream fraud cannot be compared with the table: /lake/a: 503"


def test_a_stream_of_a_table_without_rows_need_not_read_any(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Run(config=WindowConfig(drain=300)).tables("a")
    reads(empty, None, batch=-1)
    assert outcomes(empty.apply(planned(empty, monkeypatch, stops=True))) == {"a": "applied"}
    assert empty.clock.now == 1000


def test_the_drain_of_the_table_itself_limits_the_wait(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads(run, 1)
    plan = planned(run, monkeypatch, stops=True)
    (table,) = plan.tables
    own = replace(plan, tables=(replace(table, window=TableWindow(drain=900)),))
    assert only(run.apply(own), "a").message.startswith("after 15 min, the stream fraud has read version 1")


def test_a_reason_to_proceed_goes_on_without_the_stream(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads(run, 1)
    run.engine.stamp = replace(run.engine.stamp, proceed="the stream is retired")
    assert outcomes(run.apply(planned(run, monkeypatch, stops=True))) == {"a": "applied"}


def test_a_stream_that_goes_on_is_not_waited_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads(run, None)
    assert outcomes(run.apply(planned(run, monkeypatch, stops=False))) == {"a": "applied"}
    assert run.clock.now == 1000


def test_a_stream_has_continued_once_it_has_read_rows_written_after_the_change(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads(run, 3)

    def go_on(event: RunEvent) -> None:
        if event.step == "released":
            run.lake.tables["/lake/a"].commit("WRITE", "etl")
            reads(run, 5, batch=1)

    run.notify = go_on
    found = stream(run.apply(planned(run, monkeypatch, stops=True)))
    assert found == StreamRun(
        name="fraud",
        stopped=True,
        before=0,
        after=1,
        read=5,
        continued=True,
        note="continued: it has read version 5, by batch 1",
    )


def test_a_stream_that_stays_where_it_was_has_not_continued(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads(run, 3)
    run.notify = lambda event: run.lake.tables["/lake/a"].commit("WRITE", "etl") if event.step == "released" else None
    found = stream(run.apply(planned(run, monkeypatch, stops=False)))
    assert found.continued is False
    assert found.note == "has not continued yet: it has read version 3, by batch 0, and version 5 has data"


def test_without_new_rows_it_is_unknown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads(run, 3)
    found = stream(run.apply(planned(run, monkeypatch, stops=False)))
    assert found.continued is None
    assert found.note == "nothing was written since, so whether it continued is unknown"


# Hooks


def told_hooks(run: Run) -> list[str]:
    """Collects what the hooks of a run get: the hook, its outcome and the streams."""
    told: list[str] = []

    def run_hook(command: Any, environ: Mapping[str, str], said: Any, stopped: Any) -> str:
        del command, said, stopped
        told.append(f"{environ['TABLECTL_HOOK']} {environ.get('TABLECTL_OUTCOME')} {environ['TABLECTL_STREAMS']}")
        return ""

    run.config = WindowConfig(before=(("./streams.sh", "stop"),), after=(("./streams.sh", "start"),))
    run.run_hook = run_hook
    return told


def test_hooks_get_the_streams_that_the_statements_stop(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads(run, 3)
    told = told_hooks(run)
    run.apply(planned(run, monkeypatch, stops=True))
    assert told == ["before None fraud", "after applied fraud"]


def test_hooks_get_no_stream_that_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads(run, 3)
    told = told_hooks(run)
    run.apply(planned(run, monkeypatch, stops=False))
    assert told == ["before None ", "after applied "]


def test_the_hook_of_a_run_that_died_starts_every_stream_although_none_is_stopped_now(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads(run, 3)
    told = told_hooks(run)
    died = try_acquire(run.stores["/lake/a"], claim("ben"), run.clock)
    assert isinstance(died, Lease)
    died.owe(("./streams.sh start",))
    run.apply(planned(run, monkeypatch, stops=False))
    assert told == ["after unfinished fraud", "before None ", "after applied "]


def test_a_stream_that_a_dead_run_stopped_is_started_before_its_table_waits_for_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads(run, 1)
    told = told_hooks(run)
    run.notify = lambda event: reads(run, 3) if event.step == "hook after" else None
    died = try_acquire(run.stores["/lake/a"], claim("ben"), run.clock)
    assert isinstance(died, Lease)
    died.owe(("./streams.sh start",))
    report = run.apply(planned(run, monkeypatch, stops=True))
    assert outcomes(report) == {"a": "applied"}
    assert told == ["after unfinished fraud", "before None fraud", "after applied fraud"]


def test_hooks_of_a_shared_window_get_the_streams_of_all_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """They run once: the streams of the other table would not be stopped before its statements break them."""
    run = Run(together=("ledger",)).tables("ab")
    run.tags = dict.fromkeys("ab", ("ledger",))
    for each in ("of-a", "of-b"):
        run.lake.positions[each] = lambda checkpoint: StreamPosition("s", checkpoint, "q", 0, 0, 9)
    monkeypatch.setattr(derive_statements, "stops_of", lambda *_: ("a stop",))
    told, plan = told_hooks(run), run.plan()
    tables = [with_streams(table, ((f"of-{table.name[-2]}", "/c"),)) for table in plan.tables]
    assert run.apply(replace(plan, tables=tuple(tables))).exit_code == 0
    assert told == ["before None of-a of-b", "after applied of-a of-b"]


# Streams that write the table


def wrote(batch: int, version: int, query: str = "q") -> StreamWriter:
    return StreamWriter("fraud", "/checkpoints/fraud", query, batch, version, 0)


def after_change(run: Run, monkeypatch: pytest.MonkeyPatch, before: StreamState, now: StreamState) -> StreamRun:
    """What became of a stream whose state changes when the gate opens. The run commits version 4."""
    states = [before]
    run.lake.positions["fraud"] = lambda _checkpoint: states[-1]
    run.notify = lambda event: states.append(now) if event.step == "released" else None
    return stream(run.apply(planned(run, monkeypatch, stops=True)))


def test_a_stream_that_writes_has_continued_once_a_later_batch_is_in_the_log(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = after_change(run, monkeypatch, wrote(6, 3), wrote(7, 5))
    assert found == StreamRun(
        name="fraud",
        stopped=False,
        before=6,
        after=7,
        continued=True,
        note="continued: it has written batch 7 in version 5",
    )
    assert run.clock.now == 1000  # the apply did not wait for it: the statements stop only streams that read


@pytest.mark.parametrize(
    ("now", "continued", "note"),
    [
        (wrote(6, 3), None, "has not written since, and may have had nothing to write: it has written batch 6"),
        # It landed before the last commit of the run.
        (wrote(7, 4), None, "has not written since, and may have had nothing to write: it has written batch 7"),
        (wrote(0, 5, "another"), False, "began again with a new checkpoint: it has written batch 0 in version 5"),
        (wrote(6, 5), False, "began again: it has written batch 6 in version 5, and had written batch 6 before"),
        (UnknownStream("fraud", "/c", "access is denied"), None, "has an unknown position: access is denied"),
    ],
)
def test_a_stream_that_writes_has_not_continued_without_a_later_batch(
    run: Run, monkeypatch: pytest.MonkeyPatch, now: StreamState, continued: bool | None, note: str
) -> None:
    found = after_change(run, monkeypatch, wrote(6, 3), now)
    assert found.continued is continued
    assert found.note.startswith(note)


def test_a_stream_that_was_unknown_before_has_continued_by_its_batch(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.engine.stamp = replace(run.engine.stamp, proceed="its checkpoint is new")
    found = after_change(run, monkeypatch, UnknownStream("fraud", "/c", "no batch"), wrote(0, 5))
    assert (found.before, found.after, found.continued) == (None, 0, True)
