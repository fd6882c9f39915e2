"""Statements that the Databricks Runtime of the engine is too old for. Refused in the plan, with the runtime that has
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tablectl.delta.databricks_runtimes import Capability, Runtime, can, for_form, for_property
from tablectl.model.plan import Refusal, Statement, TablePlan
from tablectl.model.statement_forms import form_of


def needed(statement: Statement) -> Iterator[Capability]:
    """The capabilities that a statement needs, as far as the table of capabilities has them."""
    if statement.repartition is None:
        yield from for_form(form_of(statement.sql).id)
    for key, value in statement.effect.sets:
        yield from for_property(key, value)


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
    other = "; or accept the loss of history with `truncate_history: true`" * ("drop feature" in known.forms)
    return Refusal(
        change=change,
        reason=f"Databricks Runtime {runtime.text} cannot run it: {known.form} needs {known.first} ({known.cited})",
        fix=f"run it with runtime {known.first} or newer (`engine.runtime`), or leave the setting out{other}",
    )
