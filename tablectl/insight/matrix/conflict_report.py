"""Conflicts between writers of a table, in its current state and after its policy is applied."""

from __future__ import annotations

from dataclasses import replace

from tablectl.attributes.policy import Policy, basis_of
from tablectl.conflicts.expected_writers import ExpectedWriters
from tablectl.delta.protocol import Client
from tablectl.insight.matrix.context import NO_ASSUMPTION, Assumption, ConflictContext
from tablectl.insight.matrix.matrix import Matrix, matrix
from tablectl.model.plan import Change
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.derive_statements import operations_for, refusals_for
from tablectl.planning.diff import diff
from tablectl.support.frozen import frozen


@frozen
class ContextComparison:
    """The matrices of one client, or of several clients with equal outcomes."""

    clients: tuple[Client, ...]
    live: Matrix
    planned: Matrix | None
    """The matrix after the policy is applied; ``None`` if it changes nothing."""


@frozen
class ConflictReport:
    """The conflicts on one table."""

    live: LiveTable
    declared: bool
    """Whether a policy applies to the table."""
    changes: tuple[Change, ...]
    """The changes that the policy requires."""
    refused: tuple[str, ...]
    """The ids of those changes that tablectl would refuse."""
    views: tuple[ContextComparison, ...]


def conflict_report(
    live: LiveTable,
    policy: Policy | None,
    dialect: str,
    assumption: Assumption = NO_ASSUMPTION,
    options: TableOptions = NO_OPTIONS,
) -> ConflictReport:
    """The matrices of a table, for the clients of the assumption, otherwise for those that its history suggests."""
    changes = diff(policy, live, dialect) if policy else ()
    basis = basis_of(live, options)
    refused = tuple(refusal.change for refusal in refusals_for(changes, live, dialect, options))
    expected = assumption.clients or [(client, None) for client in ExpectedWriters.of(basis, dialect).clients]
    views: list[ContextComparison] = []
    # After the policy is applied, even if that needs a rewrite that is refused.
    operations = [each.operation for each in operations_for(changes, basis)]
    for client, photon in expected:
        setting = ConflictContext.of(live, client, photon=photon, auto_compact=assumption.auto_compact)
        after = setting.after(operations)
        view = ContextComparison((client,), matrix(setting), matrix(after) if changes else None)
        same = next((each for each in views if _alike(each, view)), None)
        if same is None:
            views.append(view)
        else:
            views[views.index(same)] = replace(same, clients=(*same.clients, client))
    return ConflictReport(live, policy is not None, changes, refused, tuple(views))


def _alike(one: ContextComparison, other: ContextComparison) -> bool:
    pairs = ((one.live, other.live), (one.planned, other.planned))
    return all(_outcomes(left) == _outcomes(right) for left, right in pairs)


def _outcomes(found: Matrix | None) -> list[tuple[object, ...]]:
    cells = found.cells if found else ()
    return [(cell.current.key, cell.committed.key, cell.overlapping, cell.separate) for cell in cells]
