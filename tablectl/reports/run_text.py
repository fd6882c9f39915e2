"""A run as text: per table the outcome, the statements that ran, and the commits that were seen."""

from __future__ import annotations

from itertools import groupby

from tablectl.applying.run_report import RunOutcome, RunReport, TableRun
from tablectl.model.code import read_code
from tablectl.model.text import printable
from tablectl.reports.style import Style, plural
from tablectl.reports.wording import (
    commit_text,
    late_text,
    outcome_text,
    risk_text,
    run_parts,
    silent_text,
    span_text,
    titled,
)

_WORTH_TELLING = 1000
"""Waits shorter than this, in milliseconds, are not reported."""
_MOST_NAMED = 3

_MARKS = {
    RunOutcome.APPLIED: ("+", "green"),
    RunOutcome.ALREADY: ("=", "dim"),
    RunOutcome.SUCCEEDED: ("=", "green"),
    RunOutcome.WAITING: ("…", "yellow"),
}


def run_text(report: RunReport, style: Style) -> str:
    """The whole run, followed by the summary."""
    lines: list[str] = []
    for table in report.tables:
        lines += [*_table(table, style), ""]
    for failure in report.failures:
        lines += [f"{style.paint('x', 'red', 'bold')} {style.paint(printable(failure.name), 'bold')}"]
        lines += [*style.prose("error", failure.message, 4), *style.prose("hint", failure.hint, 4), ""]
    if report.proceed:
        lines += [*style.prose("proceeded", f"despite active writers: {report.proceed}", 0), ""]
    if report.override:
        lines += [*style.prose("override", f"calendar: {report.override}", 0), ""]
    return "\n".join([*lines, _summary(report, style)]) + "\n"


def table_run_text(table: TableRun, style: Style) -> str:
    """The run of one table."""
    return "\n".join(_table(table, style)) + "\n"


def _table(table: TableRun, style: Style) -> list[str]:
    mark, colour = _MARKS.get(table.outcome, ("x", "red"))
    word = outcome_text(table)
    lines = [f"{style.paint(mark, colour)} {style.paint(printable(table.name), 'bold')}  {style.paint(word, colour)}"]
    if table.message:
        lines += style.prose("why", table.message, 4)
    if table.hint:
        lines += style.prose("hint", table.hint, 4)
    if table.outcome is not RunOutcome.APPLIED:
        lines += _statements(table, style)
    if table.commits:
        lines += style.prose("commits", _commits(table), 4)
    lines += [*_others(table, style), *_risks(table, style), *_writers(table, style)]
    for note in table.notes:
        lines += style.prose("note", note, 4)
    for change in table.later:
        lines += style.prose("note", f"{change} was applied and verified, then changed by others", 4)
    return lines


def _statements(table: TableRun, style: Style) -> list[str]:
    lines: list[str] = []
    for statement in table.statements:
        state = span_text(statement.milliseconds) if not statement.error else style.paint("failed", "red")
        shown = read_code(statement.sql).shown()
        lines += [f"    {statement.phase.word:<8} {state}", *(f"      {line}" for line in shown)]
    return lines


def _commits(table: TableRun) -> str:
    """``13, 15 (2 of metadata instead of 7), gate closed for 412 ms, waited 3.0 s for writers``."""
    text = ", ".join(str(commit.version) for commit in table.commits)
    made, separate = table.metadata_commits, table.separate_commits
    times = [
        (table.window_ms, "gate closed for {}"),
        (table.rewrite_ms, "rewrote for {}"),
        (table.drain_ms if table.drain_ms >= _WORTH_TELLING else 0, "waited {} for writers"),
    ]
    parts = [text + (f" ({made} of metadata instead of {separate})" if separate > made else "")]
    return ", ".join([*parts, *(words.format(span_text(spent)) for spent, words in times if spent)])


def _risks(table: TableRun, style: Style) -> list[str]:
    """Which writers may have failed: those with the same reason together."""
    lines: list[str] = []
    for (reason, fails), group in groupby(table.casualties, key=lambda each: (each.reason, each.fails)):
        names = [casualty.writer for casualty in group]
        who = ", ".join(names) if len(names) <= _MOST_NAMED else plural(len(names), "writer")
        lines += style.prose("risk", risk_text(who, reason, fails), 4)
    return lines


def _writers(table: TableRun, style: Style) -> list[str]:
    if not table.watched or not table.writers:
        return []
    back = sum(writer.back for writer in table.writers)
    silent = [silent_text(writer) for writer in table.writers if not writer.back]
    return style.prose("writers", "; ".join([f"{back} of {len(table.writers)} came back", *silent]), 4)


def _others(table: TableRun, style: Style) -> list[str]:
    """Writers that changed metadata are named; data commits of a busy table are counted."""
    lines: list[str] = []
    for commit in table.foreign:
        if commit.metadata:
            lines += style.prose("others", commit_text(commit) + late_text(commit, table), 4)
    data = sum(not commit.metadata for commit in table.foreign)
    return lines + (style.prose("others", plural(data, "commit") + " of data", 4) if data else [])


def _summary(report: RunReport, style: Style) -> str:
    return "\n".join(style.sentence(titled("Apply", report.env), run_parts(report)))
