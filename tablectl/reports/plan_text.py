"""A plan as text: per table the changes, the exact SQL by phase, the reasons, and what cannot be undone."""

from __future__ import annotations

from tablectl.model.code import read_code
from tablectl.model.plan import Change, Phase, Plan, Refusal, Statement, TableFailure, TablePlan
from tablectl.model.text import printable, value_text
from tablectl.reports.style import Style
from tablectl.reports.wording import (
    PHASE_EFFECTS,
    all_unchanged,
    facts_text,
    features_text,
    plan_parts,
    shown_findings,
    statement_facts,
    table_readers,
    titled,
    unclustered_of_table,
)


def plan_text(plan: Plan, style: Style) -> str:
    """The whole plan, followed by the summary."""
    lines: list[str] = []
    for table in plan.tables:
        lines += [*_table(table, style), ""]
    for failure in plan.failures:
        lines += [*failure_lines(failure, style), ""]
    for pattern in plan.unmatched:
        mark = style.paint("?", "yellow", "bold")
        lines += [f"{mark} {style.paint(printable(pattern), 'bold')}  {style.paint('matches no table', 'yellow')}", ""]
    return "\n".join([*lines, *_summary(plan, style)]) + "\n"


def table_plan_text(table: TablePlan, style: Style) -> str:
    """The plan of one table."""
    return "\n".join(_table(table, style)) + "\n"


def _table(table: TablePlan, style: Style) -> list[str]:
    mark = style.paint("!", "red", "bold") if table.refusals else style.paint("~", "yellow", "bold")
    lines = [f"{mark} {style.paint(printable(table.name), 'bold')}", style.paint(f"  {facts_text(table)}", "dim")]
    lines += _changes(table.changes, style)
    if table.refusals:
        lines += ["", style.paint("  refused: nothing on this table changes", "red")]
        for refusal in table.refusals:
            lines += _refusal(refusal, style)
        return [*lines, *_findings(table, style)]
    for phase in Phase:
        statements = [statement for statement in table.statements if statement.phase is phase]
        if statements:
            lines += [
                "",
                f"  {style.paint(phase.word.upper(), 'cyan', 'bold')} - {style.paint(PHASE_EFFECTS[phase], 'dim')}",
            ]
        for index, statement in enumerate(statements):
            lines += [""] * bool(index) + _statement(statement, style)
    return [*lines, *_after(table, style)]


def _changes(changes: tuple[Change, ...], style: Style) -> list[str]:
    """``name  before → after``, aligned as far as the width permits. A change that does not fit on one line takes
    three.
    """
    rows = [(printable(change.id), value_text(change.before), value_text(change.after)) for change in changes]
    room = {row: style.width - 9 - len(row[1]) - len(row[2]) for row in rows}
    fitting = [row for row in rows if len(row[0]) <= room[row]]
    pad = min(max((len(row[0]) for row in fitting), default=0), min((room[row] for row in fitting), default=0))
    lines = []
    for row in rows:
        name, before, after = row[0], style.paint(row[1], "red"), style.paint(row[2], "green")
        if row in fitting:
            lines.append(f"    {name.ljust(pad)}  {before} → {after}")
        else:
            lines += [f"    {name}", f"      {before}", f"      → {after}"]
    return lines


def _statement(statement: Statement, style: Style) -> list[str]:
    lines = ["    " + style.paint(line, "bold") for line in read_code(statement.sql).shown()]
    facts = statement_facts(statement)
    note = [("not undone", statement.undo_note)] if statement.undo_note else []
    pad = max([8, *(len(label) for label, _ in [*facts, *note])])
    for label, text in facts:
        lines += style.prose(label, text, 6, pad)
    for index, undo in enumerate(statement.undo):
        first, *rest = read_code(undo).shown()
        label = "undo" if index == 0 else ""
        lines += [f"      {label.ljust(pad)} {first}", *(f"{'':{pad + 7}}{line}" for line in rest)]
    for label, text in note:
        lines += style.prose(label, text, 6, pad)
    return lines


def _refusal(refusal: Refusal, style: Style) -> list[str]:
    lines = ["    " + style.paint(printable(refusal.change), "bold"), *style.prose("why", refusal.reason, 6)]
    if refusal.condition:
        lines += style.prose("error", refusal.condition, 6)
    return lines + style.prose("fix", refusal.fix, 6)


def _after(table: TablePlan, style: Style) -> list[str]:
    facts: list[tuple[str, str]] = []
    before, after = table.basis.protocol.protocol(), table.protocol_after.protocol()
    if before != after:
        facts.append(("protocol", f"{before.text()} → {after.text()}"))
    if features := features_text(table):
        facts.append(("features", features))
    if unclustered := unclustered_of_table(table):
        facts.append(("unclustered", f"{unclustered} is not clustered by these columns"))
    if readers := table_readers(table):
        facts.append(("readers", readers))
    facts += _found(table)
    return ["", *style.facts(facts, 2)] if facts else []


def _findings(table: TablePlan, style: Style) -> list[str]:
    return style.facts(_found(table), 2)


def _found(table: TablePlan) -> list[tuple[str, str]]:
    return [(each.code, f"{each.severity}: {each.message}") for each in shown_findings(table)]


def failure_lines(failure: TableFailure, style: Style) -> list[str]:
    """A table that cannot be read, or a pattern that cannot be resolved."""
    lines = [f"{style.paint('x', 'red', 'bold')} {style.paint(printable(failure.name), 'bold')}"]
    lines += style.prose("error", failure.message, 4)
    return lines + (style.prose("hint", failure.hint, 4) if failure.hint else [])


def _summary(plan: Plan, style: Style) -> list[str]:
    parts = plan_parts(plan)
    if not parts:
        unchanged = all_unchanged(plan)
        return [style.paint(f"{titled('No changes', plan.env)}. {unchanged[:1].upper()}{unchanged[1:]}.", "green")]
    return style.sentence(
        titled("Plan", plan.env), [style.paint(part.text, "red") if part.bad else part.text for part in parts]
    )
