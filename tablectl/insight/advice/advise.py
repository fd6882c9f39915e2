"""Chooses the advice for a table, and checks each with the planner: what a plan would refuse is not advised. The advice
for tables as a document: one card for each table that has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
_CONFLICTS = frozenset({"A01", "A02", "A03", "A04", "A05", "A06"})
"""The advice that saves failed writes. Other seconds are those of scans."""


def advise(
    facts: TableFacts, masked: Callable[[TablePlan], TablePlan] = lambda table: table
) -> tuple[tuple[Advice, ...], tuple[str, ...]]:
    """The advice for a table, the best first, and what is unknown. ``masked`` hides the values of a plan that no
    report may show: its texts become part of the advice.
    """
    retention, untold = retention_advice(facts)
    untold += _history(facts)

    def checked(advice: Advice) -> Advice | str:
        return _checked(facts, advice, masked)

    found, unknown = conflict_advice(facts, checked)
    drops, asked = protocol_advice(facts)
    unknown += asked
    safety = (*retention, *ledger_advice(facts), *erasure_advice(facts))
    for each in (*safety, *layout_advice(facts), *log_advice(facts), *drops):
        judged = checked(each)
        if isinstance(judged, Advice):
            found.append(judged)
        elif judged:
            unknown.append(judged)
    found.sort(key=lambda each: (BENEFITS.index(each.benefit), -each.amount, each.code))
    return tuple(_without_rivals(found)), (*untold, *unknown)


def _checked(facts: TableFacts, advice: Advice, masked: Callable[[TablePlan], TablePlan]) -> Advice | str:
    """An advice with its price; or why it is not given, empty if the policy declares all of it already.

    A policy that declares something else has decided: no advice contradicts it.
    """
    values = {(name, key): value for name, key, value in facts.policy.values()}
    wanted = [(name, key, value) for name, key, value in advice.declare if name not in _OPTIONS]
    if wanted and all(values.get((name, key)) == value for name, key, value in wanted):
        return ""
    if against := [name for name, key, value in wanted if values.get((name, key), value) != value]:
        return f"{advice.title}: the policy declares another value of {', '.join(against)}"
    planned = planned_with(facts, advice.declare)
    planned = masked(planned) if planned is not None else None
    if planned is not None and planned.refusals:
        return f"{advice.title}: a plan refuses it, because {planned.refusals[0].reason}"
    weeks = _weeks_to_repay(facts, advice, planned)
    if weeks is not None and weeks > _MOST_WEEKS:
        return f"{advice.title}: it would be paid back after {weeks:,.0f} weeks only"
    repaid = () if weeks is None else (f"paid back after {_weeks_text(weeks)}, at the speed of past writes",)
    return replace(advice, cost=(*advice.cost, *_cost(facts, planned), *repaid))


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


def _without_rivals(found: Sequence[Advice]) -> Iterator[Advice]:
    """Of several layouts, the best is declared: a table has one. Partitions also save scans that clustering by their
    column would. A layout that saves something else is named, without a declaration.
    """
    layouts = {each.code: each for each in found if _columns(each) is not None}

    def covered(each: Advice) -> list[Advice]:
        same = [other for other in layouts.values() if other.code == "A07" and each.code == "A02"]
        return [each, *(other for other in same if set(_columns(each) or ()) <= set(_columns(other) or ()))]

    def worth(each: Advice) -> tuple[int, float]:
        return -BENEFITS.index(each.benefit), sum(other.amount for other in covered(each))

    best = max(layouts.values(), key=worth, default=None)
    for each in found:
        if best is None or each is best or each.code not in layouts:
            more = [benefit_text(other) for other in covered(each) if other is not each]
            yield replace(each, evidence=(*each.evidence, f"and saves {more[0]} of scans")) if more else each
        elif each not in covered(best) and (each.code in _CONFLICTS) is not (best.code in _CONFLICTS):
            yield replace(each, declare=(), do=f"a table has one layout: either this, or {best.title}")


def _columns(advice: Advice) -> tuple[str, ...] | None:
    """The columns of the layout that an advice declares; ``None`` if it declares none."""
    declared = [value for name, _, value in advice.declare if name in _LAYOUT]
    return next((value for value in declared if isinstance(value, tuple)), ()) if declared else None


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
