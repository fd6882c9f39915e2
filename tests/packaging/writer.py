"""A job on an old Python, with nothing but tablectl-guard installed. Prints ``ok`` if all of it holds."""

import logging
import tempfile
import threading
from datetime import datetime
from pathlib import Path

import tablectl_guard as guards
from tablectl.leases.lease_records import Gate, LeaseRecord, dump_record, record_name
from tablectl.leases.owner import UNKNOWN_OWNER
from tablectl.storage.mounts import real_place
from tablectl.storage.records import RecordStore, open_records
from tablectl.support.compat import UTC
from tablectl.writers.guard import ENDING


class Warnings(logging.Handler):
    """A guard fails open: without this check, a job would pass that no guard protects."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def hold(store: RecordStore, seq: int, kind: str, gate: Gate) -> None:
    """What an apply writes."""
    now = datetime.now(UTC)
    record = LeaseRecord(
        seq=seq,
        epoch=1,
        id=f"{seq:032x}",
        owner=UNKNOWN_OWNER,
        run="r",
        digest="d",
        kind=kind,
        gate=gate,
        ttl=60.0,
        owed=(),
        reason="",
        since=now,
        at=now,
    )
    assert store.create(record_name(seq), dump_record(record))


class Conflict(Exception):  # noqa: N818
    """As ``deltalake`` and Spark raise it."""

    def getCondition(self) -> str:  # noqa: N802
        return "DELTA_CONCURRENT_APPEND"


def in_the_background(table: str) -> None:
    """On an object store, the guard is deleted after the write has ended."""
    state = "memory://state"
    store = open_records(table, state, real_place(table))
    with guards.guard(None, table, "append", state=state):
        assert len(store.names("guards/")) == 1
    for thread in threading.enumerate():
        if thread.name == ENDING:
            thread.join()
    assert not store.names("guards/")


def main() -> None:
    """One table, guarded, closed, opened."""
    warnings = Warnings()
    logging.getLogger("tablectl").addHandler(warnings)
    table = tempfile.mkdtemp()
    (Path(table) / "_delta_log").mkdir()
    store = open_records(table)
    with guards.guard(None, table, "append", name="old job"):
        assert len(store.names("guards/")) == 1
    assert not store.names("guards/")
    in_the_background(table)

    hold(store, 1, "acquire", Gate.OPEN)
    hold(store, 2, "gate", Gate.CLOSED)
    try:
        with guards.guard(None, table, "append", timeout=0.2):
            raise AssertionError("the write passed a closed gate")
    except guards.GuardTimeout:
        pass
    opener = threading.Timer(0.3, hold, (store, 3, "release", Gate.OPEN))
    opener.start()

    batches = []
    guards.guard_batch(lambda frame, number: batches.append(number), table)(None, 7)
    assert batches == [7]
    opener.join()

    runs = []

    @guards.retry_on_conflict(attempts=3, base=0)
    def job() -> int:
        runs.append(1)
        if len(runs) < 3:
            raise Conflict
        return len(runs)

    assert job() == 3
    assert warnings.said == [said for said in warnings.said if "in run" in said], warnings.said
    print("ok")


if __name__ == "__main__":
    main()
