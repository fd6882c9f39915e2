"""Which transaction fails because of which commits, for every client of the current transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tablectl.conflicts.rules import databricks, delta_spark
from tablectl.conflicts.rules.kernel_and_delta_rs import DELTA_RS_RULES, KERNEL_RULES
from tablectl.conflicts.transactions import ClientRules, ConflictOutcome, CurrentTransaction, worst
from tablectl.delta.protocol import Client
from tablectl.model.commits import CommittedTransaction

RULES: tuple[ClientRules, ...] = (delta_spark.RULES, KERNEL_RULES, DELTA_RS_RULES, databricks.RULES)
"""The rules of every family. Among equal outcomes for an unknown client, the first family gives the reason."""


def rules_of(client: Client) -> ClientRules | None:
    """The rules of a client's family; ``None`` for a client of unknown kind."""
    return next((each for each in RULES if each.family is client.family), None)


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
