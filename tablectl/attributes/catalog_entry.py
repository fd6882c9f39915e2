"""What the settings of Databricks' Unity Catalog have in common: who has them, and on which tables."""

from __future__ import annotations

from tablectl.attributes.base import ChangeTarget
from tablectl.delta.dialects import DATABRICKS, dialect_of
from tablectl.model.operations import SetOptimization
from tablectl.model.plan import Change, Refusal
from tablectl.model.table import LiveTable

UNKNOWN = "unknown"
"""The value of a setting that no catalog told. No policy can declare it."""


def why_no_catalog_setting(change: Change, live: LiveTable, target: ChangeTarget, statement: str) -> Refusal | None:
    """Why a statement for managed tables of Unity Catalog cannot run on a table; ``None`` if nothing prevents it.

    What the catalog does not say prevents nothing.
    """
    if wrong := why_no_dialect(change, target, statement):
        return wrong
    entry = live.entry
    if entry is None or entry.managed is not False:
        return _without_optimization(change, live, target)
    return Refusal(
        change=change.id,
        reason=f"the catalog lists an external table, and {statement} needs a managed one",
        fix="declare `managed: true` too, and apply twice; or leave it out",
    )


def _without_optimization(change: Change, live: LiveTable, target: ChangeTarget) -> Refusal | None:
    """``CLUSTER BY AUTO`` needs predictive optimization."""
    off = live.entry is not None and live.entry.optimized is False
    if change.attribute != "clustering" or not off or SetOptimization("ENABLE") in target.operations:
        return None
    return Refusal(
        change=change.id,
        reason="predictive optimization is off for the table, and CLUSTER BY AUTO needs it",
        fix="declare `predictive_optimization: enabled` too, or name the columns",
    )


def why_no_dialect(change: Change, target: ChangeTarget, statement: str) -> Refusal | None:
    """Why a product does not have a statement of Unity Catalog; ``None`` if it has."""
    dialect = dialect_of(target.dialect)
    if dialect.catalog_settings:
        return None
    return Refusal(
        change=change.id,
        reason=f"{dialect.title} has no {statement}",
        fix=f"leave it out, or set `engine.dialect: {DATABRICKS.name}` in tablectl.yaml",
    )
