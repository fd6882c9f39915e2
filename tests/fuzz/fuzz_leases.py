"""Lease records that others wrote."""

from __future__ import annotations

import json
from random import Random

from tablectl.leases.lease_records import dump_record, record_name, tail
from tablectl.model.errors import WindowError
from tests.fuzz.damage import damaged_bytes, damaged_json
from tests.fuzz.subject import Subject
from tests.leases.lease_fakes import MemoryRecords
from tests.leases.test_lease_records import record

_RECORD = dump_record(record(3))


def damaged_record(random: Random) -> str:
    store = MemoryRecords()
    if random.random() < 0.3:
        store.kept[record_name(3)] = damaged_bytes(random, _RECORD)
    else:
        store.kept[record_name(3)] = json.dumps(damaged_json(random, json.loads(_RECORD))).encode()
    try:
        found = tail(store)
    except WindowError as error:
        assert "lease" in error.message
        return "refused"
    assert found is not None
    assert found.seq == 3
    return "read"


SUBJECTS = (Subject("leases", "a lease record of any content is read or refused with a WindowError", damaged_record),)
