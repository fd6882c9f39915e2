"""A plan as text: per table what changes, the exact SQL under its phase, why, and what cannot be undone."""

from __future__ import annotations

from tablectl.model.code import read_code
from tablectl.model.plan import Change, Phase, Plan, Refusal, Statement, TableFailure, TablePlan
from tablectl.model.text import printable, value_text
from tablectl.reports.style import Style
from tablectl.reports.wording import (
    HARMS,
    all_as_declared,
    facts_text,
    features_text,
    plan_parts,
    shown_findings,
    statement_facts,
    table_loose,
    table_readers,
    titled,
)


def plan_text(plan: Plan, style: Style) -> str:
    """The whole plan, its summary last."""
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
    """One table's part."""
    return "\n".join(_table(table, style)) + "\n"


def _table(table: TablePlan, style: Style) -> list[str]:
    mark = style.paint("!", "red", "bold") if table.refusals else style.paint("~", "yellow", "bold")
    lines = [f"{mark} {style.paint(printable(table.name), 'bold')}", style.paint(f"  {facts_text(table)}", "dim")]
    lines += _changes(table.changes, style)
    if table.refusals:
        lines += ["", style.paint("  refused: the whole table is left as it is", "red")]
        for refusal in table.refusals:
            lines += _refusal(refusal, style)
        return [*lines, *_findings(table, style)]
    for phase in Phase:
        statements = [statement for statement in table.statements if statement.phase is phase]
        if statements:
            lines += ["", f"  {style.paint(phase, 'cyan', 'bold')}  {style.paint(HARMS[phase], 'dim')}"]
        for index, statement in enumerate(statements):
            lines += [""] * bool(index) + _statement(statement, style)
    return [*lines, *_after(table, style)]


def _changes(changes: tuple[Change, ...], style: Style) -> list[str]:
    """``name  before → after``, aligned as far as the width allows; a change that does not fit a line takes three."""
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
    for label, text in statement_facts(statement):
        lines += style.prose(label, text, 6)
    for index, undo in enumerate(statement.undo):
        first, *rest = read_code(undo).shown()
        lines += [f"      {'undo' if index == 0 else '':<9}{first}", *(f"{'':15}{line}" for line in rest)]
    if statement.undo_note:
        lines += style.prose("stays", statement.undo_note, 6)
    return lines


def _refusal(refusal: Refusal, style: Style) -> list[str]:
    lines = ["    " + style.paint(printable(refusal.change), "bold"), *style.prose("why", refusal.reason, 6)]
    if refusal.condition:
        lines += style.prose("error", refusal.condition, 6)
    return lines + style.prose("way out", refusal.way_out, 6)


def _after(table: TablePlan, style: Style) -> list[str]:
    lines: list[str] = []
    before, after = table.basis.protocol.protocol(), table.protocol_after.protocol()
    if before != after:
        lines += ["", *style.prose("protocol", f"{before.text()} → {after.text()}", 2)]
    if features := features_text(table):
        lines += style.prose("features", features, 2)
    if loose := table_loose(table):
        lines += style.prose("loose", f"{loose} is not clustered by these columns", 2)
    if readers := table_readers(table):
        lines += style.prose("readers", readers, 2)
    return lines + _findings(table, style)


def _findings(table: TablePlan, style: Style) -> list[str]:
    lines: list[str] = []
    for finding in shown_findings(table):
        lines += style.prose(finding.code, f"{finding.severity}: {finding.message}", 2)
    return lines


def failure_lines(failure: TableFailure, style: Style) -> list[str]:
    """A table that cannot be read, or a pattern that cannot be looked up."""
    lines = [f"{style.paint('x', 'red', 'bold')} {style.paint(printable(failure.name), 'bold')}"]
    lines += style.prose("error", failure.message, 4)
    return lines + (style.prose("hint", failure.hint, 4) if failure.hint else [])


def _summary(plan: Plan, style: Style) -> list[str]:
    parts = plan_parts(plan)
    if not parts:
        return [style.paint(f"{titled('Nothing to do', plan.env)}: {all_as_declared(plan)}.", "green")]
    return style.sentence(
        titled("Plan", plan.env), [style.paint(part.text, "red") if part.bad else part.text for part in parts]
    )
