"""What remains of a table's plan, decided from the live table under the lease, and which statements may run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tablectl.applying.run_context import RunContext, StopTableError, check_table_id
from tablectl.attributes.policy import basis_of, changed_values, needs_of
from tablectl.delta.names import TableName
from tablectl.model.errors import EngineError, TablectlError
from tablectl.model.plan import Phase, Refusal, Statement, TablePlan, strictest
from tablectl.model.run_report import RunOutcome
from tablectl.model.safe_text import time_text
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.planning.derive_statements import derive_table, operations_for, refusals_for
from tablectl.planning.diff import ChangeState, change_state, current, why_stale
from tablectl.planning.locked_out_clients import protocol_refusals
from tablectl.planning.plan_table import changes_depend_on_writers
from tablectl.planning.plan_upkeep import UpkeepTable


def read_planned(context: RunContext, plan: TablePlan, version: int | None = None) -> LiveTable:
    """The live table, with the details that the planned changes need."""
    options = plan.basis.options
    needs = needs_of(changed_values(plan.changes), options)
    depth = Depth(
        LOOK_BACK,
        counts=needs.rewrite or needs.vectors or (needs.size and options.max_bytes is not None),
        truncation=needs.truncation,
        marks=options.optimize if needs.clustering else None,
        writers=partial(_writers_matter, plan, context.engine.dialect),
        entry=needs.entry,
        row_counts=needs.row_counts,
    )
    return context.reader.read(plan.table, plan.location, depth, version=version)


def _writers_matter(plan: TablePlan, dialect: str, live: LiveTable) -> bool:
    """Whether the phase of a missing statement depends on who else writes the table."""
    pending = [each for each in plan.changes if change_state(each, live) is ChangeState.PENDING]
    changes = [current(change, live) for change in pending]
    return bool(changes) and changes_depend_on_writers(changes, live, dialect, plan.basis.options)


def nothing_remains(context: RunContext, plan: TablePlan) -> bool:
    """Whether a table is as planned already, so that no statement would be sent. A table that cannot be read, or that
    no longer fits its plan, is not.
    """
    if isinstance(plan, UpkeepTable):
        return False
    try:
        return not remaining_statements(plan, read_planned(context, plan), context.engine.dialect)
    except (TablectlError, StopTableError):
        return False


def remaining_statements(
    plan: TablePlan, live: LiveTable, dialect: str, named: TableName | None = None
) -> list[Statement]:
    """The planned statements whose effect the live table does not have yet. ``named`` is the table in statements, if it
    is not that of the plan.

    Raises ``StopTableError`` if the table became stale or the remaining changes are now refused.
    """
    check_table_id(plan, live.table_id)
    standings = [(change, change_state(change, live)) for change in plan.changes]
    stale = [why_stale(change, live) for change, where in standings if where is ChangeState.STALE]
    if stale:
        raise StopTableError(RunOutcome.STALE, "; ".join(stale), "plan again, and see who changed it below")
    pending = [change for change, where in standings if where is ChangeState.PENDING]
    options = plan.basis.options
    basis = basis_of(live, options, plan.basis.runtime)
    _check(refusals_for(pending, live, dialect, options, basis, operations_for(pending, basis)))
    changes = [current(change, live) for change in pending]
    derived = derive_table(changes, basis, named or plan.table, dialect)
    _check(protocol_refusals(derived))
    return [statement for statement in derived.statements if not (statement.only_if and live.vectors == 0)]


def _check(refusals: Sequence[Refusal]) -> None:
    if refusals:
        first = refusals[0]
        raise StopTableError(RunOutcome.REFUSED, f"{first.change}: {first.reason}", first.fix)


def is_missing(statement: Statement, missing: Sequence[Statement]) -> bool:
    """Whether the effect of a statement is missing."""
    served = set(statement.serves)
    return any(each.verb == statement.verb and served & set(each.serves) for each in missing)


_TOO_YOUNG = frozenset(
    {
        "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
        "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
        "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
    }
)
"""The error classes with which Delta says that history must age before a feature can be dropped: progress, not a
failure."""


def is_too_young(statement: Statement, condition: str) -> bool:
    """Whether a statement failed only because history is not old enough yet."""
    return statement.effect.truncates_history and condition in _TOO_YOUNG


def why_waiting(statement: Statement, now: int) -> str:
    """Why a statement is not sent yet; empty if it may be sent. ``now`` is in milliseconds since the epoch."""
    if statement.due is None or statement.due <= now:
        return ""
    return f"due at {time_text(statement.due)}, when history is old enough to be given up"


def error_text(error: EngineError) -> str:
    """The engine's message, preceded by its error class."""
    shown = error.condition and error.condition not in error.message
    return f"[{error.condition}] {error.message}" if shown else error.message


def check_allowed(plan: TablePlan, statement: Statement) -> None:
    """Raise ``StopTableError`` for a statement that is not in the reviewed plan, or that now needs a stricter phase: it
    would fail more writers than were reviewed.
    """
    for change in statement.serves:
        phases = [each.phase for each in plan.statements if each.verb == statement.verb and change in each.serves]
        if not phases:
            raise StopTableError(
                RunOutcome.REFUSED, f"{change} needs a {statement.verb} that the plan does not hold", "plan again"
            )
        latest = strictest(*phases)
        if statement.phase.rank > latest.rank:
            raise StopTableError(
                RunOutcome.REFUSED,
                f"{change} was planned for the {latest} phase and now needs {statement.phase}: {statement.reason}",
                "plan again, so that the writers that would fail now are reviewed",
            )


def planned_phase(plan: TablePlan, statement: Statement) -> Phase:
    """The phase in the reviewed plan. A prerequisite of the statement may be met by now; that must not loosen the
    phase.
    """
    served = set(statement.serves)
    akin = [each for each in plan.statements if each.verb == statement.verb and served & set(each.serves)]
    # There may be two REORGs, one before and one after deletion vectors are off: each has its own phase.
    same = [each for each in akin if each.id == statement.id]
    return strictest(statement.phase, *(each.phase for each in same or akin))


def separate_commits(statement: Statement) -> int:
    """The number of metadata commits if each key and each columns list had an ALTER of its own instead of this
    statement.
    """
    effect = statement.effect
    return len(effect.sets) + len(effect.removes) + len(effect.domains)
