"""Whether the statement of a silent apply has committed, by the log of its table (docs/guards.md). Loaded only by a
writer that waits for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice

from tablectl.leases.lease_records import RunningStatement
from tablectl.model.stamp import read_stamp
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.table_log import TableLog, VanishedError
from tablectl.support.json_text import read_json

_COMMITS = 100
"""How many commits one look reads at most. The next look goes on after them."""
_LINES = 1000
"""In so many lines of a commit its ``commitInfo`` is looked for. Delta Spark writes it first
(``CurrentTransactionInfo.finalActionsToCommit`` in ``ConflictChecker.scala`` of Delta 4.0.0)."""
_LONGEST = 1 << 20


class StatementLog:
    """The log of one table. Each commit is read once for a statement."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._read: dict[str, int] = {}
        """By the tag of a statement: the newest version that was read for it."""

    def has(self, running: RunningStatement) -> bool:
        """Whether the log has the one commit that ends a statement: a published one, since a staged commit proves
        nothing. Raises ``LiveError`` if the log cannot be read.
        """
        if running.version is None:
            return False
        with Stores(StoreOptions()) as stores:
            log = stores.open(self._location)
            for version, run in _runs(log, self._read.get(running.tag, running.version)):
                if run == running.run:
                    return True
                self._read[running.tag] = version
        return False


def _runs(log: TableLog, after: int) -> Iterator[tuple[int, str]]:
    """The versions after one, each with the run in its stamp; empty if another client made it."""
    with suppress(VanishedError):
        for version in range(after + 1, after + 1 + _COMMITS):
            with closing(log.lines(f"{version:020d}.json")) as lines:
                found = next((line for line in islice(lines, _LINES) if line.startswith(b'{"commitInfo"')), b"")
            yield version, _run(found[:_LONGEST])


def _run(line: bytes) -> str:
    try:
        stamp = read_stamp(read_json(line)["commitInfo"]["userMetadata"])
    except (ValueError, TypeError, LookupError):
        return ""
    return stamp.run if stamp else ""
