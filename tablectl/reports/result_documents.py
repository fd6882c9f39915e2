"""Runs, drift and the findings of lint as one ``Document`` each, with masked values hidden.

And what SARIF and JUnit hold of every result. Parts that only some formats need (a part for each table, the tables of
SARIF and JUnit) are made when they are rendered: 10,000 parts take ten seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

from tablectl.documents.document import Case, CommentEnd, Document, ForPrograms, Result
from tablectl.lint_rules import RULES
from tablectl.model.errors import ExitCode, Problem
from tablectl.model.plan import Change, Finding, Plan, TableFailure, TablePlan
from tablectl.model.run_report import RunOutcome, RunReport, TableRun
from tablectl.model.safe_text import value_text
from tablectl.planning.drift import Drift, TableDrift
from tablectl.planning.lint import Linted
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.besides_document import besides_lines
from tablectl.reports.comment_parts import end_of_drift, end_of_run
from tablectl.reports.drift_document import catalog_text, drift_document, origin_facts, table_drift_card
from tablectl.reports.lint_document import lint_document
from tablectl.reports.mask import Mask
from tablectl.reports.plan_document import table_plan_card
from tablectl.reports.report_context import Context
from tablectl.reports.run_document import run_document, table_run_card
from tablectl.reports.wording import GOOD, late_text, outcome_text, risk_text

_OF_OUTCOMES = {
    RunOutcome.STALE: "stale",
    RunOutcome.REFUSED: "refused",
    RunOutcome.NO_WINDOW: "window",
    RunOutcome.HOOK_FAILED: "window",
}


def document_of_run(report: RunReport, mask: Mask, context: Context) -> Document:
    """A run. ``context.plan`` is its plan, if it is known."""
    masked = mask.run(report)
    context = replace(context, plan=mask.plan(context.plan) if context.plan else None)
    programs = ForPrograms(
        results=lambda: run_results(masked),
        cases=lambda: run_cases(masked),
        failed=report.exit_code is not ExitCode.DONE,
        seconds=report.took_ms / 1000 if report.took_ms else None,
        at=report.at,
    )
    return replace(
        run_document(masked, context),
        record=masked,
        hint="`--verbose` shows each table, with its SQL and events.",
        in_full=partial(run_document, masked, context, each_table=True),
        programs=programs,
        comment=lambda: end_of_run(masked, context),
    )


def document_of_drift(drift: Drift, mask: Mask, context: Context) -> Document:
    """Drift. Only JSON contains the result of ``--adopt``."""
    masked = mask.drift(drift)
    programs = ForPrograms(
        results=lambda: drift_results(masked),
        cases=lambda: drift_cases(masked),
        failed=drift.exit_code is ExitCode.ERROR,
        seconds=context.seconds,
        at=context.began,
    )
    return replace(
        drift_document(masked, context),
        record=masked,
        hint="`--verbose` shows each table, with the history of its differences.",
        in_full=partial(drift_document, masked, context, each_table=True),
        programs=programs,
        comment=lambda: end_of_drift(context),
    )


def document_of_lint(linted: Linted, mask: Mask, context: Context) -> Document:
    """The findings of lint."""
    masked = mask.lint(linted)
    programs = ForPrograms(
        results=lambda: lint_results(masked),
        failed=bool(linted.failures),
    )
    end = CommentEnd.of("lint")
    return replace(lint_document(masked, context), record=masked, programs=programs, comment=lambda: end)


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
    """Refusals, tables that cannot be read, and findings, also those on unchanged tables.

    Pending changes are wanted, so they are not results.
    """
    if refused:
        yield Result("refused", "", "", refused)
    yield from map(_of_failure, plan.failures)
    for planned in plan.tables:
        yield from _of_table(planned)
    for unchanged in plan.standing:
        yield from (_of_finding(each, unchanged.name) for each in unchanged.findings)
    told = {(table.name, each.code, each.about) for table in plan.tables for each in table.findings}
    for table in plan.besides:
        yield from (
            _of_finding(each, table.name) for each in table.findings if (table.name, each.code, each.about) not in told
        )
        yield from (_turned(each, table.name) for each in table.changes)


def _turned(change: Change, table: str) -> Result:
    return Result("merged", table, change.id, f"{change.id}: {value_text(change.before)} → {value_text(change.after)}")


def _of_table(table: TablePlan) -> Iterator[Result]:
    reasons: dict[str, list[str]] = {}
    for refusal in table.refusals:
        if refusal.condition not in RULES:  # otherwise its finding says the same
            reasons.setdefault(refusal.change, []).append(_with_hint(refusal.reason, refusal.fix))
    for change, said in reasons.items():  # one for each change, which is what a tool knows again
        yield Result("refused", table.name, change, "\n".join((f"{change}: {said[0]}", *said[1:])))
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


_ERRORS = {RunOutcome.FAILED, RunOutcome.UNVERIFIED, RunOutcome.UNKNOWN, RunOutcome.INTERRUPTED}


def plan_cases(plan: Plan, context: Context) -> Iterator[Case]:
    """A refused table is a failure, one that cannot be read an error, and a pattern without tables is skipped.

    A table with changes passes with its changes as output, unless pending changes are failures
    (``Context.pending_fails``).
    """
    yield from (_planned(each, pending_fails=context.pending_fails) for each in plan.tables)
    if context.refused:
        yield Case("the plan as a whole", "failure", "refused", context.refused, (context.refused,))
    yield from map(_unreadable, plan.failures)
    yield from map(_unmatched, plan.unmatched)
    besides = {each.name: each for each in plan.besides}
    planned = {each.name for each in plan.tables}
    for name in dict.fromkeys((*plan.unchanged, *besides)):
        if name not in planned:
            yield Case(name, body=tuple(besides_lines(besides[name])) if name in besides else ())


def run_cases(report: RunReport) -> Iterator[Case]:
    """A table as declared passes; a failed, interrupted or unverified one is an error, any other a failure."""
    yield from map(_ran, report.tables)
    yield from map(_unreadable, report.failures)


def drift_cases(drift: Drift) -> Iterator[Case]:
    """A table that differs is a failure, one that cannot be read an error, and a pattern without tables is skipped."""
    yield from map(_differs, drift.tables)
    yield from map(_unreadable, drift.failures)
    yield from map(_unmatched, drift.unmatched)
    yield from map(Case, drift.as_declared)


def _unreadable(failure: TableFailure) -> Case:
    body = tuple(filter(None, (failure.message, failure.hint)))
    return Case(failure.name, "error", "not readable", failure.message, body)


def _unmatched(pattern: str) -> Case:
    return Case(pattern, "skipped", message="the pattern matches no table")


def _differs(table: TableDrift) -> Case:
    changes = [each.change for each in table.differences]
    said = [f"{each.id}: declared {value_text(each.after)}, found {value_text(each.before)}" for each in changes]
    message, name = "; ".join([*said, *map(catalog_text, table.catalog)]), table.spec.name.text
    return Case(name, "failure", "drift", message, card=table_drift_card(table), source=table.spec.declared)


def _planned(table: TablePlan, *, pending_fails: bool) -> Case:
    card = table_plan_card(table)
    if table.refusals:
        message = "; ".join(f"{each.change}: {each.reason}" for each in table.refusals)
        return Case(table.name, "failure", "refused", message, card=card)
    if not pending_fails:
        return Case(table.name, card=card)
    changes = (f"{each.id}: {value_text(each.before)} → {value_text(each.after)}" for each in table.changes)
    return Case(table.name, "failure", "pending", "; ".join(changes), card=card)


def _ran(table: TableRun) -> Case:
    card, seconds = table_run_card(table), table.took_ms / 1000
    if table.code is ExitCode.DONE:
        return Case(table.name, card=card, seconds=seconds)
    result: Literal["error", "failure"] = "error" if table.outcome in _ERRORS else "failure"
    said = table.message or table.shut or outcome_text(table)
    return Case(table.name, result, str(table.outcome), said, card=card, seconds=seconds)
