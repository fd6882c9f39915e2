"""When a table's OPTIMIZE and VACUUM ended last, for logs in which too many later commits hide it.

One record for each kind, in the name of which is the time. Commits come first: a record is read only if a kind would be
due and no commit that was read is one of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tablectl.model.errors import WindowError
from tablectl.model.table import LiveTable
from tablectl.model.upkeep import UpkeepFacts, UpkeepKind, UpkeepPolicy, UpkeepTask, believable
from tablectl.planning.upkeep import due_tasks
from tablectl.storage.records import RecordStore
from tablectl.support.json_text import read_json, write_json

_NAME = re.compile(r"upkeep/(?P<kind>optimize|vacuum)\.(?P<at>[0-9]{14})\.json")
_MOST = 10
"""Records of one kind that are read, or deleted, at most. There is one, unless a stranger adds others."""
_LONGEST_ID = 200


def due_by_records(
    policy: UpkeepPolicy, live: LiveTable, now: int, records: Callable[[], RecordStore]
) -> tuple[UpkeepTask, ...]:
    """As ``due_tasks``, with the records of what the read commits do not show. Records that cannot be read are taken
    for none: then upkeep runs too early, and not never.
    """
    tasks = due_tasks(policy, live, now)
    if all(each.last or not each.due for each in tasks):
        return tasks
    facts, done = live.upkeep or UpkeepFacts(), dict[UpkeepKind, int]()
    with suppress(WindowError):
        store = records()
        done = {each.kind: _done_at(store, each.kind, live.table_id, now) for each in tasks if not each.last}
    found = replace(
        facts,
        optimized_at=done.get("optimize") or facts.optimized_at,
        vacuumed_at=done.get("vacuum") or facts.vacuumed_at,
    )
    return due_tasks(policy, replace(live, upkeep=found), now)


def note_done(store: RecordStore, kind: UpkeepKind, table_id: str, at: int) -> None:
    """Put the record and delete older ones. A failure of the store costs the record."""
    name = f"upkeep/{kind}.{at:014d}.json"
    with suppress(WindowError):
        store.create(name, write_json({"format": 1, "table": table_id[:_LONGEST_ID]}).encode())
        for old in [each for each in store.names(f"upkeep/{kind}.") if each < name][:_MOST]:
            store.delete(old)


def _done_at(store: RecordStore, kind: UpkeepKind, table_id: str, now: int) -> int:
    """The newest time of a kind on this table, in milliseconds since the epoch; 0 without a record. A table that took
    the place of another one has another id.
    """
    matches = map(_NAME.fullmatch, store.names(f"upkeep/{kind}."))
    times = sorted((int(each["at"]) for each in matches if each), reverse=True)
    for at in [each for each in times if believable(each, now)][:_MOST]:
        with suppress(ValueError, TypeError, KeyError):
            if read_json(store.read(f"upkeep/{kind}.{at:014d}.json") or b"")["table"] == table_id[:_LONGEST_ID]:
                return at
    return 0
