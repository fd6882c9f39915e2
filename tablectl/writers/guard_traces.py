"""A durable trace of guarded writers: one small record for each writer, table and day.

It says who came with a guard, long after the guards are gone. A record that cannot be written is left out. Each writer
that leaves one deletes some that are older than ``KEPT`` days, so their number stays bounded.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from functools import lru_cache
from itertools import count, islice
from typing import NamedTuple

from tablectl.leases.clock import today
from tablectl.leases.owner import on_one_line
from tablectl.model.errors import WindowError
from tablectl.storage.records import RecordStore
from tablectl.support.json_text import read_json, write_json

_NAME = re.compile(r"writers/(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})\.[0-9a-f]{16}\.json")
_LONGEST = 200
_MOST = 10_000
KEPT = 30
"""Days for which a trace is kept."""
_MOST_DELETED = 20
"""Old traces that one writer deletes at most: the end of its write may wait for that."""
FORMAT = 1


class Trace(NamedTuple):
    """A writer that came with a guard."""

    day: str
    writer: str
    mode: str


def leave_trace(store: RecordStore, writer: str, mode: str, day: date) -> None:
    """Put the record, once for each writer, table and day of this process. A failure of the store costs the trace."""
    if next(_seen(str(store), writer, mode, day)) > 0:
        return
    body = {"day": day.isoformat(), "format": FORMAT, "mode": mode, "writer": writer[:_LONGEST]}
    digest = hashlib.sha256(f"{writer}\0{mode}".encode()).hexdigest()[:16]
    with suppress(WindowError):
        store.create(f"writers/{day.isoformat()}.{digest}.json", write_json(body, sort=True, spaces=True).encode())
        oldest = f"writers/{(day - timedelta(days=KEPT)).isoformat()}"
        names = (name for name in sorted(store.names("writers/")) if name < oldest and _NAME.fullmatch(name))
        for name in islice(names, _MOST_DELETED):
            store.delete(name)


@lru_cache(maxsize=1_000)
def _seen(store: str, writer: str, mode: str, day: date) -> Iterator[int]:  # noqa: ARG001  # the key of the cache
    return count()


def traces(store: RecordStore, since: date) -> list[Trace]:
    """The traces of a table since a day, newest first. Records that cannot be read, or are of a day to come, are left
    out.

    Raises ``WindowError`` if the store cannot be reached.
    """
    found: list[Trace] = []
    latest = (today() + timedelta(days=1)).isoformat()  # other machines are in other time zones
    for name in sorted(store.names("writers/"), reverse=True)[:_MOST]:
        match = _NAME.fullmatch(name)
        if match and since.isoformat() <= match["day"] <= latest:
            data = store.read(name)
            trace = None if data is None else _parse(match["day"], data)
            found += [trace] if trace else []
    return found


def _parse(day: str, data: bytes) -> Trace | None:
    try:
        body = read_json(data)
        writer, mode = str(body["writer"]), str(body["mode"])
    except (ValueError, TypeError, KeyError, WindowError):
        return None
    return Trace(day, on_one_line(writer[:_LONGEST]), on_one_line(mode[:_LONGEST]))
