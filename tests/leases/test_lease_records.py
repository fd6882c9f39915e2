from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tablectl.leases.lease_records import (
    KEEP,
    MOST_RECORDS,
    Gate,
    LeaseRecord,
    RunningStatement,
    dump_record,
    parse_record,
    prune,
    put,
    record_at,
    record_name,
    tail,
)
from tablectl.leases.owner import Owner
from tablectl.model.errors import WindowError
from tests.leases.lease_fakes import Fault, MemoryRecords

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


def vars_of(owner: Owner) -> dict[str, object]:
    return {name: getattr(owner, name) for name in ("who", "host", "pid", "ci", "tool")}


def test_an_empty_log_has_no_tail() -> None:
    assert tail(MemoryRecords()) is None


def test_the_tail_is_the_highest_number() -> None:
    store = MemoryRecords()
    for seq in (9, 10, 11):
        assert put(store, record(seq), None)
    assert tail(store) == record(11)


def test_a_record_is_json_that_people_can_read() -> None:
    store = MemoryRecords()
    put(store, record(3), None)
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
        "format": 1,
        "running": None,
        "compared": None,
        "dead_guards": [],
        "together": [],
        "silent": [],
        "window": "",
    }


def test_a_number_is_used_once() -> None:
    store = MemoryRecords()
    assert put(store, record(1, "ann"), None)
    assert not put(store, record(1, "ben"), None)
    assert tail(store) == record(1, "ann")


@pytest.mark.parametrize("fault", [Fault.RETRIED, Fault.LOST_ANSWER])
def test_our_own_id_tells_that_a_put_had_happened(fault: Fault) -> None:
    store = MemoryRecords()
    store.faults.append(fault)
    assert put(store, record(1), None)


def test_a_put_that_raised_over_the_record_of_another_lost() -> None:
    store = MemoryRecords()
    put(store, record(1, "ben"), None)
    store.faults.append(Fault.LOST_ANSWER)
    assert not put(store, record(1, "ann"), None)


def test_a_put_that_did_not_happen_raises() -> None:
    store = MemoryRecords()
    store.faults.append(Fault.REFUSED)
    with pytest.raises(WindowError, match="refused"):
        put(store, record(1), None)


def changed(**fields: object) -> bytes:
    """The stored form of record 1 with other fields."""
    return json.dumps(json.loads(dump_record(record(1))) | fields).encode()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"epoch": "1"}, "epoch: it is not a whole number"),
        ({"epoch": True}, "epoch: it is not a whole number"),
        ({"epoch": 10**19}, "epoch: it is not a whole number up to"),
        ({"epoch": MOST_RECORDS}, f"epoch: {MOST_RECORDS} is impossible"),
        ({"owner": vars_of(ANN) | {"pid": 10**1000}}, "pid: it is not a whole number"),
        ({"format": 2}, "format: 2 is of a later version"),
        ({"ttl": float("inf")}, "ttl: "),
        ({"ttl": float("nan")}, "ttl: "),
        ({"ttl": 86_400}, "ttl: 86400.0 is impossible"),
        ({"seq": 2}, "it says that it is number 2"),
        ({"since": "0001-01-01T00:00:00+14:00"}, "since: "),
        ({"at": "9999-12-31T23:59:59-14:00"}, "at: "),
        ({"since": "2026-08-22T10:00:00"}, "since: "),
        ({"owed": ["x" * 30_000]}, "owed: "),
        ({"reason": "x" * 5_000}, "reason: "),
        ({"kind": "RM -RF"}, "kind: "),
        ({"window": 5}, "window: it is not a text"),
        ({"window": "x" * 201}, "window: "),
        ({"owner": "ann"}, "owner: it is not an object"),
        ({"dead_guards": ["../x"]}, "dead_guards: "),
        ({"together": "lake.sales.orders"}, "together: it is not a list"),
        ({"together": ["x" * 200_000]}, "together: "),
        ({"silent": {"0123abcd": 9}}, "silent: it is not a list"),
        ({"silent": ["0123abcd"]}, "silent: it is not an object"),
        ({"silent": [{"guard": "../x", "beat": 1, "seconds": 9}]}, "silent: "),
        ({"silent": [{"guard": "0123abcd", "beat": 1, "seconds": 10**9}]}, "silent: "),
        ({"silent": [{"guard": "0123abcd", "beat": -1, "seconds": 9}]}, "silent: "),
        ({"running": {"engine": "spark", "tag": "t", "until": 10**9}}, "until: "),
        ({"running": {"engine": "", "tag": "t", "until": 1}}, "engine: "),
    ],
)
def test_a_hostile_lease_record_counts_as_a_closed_gate(change: dict[str, object], why: str) -> None:
    """Both sides wait for it as for any holder, and it dies like any holder."""
    store = MemoryRecords()
    store.kept[record_name(1)] = changed(**change)
    last = tail(store)
    assert last is not None
    assert (last.seq, last.kind, last.gate, last.held, last.ttl) == (1, "unreadable", Gate.CLOSED, True, 60)
    assert why in last.reason
    assert "unknown" in str(last)


