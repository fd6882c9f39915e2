"""When a table's OPTIMIZE and VACUUM ended last, for logs in which too many later commits hide it.

One record for each kind. Its name says the kind, the table and the time; its content says nothing. Commits come first:
records are read only if a kind would be due and no commit that was read is one of its kind.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

from tablectl.model.errors import WindowError
from tablectl.model.table import LiveTable
from tablectl.model.upkeep import UpkeepFacts, UpkeepPolicy, UpkeepTask, believable
from tablectl.planning.plan_upkeep import OPTIMIZE, VACUUM, due_tasks
from tablectl.storage.failures import ForeignRecordError
from tablectl.storage.records import RecordStore

_log = logging.getLogger(__name__)
_TIME = re.compile(r"([0-9]{14})\.json")
_NAME = re.compile(rf"[0-9a-f]{{16}}\.{_TIME.pattern}")
"""The name of a record after that of its kind."""
_MOST_DELETED = 10
"""There is one older record, unless a stranger adds others."""


def due_by_records(
    policy: UpkeepPolicy, live: LiveTable, now: int, records: Callable[[], RecordStore]
) -> tuple[UpkeepTask, ...]:
    """As ``due_tasks``, with the records of what the read commits do not show. Records that cannot be read are taken
    for none: then upkeep runs too early, and not never. Raises ``ForeignRecordError`` for a link in their place.
    """
    tasks = due_tasks(policy, live, now)
    if all(each.last or not each.due for each in tasks):
        return tasks
    facts = live.upkeep or UpkeepFacts()
    try:
        store = records()
        optimized = believable(facts.optimized_at, now) or _done_at(store, _prefix(OPTIMIZE, live.table_id), now)
        vacuumed = believable(facts.vacuumed_at, now) or _done_at(store, _prefix(VACUUM, live.table_id), now)
        facts = replace(facts, optimized_at=optimized, vacuumed_at=vacuumed)
    except ForeignRecordError:
        raise
    except WindowError as error:
        _log.debug("the records of upkeep are not known: %s", error.message)
    return due_tasks(policy, replace(live, upkeep=facts), now)


def note_done(store: RecordStore, kind: str, table_id: str, at: int) -> None:
    """Put the record of a kind, ``OPTIMIZE`` or ``VACUUM`` of ``planning.plan_upkeep``, and delete older ones and those
    of a table that this one replaced. A failure of the store costs the record.
    """
    prefix = _prefix(kind, table_id)
    name = f"{prefix}{at:014d}.json"
    with suppress(WindowError):
        store.create(name, b"{}")
        ours = (each for each in store.names(_folder(kind)) if _NAME.fullmatch(each, len(_folder(kind))))
        others = (each for each in ours if each < name or not each.startswith(prefix))
        for old in list(others)[:_MOST_DELETED]:
            store.delete(old)


def _folder(kind: str) -> str:
    return f"{kind.replace('.', '/')}."


def _prefix(kind: str, table_id: str) -> str:
    return f"{_folder(kind)}{sha256(table_id.encode(errors='backslashreplace')).hexdigest()[:16]}."


def _done_at(store: RecordStore, prefix: str, now: int) -> int:
    """The newest time, in milliseconds since the epoch; 0 without a record."""
    matches = (_TIME.fullmatch(each, len(prefix)) for each in store.names(prefix))
    return max((believable(int(each[1]), now) for each in matches if each), default=0)
