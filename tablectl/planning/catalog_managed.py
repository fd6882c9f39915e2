"""What is refused on tables whose commits go through a catalog, before a statement is sent.

Sources: Delta 4.4.0, ``DeltaErrors.operationBlockedOnCatalogManagedTable`` in ``OptimizeTableCommand.scala``,
``DeltaReorgTableCommand.scala`` and ``VacuumCommand.scala``; Unity Catalog 0.6.0, ``UcManagedDeltaContract.java``;
both measured (docs/unity-catalog.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tablectl.attributes.properties import Properties
from tablectl.delta import keys
from tablectl.delta.dialects import dialect_of
from tablectl.model.managed_table import CATALOG_FEATURES
from tablectl.model.plan import Basis, Change, Refusal, Statement

CONDITION = "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"
_MAINTENANCE = "the catalog's owner maintains such tables; leave the setting out of the policy"
_REFUSED = "Delta Spark refuses {} on a catalog-managed table"
_HALF_DROPPED = (
    ", and for deletionVectors only after it has committed UNSET delta.enableDeletionVectors: the table would change "
    "and the feature would stay"
)
_NO_REPLACE = (
    "a catalog-managed table cannot be replaced, and whether an overwrite with other partition columns is allowed is "
    "not documented"
)
_REASONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "OPTIMIZE": (_REFUSED.format("OPTIMIZE"), _MAINTENANCE),
        "REORG": (_REFUSED.format("REORG"), _MAINTENANCE),
        "UPGRADE UNIFORM": (_REFUSED.format("REORG … UPGRADE UNIFORM"), _MAINTENANCE),
        "DROP FEATURE": (
            _REFUSED.format("DROP FEATURE") + _HALF_DROPPED,
            "leave the setting out of the policy: the catalog's contract wants the feature to stay",
        ),
        "OVERWRITE": (_NO_REPLACE, "create a new table with these partition columns"),
    }
)
"""Verb of a statement → why it is refused, and the fix."""


FIXED: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("deletion_vectors", ""): "enabled",
        (Properties.name, keys.CHECKPOINT_POLICY): "v2",
        (Properties.name, keys.IN_COMMIT_TIMESTAMPS): "true",
        (Properties.name, "delta.checkpoint.writeStatsAsJson"): "true",
        (Properties.name, "delta.checkpoint.writeStatsAsStruct"): "true",
    }
)
"""Attribute and key → the value that Unity Catalog requires. It checks them only when a commit carries a protocol, so a
table with another value takes that commit and refuses each later change of its protocol.
"""
_CONTRACT = (
    "Unity Catalog requires `{}` to be {} on every table that it manages. It takes another value, and then refuses "
    "each later change of the table's protocol"
)


def catalog_refusals(
    changes: Sequence[Change], statements: Sequence[Statement], basis: Basis, dialect: str
) -> tuple[Refusal, ...]:
    """One refusal for each change that needs such a statement, about the last one of them, or that the catalog's
    contract forbids; none for a product that runs them.
    """
    protocol = basis.protocol.protocol()
    through_catalog = (protocol.reader_features | protocol.writer_features) & CATALOG_FEATURES
    if not through_catalog or dialect_of(dialect).maintains_managed:
        return ()
    fixed = ((each, FIXED.get((each.attribute, each.key))) for each in changes)
    found = {each.id: _against_contract(each) for each, value in fixed if value not in {None, str(each.after).lower()}}
    for statement in statements:
        if statement.verb in _REASONS:
            reason, fix = _REASONS[statement.verb]
            for change in statement.serves:
                found[change] = Refusal(change=change, reason=reason, fix=fix, condition=CONDITION)
    return tuple(found.values())


def _against_contract(change: Change) -> Refusal:
    reason = _CONTRACT.format(change.key or change.attribute, FIXED[change.attribute, change.key])
    return Refusal(change=change.id, reason=reason, fix="leave the setting out of the policy")
