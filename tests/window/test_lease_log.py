from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tablectl.model.errors import WindowError
from tablectl.window.lease_log import KEEP, Gate, LeaseRecord, dump_record, prune, put, record_at, record_name, tail
from tablectl.window.owner import Owner
from tests.window.lease_fakes import Fault, MemoryRecords

ANN = Owner(who="ann", host="laptop", pid=7, ci="", tool="0.1.0")
TEN = datetime(2026, 8, 22, 10, tzinfo=UTC)


def record(seq: int, ident: str = "x") -> LeaseRecord:
    return LeaseRecord(
        seq=seq,
        epoch=1,
        id=f"{ident}-{seq}",
        owner=ANN,
        run="r1",
        digest="d1",
        kind="renew",
        gate=Gate.NO_SCHEMA,
        ttl=60,
        owed=("resume orders_job",),
        reason="",
        since=TEN,
        at=TEN,
    )


def test_an_empty_log_has_no_tail() -> None:
    assert tail(MemoryRecords()) is None


def test_the_tail_is_the_highest_number() -> None:
    store = MemoryRecords()
    for seq in (9, 10, 11):
        assert put(store, record(seq))
    assert tail(store) == record(11)


def test_a_record_is_json_that_people_can_read() -> None:
    store = MemoryRecords()
    put(store, record(3))
    assert json.loads(store.kept["lease/00000000000000000003.json"]) == {
        "seq": 3,
        "epoch": 1,
        "id": "x-3",
        "owner": {"who": "ann", "host": "laptop", "pid": 7, "ci": "", "tool": "0.1.0"},
        "run": "r1",
        "digest": "d1",
        "kind": "renew",
        "gate": "no-schema",
        "ttl": 60.0,
        "owed": ["resume orders_job"],
        "reason": "",
        "since": "2026-08-22T10:00:00Z",
        "at": "2026-08-22T10:00:00Z",
    }


def test_a_number_is_used_once() -> None:
    store = MemoryRecords()
    assert put(store, record(1, "ann"))
    assert not put(store, record(1, "ben"))
    assert tail(store) == record(1, "ann")


@pytest.mark.parametrize("fault", [Fault.RETRIED, Fault.LOST_ANSWER])
def test_our_own_id_tells_that_a_put_had_happened(fault: Fault) -> None:
    store = MemoryRecords()
    store.faults.append(fault)
    assert put(store, record(1))


def test_a_put_that_raised_over_the_record_of_another_lost() -> None:
    store = MemoryRecords()
    put(store, record(1, "ben"))
    store.faults.append(Fault.LOST_ANSWER)
    assert not put(store, record(1, "ann"))


def test_a_put_that_did_not_happen_raises() -> None:
    store = MemoryRecords()
    store.faults.append(Fault.REFUSED)
    with pytest.raises(WindowError, match="refused"):
        put(store, record(1))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"colour": "red"}, "colour: Unexpected keyword argument"),
        ({"epoch": "1"}, "epoch: Input should be a valid integer"),
        ({"gate": "ajar"}, "gate: Input should be 'open'"),
        ({"ttl": float("inf")}, "ttl: "),
        ({"seq": 2}, "it says that it is number 2"),
    ],
)
def test_a_record_of_another_making_is_refused_by_name(change: dict[str, object], why: str) -> None:
    store = MemoryRecords()
    store.kept[record_name(1)] = json.dumps(json.loads(dump_record(record(1))) | change).encode()
    with pytest.raises(WindowError, match=r"_tablectl/lease/00000000000000000001\.json") as caught:
        tail(store)
    assert why in caught.value.message


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"\xff"])
def test_so_is_what_is_no_record_at_all(data: bytes) -> None:
    store = MemoryRecords()
    store.kept[record_name(1)] = data
    with pytest.raises(WindowError, match="not one that this version of tablectl wrote"):
        record_at(store, 1)


def test_other_files_in_the_directory_are_not_records() -> None:
    store = MemoryRecords()
    put(store, record(1))
    store.kept["lease/.00000000000000000002.json.crc"] = store.kept["lease/notes.txt"] = b"?"
    assert tail(store) == record(1)


def test_pruning_keeps_the_last_twenty() -> None:
    store = MemoryRecords()
    for seq in range(1, 31):
        put(store, record(seq))
    prune(store, 30)
    assert sorted(store.kept) == [record_name(seq) for seq in range(31 - KEEP, 31)]


def test_pruning_can_wait() -> None:
    store = MemoryRecords()
    store.down = True
    prune(store, 30)


def test_a_tail_that_was_pruned_since_the_listing_is_looked_for_again() -> None:
    class Moving(MemoryRecords):
        """Between the listing and the read, a holder appends many records and prunes."""

        def names(self, prefix: str) -> tuple[str, ...]:
            listed = super().names(prefix)
            if record_name(1) in self.kept:
                self.kept = {record_name(40): dump_record(record(40))}
            return listed

    store = Moving()
    put(store, record(1))
    assert tail(store) == record(40)


def test_gates_are_ordered_from_loose_to_strict() -> None:
    assert sorted(Gate, key=lambda gate: gate.strictness) == ["open", "no-schema", "appends-only", "closed"]
