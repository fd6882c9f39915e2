"""One table's part of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.attributes.policy import Policy
from tablectl.model.live import LiveTable
from tablectl.model.names import TableName
from tablectl.model.options import NO_OPTIONS, Options
from tablectl.model.plan import Basis, Change, ProtocolFact, Statement, TablePlan
from tablectl.planning.decide import actions_for, refusals_for
from tablectl.planning.diff import diff
from tablectl.planning.lint import lint
from tablectl.planning.order import order


def plan_table(policy: Policy, live: LiveTable, dialect: str, options: Options = NO_OPTIONS) -> TablePlan | None:
    """What a policy asks of a live table; ``None`` where it is already as declared.

    A table with a refusal keeps its changes, so that a reviewer sees them, and has no statements: it is left out whole.
    """
    changes = diff(policy, live)
    if not changes:
        return None
    basis = Basis.of(live, options)
    refusals = refusals_for(changes, live, dialect, options)
    statements = () if refusals else derive(changes, basis, live.name, dialect)
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
        findings=lint(basis.protocol.protocol(), after.protocol()),
        protocol_after=after,
    )


def derive(changes: Sequence[Change], basis: Basis, table: TableName, dialect: str) -> tuple[Statement, ...]:
    """The statements of a table's changes. The one way to SQL: for a new plan, a loaded one, and under the lease."""
    return order(actions_for(changes, basis), basis, table, dialect)


def protocol_after(statements: Sequence[Statement], basis: Basis) -> ProtocolFact:
    """The protocol once all statements ran. Their order counts: a numbered protocol implies more than it names."""
    protocol = basis.protocol.protocol()
    for statement in statements:
        protocol = protocol.raised(frozenset(statement.effect.features))
    return ProtocolFact.of(protocol)
