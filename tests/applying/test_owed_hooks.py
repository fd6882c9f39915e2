"""What a dead run owes on tables that this run does not work on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from tablectl.applying.hooks import HookFacts, OwedHookTable
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import tail
from tablectl.model.calendar import Rule
from tablectl.model.plan import Refusal
from tablectl.policies.config import WindowConfig
from tests.applying.lake_run import Run, only, outcomes, plan_of
from tests.leases.lease_fakes import claim, try_acquire

NIGHTS = (Rule(cron="0 22 * * *", duration=timedelta(hours=1)),)


class Settling:
    """A run over tables, on some of which a dead run owes a hook."""

    def __init__(self, names: str, allow: tuple[Rule, ...] = (), after: tuple[str, ...] = ("./resume.sh",)) -> None:
        self.ran: list[tuple[str, str]] = []
        self.streams: list[str] = []
        self.fail = ""
        config = WindowConfig(after=(after,) if after else (), allow=allow)
        self.run = Run(config=config, run_hook=self).tables(names)

    def __call__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        self.ran.append((environ["TABLECTL_LOCATION"], environ["TABLECTL_OUTCOME"]))
        self.streams.append(environ["TABLECTL_STREAMS"])
        return self.fail

    def owes(self, name: str, *, dead: bool) -> None:
        lease = try_acquire(self.run.stores[f"/lake/{name}"], claim("ben"), self.run.clock)
        assert isinstance(lease, Lease)
        lease.owe(("./resume.sh",))
        if not dead:
            lease.release()

    def owed(self, name: str) -> tuple[str, ...]:
        last = tail(self.run.stores[f"/lake/{name}"])
        return last.owed if last else ()


def places(names: str) -> tuple[OwedHookTable, ...]:
    return tuple(OwedHookTable(f"delta.`/lake/{name}`", f"/lake/{name}") for name in names)


def test_its_hook_gets_every_declared_stream_because_any_may_be_stopped() -> None:
    case = Settling("ab")
    case.owes("b", dead=False)
    asked: list[str] = []

    def place(name: str) -> OwedHookTable:
        def facts() -> HookFacts:
            asked.append(name)
            return HookFacts(streams=("fraud", "ingest"))

        return OwedHookTable(f"delta.`/lake/{name}`", f"/lake/{name}", facts)

    case.run.apply(plan_of(), (place("a"), place("b")))
    assert case.streams == ["fraud ingest"]
    assert asked == ["b"]


@pytest.mark.parametrize("dead", [True, False])
def test_a_table_that_is_as_declared_by_now_is_settled(dead: bool) -> None:
    case = Settling("ab")
    case.owes("b", dead=dead)
    report = case.run.apply(plan_of(), places("ab"))
    assert case.ran == [("/lake/b", "unfinished")]
    assert (outcomes(report), report.exit_code) == ({"b": "already"}, 0)
    assert (case.owed("b"), case.run.kinds("b"), case.run.kinds("a")) == ((), ["release", "ann"], [])


def test_so_is_one_that_the_calendar_leaves_out() -> None:
    case = Settling("a", NIGHTS)
    case.owes("a", dead=True)
    report = case.run.apply()
    assert (outcomes(report), report.exit_code) == ({"a": "no window"}, 4)
    assert (case.ran, case.owed("a")) == ([("/lake/a", "unfinished")], ())


def test_so_is_one_that_the_plan_refuses_and_the_report_says_what_it_still_owes() -> None:
    case = Settling("a")
    case.owes("a", dead=False)
    (table,) = case.run.plan().tables
    refused = plan_of(replace(table, refusals=(Refusal(change="isolation", reason="lint", fix="x"),)))
    case.fail = "ended with exit code 1"
    report = case.run.apply(refused)
    assert (outcomes(report), only(report, "a").owed) == ({"a": "refused"}, ("./resume.sh",))
    case.fail = ""
    report = case.run.apply(refused)
    assert (case.ran, only(report, "a").owed) == ([("/lake/a", "unfinished")] * 2, ())


def test_so_is_one_that_is_never_quiet() -> None:
    case = Settling("a")
    case.owes("a", dead=False)
    case.run.config, case.run.within = replace(case.run.config, quiet=-1), 60
    assert outcomes(case.run.apply()) == {"a": "no window"}
    assert case.ran == [("/lake/a", "unfinished")]


def test_a_hook_that_is_owed_on_one_table_of_a_shared_window_gets_the_streams_of_all_of_them() -> None:
    case = Settling("abc")
    case.run.together = ("ledger",)
    case.owes("b", dead=False)
    case.owes("c", dead=False)
    a, b, c = places("abc")
    a = replace(a, facts=lambda: HookFacts(("of-a",), tags=("ledger",)))
    b = replace(b, facts=lambda: HookFacts(("of-b",), tags=("ledger",)))
    c = replace(c, facts=lambda: HookFacts(("of-c",)))
    case.run.apply(plan_of(), (a, b, c))
    assert sorted(case.streams) == ["of-a of-b", "of-c"]


def test_what_fails_stays_owed_and_is_an_exit_code() -> None:
    case = Settling("a")
    case.owes("a", dead=False)
    case.fail = "ended with exit code 1"
    report = case.run.apply(plan_of(), places("a"))
    assert (report.exit_code, case.owed("a"), only(report, "a").owed) == (4, ("./resume.sh",), ("./resume.sh",))
    (note,) = only(report, "a").notes
    assert "stays owed" in note


def test_tables_that_owe_nothing_are_not_touched_and_not_told_of() -> None:
    case = Settling("ab")
    report = case.run.apply(plan_of(), places("ab"))
    assert (report.tables, case.run.kinds("a")) == ((), [])


def test_without_hooks_no_one_is_asked() -> None:
    case = Settling("a", after=())
    case.owes("a", dead=False)
    case.run.stores["/lake/a"].down = True
    assert case.run.apply(plan_of(), places("a")).tables == ()
    case.run.stores["/lake/a"].down = False
    assert case.owed("a") == ("./resume.sh",)


def test_a_table_that_another_apply_holds_is_left_to_it() -> None:
    case = Settling("a")
    ben = case.run.hold("a")
    ben.owe(("./resume.sh",))
    report = case.run.apply(plan_of(), places("a"))
    assert (report.tables, case.ran) == ((), [])


def test_one_that_cannot_be_asked_stops_no_one() -> None:
    case = Settling("ab")
    case.owes("b", dead=False)
    case.run.stores["/lake/a"].down = True
    report = case.run.apply(plan_of(), places("ab"))
    assert outcomes(report) == {"b": "already"}


def test_a_stop_leaves_the_rest() -> None:
    case = Settling("ab")
    case.run.parallel = 1
    case.owes("a", dead=False)
    case.owes("b", dead=False)
    case.run.notify = lambda event: case.run.stop.set() if event.step == "hook after" else None
    case.run.apply(plan_of(), places("ab"))
    assert case.ran == [("/lake/a", "unfinished")]
    assert case.owed("b") == ("./resume.sh",)


def test_a_record_that_claims_a_long_ttl_is_not_waited_for() -> None:
    """No one asked for this table by name, and whoever may write its directory may claim to be alive."""
    case = Settling("ab")
    store = case.run.stores["/lake/b"]
    lease = try_acquire(store, claim("mallory", ttl=3600), case.run.clock)
    assert isinstance(lease, Lease)
    lease.owe(("./resume.sh",))
    report = case.run.apply(plan_of(), unchanged=places("b"))
    assert (report.exit_code, case.ran, case.run.clock.now) == (0, [], 1000)


def test_dead_holders_are_waited_for_at_the_same_time() -> None:
    case = Settling("abcdef")
    for name in "abcdef":
        case.owes(name, dead=True)
    report = case.run.apply(plan_of(), unchanged=places("abcdef"))
    assert (report.exit_code, len(case.ran)) == (0, 6)
    assert case.run.clock.now < 1000 + 90
    assert any(event.words.startswith("a run before owes its after-hooks: held by ben") for event in case.run.told)
