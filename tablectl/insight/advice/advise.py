"""Chooses the advice for a table, and checks each with the planner: what a plan would refuse is not advised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tablectl.attributes.policy import Policy
from tablectl.insight.advice.conflict_advice import conflict_advice
from tablectl.insight.advice.facts import BENEFITS, Advice, Declared, TableFacts
from tablectl.insight.advice.layout_advice import layout_advice
from tablectl.insight.advice.settings_advice import ledger_advice, protocol_advice, retention_advice
from tablectl.model.plan import TablePlan
from tablectl.model.text import size_text
from tablectl.planning.plan_table import plan_table

_OPTIONS = frozenset({"rewrite"})
_LAYOUT = frozenset({"partitioning", "clustering"})


def advise(
    facts: TableFacts, masked: Callable[[TablePlan], TablePlan] = lambda table: table
) -> tuple[tuple[Advice, ...], tuple[str, ...]]:
    """The advice for a table, the best first, and what is unknown. ``masked`` hides the values of a plan that no
    report may show: its texts become part of the advice.
    """
    conflicts, untold = conflict_advice(facts)
    retention, unknown = retention_advice(facts)
    untold = [*untold, *unknown, *_history(facts)]
    found: list[Advice] = []
    safety = (*retention, *ledger_advice(facts))
    for each in (*safety, *conflicts, *layout_advice(facts), *protocol_advice(facts)):
        if _declared_already(facts, each.declare):
            continue
        planned = planned_with(facts, each.declare)
        planned = masked(planned) if planned is not None else None
        if planned is not None and planned.refusals:
            untold.append(f"{each.title}: a plan refuses it, because {planned.refusals[0].reason}")
        else:
            found.append(replace(each, cost=(*each.cost, *_cost(planned))))
    found.sort(key=lambda each: (BENEFITS.index(each.benefit), -each.amount, each.code))
    return tuple(_without_rivals(found)), tuple(untold)


def _history(facts: TableFacts) -> Iterator[str]:
    if facts.jobs is None and facts.past.commits:
        yield "the commits have no usable times: conflicts are unknown"
    if facts.past.cut:
        yield f"only the newest {len(facts.past.commits):,} commits were read"


def _without_rivals(found: Iterable[Advice]) -> Iterator[Advice]:
    """Of several layouts, the best: a table has one."""
    laid_out = False
    for each in found:
        lays_out = any(name in _LAYOUT for name, _, _ in each.declare)
        if not (lays_out and laid_out):
            yield each
        laid_out |= lays_out


def _declared_already(facts: TableFacts, declare: Iterable[Declared]) -> bool:
    """Whether the policy already declares all of it, so that only its apply is missing."""
    values = {(name, key): value for name, key, value in facts.policy.values()}
    wanted = [(name, key, value) for name, key, value in declare if name not in _OPTIONS]
    return bool(wanted) and all(values.get((name, key)) == value for name, key, value in wanted)


def planned_with(facts: TableFacts, declare: Iterable[Declared]) -> TablePlan | None:
    """The plan of the table with these declarations; ``None`` if it changes nothing."""
    values: dict[str, Any] = dict(facts.policy.declared())
    options: dict[str, Any] = {}
    for name, key, value in declare:
        if name in _OPTIONS:
            options[name] = value
        elif key:
            before = values.get(name)
            values[name] = {**(before if isinstance(before, Mapping) else {}), key: value}
        else:
            values[name] = value
    if not values:
        return None
    return plan_table(Policy(**values), facts.live, facts.dialect, replace(facts.options, **options))


def _cost(planned: TablePlan | None) -> Iterator[str]:
    """What a plan says of the price: bytes, failed writes, clients that are locked out."""
    if planned is None:
        return
    for statement in planned.statements:
        if statement.rewrite is not None and statement.rewrite.bytes_at_most:
            yield f"{statement.verb} rewrites at most {size_text(statement.rewrite.bytes_at_most)}"
    if planned.loss is not None and planned.loss.failed:
        week = planned.loss
        worst = max(range(len(week.failed)), key=lambda hour: week.failed[hour])
        least = min(week.failed)
        yield (
            f"applying it fails up to {week.failed[worst]:.1f} writes without a guard, "
            f"{week.seconds[worst]:,.0f} s of work; {least:.1f} in the quietest hour"
        )
    yield from (each.message for each in planned.findings if each.code.startswith("P"))
