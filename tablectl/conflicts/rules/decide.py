"""Which transaction fails because of which commits, for every client of the current transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tablectl.conflicts.rules import RULES, rules_of
from tablectl.conflicts.rules.client_rules import worst
from tablectl.conflicts.transactions import ConflictOutcome, CurrentTransaction
from tablectl.model.commits import CommittedTransaction


def decide(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome:
    """The outcome of the current transaction after one committed transaction."""
    return decide_all([committed], current)


def decide_all(all_committed: Sequence[CommittedTransaction], current: CurrentTransaction) -> ConflictOutcome:
    """The outcome of the current transaction after several committed ones, in the order of their versions.

    A client of unknown kind gets the worst outcome of all known families.
    """
    rules = rules_of(current.client)
    if rules is not None:
        return rules.decide(all_committed, current)
    return worst([each.decide(all_committed, replace(current, client=each.strictest)) for each in RULES])
