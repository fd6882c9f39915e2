"""The form of the rules of one client family."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tablectl.conflicts.transactions import ConflictOutcome, CurrentTransaction, commits
from tablectl.delta.client_families import ClientFamily
from tablectl.delta.protocol import Client
from tablectl.frozen import frozen
from tablectl.model.commits import CommittedTransaction


@frozen(kw_only=True)
class ClientRules:
    """The conflict rules of the clients of one family."""

    family: ClientFamily
    decide: Callable[[Sequence[CommittedTransaction], CurrentTransaction], ConflictOutcome]
    """The outcome of a current transaction of the family after several committed ones, in the order of their versions.
    """
    strictest: Client
    """The client of the family whose transactions fail most. A client of unknown kind counts as it."""
    releases: tuple[Client, ...] = ()
    """The versions in which the rules changed, oldest first; empty if they are the same for all versions."""


def worst(outcomes: Sequence[ConflictOutcome]) -> ConflictOutcome:
    """The worst outcome, and the first among equals: it is the one that ends the transaction."""
    return max(outcomes, key=lambda outcome: outcome.rank, default=commits("nothing came in between", "delta-2.1"))
