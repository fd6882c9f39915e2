"""Plans one table."""

from __future__ import annotations

from collections.abc import Iterator

from tablectl.attributes.features import added_features
from tablectl.attributes.plan_basis import basis_of
from tablectl.attributes.policy import Policy
from tablectl.delta.databricks_runtimes import Runtime
from tablectl.lint_rules import DEFAULT_SEVERITIES, Severities
from tablectl.lint_rules.rule import RuleFinding, table_subject
from tablectl.model.operations import UNVERIFIED
from tablectl.model.plan import ProtocolFact, Refusal, TablePlan
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.catalog_managed import catalog_refusals
from tablectl.planning.change_operations import operations_for, refusals_for
from tablectl.planning.derive_statements import DerivedTable, derive_table, refused_table
from tablectl.planning.diff import diff
from tablectl.planning.lint import graded, lint, refused_by
from tablectl.planning.partition_writers import partition_findings, partition_refusals
from tablectl.planning.protocol import protocol_findings, protocol_refusals
from tablectl.planning.runtime_refusals import runtime_refusals
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
    refusals = refusals_for(changes, live, dialect, options, operations)
    known = (changes, basis, live.name, dialect, operations)
    derived = refused_table(changes, basis, operations) if refusals else derive_table(*known)
    refusals += consent_refusals(derived, dialect)
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


def consent_refusals(derived: DerivedTable, dialect: str) -> tuple[Refusal, ...]:
    """Refusals that follow from the statements: of what the policy's options do not allow or consent to, and of what
    the product refuses on a catalog-managed table.
    """
    asked = protocol_refusals(derived) + partition_refusals(derived.changes, derived.basis)
    return asked + catalog_refusals(derived.changes, derived.statements, derived.basis, dialect)


def derived_findings(derived: DerivedTable) -> tuple[RuleFinding, ...]:
    """The findings that follow from changes, statements and basis alone: those of ``DERIVED``."""
    found = (*protocol_findings(derived), *partition_findings(derived.changes, derived.basis))
    return (*found, *_unverified(derived))


def _unverified(derived: DerivedTable) -> Iterator[RuleFinding]:
    """D001: forms of statements that no test of tablectl has run on the product."""
    verbs = list(dict.fromkeys(each.verb for each in derived.statements if each.evidence))
    if verbs:
        yield RuleFinding("D001", f"{UNVERIFIED}: {', '.join(verbs)}")
