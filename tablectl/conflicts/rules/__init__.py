"""The conflict rules, one file per client family: which transaction fails because of which commits."""

from __future__ import annotations

from tablectl.conflicts.rules import databricks, delta_rs, delta_spark, kernel
from tablectl.conflicts.rules.client_rules import ClientRules
from tablectl.delta.protocol import Client

RULES: tuple[ClientRules, ...] = (delta_spark.RULES, kernel.RULES, delta_rs.RULES, databricks.RULES)
"""The rules of every family. Among equal outcomes for an unknown client, the first family gives the reason."""


def rules_of(client: Client) -> ClientRules | None:
    """The rules of a client's family; ``None`` for a client of unknown kind."""
    return next((each for each in RULES if each.family is client.family), None)
