"""Statements that the Databricks Runtime of the engine is too old for. Refused in the plan, with the runtime that has
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tablectl.delta import keys
from tablectl.delta.databricks_runtimes import Capability, Runtime, can, capability
from tablectl.model.plan import Refusal, Statement, TablePlan

_BY_PROPERTY = {
    (key.lower(), value): known
    for (key, value), known in {
        (keys.DELETION_VECTORS, "true"): ("deletion_vectors", "enable"),
        (keys.ROW_TRACKING, "true"): ("row_tracking", "enable"),
        (keys.COLUMN_MAPPING, "name"): ("column_mapping", "enable"),
        ("delta.enableTypeWidening", "true"): ("type_widening", "enable"),
        (keys.IN_COMMIT_TIMESTAMPS, "true"): ("in_commit_timestamps", "enable"),
    }.items()
}


def needed(statement: Statement) -> Iterator[Capability]:
    """The capabilities that a statement needs, as far as the table of capabilities has them."""
    match statement.verb:
        case "CLUSTER BY":
            yield capability("clustering", "set")
        case "OPTIMIZE" if statement.sql.endswith(" FULL"):
            yield capability("clustering", "rewrite all data")
        case "DROP FEATURE" if statement.effect.truncates_history:
            yield capability("drop_feature", "with loss of history")
        case "DROP FEATURE":
            yield capability("drop_feature", "without loss of history")
        case _:
            pass
    for key, value in statement.effect.sets:
        if found := _BY_PROPERTY.get((key.lower(), value.lower())):
            yield capability(*found)


def for_runtime(table: TablePlan, runtime: Runtime | None) -> TablePlan:
    """The plan of a table for a runtime: with a refusal for each change that it cannot make. Nothing is refused because
    of a capability of which nothing is known.
    """
    if runtime is None or table.refusals:
        return table
    found: dict[str, Refusal] = {}
    for statement in table.statements:
        for known in needed(statement):
            if can(runtime, known) is False:
                about = [change for change in statement.serves if change.partition(".")[0] == known.feature]
                for change in about or statement.serves:
                    found.setdefault(change, _refusal(change, known, runtime))
    if not found:
        return table
    # As a plan file with a refusal must be (``plan_file``): nothing of it is applied.
    return replace(
        table,
        refusals=tuple(found.values()),
        statements=(),
        features=(),
        undo=(),
        protocol_after=table.basis.protocol,
    )


def _refusal(change: str, known: Capability, runtime: Runtime) -> Refusal:
    assert known.since is not None
    since = ".".join(map(str, known.since))
    return Refusal(
        change=change,
        reason=f"Databricks Runtime {runtime.text} cannot run it: {known.form} needs {since} "
        f"({known.evidence}, {known.source})",
        fix=f"run it with runtime {since} or newer (`engine.runtime`), or leave the setting out",
    )
