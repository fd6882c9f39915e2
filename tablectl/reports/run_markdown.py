"""A run as a comment on a pull request: the verdict in one line, then what needs attention, details folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablectl.applying.run_report import RunOutcome, RunReport, StatementRun, TableRun
from tablectl.model.text import time_text
from tablectl.reports.context import Context
from tablectl.reports.markdown import code, details, fence, fitted, items, table, words
from tablectl.reports.plan_markdown import failure_details, foot, plan_name, verdict_line
from tablectl.reports.run_wording import measures, remarks
from tablectl.reports.wording import outcome_text, run_verdict, span_text, titled

_MARKS = {RunOutcome.APPLIED: "✅", RunOutcome.ALREADY: "✅", RunOutcome.SUCCEEDED: "✅", RunOutcome.WAITING: "⏳"}
_WHERE = "The log of the run has them all, and so has its report in another format (<code>--report FILE</code>)."


def run_markdown(report: RunReport, context: Context) -> str:
    """The whole run within the length of a comment. Failures come first."""
    wrong = [each for each in report.tables if each.outcome not in _MARKS]
    tables = [*wrong, *(each for each in report.tables if each.outcome in _MARKS)]
    names = [*(each.name for each in report.failures), *(each.name for each in tables)]
    facts = [f"run {code(report.run)}", *plan_name(report.plan)]
    return fitted(_head(report), _blocks(report, tables), names, foot("run", facts, context), _WHERE)


def _head(report: RunReport) -> str:
    lines = [verdict_line(titled("Apply", report.env), run_verdict(report))]
    said = [("proceeded", f"despite active writers: {report.proceed}")] if report.proceed else []
    said += [("override", f"calendar: {report.override}")] if report.override else []
    said += [("note", note[:1000]) for note in report.notes[:10]]
    return "\n\n".join([*lines, *([items(said)] if said else [])])


def _blocks(report: RunReport, tables: Sequence[TableRun]) -> Iterator[str]:
    for failure in report.failures:
        yield failure_details(failure, "could not be read by the plan")
    for each in tables:
        yield _table(each)


def _table(run: TableRun) -> str:
    summary = f"{_MARKS.get(run.outcome, '⛔')} {code(run.name)}: {words(outcome_text(run))}"
    said = [("why", run.message), ("hint", run.hint)]
    parts = [items((label, text) for label, text in said if text)]
    parts += [_statement(statement) for statement in run.statements]
    return details(summary, *parts, _commits(run), items([*measures(run), *remarks(run)]))


def _statement(statement: StatementRun) -> str:
    facts = [(statement.phase.word, span_text(statement.milliseconds))]
    if statement.error:
        facts.append(("failed", statement.error))
    return f"{fence(statement.sql)}\n{items(facts)}"


def _commits(run: TableRun) -> str:
    """Every commit that was seen, ours and others', in the order of the log."""
    ours = {commit.version for commit in run.commits}
    rows = [
        (
            str(commit.version),
            "this run" if commit.version in ours else "another apply" if commit.run else "others",
            code(commit.operation or "unknown operation"),
            code(commit.user),
            time_text(commit.at),
            "while the gate was closed" if commit.inside else "",
        )
        for commit in sorted((*run.commits, *run.foreign), key=lambda each: each.version)
    ]
    return table(["version", "of", "operation", "by", "at", ""], rows) if rows else ""
