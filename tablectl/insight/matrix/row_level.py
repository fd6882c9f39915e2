"""Row-level concurrency of a table: for which statements it applies, because of which facts, and what prevents it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tablectl.conflicts.rules.databricks import row_level, row_level_limits
from tablectl.frozen import frozen
from tablectl.insight.matrix.context import ConflictContext
from tablectl.insight.matrix.operations import operation

STATEMENTS = ("update", "delete", "merge")
"""The operations with row-level concurrency. An INSERT that reads the table counts as a MERGE (D36)."""
_LIMITS: Mapping[str, str] = MappingProxyType(
    {
        "D41": "the runtime is not known: it begins with 13.3 for clustered tables, with 14.2 for others",
        "D42": "the table is partitioned",
        "D43": "deletion vectors are off",
        "D44": "the conditions use structs, arrays, maps, subqueries or nondeterministic expressions",
        "D45": "on 14.2 a MERGE needs Photon and a filter on its target",
        "D47": "the runtime is older than 13.3",
        "D48": "runtime 13.3 has it for clustered tables only",
        "D49": "runtimes 14.0 and 14.1 have it for clustered tables, and for others where the preview is on",
        "D50": "the table has no deletion vectors",
        "D51": "the table has no deletion vectors",
        "D99": "runtimes before 14.2 without Photon have it for DELETE only",
    }
)


@frozen
class RowLevel:
    """The answer for one statement."""

    statement: str
    """The key of its operation."""
    holds: bool | None
    """Whether row-level concurrency applies; ``None`` is unknown."""
    sources: str
    """The ids of the facts that say so."""

    limits: tuple[str, ...]
    """The ids of the facts that prevent it."""

    @property
    def why_not(self) -> str:
        """What prevents it; empty if it applies."""
        return "; ".join(dict.fromkeys(_LIMITS[each] for each in self.limits))


def row_levels(setting: ConflictContext) -> tuple[RowLevel, ...]:
    """The answer for each statement on a Databricks table. Clients without row-level concurrency (delta-3) get an empty
    result.
    """
    if not setting.client.family.row_level:
        return ()
    asked = ((key, operation(key).transactions(setting, "a")[0].current(setting)) for key in STATEMENTS)
    return tuple(RowLevel(key, *row_level(current), row_level_limits(current)) for key, current in asked)
