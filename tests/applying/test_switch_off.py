"""Each part that keeps a run safe is needed: switched off in the real code, a test that holds with it fails.

What guards and their drain rest on is switched off in ``tests/writers/test_schedules.py`` and ``test_exploration.py``
as well, over all interleavings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import pytest

from tablectl.applying import calendar_check, drain_writers, gate, hooks, statement
from tablectl.applying import run_table as table
from tablectl.applying import table_session as session
from tablectl.applying.gate import GateKeeper
from tablectl.applying.lease_wait import DeadStatements
from tablectl.applying.run_context import RunContext
from tablectl.applying.waits import GO
from tablectl.leases import acquire, lease_records
from tablectl.leases.guards import GuardMode
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import Gate, LeaseRecord, dump_record, record_name, tail
from tablectl.model.errors import TablectlError
from tablectl.model.stamp import Stamp
from tablectl.model.table_options import TableOptions
from tablectl.writers import gate_entry
from tablectl.writers.gate_entry import StoredGuard
from tests.applying import test_calendar_check as test_hours
from tests.applying import test_gate, test_hooks, test_measures, test_statement
from tests.applying import test_orphaned_statements as test_orphans
from tests.applying import test_run_table as test_table
from tests.applying.world import DIGEST, WITH_VECTORS, World
from tests.leases import test_acquire, test_lease, test_lease_records
from tests.leases.lease_fakes import FakeClock, Fault, MemoryRecords
from tests.writers import test_gate_entry as test_passage


@dataclass(frozen=True)
class Switch:
    """A part of the code, what stands in its place when it is off, and a test that cannot do without it."""

    owner: Any
    name: str
    off: Any
    test: Callable[[], object]


def orders(**facts: Any) -> World:
    world = World()
    world.lake.add(**facts)
    return world


def named() -> World:
    """A catalog table in /blue, which a policy allows to rewrite."""
    world = World(options=TableOptions(rewrite="allowed", max_bytes=5000))
    world.lake.add("main.sales.orders", "/blue")
    return world


def nothing(*_: object) -> None:
    """In the place of what checks or writes."""


def _with_lease(test: Callable[..., object]) -> object:
    """A test of one lease, with the fixtures that it takes."""
    store, clock = MemoryRecords(), FakeClock()
    given = {"store": store, "clock": clock, "lease": test_lease.take(store, clock, "ann")}
    return test(**{name: given[name] for name in signature(test).parameters})


def _gate_without_a_wish(lease: Lease, wanted: Gate) -> None:
    before = lease._wanted
    lease._wanted = wanted
    try:
        lease._append("gate")
    except TablectlError:
        lease._wanted = before
        raise


SWITCHES = {
    "statements are decided from the live table": Switch(
        table,
        "remaining_statements",
        lambda plan, _live, _dialect, _named: list(plan.statements),
        lambda: test_table.test_what_is_already_so_sends_no_statement(orders()),
    ),
    "and so a run after a kill": Switch(
        table,
        "remaining_statements",
        lambda plan, _live, _dialect, _named: list(plan.statements),
        lambda: test_table.test_a_run_killed_anywhere_is_finished_by_the_same_command("merged", 5),
    ),
    "the lease is proven before each statement": Switch(
        Lease,
        "_check_tail",
        nothing,
        lambda: test_table.test_without_the_lease_nothing_more_is_sent(orders(), "broken"),
    ),
    "a pause past its end loses it": Switch(
        Lease,
        "_check_time",
        nothing,
        lambda: test_table.test_without_the_lease_nothing_more_is_sent(orders(), "ran out"),
    ),
    "a record is ours by its id, whatever the store answered": Switch(
        acquire,
        "put",
        lambda store, record, _last: store.create(record_name(record.seq), dump_record(record)),
        lambda: test_acquire.test_a_lost_answer_does_not_lock_us_out_of_our_own_lease(Fault.LOST_ANSWER),
    ),
    "a holder that shows signs of life is not dead": Switch(
        acquire,
        "_look",
        lambda store, _clock, _seen: acquire._Look(acquire.Sighting(last, 0) if (last := tail(store)) else None, True),
        test_acquire.test_one_that_renews_is_alive,
    ),
    "the gate is shut": Switch(
        GateKeeper,
        "_shut",
        nothing,
        lambda: test_gate.test_the_gate_tightens_from_phase_to_phase_and_is_open_before_the_verification(
            orders(**test_gate.CLUSTERED)
        ),
    ),
    "writers are waited for": Switch(
        drain_writers,
        "listed_twice",
        lambda _store: {},
        lambda: test_gate.test_no_statement_runs_while_a_writer_is_in_its_way(
            orders(**test_gate.CLUSTERED), GuardMode.APPEND
        ),
    ),
    "commits are told apart by their stamps": Switch(
        session,
        "read_stamp",
        lambda _text: Stamp("ann", DIGEST),
        lambda: test_table.test_a_run_that_comes_back_after_its_lease_is_reported(orders()),
    ),
    "the end is verified": Switch(
        session,
        "_wrong",
        lambda *_: [],
        lambda: test_table.test_what_does_not_read_as_declared_at_our_last_commit_is_unverified(orders()),
    ),
    "a name is resolved directly before each statement": Switch(
        table,
        "check_target",
        nothing,
        lambda: test_statement.test_a_name_that_was_swapped_while_writers_were_waited_for_leads_nowhere(
            named(), {"isolation": "Serializable"}
        ),
    ),
    "a statement that a rename took along is looked for": Switch(
        statement,
        "_elsewhere",
        nothing,
        lambda: test_statement.test_a_statement_that_went_to_another_table_names_both_loudly(named()),
    ),
    "an overwrite goes to the location": Switch(
        RunContext,
        "target",
        lambda _window, plan: plan.table,
        lambda: test_statement.test_an_overwrite_is_written_to_the_location_and_never_to_a_name(named()),
    ),
    "a statement is announced before it is sent": Switch(
        Lease,
        "announce",
        nothing,
        lambda: test_statement.test_the_record_names_a_statement_before_it_is_sent_and_takes_it_back_after(orders()),
    ),
    "a statement is sent only while the lease is ours": Switch(
        Lease,
        "announce_again",
        nothing,
        lambda: test_statement.test_a_run_that_was_paused_past_its_lease_before_it_sent_a_statement_does_not_send_it(
            orders()
        ),
    ),
    "a statement that may still run is waited for": Switch(
        statement,
        "_wait_for_end",
        lambda *_: True,
        lambda: test_statement.test_one_of_which_no_one_knows_is_unknown_and_the_gate_stays_shut_for_the_ttl(
            orders(), None
        ),
    ),
    "the statement of a killed run is ended first": Switch(
        DeadStatements,
        "check",
        lambda *_: GO,
        lambda: test_statement.test_the_statement_of_a_killed_run_is_ended_before_the_table_is_read(orders()),
    ),
    "a change of someone else that a statement went over is reported": Switch(
        table,
        "_check_between",
        nothing,
        lambda: test_statement.test_a_foreign_change_of_the_same_key_at_the_last_moment_is_reported(orders()),
    ),
    "a name must still lead where the plan looked": Switch(
        statement,
        "_where",
        lambda _window, plan: plan.location,
        lambda: test_table.test_a_path_plan_that_was_read_elsewhere_is_not_run(orders()),
    ),
    "hooks that are owed are written down first": Switch(
        Lease,
        "owe",
        nothing,
        lambda: test_hooks.test_what_a_killed_run_owes_is_done_first_by_the_next(
            orders(**WITH_VECTORS), "before closed-set"
        ),
    ),
    "a number that was pruned is not taken again": Switch(
        lease_records,
        "_follows",
        lambda *_: True,
        test_lease_records.test_a_pruned_number_is_not_taken_again,
    ),
    "nor by who slept before it took the lease": Switch(
        lease_records,
        "_follows",
        lambda *_: True,
        lambda: test_lease.test_who_slept_between_reading_and_taking_does_not_take_a_pruned_number(
            MemoryRecords(), FakeClock()
        ),
    ),
    "who passes a dead gate records it": Switch(
        StoredGuard,
        "take_for_dead",
        lambda *_: True,
        test_passage.test_and_its_holder_whose_clock_stood_still_learns_it,
    ),
    "a writer that was taken for dead begins again": Switch(
        gate_entry,
        "tail",
        lambda store, *_: replace(last, dead_guards=()) if (last := tail(store)) else None,
        test_passage.test_a_guard_that_was_taken_for_dead_is_put_again_under_another_id,
    ),
    "a dead gate stays shut for as long as its statement may run": Switch(
        LeaseRecord,
        "statement_silence",
        property(lambda record: record.silence),
        test_passage.test_a_dead_gate_stays_closed_for_as_long_as_its_statement_may_run,
    ),
    "the next holder keeps the gate of a statement that may be running": Switch(
        LeaseRecord,
        "statement_bound",
        property(lambda _record: 0.0),
        lambda: _with_lease(test_lease.test_the_next_holder_knows_the_statement_and_keeps_the_gate_until_it_has_ended),
    ),
    "a record that names a statement keeps its gate, a release too": Switch(
        LeaseRecord,
        "shut",
        property(lambda record: record.gate if record.held else Gate.OPEN),
        lambda: test_orphans.test_the_gate_that_stays_is_the_one_of_the_statement(Gate.APPENDS_ONLY),
    ),
    "after-hooks wait for the statement": Switch(
        Lease,
        "running",
        property(lambda _lease: None),
        lambda: test_orphans.test_nor_while_a_statement_of_the_run_itself_may_commit(test_orphans.nothing_else, None),
    ),
    "and so do those of a table without changes": Switch(
        DeadStatements,
        "check",
        lambda *_: GO,
        lambda: test_orphans.test_a_statement_that_commits_is_waited_for_no_longer_and_then_the_jobs_are_resumed(
            test_orphans.with_nothing_to_change
        ),
    ),
    "and those of a shared window for the statements of all its tables": Switch(
        hooks,
        "_runs",
        lambda _store: False,
        test_orphans.test_the_jobs_of_a_shared_window_stay_paused_while_a_statement_runs_on_any_of_its_tables,
    ),
    "a guard that is taken for dead is recorded": Switch(
        Lease,
        "note_dead",
        nothing,
        lambda: test_gate.test_a_guard_that_is_taken_for_dead_is_in_the_log_before_the_statement(
            orders(**test_gate.CLUSTERED)
        ),
    ),
    "to go on over writers is recorded": Switch(
        Lease,
        "note",
        nothing,
        lambda: test_gate.test_to_go_on_over_writers_is_in_the_log_before_the_statement(orders(**test_gate.CLUSTERED)),
    ),
    "a gate that was not opened is opened again": Switch(
        gate,
        "RELEASE_PAUSES",
        (),
        lambda: test_gate.test_the_gate_opens_though_a_put_fails(orders(**test_gate.CLUSTERED)),
    ),
    "the next record has the gate that is wanted": Switch(
        Lease,
        "gate",
        _gate_without_a_wish,
        lambda: _with_lease(test_lease.test_a_gate_that_could_not_be_opened_is_opened_by_the_next_renewal),
    ),
    "appends pass while long writes are waited for": Switch(
        GateKeeper,
        "_is_guarded",
        lambda _keeper: False,
        lambda: test_gate.test_appends_pass_while_a_merge_is_waited_for(orders(**test_gate.CLUSTERED)),
    ),
    "a writer that waits is seen to have a guard": Switch(
        GateKeeper,
        "_note_waiting",
        nothing,
        lambda: test_measures.test_a_writer_that_came_to_a_closed_gate_and_waits_has_a_guard(orders(**WITH_VECTORS)),
    ),
    "after-hooks are left to who took the lease": Switch(
        Lease,
        "successor",
        lambda _lease: None,
        lambda: test_hooks.test_a_run_that_lost_its_lease_leaves_the_after_hooks_to_its_successor(
            orders(**WITH_VECTORS)
        ),
    ),
    "the calendar is asked": Switch(
        calendar_check,
        "outside",
        nothing,
        test_hours.test_outside_nothing_is_taken_and_the_next_window_named,
    ),
}


@pytest.mark.parametrize("part", list(SWITCHES))
def test_without_it_a_test_fails(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = SWITCHES[part]
    switch.test()
    monkeypatch.setattr(switch.owner, switch.name, switch.off)
    with pytest.raises((AssertionError, TablectlError)):
        switch.test()
