"""``tablectl.guard_batch``: a function for ``foreachBatch`` that runs each batch under its own guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tablectl.leases.guards import GuardMode
from tablectl.writers.guard import Guard
from tablectl.writers.options import GuardOptions, GuardSettings, ModeName, Table, guard_options
from tablectl.writers.retry import check_plain

if TYPE_CHECKING:  # newer than the oldest Python of a writer
    from typing import Unpack

Batch = Callable[[Any, int], Any]
"""What ``foreachBatch`` accepts: a function of the batch's DataFrame and its number."""


@dataclass(frozen=True)
class GuardedBatch:
    """A ``Batch``. Holds no session, so that Spark Connect can send it to the server."""

    function: Batch
    terms: GuardOptions

    def __call__(self, df: Any, batch_id: int) -> None:
        """Run one batch. If the table must be looked up, the batch's session is used.

        It ends with its guard deleted: Spark Connect kills the Python process of a batch as soon as the query ends.
        """
        session = df.sparkSession if self.terms.target.location is None else None
        with Guard(session, replace(self.terms, wait_for_deletion=True)):
            self.function(df, batch_id)


def guard_batch(
    function: Batch,
    table: Table,
    mode: ModeName | GuardMode = "any",
    **settings: Unpack[GuardSettings],
) -> GuardedBatch:
    """Wrap a function for ``writeStream.foreachBatch``: each batch runs ``function`` under its own guard.

    All parameters except ``function(df, batch_id)`` are those of ``guard``. The function must resolve the table inside
    (``df.write.saveAsTable(…)``, ``MERGE`` as SQL, ``DeltaTable.forName``), not before. On Spark Connect it runs in a
    Python process of the server, where tablectl must be installed, too.
    """
    check_plain(function, "guard_batch")
    return GuardedBatch(function, guard_options(table, mode, **settings))
