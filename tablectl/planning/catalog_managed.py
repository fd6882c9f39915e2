"""Statements that Delta refuses on tables whose commits go through a catalog, before they are sent.

Source: Delta 4.4.0, ``DeltaErrors.operationBlockedOnCatalogManagedTable`` in ``OptimizeTableCommand.scala``,
``DeltaReorgTableCommand.scala`` and ``VacuumCommand.scala``; measured with Unity Catalog 0.6.0 (docs/unity-catalog.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tablectl.delta.dialects import dialect_of
from tablectl.model.managed_table import CATALOG_FEATURES
from tablectl.model.plan import Basis, Refusal, Statement

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
            "declare `deletion_vectors: disabled` if no new vectors are wanted",
        ),
        "OVERWRITE": (_NO_REPLACE, "create a new table with these partition columns"),
    }
)
"""Verb of a statement → why it is refused, and the fix."""


def catalog_refusals(statements: Sequence[Statement], basis: Basis, dialect: str) -> tuple[Refusal, ...]:
    """One refusal for each change that needs such a statement, about the last one of them; none for a product that runs
    them.
    """
    protocol = basis.protocol.protocol()
    through_catalog = (protocol.reader_features | protocol.writer_features) & CATALOG_FEATURES
    if not through_catalog or dialect_of(dialect).maintains_managed:
        return ()
    found: dict[str, Refusal] = {}
    for statement in statements:
        if statement.verb in _REASONS:
            reason, fix = _REASONS[statement.verb]
            for change in statement.serves:
                found[change] = Refusal(change=change, reason=reason, fix=fix, condition=CONDITION)
    return tuple(found.values())
