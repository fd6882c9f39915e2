"""Several drivers: a table stays on one, and leaves it only once nothing of it can commit there any more."""

from __future__ import annotations

import pytest

from tablectl.applying.drivers import Driver, DriverWait, Placement
from tablectl.applying.run_context import TableJob
from tablectl.applying.waits import GO, Answer, End, Later
from tablectl.leases.lease_records import PATIENCE, RunningStatement
from tablectl.model.errors import EngineError
from tablectl.model.run_report import RunReport
from tests.applying.fake_lake import FakeEngine, FakeTable, at, parse_sql
from tests.applying.lake_run import Run, only, outcomes

BOUND = 400 * PATIENCE


def two_drivers(tables: str = "abcd", parallel: int = 1) -> Run:
    return Run(parallel=parallel).tables(tables).drivers("one", "two")


def dies(engine: FakeEngine, *, tells: bool | None = None) -> None:
    """The engine gives no answer from now on. ``tells`` is what it says of its operations."""
    engine.is_alive = False
    engine.running = {"*": tells}
    raise EngineError("the connection broke", "", unanswered=True)


def all_die(run: Run, when: str) -> None:
    """Both engines give no answer any more as soon as one of them reaches that point of a statement."""

    def hook(*_: object) -> None:
        for engine in run.more.values():
            engine.is_alive, engine.running = False, {"*": None}
        raise EngineError("the connection broke", "", unanswered=True)

    for engine in run.more.values():
        setattr(engine, when, hook)


def commits(run: Run) -> dict[str, int]:
    """The commits of the run, by table."""
    return {table.name.text[-2]: len(table.commits_of("r1")) for table in run.lake.tables.values()}


def drivers_of(report: RunReport) -> dict[str, str]:
    return {table.name[-2]: table.driver for table in report.tables}


def test_each_table_runs_on_one_driver_and_the_report_names_it() -> None:
    run = two_drivers()
    report = run.apply()
    assert outcomes(report) == dict.fromkeys("abcd", "applied")
    assert drivers_of(report) == {"a": "one", "b": "two", "c": "one", "d": "two"}
    sent = {name: sorted(sql[sql.index("/lake/") + 6] for sql in engine.sent) for name, engine in run.more.items()}
    assert sent == {"one": ["a", "c"], "two": ["b", "d"]}


def test_a_server_that_dies_between_the_announcement_and_the_request_keeps_its_table_until_the_bound() -> None:
    run = two_drivers("a")
    run.more["one"].on_send = lambda: dies(run.more["one"])
    report = run.apply()
    assert (outcomes(report), commits(run)) == ({"a": "applied"}, {"a": 1})
    assert drivers_of(report) == {"a": "two"}
    assert only(report, "a").took_ms >= 1000 * BOUND
    assert only(report, "a").notes == ("moved from one, which does not answer any more, to two",)


def test_a_server_that_dies_after_its_commit_leaves_exactly_one_commit() -> None:
    run = two_drivers("a")
    run.more["one"].after = lambda _table, _sql: dies(run.more["one"])
    report = run.apply()
    assert (outcomes(report), commits(run)) == ({"a": "applied"}, {"a": 1})


def test_a_server_that_was_started_again_runs_nothing_so_its_table_moves_at_once() -> None:
    run = two_drivers("a")
    run.more["one"].on_send = lambda: dies(run.more["one"], tells=False)
    report = run.apply()
    assert (outcomes(report), commits(run)) == ({"a": "applied"}, {"a": 1})
    assert only(report, "a").took_ms < 10_000


def test_a_table_does_not_leave_a_server_that_pauses_and_commits_when_it_goes_on() -> None:
    run = two_drivers("a")
    one, table = run.more["one"], run.lake.tables["/lake/a"]

    def pauses(_table: FakeTable, sql: str) -> None:
        one.before = lambda _table, _sql: None

        def goes_on() -> None:
            one._run(table, parse_sql(sql))  # what a driver that was paused still had to do
            one.is_alive, one.running = True, {}

        run.clock.later(BOUND - 100, goes_on)
        dies(one)

    one.before = pauses
    report = run.apply()
    assert (outcomes(report), commits(run)) == ({"a": "applied"}, {"a": 1})
    assert (drivers_of(report)["a"], only(report, "a").notes) == ("one", ())


def test_a_commit_of_a_server_that_stays_silent_is_found_and_not_made_again() -> None:
    run = two_drivers("a")
    one, table = run.more["one"], run.lake.tables["/lake/a"]

    def pauses(_table: FakeTable, sql: str) -> None:
        run.clock.later(BOUND - 100, lambda: one._run(table, parse_sql(sql)))
        dies(one)

    one.before = pauses
    report = run.apply()
    assert (outcomes(report), commits(run)) == ({"a": "applied"}, {"a": 1})
    assert drivers_of(report)["a"] == "two"


def test_the_tables_that_a_dead_server_had_not_begun_continue_on_the_living_ones() -> None:
    run = two_drivers("abcdefgh")
    run.more["one"].before = at(2, lambda _table: dies(run.more["one"], tells=False))
    report = run.apply()
    assert outcomes(report) == dict.fromkeys("abcdefgh", "applied")
    assert commits(run) == dict.fromkeys("abcdefgh", 1)
    assert drivers_of(report) == {"a": "one", **dict.fromkeys("bcdefgh", "two")}
    assert only(report, "e").took_ms < 1000 * BOUND, "only the table whose statement was in flight waits for the bound"


def test_a_run_whose_servers_all_die_ends_soon_and_says_that_the_end_is_unknown() -> None:
    run = two_drivers("a")
    all_die(run, "on_send")
    report = run.apply()
    assert (outcomes(report), int(report.exit_code)) == ({"a": "unknown"}, 5)
    assert report.took_ms < 1000 * BOUND, "there is no server for which the end is worth waiting for"


