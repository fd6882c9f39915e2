"""Statements that the Databricks Runtime of the engine is too old for. Refused in the plan, with the runtime that has
them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tablectl.delta.databricks_runtimes import Capability, Runtime, can, for_property
from tablectl.model.operations import Operation
from tablectl.model.plan import Refusal
from tablectl.planning.derive_statements import DerivedTable


def runtime_refusals(derived: DerivedTable, runtime: Runtime) -> tuple[Refusal, ...]:
    """A refusal for each change that a runtime cannot make. A capability of which nothing is known refuses nothing."""
    found: dict[str, Refusal] = {}
    for statement, operation in zip(derived.statements, derived.sent, strict=True):
        for known in _needed(operation, statement.effect.sets):
            if can(runtime, known) is False:
                about = [change for change in statement.serves if change.partition(".")[0] == known.feature]
                for change in about or statement.serves:
                    found.setdefault(change, _refusal(change, known, runtime))
    return tuple(found.values())


def _needed(operation: Operation, sets: tuple[tuple[str, str], ...]) -> Iterator[Capability]:
    if operation.form and operation.form.capability:
        yield operation.form.capability
    for key, value in sets:
        yield from for_property(key, value)


def _refusal(change: str, known: Capability, runtime: Runtime) -> Refusal:
    keeps_history = (known.feature, known.action) == ("deletion_vectors", "drop without loss of history")
    other = "; or accept the loss of history with `truncate_history: true`" if keeps_history else ""
    return Refusal(
        change=change,
        reason=f"Databricks Runtime {runtime.text} cannot run it: {known.form} needs {known.first} ({known.cited})",
        fix=f"run it with runtime {known.first} or newer (`engine.runtime`), or leave the setting out{other}",
    )
