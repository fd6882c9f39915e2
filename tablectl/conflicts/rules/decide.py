"""Which transaction fails because of which commits, for every client of the current transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tablectl.conflicts.rules.databricks import decide_databricks
from tablectl.conflicts.rules.delta_spark import RELEASES, decide_spark
from tablectl.conflicts.rules.kernel_and_delta_rs import decide_delta_rs, decide_kernel
from tablectl.conflicts.transactions import CommittedTransaction, ConflictOutcome, CurrentTransaction, commits
from tablectl.delta.protocol import Client

_ANY = (RELEASES[0], Client("kernel"), Client("delta-rs"), Client("databricks"))


def decide(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome:
    """The outcome of the current transaction after one committed transaction."""
    return decide_all([committed], current)


def decide_all(all_committed: Sequence[CommittedTransaction], current: CurrentTransaction) -> ConflictOutcome:
    """The outcome of the current transaction after several committed ones, in the order of their versions.

    A client of unknown kind gets the worst outcome of all known clients.
    """
    match current.client.engine:
        case "delta-spark":
            return decide_spark(all_committed, current)
        case "kernel":
            return _worst([decide_kernel(committed, current) for committed in all_committed])
        case "delta-rs":
            return _worst([decide_delta_rs(committed, current) for committed in all_committed])
        case "databricks":
            return _worst([decide_databricks(committed, current) for committed in all_committed])
        case _:
            return _worst([decide_all(all_committed, replace(current, client=client)) for client in _ANY])


def _worst(outcomes: Sequence[ConflictOutcome]) -> ConflictOutcome:
    """The worst outcome, and the first among equals: it is the one that ends the transaction."""
    return max(outcomes, key=lambda outcome: outcome.rank, default=commits("nothing came in between", "delta-2.1"))
