"""A plan as text: per table what changes, the exact SQL under its phase, why, and what cannot be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from tablectl.model.plan import Change, Phase, Plan, ReaderKind, Refusal, Rewrite, Statement, TableFailure, TablePlan
from tablectl.model.text import printable, value_text
from tablectl.reports.style import Style, plural, size_text, sql_lines

_HARMS = {
    Phase.FREE: "no write in flight is harmed",
    Phase.REWRITE: "writes that read the table are harmed, appends are not",
    Phase.CLOSED: "every write in flight is harmed",
}


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


def _table(table: TablePlan, style: Style) -> list[str]:
    facts = [f"version {table.version}"]
    if table.basis.files is not None:
        facts.append(plural(table.basis.files, "file"))
    if table.basis.bytes is not None:
        facts.append(size_text(table.basis.bytes))
    mark = style.paint("!", "red", "bold") if table.refusals else style.paint("~", "yellow", "bold")
    lines = [f"{mark} {style.paint(printable(table.name), 'bold')}", style.paint(f"  {', '.join(facts)}", "dim")]
    lines += _changes(table.changes, style)
    if table.refusals:
        lines += ["", style.paint("  refused: the whole table is left as it is", "red")]
        for refusal in table.refusals:
            lines += _refusal(refusal, style)
        return lines
    for phase in Phase:
        statements = [statement for statement in table.statements if statement.phase is phase]
        if statements:
            lines += ["", f"  {style.paint(phase, 'cyan', 'bold')}  {style.paint(_HARMS[phase], 'dim')}"]
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
    lines = ["    " + style.paint(line, "bold") for line in sql_lines(statement.sql + ";")]
    if statement.only_if:
        lines += style.prose("only if", f"{statement.only_if} when its turn comes", 6)
    lines += style.prose("why", statement.reason, 6)
    if statement.fails:
        lines += style.prose("fails", statement.fails, 6)
    if statement.handles:
        lines += style.prose("handles", statement.handles, 6)
    if len(statement.commits) > 1:
        lines += style.prose("commits", f"{len(statement.commits)}: {', '.join(statement.commits)}", 6)
    if statement.rewrite:
        lines += style.prose("cost", rewrite_text(statement.rewrite), 6)
    for index, undo in enumerate(statement.undo):
        first, *rest = sql_lines(undo + ";")
        lines += [f"      {'undo' if index == 0 else '':<9}{first}", *(f"{'':15}{line}" for line in rest)]
    if statement.undo_note:
        lines += style.prose("stays", statement.undo_note, 6)
    return lines


def rewrite_text(rewrite: Rewrite) -> str:
    """What a rewrite may cost."""
    vectors = "an unknown number of deletion vectors"
    if rewrite.vectors is not None:
        vectors = plural(rewrite.vectors, "deletion vector")
    files = f", at most {plural(rewrite.files_at_most, 'file')}" if rewrite.files_at_most is not None else ""
    size = f", at most {size_text(rewrite.bytes_at_most)}" if rewrite.bytes_at_most is not None else ""
    return f"rewrites the files of {vectors}{files}{size}"


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
    if readers := {reader for statement in table.statements for reader in statement.readers}:
        lines += style.prose("readers", readers_text(readers), 2)
    for finding in table.findings:
        lines += style.prose(finding.code, f"{finding.severity}: {finding.message}", 2)
    return lines


def readers_text(stopped: Collection[ReaderKind]) -> str:
    """What becomes of streams that read a table."""
    if "every" in stopped:
        return "every stream that reads the table stops"
    ways = ["with a schemaTrackingLocation"] * ("with schema tracking" in stopped)
    ways += ["on Databricks"] * ("on Databricks" in stopped)
    return f"streams that read the table go on; {' or '.join(ways)} they stop once and restart"


def failure_lines(failure: TableFailure, style: Style) -> list[str]:
    """A table that cannot be read, or a pattern that cannot be looked up."""
    lines = [f"{style.paint('x', 'red', 'bold')} {style.paint(printable(failure.name), 'bold')}"]
    lines += style.prose("error", failure.message, 4)
    return lines + (style.prose("hint", failure.hint, 4) if failure.hint else [])


def _summary(plan: Plan, style: Style) -> list[str]:
    todo = [table for table in plan.tables if table.applies]
    refused = [table for table in plan.tables if table.refusals]
    parts = []
    if todo:
        parts.append(f"{plural(len(todo), 'table')} to change, {_statements(todo)}")
    if refused:
        parts.append(style.paint(f"{len(refused)} refused", "red"))
    if plan.failures:
        parts.append(style.paint(f"{len(plan.failures)} not readable", "red"))
    if plan.unchanged:
        parts.append(f"{len(plan.unchanged)} as declared")
    if not plan.tables and not plan.failures:
        return [style.paint(f"Nothing to do: {_all_as_declared(plan)}.", "green")]
    return style.sentence("Plan", parts)


def _all_as_declared(plan: Plan) -> str:
    count = len(plan.unchanged)
    return f"{plural(count, 'table')} {'is' if count == 1 else 'are'} as declared" if count else "no tables"


def _statements(tables: Iterable[TablePlan]) -> str:
    counts = Counter(statement.phase for table in tables for statement in table.statements)
    named = ", ".join(f"{counts[phase]} {phase}" for phase in Phase if counts[phase])
    return f"{plural(sum(counts.values()), 'statement')} ({named})"