def test_tables_for_which_no_server_is_left_fail_and_nothing_is_sent() -> None:
    run = two_drivers()
    for engine in run.more.values():
        engine.is_alive = False
    report = run.apply()
    assert {(str(each.outcome), each.message) for each in report.tables} == {
        ("failed", "no server of `engine.remotes` answers")
    }
    assert not any(engine.sent for engine in run.more.values())


def test_the_same_command_again_applies_what_a_dead_server_left() -> None:
    run = two_drivers("a")
    plan = run.plan()
    all_die(run, "after")
    run.apply(plan)
    run.drivers("one", "two")  # both were started again
    report = run.apply(plan)
    assert (outcomes(report), commits(run)) == ({"a": "already"}, {"a": 1})


def test_an_error_of_the_engine_that_answers_moves_nothing() -> None:
    run = two_drivers("ab")

    def refuses(_table: FakeTable, _sql: str) -> None:
        raise EngineError("no", "", "DELTA_NO")

    run.more["one"].before = refuses
    report = run.apply()
    assert (outcomes(report), drivers_of(report)) == ({"a": "failed", "b": "applied"}, {"a": "one", "b": "two"})


def test_tables_that_share_a_window_move_together() -> None:
    run = two_drivers("abc", parallel=2)
    run.together = ("delta.`/lake/[ab]`",)
    run.more["one"].on_send = lambda: dies(run.more["one"], tells=False)
    report = run.apply()
    assert outcomes(report) == dict.fromkeys("abc", "applied")
    assert (drivers_of(report)["a"], drivers_of(report)["b"], commits(run)) == ("two", "two", dict.fromkeys("abc", 1))


def test_a_statement_of_a_killed_run_is_ended_on_the_server_that_it_was_sent_to() -> None:
    """The next run may place the table elsewhere: the record names the server, and this run has it, too."""
    run = two_drivers("ab")
    run.more["two"].running = {"tablectl-r0-1": False}
    run.more["one"].running = {"tablectl-r0-1": None}
    lease = run.hold("a", "ann")
    lease.announce(RunningStatement("at two", "tablectl-r0-1", 400))
    run.clock.on_sleep = lambda: None
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "applied"}
    assert ("tablectl-r0-1", "at two") in run.more["two"].interrupted
    assert only(report, "a").took_ms < 1000 * BOUND


def test_several_drivers_are_never_the_writers_own() -> None:
    run = two_drivers("ab")
    assert "on a local disk two drivers can overwrite each other's commits" in run.apply().notes[0]


def test_one_server_of_several_is_not_the_writers_own_either() -> None:
    run = Run().tables("a").drivers("one")
    assert "on a local disk two drivers can overwrite each other's commits" in run.apply().notes[0]


# Placement


def placed(*sizes: int, drivers: int = 2) -> list[str]:
    work = {f"t{number}": size for number, size in enumerate(sizes)}
    engines = [Driver(str(number), FakeEngine(Run().lake, Run().engine.stamp)) for number in range(drivers)]
    placement = Placement(engines, work)
    return [placement.driver_of(key).name for key in work]


def test_tables_are_placed_by_their_expected_work() -> None:
    assert placed(100, 10, 10, 10) == ["0", "1", "1", "1"]


@pytest.mark.parametrize("count", [1, 3])
def test_equal_tables_are_spread_evenly(count: int) -> None:
    names = placed(*[7] * 12, drivers=count)
    assert {names.count(name) for name in names} == {12 // count}


def pair() -> tuple[FakeEngine, FakeEngine, DriverWait]:
    run = Run()
    one, two = (FakeEngine(run.lake, run.engine.stamp, address=name) for name in ("at one", "at two"))
    job = TableJob(run.context(), ())
    return one, two, DriverWait(job, Placement([Driver("one", one), Driver("two", two)], {"t": 1}), "t")


def moved(answer: Answer) -> str | None:
    """The driver that the tables move to."""
    assert isinstance(answer, Later)
    return answer.driver


def test_a_statement_of_another_server_is_not_waited_for_on_this_one() -> None:
    one, _, wait = pair()
    wait.note_running([RunningStatement("elsewhere", "tablectl-x", 100), None], now=0)
    one.is_alive = False
    assert moved(wait.check(1)) == "two"


def test_a_job_waits_for_its_statement_until_the_bound_has_passed() -> None:
    one, two, wait = pair()
    one.is_alive, one.running = False, {"*": None}
    wait.note_running([RunningStatement("at one", "tablectl-x", 100)], now=0)
    assert moved(wait.check(100 * PATIENCE - 1)) is None
    assert moved(wait.check(100 * PATIENCE)) == "two"
    assert wait.check(100 * PATIENCE) == GO
    assert wait._job.window.engine is two
    assert wait._job.window.over == {"tablectl-x"}


def test_a_driver_that_answers_again_keeps_its_job() -> None:
    one, _, wait = pair()
    one.is_alive, one.running = False, {"*": None}
    wait.note_running([RunningStatement("at one", "tablectl-x", 100)], now=0)
    assert moved(wait.check(1)) is None
    one.is_alive = True
    assert (wait.check(1000), wait._job.window.over) == (GO, frozenset())


def test_drivers_that_come_and_go_do_not_move_a_job_forever() -> None:
    one, two, wait = pair()
    answers = []
    for turn in range(10):
        one.is_alive, two.is_alive = turn % 2 == 1, turn % 2 == 0
        answers.append(wait.check(turn))
    assert [moved(each) for each in answers[:4]] == ["two", "one", "two", "one"]
    assert any(isinstance(each, End) for each in answers)