@pytest.mark.parametrize("number", [MOST_RECORDS, 10**18, 10**18 + 1, 10**20 - 1])
def test_a_number_that_no_log_reaches_is_an_error_that_says_what_to_remove(number: int) -> None:
    store = MemoryRecords()
    put(store, record(1), None)
    store.kept[record_name(number)] = b"x"
    with pytest.raises(WindowError, match="no log has so many") as caught:
        tail(store)
    assert f"{store}/{record_name(number)} " in caught.value.message
    assert caught.value.hint == "remove it"
    told: list[str] = []
    assert tail(store, lambda error: told.append(error.message)) == record(1)
    assert told == [caught.value.message]
    assert put(store, record(2), record(1))
    store.delete(record_name(2))
    store.delete(record_name(number))
    assert tail(store) == record(1)


def test_records_that_follow_a_stray_one_are_removed_with_it() -> None:
    store = MemoryRecords()
    put(store, record(1), None)
    for number in (MOST_RECORDS - 1, MOST_RECORDS):
        store.kept[record_name(number)] = b"x"
    with pytest.raises(WindowError, match=record_name(MOST_RECORDS - 1)) as caught:
        tail(store)
    assert caught.value.hint == "remove it and the records after it, 2 in all"


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"\xff", b"[" * 100_000])
def test_an_unreadable_lease_record_counts_as_a_closed_gate(data: bytes) -> None:
    store = MemoryRecords()
    store.kept[record_name(1)] = data
    found = record_at(store, 1)
    assert found is not None
    assert found.kind == "unreadable"


def test_a_damaged_tail_does_not_lose_what_its_run_left_behind() -> None:
    """A power cut leaves the newest record empty; the jobs that its run has paused are still paused."""
    store = MemoryRecords()
    running = RunningStatement("spark-1", "tablectl-r1", 900)
    put(store, replace(record(1), epoch=7, running=running, compared=4), None)
    store.kept[record_name(2)] = b""
    last = tail(store)
    assert last is not None
    assert (last.seq, last.epoch, last.owed) == (2, 7, ("resume orders_job",))
    assert (last.running, last.compared) == (running, 4)


def test_a_field_that_a_later_version_adds_is_ignored() -> None:
    store = MemoryRecords()
    store.kept[record_name(1)] = changed(colour="red", owner=vars_of(ANN) | {"team": "web"})
    assert tail(store) == record(1)


def test_a_record_of_a_version_without_format_numbers_is_read() -> None:
    body = json.loads(dump_record(record(1)))
    for added in ("format", "running", "compared", "dead_guards", "together", "silent", "window"):
        del body[added]
    assert parse_record(json.dumps(body).encode()) == record(1)


def test_a_gate_that_a_later_version_adds_stops_every_writer() -> None:
    assert parse_record(changed(gate="ajar")).gate is Gate.CLOSED


def test_a_kind_that_a_later_version_adds_counts_as_held() -> None:
    assert parse_record(changed(kind="handover")).held


def test_a_statement_in_flight_comes_back_as_it_was() -> None:
    for more in ((), ("r1", 7), ("r1", None)):
        running = RunningStatement("spark-connect://host:15002", "tablectl-r1-3", 900.5, *more)
        assert parse_record(dump_record(replace(record(1), running=running))).running == running


def test_a_statement_in_the_record_of_an_older_version_has_no_commit_to_look_for() -> None:
    running = {"engine": "spark", "tag": "tablectl-r1-3", "until": 100}
    assert parse_record(changed(running=running)).running == RunningStatement("spark", "tablectl-r1-3", 100)


@pytest.mark.parametrize(
    "more", [{"version": -1}, {"version": 10**19}, {"version": "7"}, {"run": 5}, {"run": "x" * 201}]
)
def test_impossible_facts_of_a_statement_make_a_record_unreadable(more: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(more))):
        parse_record(changed(running={"engine": "spark", "tag": "t", "until": 100, **more}))


