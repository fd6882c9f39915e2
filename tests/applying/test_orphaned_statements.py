"""A statement that may still commit keeps its writers waiting and its jobs paused, however a run ends.

A run was killed, or ended, while its statement ran on in the engine. The statement commits late, and says nothing until
then. Whatever the next run does, and however it ends, no guarded append enters before the commit or the bound of the
statement, and no after-hook runs before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import product

import pytest

from tablectl.applying.events import RunEvent
from tablectl.applying.hooks import OwedHookTable
from tablectl.applying.run_context import TAG
from tablectl.leases.clock import StoppedError
from tablectl.leases.guards import GuardMode, GuardRecord
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import Gate, RunningStatement, tail
from tablectl.model.calendar import Rule
from tablectl.model.errors import EngineError
from tablectl.model.plan import Plan, Refusal
from tablectl.model.run_report import RunReport
from tablectl.model.stamp import Stamp
from tablectl.policies.config import WindowConfig
from tablectl.storage.failures import missing_right
from tablectl.writers.gate_entry import GateEntry, GuardTimeout, StoredGuard
from tests.applying.fake_lake import FakeEngine, FakeTable, Hook, parse_sql
from tests.applying.lake_run import Run, only, outcomes, plan_of
from tests.leases.lease_fakes import MemoryRecords, claim, try_acquire

BOUND = 400.0
RESUME = ("./resume.sh",)
TAG_OF_THE_DEAD = f"{TAG}r0-1"


class Rights(MemoryRecords):
    """A store that may refuse deletions for the lack of a right."""

    denies = False

    def delete(self, name: str) -> None:
        if self.denies:
            raise missing_right("delete", str(self), name, "")
        super().delete(name)


@dataclass
class Orphan:
    """One table with a statement that a dead run left, a run over it, and what is seen of both.

    ``commits_after`` is when the statement commits, in seconds from its announcement; ``None`` for never. What the
    writer may know of it is the bound and the log alone.
    """

    commits_after: float | None
    gate: Gate = Gate.CLOSED
    run: Run = field(init=False)
    resumed: list[float] = field(default_factory=list)
    since: float = 0.0
    let_in: list[str] = field(default_factory=list)
    """What happened at the moments at which the gate let appends in although the statement might still commit."""

    def __post_init__(self) -> None:
        config = WindowConfig(before=(("./pause.sh",),), after=(RESUME,))
        self.run = Run(config=config, run_hook=self, notify=lambda event: self._look(event.step)).tables("a")
        self.store = self.run.stores["/lake/a"] = Rights()
        self.run.engine.address = "connect host:1 s u"
        self.run.engine.running = {TAG_OF_THE_DEAD: None}
        self.table: FakeTable = self.run.lake.tables["/lake/a"]
        self.run.clock.on_sleep = lambda: self._look("sleep")

    def __call__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        if environ["TABLECTL_HOOK"] == "after":
            self.resumed.append(self.run.clock.now)
        self._look(command[0])
        return ""

    @property
    def over_at(self) -> float:
        """When it cannot commit any more."""
        return self.since + (BOUND if self.commits_after is None else self.commits_after)

    def leave(self, *, owes: bool, released: bool) -> None:
        """A run sends the statement, and is gone."""
        lease = try_acquire(self.store, claim("ben"), self.run.clock)
        assert isinstance(lease, Lease)
        if owes:
            lease.owe((" ".join(RESUME),))
        lease.gate(self.gate)
        lease.announce(RunningStatement("connect host:1 s u", TAG_OF_THE_DEAD, BOUND, "r0", self.table.live.version))
        self.since = self.run.clock.now
        if released:
            lease.release()
        if self.commits_after is not None:
            self.run.clock.later(self.commits_after, self._commit)

    def _commit(self) -> None:
        self.table.commit("SET TBLPROPERTIES", "apply", Stamp("r0", "d0").text(), properties={"debug": "on"})

    def _look(self, what: str) -> None:
        if not 0 < self.since <= self.run.clock.now < self.over_at:
            return
        down, self.store.down = self.store.down, False
        last = tail(self.store)
        self.store.down = down
        if last is None or not GuardMode.APPEND.waits(last.shut):
            self.let_in.append(f"{what} after {self.run.clock.now - self.since:.0f} s: {last}")

    def entered_at(self, mode: GuardMode = GuardMode.APPEND) -> float:
        """When a guarded write enters that comes now, and that cannot read the log."""
        guard = StoredGuard(self.store, GuardRecord("0123abcd", 0, "etl", mode), claim("etl").owner)
        self.store.denies = self.store.down = False
        GateEntry(guard, "a", None, self.run.clock, lambda call: call()).enter()
        return float(self.run.clock.now)


# How a run can end


def at_its_end(_case: Orphan, plan: Plan) -> Plan:
    return plan


def stopped_at_once(case: Orphan, plan: Plan) -> Plan:
    case.run.stop.set()
    return plan


def stopped_while_it_waits(case: Orphan, plan: Plan) -> Plan:
    case.run.clock.later(100, case.run.stop.set)
    return plan


def without_a_right(case: Orphan, plan: Plan) -> Plan:
    case.store.denies = True
    return plan


def with_a_table_that_cannot_be_read(case: Orphan, plan: Plan) -> Plan:
    case.run.clock.later(100, lambda: setattr(case.table, "broken", "access denied"))
    return plan


def with_a_store_that_fails(case: Orphan, plan: Plan) -> Plan:
    case.run.clock.later(100, lambda: setattr(case.store, "down", True))
    return plan


def with_a_statement_that_the_engine_does_not_end(case: Orphan, plan: Plan) -> Plan:
    case.run.engine.running = {TAG_OF_THE_DEAD: True}
    return plan


def outside_of_the_calendar(case: Orphan, plan: Plan) -> Plan:
    nights = Rule(cron="0 22 * * *", duration=timedelta(hours=1))
    case.run.config = replace(case.run.config, allow=(nights,))
    return plan


def with_a_refused_plan(_case: Orphan, plan: Plan) -> Plan:
    (table,) = plan.tables
    return plan_of(replace(table, refusals=(Refusal(change="isolation", reason="lint", fix="x"),)))


def with_nothing_to_change(_case: Orphan, _plan: Plan) -> Plan:
    return plan_of()


def with_a_name_that_leads_elsewhere(case: Orphan, plan: Plan) -> Plan:
    case.table.moved_to = "/lake/b"
    return plan


def with_a_failing_approval(case: Orphan, plan: Plan) -> Plan:
    (table,) = plan.tables
    case.table.states[-1] = replace(case.table.live, table_id="another")
    return plan_of(table)


ENDS = (
    at_its_end,
    stopped_at_once,
    stopped_while_it_waits,
    without_a_right,
    with_a_table_that_cannot_be_read,
    with_a_store_that_fails,
    with_a_statement_that_the_engine_does_not_end,
    outside_of_the_calendar,
    with_a_refused_plan,
    with_nothing_to_change,
    with_a_name_that_leads_elsewhere,
    with_a_failing_approval,
)


def ended(end: Callable[[Orphan, Plan], Plan], case: Orphan, *, owes: bool, released: bool) -> RunReport:
    plan = case.run.plan()
    case.leave(owes=owes, released=released)
    return case.run.apply(end(case, plan), (OwedHookTable("delta.`/lake/a`", "/lake/a"),))


@pytest.mark.parametrize(
    ("end", "owes", "released", "commits_after"),
    list(product(ENDS, (True, False), (True, False), (15.0, 90.0, 300.0, None))),
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_however_a_run_ends_no_append_enters_and_no_job_is_resumed_while_a_statement_may_commit(
    end: Callable[[Orphan, Plan], Plan], owes: bool, released: bool, commits_after: float | None
) -> None:
    case = Orphan(commits_after)
    ended(end, case, owes=owes, released=released)
    assert case.let_in == []
    assert [at for at in case.resumed if at < case.over_at] == []
    assert case.entered_at() >= case.over_at


@pytest.mark.parametrize("end", [at_its_end, with_nothing_to_change, with_a_refused_plan, outside_of_the_calendar])
def test_a_statement_that_commits_is_waited_for_no_longer_and_then_the_jobs_are_resumed(
    end: Callable[[Orphan, Plan], Plan],
) -> None:
    case = Orphan(commits_after=90)
    report = ended(end, case, owes=True, released=False)
    assert (only(report, "a").owed, only(report, "a").shut) == ((), "")
    assert 90 <= case.resumed[0] - case.since <= 92
    assert case.entered_at() - case.since <= 95


def test_one_of_which_nothing_is_seen_is_waited_for_until_its_bound() -> None:
    case = Orphan(commits_after=None)
    report = ended(at_its_end, case, owes=True, released=True)
    assert outcomes(report) == {"a": "applied"}
    assert case.resumed[0] - case.since == pytest.approx(BOUND * 1.25, abs=2)


def test_a_run_that_is_stopped_meanwhile_says_for_how_long_writers_wait_and_what_opens_the_gate() -> None:
    case = Orphan(commits_after=None)
    report = ended(stopped_while_it_waits, case, owes=True, released=True)
    run = only(report, "a")
    assert (run.owed, case.resumed) == ((RESUME[0],), [])
    assert 370_000 < run.shut_ms <= 500_000
    left = run.shut_ms / 1000
    assert run.shut == (
        f"writers may wait at its gate for {left:.0f} s at most: a statement may still run in the engine; "
        "`tablectl window break 'delta.`/lake/a`' --epoch 2 --reason …` opens it at once"
    )
    assert int(report.exit_code) in {1, 5}
    stopped = case.run.clock.now
    assert case.entered_at() - stopped == pytest.approx(left, abs=3)


def stopped_in_its_sleep(case: Orphan, plan: Plan) -> Plan:
    """As the clock of the machine does it."""
    sleep, until = case.run.clock.sleep, case.run.clock.now + 100

    def interrupted(seconds: float) -> None:
        if case.run.clock.now + seconds >= until:
            case.run.stop.set()
            raise StoppedError("stopped while waiting", "run it again")
        sleep(seconds)

    case.run.clock.sleep = interrupted
    return plan


def with_a_store_that_stays_down(case: Orphan, plan: Plan) -> Plan:
    case.run.clock.later(100, lambda: setattr(case.store, "down", True))
    return plan


@pytest.mark.parametrize("end", [stopped_in_its_sleep, with_a_store_that_stays_down])
@pytest.mark.parametrize("changes", [True, False], ids=["to apply", "unchanged"])
def test_a_run_that_ends_while_it_settles_what_is_owed_says_that_the_gate_is_shut(
    end: Callable[[Orphan, Plan], Plan],
    changes: bool,
) -> None:
    case = Orphan(commits_after=None)
    report = ended(lambda case, plan: end(case, plan if changes else plan_of()), case, owes=True, released=True)
    run = only(report, "a")
    assert run.owed == RESUME
    assert run.shut_ms > 300_000
    assert int(report.exit_code) in {1, 5}


@pytest.mark.parametrize("end", [with_nothing_to_change, with_a_refused_plan])
@pytest.mark.parametrize("hooks", [True, False], ids=["hooks", "no hooks"])
@pytest.mark.parametrize("released", [True, False])
def test_a_table_that_is_not_applied_opens_its_gate_too(
    end: Callable[[Orphan, Plan], Plan],
    hooks: bool,
    released: bool,
) -> None:
    """Exit code 0 says that its writers may write."""
    case = Orphan(commits_after=90)
    if not hooks:
        case.run.config = WindowConfig()
    report = ended(end, case, owes=False, released=released)
    assert only(report, "a").shut == ""
    assert case.let_in == []
    assert 90 <= case.run.clock.now - case.since <= 92
    arrived = case.run.clock.now
    assert case.entered_at() == arrived


def test_a_table_that_is_not_applied_and_that_another_run_holds_is_left_alone() -> None:
    case = Orphan(commits_after=None)
    other = case.run.hold("a")
    other.gate(Gate.CLOSED)
    other.announce(RunningStatement("connect host:1 s u", TAG_OF_THE_DEAD, BOUND, "r0", 0))
    began = case.run.clock.now
    case.run.apply(plan_of(), (OwedHookTable("delta.`/lake/a`", "/lake/a"),))
    assert not other.lost
    assert case.run.clock.now - began < 20


@pytest.mark.parametrize("gate", [Gate.NO_SCHEMA, Gate.APPENDS_ONLY])
def test_the_gate_that_stays_is_the_one_of_the_statement(gate: Gate) -> None:
    """A rewrite of hours that lost its client does not stop appends."""
    case = Orphan(commits_after=None, gate=gate)
    case.leave(owes=False, released=True)
    assert case.entered_at() == case.since
    assert case.entered_at(GuardMode.ANY) - case.since == pytest.approx(BOUND * 1.25, abs=2)


@pytest.mark.parametrize("owes", [True, False])
def test_a_guard_in_a_callback_does_not_wait_for_the_apply_that_it_is_in(owes: bool) -> None:
    case = Orphan(commits_after=None)
    plan, refused = case.run.plan(), list[str]()

    def write(event: RunEvent) -> None:
        if event.step == "statement left":
            try:
                case.entered_at()
            except GuardTimeout as error:
                refused.append(error.message)

    case.leave(owes=owes, released=True)
    case.run.notify = write
    case.run.apply(plan, (OwedHookTable("delta.`/lake/a`", "/lake/a"),))
    assert refused
    assert "would wait for itself" in refused[0]


# A statement of the run itself, whose answer did not come


@dataclass
class Unanswered(Orphan):
    """The engine gives no answer to the statement that the run sends to the first table, and makes it later."""

    def leave(self, *, owes: bool = False, released: bool = False) -> None:
        self.run.engine.bound, self.run.engine.before = BOUND, self._lost(self.run.engine)

    def _lost(self, engine: FakeEngine) -> Hook:
        def lost(table: FakeTable, sql: str) -> None:
            if table is not self.table or self.since:
                return
            self.since = self.run.clock.now
            engine.running = {"*": None}
            if self.commits_after is not None:
                self.run.clock.later(self.commits_after, lambda: engine._run(table, parse_sql(sql)))
            self.on_loss(engine)
            raise EngineError("the connection was reset", unanswered=True)

        return lost

    on_loss: Callable[[FakeEngine], None] = lambda _engine: None


def nothing_else(_case: Unanswered) -> None: ...


def ctrl_c(case: Unanswered) -> None:
    case.on_loss = lambda _engine: case.run.stop.set()


def the_log_breaks(case: Unanswered) -> None:
    case.on_loss = lambda _engine: setattr(case.table, "broken", "access denied")


def the_store_breaks(case: Unanswered) -> None:
    case.on_loss = lambda _engine: setattr(case.store, "down", True)


def the_server_dies(case: Unanswered) -> None:
    case.on_loss = lambda engine: setattr(engine, "is_alive", False)


def it_shares_its_window(case: Unanswered) -> None:
    case.run.tables("b")
    case.run.together = ("delta.`/lake/[ab]`",)


def another_table_fails(case: Unanswered) -> None:
    it_shares_its_window(case)
    case.on_loss = lambda _engine: setattr(case.run.lake.tables["/lake/b"], "broken", "access denied")


LOSSES = (
    nothing_else,
    ctrl_c,
    the_log_breaks,
    the_store_breaks,
    the_server_dies,
    it_shares_its_window,
    another_table_fails,
)


@pytest.mark.parametrize(
    ("loss", "commits_after"),
    list(product(LOSSES, (15.0, 90.0, 300.0, None))),
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_nor_while_a_statement_of_the_run_itself_may_commit(
    loss: Callable[[Unanswered], None], commits_after: float | None
) -> None:
    case = Unanswered(commits_after)
    loss(case)
    case.leave()
    report = case.run.apply()
    assert case.since, "the statement was sent"
    assert case.let_in == []
    assert [at for at in case.resumed if at < case.over_at] == []
    assert only(report, "a").shut or case.run.clock.now >= case.over_at
    assert case.entered_at() >= case.over_at


def test_a_callback_that_hears_of_the_shut_gate_does_not_wait_for_it() -> None:
    case, refused = Unanswered(None), list[str]()

    def write(event: RunEvent) -> None:
        if event.step == "note" and case.since:
            with pytest.raises(GuardTimeout, match="would wait for itself"):
                case.entered_at()
            refused.append(event.words)

    case.run.notify = write
    case.leave()
    case.run.apply()
    assert [words.split(":")[0] for words in refused] == [
        "the gate is not open yet",
        "a statement may still run in the engine",
    ]


def test_the_jobs_of_a_shared_window_stay_paused_while_a_statement_runs_on_any_of_its_tables() -> None:
    """The run that was killed owes the hooks on one table, and its statement runs on another."""
    case = Orphan(commits_after=90)
    case.run.tables("b")
    case.run.together = ("delta.`/lake/[ab]`",)
    case.leave(owes=False, released=False)
    other = try_acquire(case.run.stores["/lake/b"], claim("ben"), case.run.clock)
    assert isinstance(other, Lease)
    other.owe((RESUME[0],))
    report = case.run.apply()
    assert outcomes(report) == {"a": "applied", "b": "applied"}
    assert case.resumed[0] >= case.over_at
    assert case.let_in == []


def test_a_gate_of_a_shared_window_that_stays_shut_is_reported_with_the_hooks() -> None:
    case = Orphan(commits_after=None)
    case.run.tables("b")
    case.run.together = ("delta.`/lake/[ab]`",)
    plan = case.run.plan()
    case.leave(owes=False, released=True)
    other = try_acquire(case.run.stores["/lake/b"], claim("ben"), case.run.clock)
    assert isinstance(other, Lease)
    other.owe((RESUME[0],))
    other.release()
    run = only(case.run.apply(stopped_in_its_sleep(case, plan)), "b")
    assert run.owed == RESUME
    assert run.shut_ms > 300_000
    assert "window break 'delta.`/lake/a`'" in run.shut
