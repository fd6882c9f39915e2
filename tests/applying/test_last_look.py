"""Exit code 0 means that each table is as declared when the run ends, whatever others did since our last commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tablectl.applying.events import RunEvent
from tablectl.model.errors import EngineError, MissingError
from tablectl.model.plan import Plan
from tablectl.model.run_report import RunOutcome, RunReport
from tablectl.policies.config import WindowConfig
from tests.applying.fake_lake import FakeTable
from tests.applying.lake_run import Run, only
from tests.leases.lease_fakes import MemoryRecords

A = "/lake/a"
KEY = "delta.isolationLevel"


def without(table: FakeTable) -> dict[str, str]:
    return {key: value for key, value in table.live.properties.items() if key != KEY}


def undone_and_done_again(table: FakeTable) -> None:
    table.set_property(KEY, None, "eve")
    table.set_property(KEY, "Serializable", "eve")


def made_again(table: FakeTable, versions: int) -> None:
    """A new table at the same place, which counts its versions from 0."""
    table.states[:] = [replace(table.states[0], table_id="another")]
    table.history[:] = [replace(table.history[0], user="eve")]
    table.rows[:] = [1]
    for _ in range(versions):
        table.commit("WRITE", "eve")


STRANGERS: dict[str, Callable[[FakeTable], None]] = {
    "RESTORE": lambda table: table.commit("RESTORE", "eve", properties=without(table)),
    "ALTER": lambda table: table.set_property(KEY, "WriteSerializable", "eve"),
    "UNSET": lambda table: table.set_property(KEY, None, "eve"),
    "REPLACE": lambda table: table.commit("CREATE OR REPLACE TABLE", "eve", table_id="another", properties={}),
}
"""What undoes the change of these tests."""

BESIDE: dict[str, Callable[[FakeTable], None]] = {
    "append": lambda table: table.commit("WRITE", "eve"),
    "another setting": lambda table: table.set_property("owner.team", "web", "eve"),
    "nothing": lambda table: None,
    "undone and done again": undone_and_done_again,
}

MOMENTS = ("after set", "verify", "hook after", "released", "other table", "soak")
"""When it happens: with each later step of the run still to come."""


def scene(moment: str, act: Callable[[FakeTable], None]) -> Run:
    """Two tables, of which a stranger changes the first at a moment of the run."""
    config = WindowConfig(after=(("./resume.sh",),), before=(("./pause.sh",),))
    groups: tuple[tuple[str, ...], ...] = ()
    if moment == "soak":
        config = WindowConfig(canary=1, soak=60, stop_if_failed=100)
        groups = (("delta.`/lake/a`", "delta.`/lake/b`"),)
    done = list[str]()

    def once(now: str) -> None:
        if now == moment and not done:
            done.append(now)
            act(run.lake.tables[A])

    def hook(command: object, environ: dict[str, str], said: object, stopped: object) -> str:
        once(f"hook {environ['TABLECTL_HOOK']}" if environ["TABLECTL_TABLE"].endswith("a`") else "")
        return ""

    run = Run(config=config, parallel=1, run_hook=hook, table_groups=groups).tables("ab")  # type: ignore[arg-type]

    def notify(event: RunEvent) -> None:
        once(event.step if event.table != "delta.`/lake/b`" else {"verify": "other table"}.get(event.step, ""))

    def after(table: FakeTable, _sql: str) -> None:
        once("after set" if table is run.lake.tables[A] else "")

    run.notify, run.engine.after = notify, after
    return run


def applied(run: Run, plan: Plan | None = None) -> RunReport:
    return run.apply(plan)


@pytest.mark.parametrize("versions", [0, 5])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_table_that_was_dropped_and_created_again_is_not_reported_as_applied(moment: str, versions: int) -> None:
    report = applied(scene(moment, lambda table: made_again(table, versions)))
    assert only(report, "a").outcome in {RunOutcome.UNVERIFIED, RunOutcome.STALE}
    assert report.exit_code == 5


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_undoes_a_change_before_the_end_of_the_run_decides_the_outcome(moment: str, stranger: str) -> None:
    report = applied(scene(moment, STRANGERS[stranger]))
    found = only(report, "a")
    assert (found.outcome, int(report.exit_code)) == (RunOutcome.UNVERIFIED, 5)
    assert found.message.startswith("isolation: applied and verified, then changed by others: version 2 (")
    assert (found.later, found.changed) == (("isolation",), ("isolation",))
    assert only(report, "b").outcome is RunOutcome.APPLIED


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("stranger", BESIDE)
def test_what_undoes_nothing_changes_no_outcome(moment: str, stranger: str) -> None:
    report = applied(scene(moment, BESIDE[stranger]))
    assert (only(report, "a").outcome, int(report.exit_code)) == (RunOutcome.APPLIED, 0)
    assert only(report, "a").later == ()


@pytest.mark.parametrize("moment", MOMENTS[2:])
def test_a_table_that_cannot_be_looked_at_at_the_end_is_not_verified(moment: str) -> None:
    report = applied(scene(moment, lambda table: setattr(table, "broken", "no such directory")))
    found = only(report, "a")
    assert (found.outcome, int(report.exit_code)) == (RunOutcome.UNVERIFIED, 5)
    assert found.message == (
        "it was as declared, and could not be looked at again at the end of the run: /lake/a: no such directory"
    )


def test_a_table_that_was_as_declared_before_the_run_is_looked_at_too() -> None:
    run = Run(parallel=1).tables("ab")
    plan = run.plan()
    run.lake.tables[A].set_property(KEY, "Serializable", "eve")

    def notify(event: RunEvent) -> None:
        if event.table == "delta.`/lake/b`" and event.step == "verify":
            run.lake.tables[A].set_property(KEY, None, "eve")

    run.notify = notify
    found = only(run.apply(plan), "a")
    assert (found.outcome, found.later) == (RunOutcome.UNVERIFIED, ("isolation",))


@pytest.mark.parametrize("versions", range(4))
def test_a_table_that_another_client_changed_first_and_that_was_made_again_is_not_as_declared(versions: int) -> None:
    run = Run(parallel=1).tables("ab")
    plan = run.plan()
    run.lake.tables[A].set_property(KEY, "Serializable", "eve")

    def notify(event: RunEvent) -> None:
        if event.table == "delta.`/lake/b`" and event.step == "verify":
            made_again(run.lake.tables[A], versions)

    run.notify = notify
    report = run.apply(plan)
    found = only(report, "a")
    assert (found.outcome, int(report.exit_code)) == (RunOutcome.UNVERIFIED, 5)


def named() -> Run:
    """A table of a catalog, and one by its path."""
    run = Run(parallel=1)
    run.lake.add("lake.sales.orders", location=A)
    run.lake.add("delta.`/lake/b`")
    run.stores |= {A: MemoryRecords(), "/lake/b": MemoryRecords()}
    return run


def test_a_name_that_was_moved_after_the_change_is_reported() -> None:
    run = named()

    def notify(event: RunEvent) -> None:
        if event.table == "lake.sales.orders" and event.step == "released":
            run.lake.tables[A].moved_to = "/lake/swapped"

    run.notify = notify
    report = run.apply()
    found = next(each for each in report.tables if each.name == "lake.sales.orders")
    assert (found.outcome, int(report.exit_code)) == (RunOutcome.UNVERIFIED, 5)
    assert "/lake/a is as declared, and the name lake.sales.orders was moved to /lake/swapped since" in found.message


def test_a_name_that_was_dropped_after_the_change_is_reported() -> None:
    run = named()

    def gone(_name: object) -> str:
        raise MissingError("lake.sales.orders does not exist")

    def notify(event: RunEvent) -> None:
        if event.table == "lake.sales.orders" and event.step == "released":
            run.engine.location = gone  # type: ignore[method-assign,assignment]

    run.notify = notify
    found = next(each for each in run.apply().tables if each.name == "lake.sales.orders")
    assert found.outcome is RunOutcome.UNVERIFIED


def test_an_engine_that_dies_after_the_last_statement_changes_no_outcome() -> None:
    """The log says that the table is as declared, and its name was looked up directly before the statement."""
    run = named()

    def notify(event: RunEvent) -> None:
        if event.step == "released" and event.table == "lake.sales.orders":
            run.engine.is_alive = False

    run.notify = notify
    found = next(each for each in run.apply().tables if each.name == "lake.sales.orders")
    assert found.outcome is RunOutcome.APPLIED


def test_a_run_that_failed_keeps_its_own_words() -> None:
    run = Run().tables("a")

    def fails(_table: FakeTable, _sql: str) -> None:
        run.lake.tables[A].broken = "gone"
        raise EngineError("no space left")

    run.engine.before = fails
    assert only(run.apply(), "a").outcome is not RunOutcome.UNVERIFIED
