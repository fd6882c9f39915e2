"""``tablectl.guard_batch``: what a stream hands to ``foreachBatch``, each batch under a guard of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tablectl.window.guards import TTL, Mode
from tablectl.writers.functions import check_plain
from tablectl.writers.guard import Guard
from tablectl.writers.terms import ModeName, Table, Terms, terms_of

Batch = Callable[[Any, int], Any]
"""What ``foreachBatch`` takes: a function of the batch's DataFrame and its number."""


@dataclass(frozen=True, slots=True)
class GuardedBatch:
    """A ``Batch``. Holds no session, so that Spark Connect can send it to the server."""

    function: Batch
    terms: Terms

    def __call__(self, df: Any, batch_id: int) -> None:
        """One batch. Where the table must be looked up, that happens in the session of the batch."""
        with Guard(df.sparkSession if self.terms.target.location is None else None, self.terms):
            self.function(df, batch_id)


def guard_batch(
    function: Batch,
    table: Table,
    mode: ModeName | Mode = "any",
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
    return GuardedBatch(function, terms_of(table, mode, name, timeout, state, ttl))
