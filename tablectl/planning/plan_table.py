"""Plans one table."""

from __future__ import annotations

from collections.abc import Iterator

from tablectl.attributes.plan_basis import basis_of
from tablectl.attributes.policy import Policy
from tablectl.delta.databricks_runtimes import Capability, Runtime, can, for_property
from tablectl.delta.workspace_runs import DOCUMENTED
from tablectl.lint_rules import DEFAULT_SEVERITIES, Severities
from tablectl.lint_rules.rule import RuleFinding, table_subject
from tablectl.model.operations import Operation
from tablectl.model.plan import Change, ProtocolFact, Refusal, TablePlan
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.catalog_managed import catalog_refusals
from tablectl.planning.change_operations import operations_for, refusals_for
from tablectl.planning.derive_statements import DerivedTable, derive_table, refused_table
from tablectl.planning.diff import diff
from tablectl.planning.lint import graded, lint, refused_by
from tablectl.planning.protocol import (
    added_features,
    brought_back,
    partition_findings,
    partition_refusals,
    protocol_findings,
    protocol_refusals,
)
from tablectl.planning.table_loss import table_loss


def plan_table(
    policy: Policy,
    live: LiveTable,
    dialect: str,
    options: TableOptions = NO_OPTIONS,
    severities: Severities = DEFAULT_SEVERITIES,
    runtime: Runtime | None = None,
) -> TablePlan | None:
    """The changes that a policy requires on a live table; ``None`` if there are none. ``runtime`` is the Databricks
    Runtime that makes them, if it is known.

    A table with a refusal keeps its changes, for the reviewer, but has no statements: it is left out as a whole.
    """
    changes = diff(policy, live, dialect)
    if not changes:
        return None
    basis = basis_of(live, options, runtime.text if runtime else "")
    operations = operations_for(changes, basis)
    refusals = (*lock_refusals(changes, options), *refusals_for(changes, live, dialect, options, operations))
    known = (changes, basis, live.name, dialect, operations)
    derived = refused_table(changes, basis, operations, dialect) if refusals else derive_table(*known)
    refusals += (*consent_refusals(derived, dialect), *brought_back(policy, derived))
    subject = table_subject(policy, live, changes, dialect, options=options, runtime=runtime)
    found = graded(derived_findings(derived), live.name, severities) + lint(subject, live.name, "plan", severities)
    refused = {refusal.change for refusal in refusals}
    findings = tuple(each for each in found if not each.about or each.about not in refused)
    refusals += refused_by(findings, changes)
    if refusals:
        derived = derived.refused()
    loss = table_loss(derived, live, dialect)
    if runtime and not refusals and (refusals := runtime_refusals(derived, runtime)):
        derived = derived.refused()
    return TablePlan(
        name=live.name.text,
        location=live.location,
        table_id=live.table_id,
        version=live.version,
        basis=basis,
        changes=changes,
        statements=derived.statements,
        refusals=refusals,
        findings=findings,
        protocol_after=ProtocolFact.of(derived.after),
        features=added_features(derived.before, derived.after),
        undo=derived.undo(live.name),
        loss=loss,
    )


def lock_refusals(changes: tuple[Change, ...], options: TableOptions) -> tuple[Refusal, ...]:
    """A refusal of each change of a locked table."""
    lock = options.locked
    if lock is None:
        return ()
    fix = f"wait until the lock has ended, or ask {lock.owner} to take `locked` out of the policy"
    return tuple(Refusal(change=change.id, reason=f"the table is {lock.text}", fix=fix) for change in changes)


def consent_refusals(derived: DerivedTable, dialect: str) -> tuple[Refusal, ...]:
    """Refusals that follow from the statements: of what the policy's options do not allow or consent to, and of what
    the product refuses on a catalog-managed table.
    """
    asked = protocol_refusals(derived) + partition_refusals(derived.changes, derived.basis)
    return asked + catalog_refusals(derived.changes, derived.statements, derived.basis, dialect)


def derived_findings(derived: DerivedTable) -> tuple[RuleFinding, ...]:
    """The findings that follow from changes, statements and basis alone: those of ``DERIVED``."""
    found = (*protocol_findings(derived), *partition_findings(derived.changes, derived.basis))
    return (*found, *_unknown_properties(derived), *_unverified(derived))


def _unknown_properties(derived: DerivedTable) -> Iterator[RuleFinding]:
    """P008: keys that tablectl does not know, and that the policy declares all the same."""
    engines = dict(derived.basis.options.engine_properties)
    for change in derived.changes:
        if change.attribute == "properties" and change.key in engines:
            yield RuleFinding(
                "P008", f"unknown to tablectl: {change.key}, which {engines[change.key]} reads", change.id
            )


def _unverified(derived: DerivedTable) -> Iterator[RuleFinding]:
    """D001: forms of statements that are not known to have been run on the product."""
    verbs = list(dict.fromkeys(each.verb for each in derived.statements if each.evidence == DOCUMENTED))
    if verbs:
        yield RuleFinding("D001", f"{DOCUMENTED}: {', '.join(verbs)}")


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
    keeps_history = (known.feature, known.action) == ("features", "drop without loss of history")
    other = "; or accept the loss of history with `truncate_history: true`" if keeps_history else ""
    return Refusal(
        change=change,
        reason=f"Databricks Runtime {runtime.text} cannot run it: {known.form} needs {known.first} ({known.cited})",
        fix=f"run it with runtime {known.first} or newer (`engine.runtime`), or leave the setting out{other}",
    )
