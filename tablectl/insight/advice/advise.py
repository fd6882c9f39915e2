"""Chooses the advice for a table, and checks each with the planner: what a plan would refuse is not advised. The advice
for tables as a document: one card for each table that has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tablectl.attributes.policy import Policy
from tablectl.documents.document import (
    Block,
    Card,
    Cell,
    CommentEnd,
    Document,
    Facts,
    Grid,
    Heading,
    Listing,
    Row,
    Verdict,
    unread_title,
    without_tables,
)
from tablectl.documents.style import plural
from tablectl.insight.advice.advice_records import BENEFITS, Advice, Declared, LakeAdvice, TableAdvice, TableFacts
from tablectl.insight.advice.conflict_advice import conflict_advice
from tablectl.insight.advice.layout_advice import layout_advice
from tablectl.insight.advice.settings_advice import (
    erasure_advice,
    ledger_advice,
    log_advice,
    protocol_advice,
    retention_advice,
)
from tablectl.model.plan import TablePlan
from tablectl.model.safe_text import Code, size_text, time_text
from tablectl.planning.plan_table import plan_table

_OPTIONS = frozenset({"rewrite"})
_MOST_WEEKS = 52
"""A rewrite that is not paid back within a year is not advised."""
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
    safety = (*retention, *ledger_advice(facts), *erasure_advice(facts))
    for each in (*safety, *conflicts, *layout_advice(facts), *log_advice(facts), *protocol_advice(facts)):
        if _declared_already(facts, each.declare):
            continue
        planned = planned_with(facts, each.declare)
        planned = masked(planned) if planned is not None else None
        if planned is not None and planned.refusals:
            untold.append(f"{each.title}: a plan refuses it, because {planned.refusals[0].reason}")
        elif (weeks := _weeks_to_repay(facts, each, planned)) is not None and weeks > _MOST_WEEKS:
            untold.append(f"{each.title}: it would be paid back after {weeks:,.0f} weeks only")
        else:
            repaid = () if weeks is None else (f"paid back after {_weeks_text(weeks)}, at the speed of past writes",)
            found.append(replace(each, cost=(*each.cost, *_cost(facts, planned), *repaid)))
    found.sort(key=lambda each: (BENEFITS.index(each.benefit), -each.amount, each.code))
    return tuple(_without_rivals(found)), tuple(untold)


def _history(facts: TableFacts) -> Iterator[str]:
    if facts.jobs is None and facts.past.commits:
        yield "the commits have no usable times: conflicts are unknown"
    if facts.past.cut:
        yield f"only the newest {len(facts.past.commits):,} commits were read"


def _weeks_to_repay(facts: TableFacts, advice: Advice, planned: TablePlan | None) -> float | None:
    """When an advice has saved what its rewrite takes, by the speed of past writes; ``None`` if that is unknown."""
    size = sum(each.rewrite.bytes_at_most or 0 for each in planned.statements if each.rewrite) if planned else 0
    if any(name == "clustering" and value for name, _, value in advice.declare):
        size = max(size, facts.live.bytes or 0)  # OPTIMIZE FULL, which no plan contains by default
    if not size or advice.amount <= 0:
        return None
    if advice.benefit == "bytes a week":
        return size / advice.amount
    writes = [write for job in (facts.jobs.jobs if facts.jobs else ()) for write in job.writes if write.seconds > 0]
    written = sum(each.files.added_bytes for each in writes)
    if advice.benefit != "writer-seconds a week" or not written:
        return None
    return size / written * sum(each.seconds for each in writes) / advice.amount


def _weeks_text(weeks: float) -> str:
    days = weeks * 7
    return f"{weeks:,.1f} weeks" if weeks >= 1 else f"{days:,.1f} days" if days >= 1 else "less than a day"


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
    values: dict[str, Any] = dict(facts.policy.declared)
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
    return plan_table(Policy(values), facts.live, facts.dialect, replace(facts.options, **options))


def _cost(facts: TableFacts, planned: TablePlan | None) -> Iterator[str]:
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
        if facts.jobs is not None and facts.jobs.jobs:
            yield f"{facts.jobs.jobs[0].name} has the most to lose: with a guard it waits instead (docs/guards.md)"
    yield from (each.message for each in planned.findings if each.code.startswith("P"))


_HEAD = ("Table", "Advice", "Benefit", "Confidence")


def document_of_advice(advice: LakeAdvice) -> Document:
    """The document of some advice. It contains no values of properties, so there is nothing to mask."""
    total = sum(len(each.advice) for each in advice.tables)
    given = [each for each in advice.tables if each.advice or each.untold or each.error]
    unread = sum(bool(each.error) for each in advice.tables) + len(advice.failures)
    parts = [
        f"{plural(total, 'recommendation') if total else 'no recommendation'} for {plural(len(advice.tables), 'table')}"
    ]
    if unread:
        verdict = Verdict("bad", unread_title(advice.tables), tuple(parts))
    elif total:
        verdict = Verdict("pending", "Recommendations", tuple(parts))
    else:
        verdict = Verdict("good", "Nothing to advise", tuple(parts))
    rows = tuple(_row(each, one, card) for card, each in enumerate(given) for one in each.advice)
    return Document(
        subject="Advice",
        verdict=verdict,
        overview=Grid("All advice", _HEAD, rows, sortable=True) if rows else None,
        cards=tuple(map(_card, given)),
        tail=tuple(without_tables(advice.unmatched, advice.failures)),
        summary=tuple(map(Cell, parts)),
        record=advice,
        comment=lambda: CommentEnd(
            "<!-- tablectl advice -->", "<code>tablectl advise --report FILE.html</code> writes all of it."
        ),
    )


def benefit_text(advice: Advice) -> str:
    """``1,204 writer-seconds a week``."""
    if advice.benefit == "bytes a week":
        return f"{size_text(int(advice.amount))} a week"
    return f"{advice.amount:,.0f} {advice.benefit}"


def _row(table: TableAdvice, advice: Advice, card: int) -> Row:
    cells = (
        (Cell(table.table, code=True),),
        (Cell(f"{advice.code} {advice.title}"),),
        (Cell(benefit_text(advice)),),
        (Cell(f"{advice.confidence}, {plural(advice.observations, 'observation')}"),),
    )
    return Row(cells, target=card)


def _card(table: TableAdvice) -> Card:
    if table.error:
        return Card((table.table,), "not readable", "bad", "!", effects=(Cell(table.error, tone="bad"),))
    count = len(table.advice)
    since = f" since {time_text(table.since)}" if table.since else ""
    return Card(
        (table.table,),
        plural(count, "recommendation") if count else "unknown",
        "pending" if count else "quiet",
        "*" if count else "?",
        brief=tuple(_blocks(table, f"from {plural(table.commits, 'commit')}{since}")),
    )


def _blocks(table: TableAdvice, read: str) -> Iterator[Block]:
    yield Facts((("read", read),))
    for each in table.advice:
        yield Heading(f"{each.code} {each.title}")
        yield Facts(tuple(_facts(each)))
    if table.yaml:
        yield Heading("Declare it")
        yield Listing((Code("yaml", tuple(table.yaml.rstrip("\n").split("\n"))),))
    if table.untold:
        yield Heading("Unknown, or not possible")
        yield Facts(tuple(("note", text) for text in table.untold))


def _facts(advice: Advice) -> Iterator[tuple[str, str]]:
    left = "" if advice.leaves is None else f", and leaves {benefit_text(replace(advice, amount=advice.leaves))}"
    yield "saves", f"{benefit_text(advice)}{left}, as computed from {advice.computed}"
    yield from (("because", each) for each in advice.evidence)
    yield from (("costs", each) for each in advice.cost)
    if advice.do:
        yield "do", advice.do
    yield "trust", f"{advice.confidence}: {plural(advice.observations, 'observation')}; docs/advise.md, {advice.code}"
