"""Whether a plan depends on who else writes the table: only then are the commits of the last 30 days read."""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.attributes.plan_basis import basis_of
from tablectl.attributes.policy import Policy
from tablectl.conflicts.statement_phases import depends_on_writers
from tablectl.model.operations import Repartition
from tablectl.model.plan import Change
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.change_operations import operations_for, refusals_for
from tablectl.planning.diff import diff


def writers_matter(
    policy: Policy, live: LiveTable, dialect: str, options: TableOptions = NO_OPTIONS, *, refused: bool = False
) -> bool:
    """Whether the plan of a table depends on who else writes it: a phase could be another one, or writers that name the
    partition columns could exist. ``refused`` asks for refusals alone.
    """
    changes = diff(policy, live, dialect)
    return bool(changes) and changes_depend_on_writers(changes, live, dialect, options, refused=refused)


def changes_depend_on_writers(
    changes: Sequence[Change], live: LiveTable, dialect: str, options: TableOptions, *, refused: bool = False
) -> bool:
    """As ``writers_matter``, for known changes. False if they are refused anyway."""
    if refusals_for(changes, live, dialect, options):
        return False
    basis = basis_of(live, options)
    operations = [each.operation for each in operations_for(changes, basis)]
    if any(isinstance(each, Repartition) for each in operations):
        return True
    return not refused and any(depends_on_writers(each.commits(basis), basis, dialect) for each in operations)
