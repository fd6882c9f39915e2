"""The records of when upkeep was done last: read where the commits that are read do not say it."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from tablectl.applying.upkeep_records import due_by_records, note_done
from tablectl.leases.clock import milliseconds
from tablectl.leases.guards import GuardMode
from tablectl.model.upkeep import OptimizePolicy, UpkeepFacts, UpkeepPolicy, UpkeepTask, VacuumPolicy
from tablectl.planning.plan_upkeep import OPTIMIZE, VACUUM, ShallowClones
from tests.applying.test_run_upkeep import Upkeep, operations
from tests.applying.world import Kill
from tests.applying.writers import FakeGuard
from tests.builders import live_table
from tests.leases.lease_fakes import MemoryRecords

DAY = 86_400_000
NOW = 1_800_000_000_000
WEEKLY = UpkeepPolicy(optimize=OptimizePolicy(every="7 days"), vacuum=VacuumPolicy(every="7 days"))
BUSY = UpkeepFacts(files=100, bytes=100_000, small_files=100, small_bytes=100_000, cut=True, commits=2000, oldest=NOW)
"""More commits than are read, within hours."""


def tasks(store: MemoryRecords, now: int = NOW, table_id: str = "one", **facts: Any) -> tuple[UpkeepTask, ...]:
    live = replace(live_table(), table_id=table_id, upkeep=replace(BUSY, **facts))
    return due_by_records(WEEKLY, live, now, lambda: store)


def due(store: MemoryRecords, now: int = NOW, table_id: str = "one", **facts: Any) -> list[str]:
    return [each.kind for each in tasks(store, now, table_id, **facts) if each.due]


def forget(world: Upkeep) -> None:
    """Later commits hide the run, as 2,000 commits of a stream do within hours."""
    assert world.table.live.upkeep is not None
    hidden = replace(world.table.live.upkeep, optimized_at=0, optimized_by_us=False, vacuumed_at=0)
    world.table.states[-1] = replace(world.table.live, upkeep=replace(hidden, small_files=100, small_bytes=100_000))


def test_upkeep_that_later_commits_hide_is_not_done_again_before_its_time() -> None:
    world = Upkeep()
    plan = world.due(WEEKLY)
    assert world.run(plan).outcome == "applied"
    done = operations(world.table)
    forget(world)
    run = world.run(plan, "ben")
    assert (run.outcome, operations(world.table)) == ("already", done)
    world.clock.now += 8 * 86_400
    assert world.run(plan, "eve").outcome == "applied"
    assert operations(world.table)[len(done) :] == done


def test_a_run_that_was_killed_before_its_record_is_done_again_once() -> None:
    world = Upkeep()

    def kill(event: str) -> None:
        if event == "landed":
            raise Kill

    world.tick = kill
    with pytest.raises(Kill):
        world.upkeep(WEEKLY)
    world.tick = lambda _event: None
    forget(world)
    world.clock.now += 3600
    assert world.upkeep(WEEKLY).outcome == "applied"
    forget(world)
    assert world.upkeep(WEEKLY, "eve").outcome == "already"


def test_what_waits_for_a_later_run_has_no_record() -> None:
    vacuum = UpkeepPolicy(vacuum=VacuumPolicy(every="7 days"))
    refused = Upkeep()
    assert refused.upkeep(vacuum, clones=lambda: ShallowClones(("lake.dev.orders",))).outcome == "refused"
    waits = Upkeep()
    waits.table.set_property("delta.deletedFileRetentionDuration", "interval 1 hour")
    FakeGuard(waits.store, "nightly", GuardMode.APPEND)
    assert waits.upkeep(vacuum).outcome == "waiting"
    for world in (refused, waits):
        assert world.store.names("upkeep/") == ()


def test_without_a_record_it_is_due_as_in_a_table_that_was_never_kept_up() -> None:
    assert due(MemoryRecords()) == ["optimize", "vacuum"]


def test_each_kind_has_its_own_time() -> None:
    store = MemoryRecords()
    note_done(store, VACUUM, "one", NOW - 6 * DAY)
    note_done(store, OPTIMIZE, "one", NOW - 8 * DAY)
    found = {each.kind: (each.due, each.since, each.last) for each in tasks(store)}
    assert found == {
        "optimize": (True, NOW - DAY, NOW - 8 * DAY),
        "vacuum": (False, NOW + DAY, NOW - 6 * DAY),
    }


def test_a_commit_that_is_read_counts_and_not_an_older_record() -> None:
    store = MemoryRecords()
    note_done(store, OPTIMIZE, "one", NOW - 8 * DAY)
    note_done(store, VACUUM, "one", NOW - 8 * DAY)
    assert due(store, optimized_at=NOW - DAY, vacuumed_at=NOW - DAY) == []


def test_the_newest_of_two_records_counts_and_the_older_one_goes() -> None:
    store = MemoryRecords()
    for days in (20, 2, 9):  # the last one is of a process that was paused past its lease
        note_done(store, VACUUM, "one", NOW - days * DAY)
    assert due(store) == ["optimize"]
    note_done(store, VACUUM, "one", NOW)
    assert len(store.names("upkeep/")) == 1


def test_names_that_are_not_those_of_upkeep_stay() -> None:
    store = MemoryRecords()
    others = ("upkeep/vacuum.notes.json", "upkeep/vacuum.0123456789abcdef.1.json", "upkeep/vacuum.txt")
    for name in others:
        store.create(name, b"")
    note_done(store, VACUUM, "one", NOW - DAY)
    note_done(store, VACUUM, "one", NOW)
    assert set(others) < set(store.names("upkeep/"))
    assert len(store.names("upkeep/")) == 4


def test_a_table_that_was_replaced_under_the_same_path_starts_from_nothing() -> None:
    store = MemoryRecords()
    note_done(store, VACUUM, "one", NOW - DAY)
    note_done(store, OPTIMIZE, "one", NOW - DAY)
    assert due(store, table_id="another") == ["optimize", "vacuum"]


@pytest.mark.parametrize("table_id", ["\ud800", "../../lease/1", "x" * 100_000, ""])
def test_the_id_of_a_table_can_be_any_text(table_id: str) -> None:
    store = MemoryRecords()
    note_done(store, VACUUM, table_id, NOW - DAY)
    assert due(store, table_id=table_id) == ["optimize"]
    (name,) = store.names("")
    assert re.fullmatch(r"upkeep/vacuum\.[0-9a-f]{16}\.[0-9]{14}\.json", name)


def test_records_that_are_not_needed_are_not_read() -> None:
    store = MemoryRecords()
    store.down = True
    assert due(store, optimized_at=NOW - DAY, vacuumed_at=NOW - DAY) == []
    assert due(store, cut=False, oldest=NOW - DAY) == []


def test_a_store_that_cannot_be_read_hides_nothing_that_is_due() -> None:
    store = MemoryRecords()
    store.down = True
    assert due(store) == ["optimize", "vacuum"]
    note_done(store, VACUUM, "one", NOW)


MINE = sha256(b"one").hexdigest()[:16]


@pytest.mark.parametrize(
    "name",
    [
        f"upkeep/vacuum.{MINE}.{NOW + 900 * DAY:014d}.json",
        f"upkeep/vacuum.{MINE}.{'٣' * 14}.json",
        f"upkeep/vacuum.{MINE}.{'9' * 5000}.json",
        f"upkeep/vacuum.{MINE}.{NOW:014d}.json.json",
        f"upkeep/vacuum.{MINE}/{NOW:014d}.json",
        f"upkeep/vacuum.{NOW:014d}.json",
        f"upkeep/drop.{MINE}.{NOW:014d}.json",
    ],
)
def test_a_record_of_a_stranger_puts_nothing_off(name: str) -> None:
    store = MemoryRecords()
    store.land(name, b"{}")
    assert due(store) == ["optimize", "vacuum"]
    note_done(store, VACUUM, "one", NOW - DAY)
    assert due(store) == ["optimize"]


def test_a_run_does_not_wait_for_the_deletion_of_thousands_of_records() -> None:
    store = MemoryRecords()
    for number in range(1000):
        store.land(f"upkeep/vacuum.{MINE}.{number:014d}.json", b"{}")
    note_done(store, VACUUM, "one", NOW)
    assert len(store.names("upkeep/")) == 1000 + 1 - 10


def test_the_record_of_a_table_that_was_replaced_goes() -> None:
    store = MemoryRecords()
    note_done(store, VACUUM, "one", NOW - DAY)
    note_done(store, VACUUM, "another", NOW - 2 * DAY)
    assert len(store.names("upkeep/")) == 1
    assert due(store, table_id="another") == ["optimize"]


def test_the_run_takes_its_own_clock() -> None:
    world = Upkeep()
    world.upkeep(WEEKLY)
    now = milliseconds(world.clock.utc())
    assert [name[-20:-5] for name in world.store.names("upkeep/")] == [f".{now:014d}", f".{now:014d}"]
