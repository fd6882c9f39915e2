"""Wording of plans: the verdict, how many tables have which weight, and what an apply does to writers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablectl.frozen import frozen
from tablectl.model.plan import Phase, Plan, TablePlan
from tablectl.model.text import size_text
from tablectl.reports.groups import LOCKOUT, Group, Weight, first_rewrites
from tablectl.reports.style import plural
from tablectl.reports.wording import PlanVerdict, shown_findings, unread_title


@frozen
class Part:
    """One entry of a plan's summary."""

    text: str
    bad: bool = False


def weight_counts(groups: Sequence[Group]) -> list[tuple[Weight, int]]:
    """How many tables have which weight, the most important first; no zeros."""
    counts = [(weight, sum(len(each.tables) for each in groups if each.weight is weight)) for weight in Weight]
    return [(weight, count) for weight, count in counts if count]


def plan_parts(plan: Plan, groups: Sequence[Group]) -> list[Part]:
    """How many tables change, by their worst effect; are refused, cannot be read, and stay unchanged. Nothing where no
    table changes.
    """
    refused = sum(bool(table.refusals) for table in plan.tables)
    parts = []
    if changed := _changed(plan):
        weights = ", ".join(
            f"{count} {weight.word}" for weight, count in weight_counts(groups) if weight is not Weight.REFUSED
        )
        parts.append(Part(f"{plural(len(changed), 'table')} to change ({weights}), {_statements(changed)}"))
    if refused:
        parts.append(Part(f"{refused} refused", bad=True))
    if plan.failures:
        parts.append(Part(f"{len(plan.failures)} not readable", bad=True))
    if plan.unchanged and (plan.tables or plan.failures):
        parts.append(Part(f"{len(plan.unchanged)} unchanged"))
    return parts


def todo_text(plan: Plan) -> str:
    """``3 tables to change, 9 statements``; empty if no table changes."""
    changed = _changed(plan)
    return f"{plural(len(changed), 'table')} to change, {_statements(changed)}" if changed else ""


def all_unchanged(plan: Plan) -> str:
    """``2 tables match their policies``, of a plan without anything else."""
    count = len(plan.unchanged)
    if not count:
        return "no tables"
    return "1 table matches its policy" if count == 1 else f"{count} tables match their policies"


def plan_verdict(plan: Plan, groups: Sequence[Group], refused: str = "") -> PlanVerdict:
    """The verdict of a plan. ``refused`` says why the whole plan may not run."""
    parts = tuple(part.text for part in plan_parts(plan, groups))
    if refused:
        return PlanVerdict("bad", "Refused", (refused, *parts))
    todo = bool(_changed(plan))
    if plan.failures:
        return PlanVerdict("bad", unread_title(plan.tables or plan.unchanged), parts)
    if any(table.refusals for table in plan.tables):
        return PlanVerdict("bad", "Refused in part" if todo else "Refused", parts)
    if todo:
        return PlanVerdict("pending", "Changes pending", parts)
    return PlanVerdict("good", "No changes", (all_unchanged(plan),))


def forecast(plan: Plan) -> list[str]:
    """What applying a plan does to writers without a guard, and what it rewrites: clauses, none without changes."""
    tables = _changed(plan)
    said = []
    if locked := sum(any(each.code == LOCKOUT for each in shown_findings(table)) for table in tables):
        lock = "locks" if locked == 1 else "lock"
        said.append(f"{plural(locked, 'table')} {lock} out a client that writes there: its writes fail from then on")
    if closed := sum(_conflicts(table, Phase.CLOSED) for table in tables):
        said.append(f"{plural(closed, 'table')}: concurrent writes fail once")
    said += _rewritten(tables)
    if tables and not said:
        said.append("concurrent writes continue")
    guarded = ["writers with a guard (`tablectl.guard`) wait and do not fail"]
    return [*said, *(guarded if any("fail once" in each for each in said) else [])]


def _rewritten(tables: Sequence[TablePlan]) -> Iterator[str]:
    """The tables that are rewritten in full, then those that are rewritten in part."""
    rewrites = {table.name: first_rewrites(table.statements) for table in tables}
    for everything, what, most in ((True, "all data", ""), (False, "some data", " or less")):
        found = [each for each in tables if rewrites[each.name] and _everything(each) is everything]
        if not found:
            continue
        sizes = [part.bytes_at_most for each in found for part in rewrites[each.name]]
        known = [size for size in sizes if size is not None]
        size = f" ({size_text(sum(known))}{most})" if len(known) == len(sizes) else ""
        fails = any(_conflicts(table, Phase.REWRITE) for table in found)
        verb = "rewrites" if len(found) == 1 else "rewrite"
        also = ", and concurrent UPDATE/DELETE/MERGE fail once" * fails
        yield f"{plural(len(found), 'table')} {verb} {what}{size}{also}"


def _everything(table: TablePlan) -> bool:
    return any(each.rewrite and each.rewrite.everything for each in table.statements)


def _conflicts(table: TablePlan, phase: Phase) -> bool:
    return any(statement.phase is phase and statement.fails for statement in table.statements)


def _changed(plan: Plan) -> list[TablePlan]:
    return [table for table in plan.tables if table.applies]


def _statements(tables: Sequence[TablePlan]) -> str:
    return plural(sum(len(table.statements) for table in tables), "statement")
