from __future__ import annotations

import pytest

from tablectl.leases.guards import GuardMode, GuardRecord, delete_dead_guard, newest_beats, read_guard, read_guards
from tablectl.leases.lease_records import Gate
from tablectl.storage.records import RecordStore, open_records
from tests.leases.lease_fakes import MemoryRecords


@pytest.fixture
def store(tmp_path: object) -> RecordStore:
    return open_records(str(tmp_path))


@pytest.mark.parametrize(
    ("mode", "waits_at"),
    [
        (GuardMode.ANY, {Gate.NO_SCHEMA, Gate.APPENDS_ONLY, Gate.CLOSED}),
        (GuardMode.REWRITE, {Gate.APPENDS_ONLY, Gate.CLOSED}),
        (GuardMode.APPEND, {Gate.CLOSED}),
    ],
)
def test_each_mode_waits_at_the_gates_that_would_fail_it(mode: GuardMode, waits_at: set[Gate]) -> None:
    assert {gate for gate in Gate if mode.waits(gate)} == waits_at


def test_a_guard_reads_back_as_it_was_put(store: RecordStore) -> None:
    guard = GuardRecord("0123abcd", 7, "nightly load", GuardMode.APPEND, 30.0)
    assert store.create(guard.name, guard.to_bytes())
    assert newest_beats(store) == {"0123abcd": 7}
    assert read_guard(store, "0123abcd", 7) == guard


def test_only_the_newest_beat_of_each_guard_counts(store: RecordStore) -> None:
    for guard, beat in [("0123abcd", 1), ("0123abcd", 2), ("0123abcd", 10), ("89ab4567", 1)]:
        store.create(GuardRecord(guard, beat).name, b"{}")
    store.create("guards/readme.txt", b"")
    assert newest_beats(store) == {"0123abcd": 10, "89ab4567": 1}


def test_a_dead_guard_is_buried_with_the_beats_before_it_and_no_other(store: RecordStore) -> None:
    names = [GuardRecord(guard, beat).name for guard, beat in [("0123abcd", 6), ("0123abcd", 7), ("0123abcd", 8)]]
    names.append(GuardRecord("0123abcde", 7).name)
    for name in names:
        store.create(name, b"{}")
    delete_dead_guard(store, "0123abcd", 7)
    assert store.names("") == tuple(names[2:])


def test_a_dead_guard_that_cannot_be_deleted_raises_nothing() -> None:
    store = MemoryRecords()
    store.down = True
    delete_dead_guard(store, "0123abcd", 7)


def test_a_guard_that_is_gone_is_none(store: RecordStore) -> None:
    assert read_guard(store, "0123abcd", 1) is None


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"[]", b"{}", b'{"ttl": 1e400}', b'{"ttl": -1, "writer": "", "mode": "append"}']
)
def test_what_cannot_be_understood_is_the_strictest_guard(store: RecordStore, data: bytes) -> None:
    store.create(GuardRecord("0123abcd", 1).name, data)
    found = read_guard(store, "0123abcd", 1)
    assert found is not None
    assert found.mode is GuardMode.ANY


def test_the_writers_name_cannot_paint_the_terminal(store: RecordStore) -> None:
    guard = GuardRecord("0123abcd", 1, "evil\x1b[31m\n" + "x" * 1000)
    store.create(guard.name, guard.to_bytes())
    found = read_guard(store, "0123abcd", 1)
    assert found is not None
    assert found.writer.isprintable()
    assert len(found.writer) == 200


def test_a_guard_that_renews_itself_between_listing_and_reading_is_not_overlooked() -> None:
    class Renewed(MemoryRecords):
        def read(self, name: str) -> bytes | None:
            self.kept.pop(name)
            return None

    store = Renewed()
    store.kept = {GuardRecord("0123abcd", 7).name: GuardRecord("0123abcd", 7, "nightly").to_bytes()}
    assert read_guards(store) == (GuardRecord("0123abcd", 7),)
    assert read_guards(store) == ()


def test_a_guard_whose_beats_a_listing_misses_is_found_by_the_next_one() -> None:
    class Moving(MemoryRecords):
        listings = iter([(), (GuardRecord("0123abcd", 8).name,)])

        def names(self, prefix: str) -> tuple[str, ...]:
            return next(self.listings)

    guard = GuardRecord("0123abcd", 8, "nightly")
    store = Moving()
    store.kept = {guard.name: guard.to_bytes()}
    assert read_guards(store) == (guard,)
