"""``predictive_optimization``: whether Databricks maintains a managed table by itself: OPTIMIZE, VACUUM, ANALYZE.

The setting is in the catalog and not in the table's log. ``inherit`` is the setting of the schema, the catalog or the
account. A table without an answer of a catalog reads ``unknown``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, get_args

from tablectl.attributes.base import (
    NO_NEEDS,
    UNKNOWN,
    Attribute,
    ChangeTarget,
    Needs,
    PlannedOperation,
    why_no_catalog_setting,
)
from tablectl.attributes.value_types import Declared, ValueType
from tablectl.delta.dialects import DATABRICKS, dialect_of
from tablectl.model.catalog_answers import CATALOG_FEATURES
from tablectl.model.operations import Operation, OptimizationWord, SetOptimization
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

PredictiveOptimizationValue = Literal["enabled", "disabled", "inherit"]
_WORDS: Mapping[Value, OptimizationWord] = MappingProxyType(
    {"enabled": "ENABLE", "disabled": "DISABLE", "inherit": "INHERIT"}
)


class PredictiveOptimization(Attribute):
    """The attribute ``predictive_optimization``."""

    name = "predictive_optimization"
    value_type = ValueType(
        name=name,
        description="Databricks only. `enabled`: Databricks maintains the table by itself. `disabled`: it does not. "
        "`inherit`: as the schema says.",
        words=get_args(PredictiveOptimizationValue),
        dialects=frozenset({DATABRICKS.name}),
    )
    may_leave_out = (("clustering.data", None),)

    def read(self, live: LiveTable, key: str) -> Value:
        return (live.entry.optimization if live.entry else "") or UNKNOWN

    def diff(self, declared: Declared, live: LiveTable) -> Iterable[Change]:
        """No change without an answer of a catalog: nothing is known then."""
        return super().diff(declared, live) if live.entry is not None else ()

    def leaves_out(self, declared: Declared | None, live: LiveTable) -> bool:
        """OPTIMIZE of a clustered table. A second one would cost without an effect."""
        on = live.entry is not None and live.entry.optimized is True
        return declared != "disabled" and (declared == "enabled" or on)

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        """Only managed tables of Unity Catalog have the setting, and its catalog must tell the value."""
        if wrong := why_no_catalog_setting(change, live, target, "predictive optimization"):
            return wrong
        if change.before != UNKNOWN:
            return None
        fix = "configure the catalog as `type: unity` in tablectl.yaml (docs/unity-catalog.md), or leave it out"
        if live.entry is not None and live.entry.managed is not None:
            fix = "leave it out: the open-source server of Unity Catalog does not have the setting"
        reason = "no catalog tells whether predictive optimization is on"
        return Reason(reason, fix)

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        undo = SetOptimization(_WORDS[change.before]) if change.before in _WORDS else None
        return (PlannedOperation(change.id, SetOptimization(_WORDS[change.after]), undo=undo),)

    def born(self, declared: Declared) -> Iterable[Operation]:
        """A new table inherits the setting: any other needs a statement of its own."""
        return () if declared == "inherit" else (SetOptimization(_WORDS[str(declared)]),)

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        found = self.read(live, "")
        if found in {"enabled", "disabled"}:
            yield "", found

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        del key, options, live
        return Needs(entry=True) if value is not None else NO_NEEDS


def why_maintained(live: LiveTable, declared: object, dialect: str) -> str:
    """Who maintains a table, so that nothing else may; empty if no other does. ``declared`` is what its policy says
    of predictive optimization.
    """
    through_catalog = (live.protocol.reader_features | live.protocol.writer_features) & CATALOG_FEATURES
    if through_catalog and not dialect_of(dialect).maintains_managed:
        return "its catalog maintains it: Delta Spark refuses OPTIMIZE and VACUUM on a catalog-managed table"
    if live.entry is not None and live.entry.optimized is True and declared != "disabled":
        return "predictive optimization of Databricks maintains it"
    return ""
