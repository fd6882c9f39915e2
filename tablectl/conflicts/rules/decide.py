"""Which transaction loses to which commits: one answer for every client that may be the loser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tablectl.conflicts.rules.databricks import decide_databricks
from tablectl.conflicts.rules.delta_spark import RELEASES, decide_spark
from tablectl.conflicts.rules.kernel_and_delta_rs import decide_delta_rs, decide_kernel
from tablectl.conflicts.transactions import CommittedTransaction, ConflictOutcome, CurrentTransaction, commits
from tablectl.delta.protocol import Client

_ANY = (RELEASES[0], Client("kernel"), Client("delta-rs"), Client("databricks"))


def decide(winner: CommittedTransaction, loser: CurrentTransaction) -> ConflictOutcome:
    """What becomes of the loser after one winner."""
    return decide_all([winner], loser)


def decide_all(winners: Sequence[CommittedTransaction], loser: CurrentTransaction) -> ConflictOutcome:
    """What becomes of the loser after several winners, in the order of their versions.

    A client of unknown kind fares as the worst of all known ones.
    """
    match loser.client.engine:
        case "delta-spark":
            return decide_spark(winners, loser)
        case "kernel":
            return _worst([decide_kernel(winner, loser) for winner in winners])
        case "delta-rs":
            return _worst([decide_delta_rs(winner, loser) for winner in winners])
        case "databricks":
            return _worst([decide_databricks(winner, loser) for winner in winners])
        case _:
            return _worst([decide_all(winners, replace(loser, client=client)) for client in _ANY])


def _worst(outcomes: Sequence[ConflictOutcome]) -> ConflictOutcome:
    """The worst, and the first of equals: it is what ends the transaction."""
    return max(outcomes, key=lambda outcome: outcome.rank, default=commits("nothing came in between", "delta-2.1"))
