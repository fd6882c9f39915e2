"""Which transaction fails because of which commits, for every client of the current transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tablectl.conflicts.rules import RULES, rules_of
from tablectl.conflicts.rules.client_rules import worst
from tablectl.conflicts.transactions import ConflictOutcome, CurrentTransaction
from tablectl.model.commits import CommittedTransaction


def decide(winner: CommittedTransaction, loser: CurrentTransaction) -> ConflictOutcome:
    """The outcome of the current transaction after one committed transaction."""
    return decide_all([winner], loser)


def decide_all(winners: Sequence[CommittedTransaction], loser: CurrentTransaction) -> ConflictOutcome:
    """The outcome of the current transaction after several committed ones, in the order of their versions.

    A client of unknown kind gets the worst outcome of all known families.
    """
    rules = rules_of(loser.client)
    if rules is not None:
        return rules.decide(winners, loser)
    return worst([each.decide(winners, replace(loser, client=each.strictest)) for each in RULES])
