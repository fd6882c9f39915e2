"""A plan as a comment on a pull request: the verdict in one line, then changes and conflicts, details folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tablectl.model.plan import Change, Phase, Plan, Refusal, Statement, TableFailure, TablePlan
from tablectl.model.text import value_text
from tablectl.reports.context import Context
from tablectl.reports.markdown import code, details, fence, fitted, items, table, words
from tablectl.reports.style import plural
from tablectl.reports.wording import (
    PHASE_EFFECTS,
    PlanVerdict,
    facts_text,
    features_text,
    forecast,
    plan_verdict,
    shown_findings,
    statement_facts,
    statements_text,
    table_readers,
    titled,
    unclustered_of_table,
)

_MARKS = {"good": "✅", "pending": "🟡", "bad": "⛔"}
_SHORT = 12
"""Hexadecimal digits of a digest that are shown to people."""
_MOST_PATTERNS = 20


def plan_markdown(plan: Plan, context: Context) -> str:
    """The whole plan within the length of a comment. Tables that cannot be read come first, then refused ones."""
    refused = [each for each in plan.tables if each.refusals]
    tables = [*refused, *(each for each in plan.tables if not each.refusals)]
    names = [*(each.name for each in plan.failures), *(each.name for each in tables)]
    return fitted(
        _head(plan, context), _blocks(plan, tables, context), names, _foot(plan, context), where(plan, context)
    )


def verdict_line(subject: str, verdict: PlanVerdict) -> str:
    """The first line of a comment."""
    return f"**{_MARKS[verdict.kind]} {words(subject)}: {verdict.title}** · {'; '.join(verdict.parts)}"


def _head(plan: Plan, context: Context) -> str:
    lines = [
        verdict_line(titled("Plan", plan.env), plan_verdict(plan, words(context.refused) if context.refused else ""))
    ]
    said = forecast(plan)
    if said:
        text = "; ".join(said)
        lines.append(f"{text[:1].upper()}{text[1:]}.")
    return "\n\n".join([*lines, *unmatched_text(plan.unmatched)])


def unmatched_text(patterns: Sequence[str]) -> list[str]:
    """The patterns that match no table, as a list with one text, or an empty list."""
    if not patterns:
        return []
    shown = ", ".join(code(each[:200]) for each in patterns[:_MOST_PATTERNS])
    more = len(patterns) - _MOST_PATTERNS
    return [f"<p>No table matches {shown}{f' and {more} more patterns' if more > 0 else ''}</p>"]


def _foot(plan: Plan, context: Context) -> str:
    made = [f"tablectl {code(plan.tool[:_SHORT])}", f"{code(plan.dialect[:_SHORT])} dialect"]
    return foot("plan", [*plan_name(context.digest), *made], context)


def foot(subject: str, facts: Sequence[str], context: Context) -> str:
    """The subject of the comment as HTML, and a comment for programs."""
    run = [f'<a href="{escape(context.address)}">CI run</a>'] if context.address else []
    said = " · ".join([*facts, *run])
    return f"{f'<p><sub>{said}</sub></p>' if said else ''}\n<!-- tablectl {subject} -->".lstrip()


def plan_name(digest: str) -> list[str]:
    """The plan's digest for people, as a list with one text, or an empty list."""
    return [f"plan {code(digest[:_SHORT])}"] if digest else []


def where(plan: Plan, context: Context) -> str:
    """Where the whole plan can be read, as HTML."""
    run = f' of <a href="{escape(context.address)}">this CI run</a>' if context.address else ""
    if context.plan_file:
        shown = code(f"tablectl show {context.plan_file}")
        return f"The whole plan{run} is in {code(context.plan_file)}: {shown}."
    command = f"tablectl plan --env {plan.env}" if plan.env else "tablectl plan"
    return f"The whole plan{run} is what {code(command)} prints."


def _blocks(plan: Plan, tables: Sequence[TablePlan], context: Context) -> Iterator[str]:
    for failure in plan.failures:
        yield failure_details(failure, "cannot be read")
    for each in tables:
        yield _refused(each, context) if each.refusals else _table(each, context)


def failure_details(failure: TableFailure, how: str) -> str:
    """A table that could not be read."""
    said = [("error", failure.message), *([("hint", failure.hint)] if failure.hint else [])]
    return details(f"⛔ {code(failure.name)}: {how}", items(said))


def _refused(planned: TablePlan, context: Context) -> str:
    summary = f"⛔ {code(planned.name)}: refused, nothing on this table changes"
    found = items(_findings(planned))
    return details(summary, _changes(planned, context), *map(_refusal, planned.refusals), *([found] if found else []))


def _refusal(refusal: Refusal) -> str:
    said = [("why", refusal.reason)]
    if refusal.condition:
        said.append(("error", refusal.condition))
    return f"<p>{code(refusal.change)}</p>\n{items([*said, ('fix', refusal.fix)])}"


def _table(planned: TablePlan, context: Context) -> str:
    counts = f"{plural(len(planned.changes), 'change')}, {statements_text(planned.statements)}"
    parts = [_changes(planned, context)]
    for phase in Phase:
        statements = [statement for statement in planned.statements if statement.phase is phase]
        if statements:
            parts += [f"<p><b>{phase.word.upper()}</b> - {PHASE_EFFECTS[phase]}</p>", *map(_statement, statements)]
    parts.append(items(_after(planned)))
    if len(planned.undo) > 1:
        parts.append(details("Rollback (run in this order)", fence(*planned.undo)))
    return details(f"{code(planned.name)}: {counts}", *parts)


def _changes(planned: TablePlan, context: Context) -> str:
    places = [context.place(planned.name, change.id) for change in planned.changes]
    head = ["Setting", "Current", "Desired", *(["Policy"] if any(places) else [])]
    rows = (
        [*_change(change), *([code(place) if place else ""] if any(places) else [])]
        for change, place in zip(planned.changes, places, strict=True)
    )
    return f"<p>{escape(facts_text(planned))}</p>\n{table(head, rows)}"


def _change(change: Change) -> list[str]:
    return [code(change.id), code(value_text(change.before)), code(value_text(change.after))]


def _statement(statement: Statement) -> str:
    facts = statement_facts(statement)
    if statement.undo_note:
        facts.append(("not undone", statement.undo_note))
    undo = [details("undo", fence(*statement.undo))] if statement.undo else []
    parts = [f"{fence(statement.sql)}\n{items(facts)}", *undo]
    return "\n\n".join(parts)


def _after(planned: TablePlan) -> list[tuple[str, str]]:
    said = []
    before, after = planned.basis.protocol.protocol(), planned.protocol_after.protocol()
    if before != after:
        said.append(("protocol", f"{before.text()} → {after.text()}"))
    if features := features_text(planned):
        said.append(("features", features))
    if unclustered := unclustered_of_table(planned):
        said.append(("unclustered", f"{unclustered} is not clustered by these columns"))
    if readers := table_readers(planned):
        said.append(("readers", readers))
    return said + _findings(planned)


def _findings(planned: TablePlan) -> list[tuple[str, str]]:
    return [(finding.code, f"{finding.severity}: {finding.message}") for finding in shown_findings(planned)]