@pytest.mark.parametrize(
    ("kind", "gate", "until", "shut"),
    [
        ("statement", Gate.APPENDS_ONLY, 100, Gate.APPENDS_ONLY),
        ("release", Gate.APPENDS_ONLY, 100, Gate.APPENDS_ONLY),
        ("release", Gate.OPEN, 100, Gate.CLOSED),  # as older versions wrote it
        ("acquire", Gate.OPEN, 100, Gate.CLOSED),
        ("release", Gate.CLOSED, 0, Gate.OPEN),
        ("gate", Gate.CLOSED, 0, Gate.CLOSED),
        ("break", Gate.OPEN, 100, Gate.OPEN),
        ("dead", Gate.OPEN, 100, Gate.OPEN),
    ],
)
def test_the_gate_that_writers_obey(kind: str, gate: Gate, until: float, shut: Gate) -> None:
    last = replace(record(1), kind=kind, gate=gate, running=RunningStatement("spark", "t", until))
    assert last.shut is shut
    assert bool(last.shut_for) is (shut is not Gate.OPEN)


def test_a_writer_counts_the_bound_of_the_statement_on_top_of_the_ttl() -> None:
    last = replace(record(1), running=RunningStatement("spark", "t", 100))
    assert last.silence == 75
    assert last.statement_silence == 200
    assert replace(last, kind="dead").shut_for == 0


def test_a_gate_lets_in_writers_of_its_shared_window_only_while_no_statement_can_run() -> None:
    waits = replace(record(1), kind="gate", gate=Gate.CLOSED, window="w1")
    assert waits.waited_for("w1")
    assert parse_record(dump_record(waits)).waited_for("w1")
    for changed_record, window in (
        (waits, "w2"),
        (replace(waits, window=""), ""),
        (replace(waits, running=RunningStatement("spark", "t", 100)), "w1"),
        (replace(waits, kind="release"), "w1"),
    ):
        assert not changed_record.waited_for(window)


@pytest.mark.parametrize(
    "name",
    [
        "lease/00000000000000000000.json",
        "lease/٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٥.json",
        "lease/000000000000000000002.json",
    ],
)
def test_a_number_that_no_lease_reaches_is_not_looked_at(name: str) -> None:
    """Measured before: such a name hid a closed gate from all writers."""
    store = MemoryRecords()
    put(store, record(1), None)
    store.kept[name] = dump_record(replace(record(1), kind="release", gate=Gate.OPEN))
    assert tail(store) == record(1)


def test_a_pruned_number_is_not_taken_again() -> None:
    """The tail was record 1 when we read it. While we slept, others wrote 29 more and pruned."""
    store = MemoryRecords()
    put(store, record(1), None)
    for seq in range(2, 31):
        put(store, record(seq), record(seq - 1))
    prune(store, 30)
    assert not put(store, record(2, "sleeper"), record(1))
    assert tail(store) == record(30)


def test_a_pruned_number_behind_another_paused_run_is_not_taken_again() -> None:
    store = MemoryRecords()
    for seq in range(1, 31):
        put(store, record(seq), record(seq - 1) if seq > 1 else None)
    prune(store, 30)
    assert not put(store, record(2, "ben"), record(1))
    assert not put(store, record(3, "ann"), record(2))


def test_the_first_number_is_not_taken_again_after_pruning() -> None:
    store = MemoryRecords()
    for seq in range(1, 31):
        put(store, record(seq), record(seq - 1) if seq > 1 else None)
    prune(store, 30)
    assert not put(store, record(1, "sleeper"), None)


def test_a_store_that_wrote_over_our_record_is_found_out_by_reading_back() -> None:
    class Overwriting(MemoryRecords):
        """Ignores the condition of one put, of someone else, right after ours."""

        def land(self, name: str, data: bytes) -> bool:
            super().land(name, data)
            self.kept[name] = dump_record(record(1, "ben"))
            return True

    with pytest.raises(WindowError, match="If-None-Match") as caught:
        put(Overwriting(), record(1, "ann"), None)
    assert "state:" in caught.value.hint


def test_other_files_in_the_directory_are_not_records() -> None:
    store = MemoryRecords()
    put(store, record(1), None)
    store.kept["lease/.00000000000000000002.json.crc"] = store.kept["lease/notes.txt"] = b"?"
    assert tail(store) == record(1)


def test_pruning_keeps_the_last_twenty() -> None:
    store = MemoryRecords()
    for seq in range(1, 31):
        put(store, record(seq), None)
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
    put(store, record(1), None)
    assert tail(store) == record(40)


def test_gates_are_ordered_from_loose_to_strict() -> None:
    assert sorted(Gate, key=lambda gate: gate.strictness) == ["open", "no-schema", "appends-only", "closed"]
