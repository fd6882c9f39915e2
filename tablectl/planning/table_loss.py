"""What the statements of a planned table are expected to cost the writers that have no guard (docs/forecast.md), and
whether the plan depends on who else writes the table. Only then are the commits of the last 30 days read.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.attributes.plan_basis import basis_of
from tablectl.attributes.policy import Policy
from tablectl.conflicts.past_writers import PastWriters, known_jobs, loss_of, past_writers
from tablectl.conflicts.statement_phases import depends_on_writers, phase_of
from tablectl.model.expected_loss import (
    DAYS,
    StatementLoss,
    TableLoss,
    failed_writes,
    lost_seconds,
    quietest_hour,
)
from tablectl.model.operations import Repartition
from tablectl.model.plan import Change, Phase
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.change_operations import operations_for, refusals_for
from tablectl.planning.derive_statements import DerivedTable
from tablectl.planning.diff import diff

_A_DAY = 86_400.0 - 60
_MOST_JOBS = 5


def fails_writers(policy: Policy, live: LiveTable, dialect: str, options: TableOptions = NO_OPTIONS) -> bool:
    """Whether a statement of a table's plan fails concurrent writes, so that its expected loss matters."""
    changes = diff(policy, live)
    return bool(changes) and changes_fail_writers(changes, live, dialect, options)


def changes_fail_writers(changes: Sequence[Change], live: LiveTable, dialect: str, options: TableOptions) -> bool:
    """As ``fails_writers``, for known changes. False if they are refused anyway."""
    if refusals_for(changes, live, dialect, options):
        return False
    basis = basis_of(live, options)
    operations = (each.operation for each in operations_for(changes, basis))
    return any(phase_of(each.commits(basis), basis, dialect).phase is not Phase.FREE for each in operations)


def table_loss(derived: DerivedTable, live: LiveTable, dialect: str) -> TableLoss | None:
    """The expected loss of a table's statements; ``None`` if none of them fails a write, or if its commits were not
    read.
    """
    history = live.writes or live.past
    made = derived.commits() if history else {}
    failing = {each.id: made[each.id] for each in derived.statements if each.fails and each.id in made}
    if history is None or not failing:
        return None
    past = past_writers(history.commits, derived.basis, dialect)
    if past is None or not past.writes:
        return TableLoss(writes=0, since=_since(past), unknown=f"no writes in {DAYS} days")
    week = loss_of(past, failing.values())
    return TableLoss(
        writes=past.writes,
        since=_since(past),
        quietest=quietest_hour(week) if past.period.seconds >= _A_DAY else None,
        failed=failed_writes(week),
        seconds=lost_seconds(week),
        jobs=tuple(each.text for each in known_jobs(past, failing.values()))[:_MOST_JOBS],
        statements=tuple(
            StatementLoss(statement=name, failed=failed_writes(alone), seconds=lost_seconds(alone))
            for name, alone in ((name, loss_of(past, [commits])) for name, commits in failing.items())
        ),
    )


def _since(past: PastWriters | None) -> int:
    return round(past.period.start * 1000) if past else 0


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
