"""What follows from a table's changes and its basis: actions, statements, protocol. The only way to SQL: for new plans,
for loaded plans, and under the lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tablectl.attributes.base import Action
from tablectl.delta.names import TableName
from tablectl.delta.protocol import Protocol
from tablectl.frozen import frozen
from tablectl.model.plan import Basis, Change, Statement
from tablectl.planning.change_actions import actions_for
from tablectl.planning.order import order, undo_order


@frozen
class DerivedTable:
    """Each part is computed once per table and passed on."""

    changes: tuple[Change, ...]
    basis: Basis
    actions: tuple[Action, ...]
    """The action of each change."""
    statements: tuple[Statement, ...]
    """In run order; none if the table is refused."""
    before: Protocol
    """The protocol of the basis."""
    after: Protocol
    """The protocol after all statements."""

    def refused(self) -> DerivedTable:
        """The same table without statements."""
        return replace(self, statements=(), after=self.before)

    def undo(self, table: TableName) -> tuple[str, ...]:
        """The SQL that undoes the changes as far as possible, in run order."""
        return undo_order(self.actions, table)


def derive_table(
    changes: Sequence[Change],
    basis: Basis,
    table: TableName,
    dialect: str,
    actions: tuple[Action, ...] | None = None,
) -> DerivedTable:
    """What follows from the changes of a table. ``actions`` are theirs, if they are known already."""
    actions = actions_for(changes, basis) if actions is None else actions
    return _derived(changes, basis, actions, order(actions, basis, table, dialect))


def refused_table(changes: Sequence[Change], basis: Basis, actions: tuple[Action, ...]) -> DerivedTable:
    """A table whose changes cannot be made: it has no statements."""
    return _derived(changes, basis, actions, ())


def _derived(
    changes: Sequence[Change], basis: Basis, actions: tuple[Action, ...], statements: tuple[Statement, ...]
) -> DerivedTable:
    before = basis.protocol.protocol()
    after = before
    for statement in statements:  # their order matters: a numbered protocol implies more than it names
        after = after.raised(frozenset(statement.effect.features)).lowered(frozenset(statement.effect.drops))
    return DerivedTable(tuple(changes), basis, actions, statements, before, after)
