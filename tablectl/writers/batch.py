"""``tablectl.guard_batch``: what a stream hands to ``foreachBatch``, each batch under a guard of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tablectl.applying.guards import TTL, GuardMode
from tablectl.writers.guard import Guard
from tablectl.writers.options import GuardOptions, ModeName, Table, guard_options
from tablectl.writers.wrappable import check_plain

Batch = Callable[[Any, int], Any]
"""What ``foreachBatch`` takes: a function of the batch's DataFrame and its number."""


@dataclass(frozen=True, slots=True)
class GuardedBatch:
    """A ``Batch``. Holds no session, so that Spark Connect can send it to the server."""

    function: Batch
    terms: GuardOptions

    def __call__(self, df: Any, batch_id: int) -> None:
        """One batch. Where the table must be looked up, that happens in the session of the batch."""
        with Guard(df.sparkSession if self.terms.target.location is None else None, self.terms):
            self.function(df, batch_id)


def guard_batch(
    function: Batch,
    table: Table,
    mode: ModeName | GuardMode = "any",
    *,
    name: str = "",
    timeout: float | None = None,
    state: str | None = None,
    ttl: float = TTL,
) -> GuardedBatch:
    """The function that ``writeStream.foreachBatch`` shall call instead: ``function`` under a guard, batch by batch.

    Everything but ``function(df, batch_id)`` is as in ``guard``. The function must resolve the table inside
    (``df.write.saveAsTable(…)``, ``MERGE`` as SQL, ``DeltaTable.forName``), not before. On Spark Connect it runs in a
    Python process of the server, which must have tablectl too.
    """
    check_plain(function, "guard_batch")
    return GuardedBatch(function, guard_options(table, mode, name, timeout, state, ttl))
