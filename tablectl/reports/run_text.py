"""A run as text: per table what came of it, the statements that ran, and whose commits were seen."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from tablectl.model.text import printable
from tablectl.reports.style import Style, plural, sql_lines
from tablectl.window.report import CommitRun, Outcome, RunReport, TableRun

_MARKS = {
    Outcome.APPLIED: ("+", "green"),
    Outcome.ALREADY: ("=", "dim"),
}
_WORDS = {
    Outcome.APPLIED: "applied and verified",
    Outcome.ALREADY: "already as declared, no commit made",
    Outcome.STALE: "stale, left alone",
    Outcome.REFUSED: "refused, left alone",
    Outcome.HELD: "held by another apply, left alone",
    Outcome.NOT_DRAINED: "writers did not end in time, left alone",
    Outcome.HOOK_FAILED: "a hook failed, left alone",
    Outcome.OUTSIDE: "outside the calendar, left alone",
    Outcome.FAILED: "failed",
    Outcome.UNVERIFIED: "not verified",
    Outcome.INTERRUPTED: "interrupted",
}


def run_text(report: RunReport, style: Style) -> str:
    """The whole run, its summary last."""
    lines: list[str] = []
    for table in report.tables:
        lines += [*_table(table, style), ""]
    for failure in report.failures:
        lines += [f"{style.paint('x', 'red', 'bold')} {style.paint(printable(failure.name), 'bold')}"]
        lines += [*style.prose("error", failure.message, 4), *style.prose("hint", failure.hint, 4), ""]
    if report.proceed:
        lines += [*style.prose("went on", f"over writers: {report.proceed}", 0), ""]
    if report.override:
        lines += [*style.prose("override", f"of the calendar: {report.override}", 0), ""]
    return "\n".join([*lines, _summary(report, style)]) + "\n"


def _table(table: TableRun, style: Style) -> list[str]:
    mark, colour = _MARKS.get(table.outcome, ("x", "red"))
    word = _WORDS[table.outcome]
    if table.outcome is not Outcome.APPLIED and table.commits and table.outcome is not Outcome.ALREADY:
        word = {"failed": "failed, applied in part"}.get(word, word.replace("left alone", "applied in part"))
    lines = [f"{style.paint(mark, colour)} {style.paint(printable(table.name), 'bold')}  {style.paint(word, colour)}"]
    if table.message:
        lines += style.prose("why", table.message, 4)
    if table.hint:
        lines += style.prose("hint", table.hint, 4)
    for statement in table.statements:
        state = f"{statement.milliseconds} ms" if not statement.error else style.paint("failed", "red")
        lines += [f"    {statement.phase:<8} {state}", *(f"      {line}" for line in sql_lines(statement.sql))]
    if table.commits:
        versions = ", ".join(str(commit.version) for commit in table.commits)
        lines += style.prose("commits", versions, 4)
    lines += _others(table, style)
    for casualty in table.casualties:
        lines += style.prose("risk", f"{casualty.writer} was not waited for: {casualty.fails}", 4)
    for note in table.notes:
        lines += style.prose("note", note, 4)
    for change in table.later:
        lines += style.prose("note", f"{change} was applied and verified, and changed by others since", 4)
    return lines


def _others(table: TableRun, style: Style) -> list[str]:
    """Whoever changed metadata is named; data commits of a busy table are counted."""
    lines: list[str] = []
    for commit in table.foreign:
        if commit.metadata:
            lines += style.prose("others", commit_text(commit), 4)
    data = sum(not commit.metadata for commit in table.foreign)
    return lines + (style.prose("others", plural(data, "commit") + " of data", 4) if data else [])


def commit_text(commit: CommitRun) -> str:
    """``version 13: SET TBLPROPERTIES by ann at 2026-11-21 11:00:00 UTC``."""
    return f"version {commit.version}: {commit.operation or 'unknown operation'} by {commit.user}{_at(commit.at)}"


def _at(milliseconds: int) -> str:
    """Empty where the time is unknown, or none: any writer may have put any number into the log."""
    if milliseconds <= 0:
        return ""
    try:
        return f" at {datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return ""


def _summary(report: RunReport, style: Style) -> str:
    counts = Counter(table.outcome for table in report.tables)
    parts = [f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]]
    if report.failures:
        parts.append(f"{len(report.failures)} not readable")
    commits = sum(len(table.commits) for table in report.tables)
    return "\n".join(style.sentence("Apply", [*(parts or ["nothing to do"]), f"{plural(commits, 'commit')} made"]))
