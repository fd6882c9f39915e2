"""Each part that keeps a run safe is needed: switched off in the real code, a test that holds with it fails.

What guards and their drain rest on is switched off in ``tests/writers/test_schedules.py`` and ``test_exploration.py``
as well, over all interleavings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tablectl.model.errors import TablectlError
from tablectl.window import acquire, drain, statement, table, visit
from tablectl.window.gate import GateKeeper
from tablectl.window.guards import Mode
from tablectl.window.lease import Lease
from tablectl.window.lease_log import dump_record, record_name, tail
from tablectl.window.stamp import Stamp
from tests.window import test_acquire, test_gate, test_hooks, test_hours, test_table
from tests.window.lease_fakes import Fault
from tests.window.world import DIGEST, WITH_VECTORS, World


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


def nothing(*_: object) -> None:
    """In the place of what checks or writes."""


SWITCHES = {
    "statements are decided from the live table": Switch(
        table,
        "missing_statements",
        lambda plan, _live, _dialect: list(plan.statements),
        lambda: test_table.test_what_is_already_so_sends_no_statement(orders()),
    ),
    "and so a run after a kill": Switch(
        table,
        "missing_statements",
        lambda plan, _live, _dialect: list(plan.statements),
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
        drain,
        "newest_beats",
        lambda _store: {},
        lambda: test_gate.test_no_statement_runs_while_a_writer_is_in_its_way(
            orders(**test_gate.CLUSTERED), Mode.APPEND
        ),
    ),
    "commits are told apart by their stamps": Switch(
        visit,
        "read_stamp",
        lambda _text: Stamp("ann", DIGEST),
        lambda: test_table.test_a_run_that_comes_back_after_its_lease_is_reported(orders()),
    ),
    "the end is verified": Switch(
        visit,
        "_wrong",
        lambda *_: [],
        lambda: test_table.test_what_does_not_read_as_declared_at_our_last_commit_is_unverified(orders()),
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
    "the calendar is asked": Switch(
        table,
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
