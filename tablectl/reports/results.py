"""What SARIF holds of each result: refusals, failures and findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tablectl.applying.run_report import RunOutcome, RunReport, TableRun
from tablectl.lint_rules import RULES
from tablectl.model.errors import Problem
from tablectl.model.plan import Finding, Plan, TableFailure, TablePlan
from tablectl.model.text import value_text
from tablectl.planning.drift import Drift
from tablectl.planning.lint import Linted
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.document import Result
from tablectl.reports.drift_document import catalog_text, origin_facts
from tablectl.reports.wording import GOOD, late_text, outcome_text, risk_text

_OF_OUTCOMES = {
    RunOutcome.STALE: "stale",
    RunOutcome.REFUSED: "refused",
    RunOutcome.NO_WINDOW: "window",
    RunOutcome.HOOK_FAILED: "window",
}


def problem_results(problems: Iterable[Problem]) -> Iterator[Result]:
    """Problems in policies and configuration."""
    for each in problems:
        source = SourceFile(each.file, each.line, each.column)
        yield Result("invalid", "", "", _with_hint(each.message, each.hint), source=source)


def lint_results(linted: Linted) -> Iterator[Result]:
    """The findings. Those that the repository ignores are marked as suppressed."""
    yield from map(_of_failure, linted.failures)
    for table in linted.tables:
        yield from (_of_finding(each, table.name) for each in table.findings)


def drift_results(drift: Drift) -> Iterator[Result]:
    """The differences, at the lines that declare the values."""
    yield from map(_of_failure, drift.failures)
    for table in drift.tables:
        for each in table.differences:
            said = "".join(f"; {label} {text}" for label, text in origin_facts(each.origin, table))
            declared, found = value_text(each.change.after), value_text(each.change.before)
            message = f"{each.change.id}: declared {declared}, found {found}{said}"
            source = each.source if each.source.line else table.spec.declared
            yield Result("drift", table.spec.name.text, each.change.id, message, source=source)
        for one in table.catalog:
            said = f"the catalog {catalog_text(one)}"
            yield Result("drift", table.spec.name.text, "", said, source=table.spec.declared)


def plan_results(plan: Plan, refused: str = "") -> Iterator[Result]:
    """Refusals, tables that cannot be read, and findings. Pending changes are wanted, so they are not results."""
    if refused:
        yield Result("refused", "", "", refused)
    yield from map(_of_failure, plan.failures)
    for table in plan.tables:
        yield from _of_table(table)


def _of_table(table: TablePlan) -> Iterator[Result]:
    for refusal in table.refusals:
        if refusal.condition in RULES:  # its finding says the same
            continue
        message = _with_hint(f"{refusal.change}: {refusal.reason}", refusal.fix)
        yield Result("refused", table.name, refusal.change, message)
    yield from (_of_finding(each, table.name) for each in table.findings)


def _of_finding(finding: Finding, table: str) -> Result:
    if finding.severity == "ignored":
        return Result(finding.code, table, finding.about, finding.message, "note", ignored=finding.reason)
    return Result(finding.code, table, finding.about, finding.message, finding.severity)


def run_results(report: RunReport) -> Iterator[Result]:
    """What was not applied, which gates may still be shut, which writers may have failed, and what others reverted."""
    yield from map(_of_failure, report.failures)
    for run in report.tables:
        yield from _of_table_run(run)


def _of_table_run(run: TableRun) -> Iterator[Result]:
    if run.outcome not in GOOD:
        said = f"{outcome_text(run)}: {run.message}" if run.message else outcome_text(run)
        yield Result(_OF_OUTCOMES.get(run.outcome, "failed"), run.name, "", _with_hint(said, run.hint))
    if run.shut:
        yield Result("window", run.name, "", run.shut)
    for change in run.later:
        yield Result("undone", run.name, change, f"{change} was applied and verified, then changed by others")
    for each in run.possible_failures:
        yield Result("possible-failure", run.name, "", risk_text(each.writer, each.reason, each.fails))
    for commit in run.foreign:
        if commit.late:
            yield Result("undone", run.name, "", f"version {commit.version}{late_text(commit)}")


def _of_failure(failure: TableFailure) -> Result:
    return Result("unreadable", failure.name, "", _with_hint(failure.message, failure.hint))


def _with_hint(message: str, hint: str) -> str:
    return f"{message}\nFix: {hint}" if hint else message
