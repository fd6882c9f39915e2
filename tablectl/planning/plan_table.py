"""Plans one table."""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.attributes.features import added_features
from tablectl.attributes.policy import Policy
from tablectl.delta.names import TableName
from tablectl.model.lint_rules import DEFAULT_SEVERITIES, Severities
from tablectl.model.plan import Basis, Change, Finding, Refusal, Statement, TablePlan
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.actions import actions_for, refusals_for
from tablectl.planning.catalog_managed import catalog_refusals
from tablectl.planning.diff import diff
from tablectl.planning.lint import graded, lint, refused_by
from tablectl.planning.lint_rules.linted_state import RuleFinding, table_subject
from tablectl.planning.order import order, undo_order
from tablectl.planning.partition_writers import partition_findings, partition_refusals
from tablectl.planning.protocol import protocol_after, protocol_findings, protocol_refusals


def plan_table(
    policy: Policy,
    live: LiveTable,
    dialect: str,
    options: TableOptions = NO_OPTIONS,
    severities: Severities = DEFAULT_SEVERITIES,
) -> TablePlan | None:
    """The changes that a policy requires on a live table; ``None`` if there are none.

    A table with a refusal keeps its changes, for the reviewer, but has no statements: it is left out as a whole.
    """
    changes = diff(policy, live)
    if not changes:
        return None
    basis = Basis.of(live, options)
    refusals = refusals_for(changes, live, dialect, options)
    wanted = () if refusals else derive(changes, basis, live.name, dialect)
    refusals += consent_refusals(changes, wanted, basis, dialect)
    refused = {refusal.change for refusal in refusals}
    found = _findings(policy, live, changes, wanted, basis, dialect, severities)
    findings = tuple(each for each in found if not each.about or each.about not in refused)
    refusals += refused_by(findings, changes)
    statements = () if refusals else wanted
    after = protocol_after(statements, basis)
    return TablePlan(
        name=live.name.text,
        location=live.location,
        table_id=live.table_id,
        version=live.version,
        basis=basis,
        changes=changes,
        statements=statements,
        refusals=refusals,
        findings=findings,
        protocol_after=after,
        features=added_features(basis.protocol.protocol(), after.protocol()),
        undo=derive_undo(changes, basis, live.name) if statements else (),
    )


def _findings(
    policy: Policy,
    live: LiveTable,
    changes: tuple[Change, ...],
    wanted: Sequence[Statement],
    basis: Basis,
    dialect: str,
    severities: Severities,
) -> tuple[Finding, ...]:
    """The findings about the protocol, then those about the planned table."""
    raised = graded(derived_findings(changes, wanted, basis), live.name, severities)
    subject = table_subject(policy, live, changes, dialect, options=basis.options)
    return raised + lint(subject, live.name, "plan", severities)


def consent_refusals(
    changes: Sequence[Change], statements: Sequence[Statement], basis: Basis, dialect: str
) -> tuple[Refusal, ...]:
    """Refusals that follow from the statements: of what the policy's options do not allow or consent to, and of what
    the product refuses on a catalog-managed table.
    """
    asked = protocol_refusals(changes, statements, basis) + partition_refusals(changes, basis)
    return asked + catalog_refusals(statements, basis, dialect)


def derived_findings(
    changes: Sequence[Change], statements: Sequence[Statement], basis: Basis
) -> tuple[RuleFinding, ...]:
    """The findings that follow from changes, statements and basis alone: those of ``DERIVED``."""
    before, after = basis.protocol.protocol(), protocol_after(statements, basis).protocol()
    raised = protocol_findings(before, after, statements, basis)
    return (*raised, *partition_findings(changes, basis))


def derive(changes: Sequence[Change], basis: Basis, table: TableName, dialect: str) -> tuple[Statement, ...]:
    """The statements of a table's changes. The only way to SQL: for new plans, for loaded plans, and under
    the lease.
    """
    return order(actions_for(changes, basis), basis, table, dialect)


def derive_undo(changes: Sequence[Change], basis: Basis, table: TableName) -> tuple[str, ...]:
    """The SQL that undoes a table's changes as far as possible, in run order."""
    return undo_order(actions_for(changes, basis), table)
