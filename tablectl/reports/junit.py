"""A plan or a run as JUnit XML, with a test case per table: CI systems show it as tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tablectl.applying.run_report import RunOutcome, RunReport, TableRun
from tablectl.model.errors import ExitCode
from tablectl.model.output_escapes import escape_markup
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.text import printable, value_text
from tablectl.planning.drift import Drift, TableDrift
from tablectl.reports.context import Context
from tablectl.reports.drift_document import catalog_text
from tablectl.reports.drift_text import table_drift_text
from tablectl.reports.plan_text import table_plan_text
from tablectl.reports.run_text import table_run_text
from tablectl.reports.style import Style, printable_lines
from tablectl.reports.wording import outcome_text

_ERRORS = {
    RunOutcome.FAILED,
    RunOutcome.UNVERIFIED,
    RunOutcome.ELSEWHERE,
    RunOutcome.UNKNOWN,
    RunOutcome.LEASE_LOST,
    RunOutcome.INTERRUPTED,
}


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    result: Literal["passed", "failure", "error", "skipped"] = "passed"
    kind: str = ""
    message: str = ""
    body: str = ""
    """Why it did not pass, or the output of a passing test case."""
    seconds: float = 0.0


def plan_junit(plan: Plan, context: Context) -> str:
    """A plan as JUnit XML.

    A refused table is a failure, one that cannot be read an error, and a pattern without tables is skipped. A table
    with changes passes with its changes as output, unless pending changes are failures (``Context.pending_fails``).
    """
    cases = [_planned(each, context) for each in plan.tables]
    if context.refused:
        cases.append(_Case("the plan as a whole", "failure", "refused", context.refused, context.refused))
    cases += [
        _Case(each.name, "error", "not readable", each.message, "\n".join(filter(None, (each.message, each.hint))))
        for each in plan.failures
    ]
    cases += [_Case(each, "skipped", message="the pattern matches no table") for each in plan.unmatched]
    return _xml(_suite("plan", plan.env), [*cases, *map(_Case, plan.unchanged)], context)


def run_junit(report: RunReport, context: Context) -> str:
    """A run. A table as declared passes; a failed, interrupted or unverified one is an error, any other a failure."""
    cases = [_ran(each) for each in report.tables]
    cases += [_Case(each.name, "error", "not readable", each.message, each.hint) for each in report.failures]
    return _xml(_suite("apply", report.env), cases, context)


def drift_junit(drift: Drift, context: Context) -> str:
    """Drift. A table that differs is a failure, one that cannot be read an error, and a pattern without tables is
    skipped.
    """
    cases = [_differs(each) for each in drift.tables]
    cases += [_Case(each.name, "error", "not readable", each.message, each.hint) for each in drift.failures]
    cases += [_Case(each, "skipped", message="the pattern matches no table") for each in drift.unmatched]
    context = replace(context, sources={table.spec.name.text: {"": table.spec.declared} for table in drift.tables})
    return _xml(_suite("drift", drift.env), [*cases, *map(_Case, drift.as_declared)], context)


def _differs(table: TableDrift) -> _Case:
    changes = [each.change for each in table.differences]
    said = tuple(f"{each.id}: declared {value_text(each.after)}, found {value_text(each.before)}" for each in changes)
    said = (*said, *map(catalog_text, table.catalog))
    return _Case(table.spec.name.text, "failure", "drift", "; ".join(said), table_drift_text(table, Style()))


def _planned(table: TablePlan, context: Context) -> _Case:
    text = table_plan_text(table, Style())
    if table.refusals:
        message = "; ".join(f"{each.change}: {each.reason}" for each in table.refusals)
        return _Case(table.name, "failure", "refused", message, text)
    if not context.pending_fails:
        return _Case(table.name, body=text)
    changes = (f"{each.id}: {value_text(each.before)} → {value_text(each.after)}" for each in table.changes)
    return _Case(table.name, "failure", "pending", "; ".join(changes), text)


def _ran(table: TableRun) -> _Case:
    text = table_run_text(table, Style())
    seconds = sum(statement.milliseconds for statement in table.statements) / 1000
    if table.code is ExitCode.DONE:
        return _Case(table.name, body=text, seconds=seconds)
    result: Literal["error", "failure"] = "error" if table.outcome in _ERRORS else "failure"
    said = table.message or outcome_text(table)
    return _Case(table.name, result, str(table.outcome), said, text, seconds)


def _suite(verb: str, env: str) -> str:
    return _line(f"tablectl {verb} {env}") if env else f"tablectl {verb}"


def _xml(suite: str, cases: Iterable[_Case], context: Context) -> str:
    root = Element("testsuites")
    tests = SubElement(root, "testsuite", name=suite)
    counts = dict.fromkeys(("passed", "failure", "error", "skipped"), 0)
    for case in cases:
        counts[case.result] += 1
        tests.append(_element(case, suite, context))
    numbers = {
        "tests": sum(counts.values()),
        "failures": counts["failure"],
        "errors": counts["error"],
        "skipped": counts["skipped"],
    }
    for each in (root, tests):
        each.attrib.update({name: str(count) for name, count in numbers.items()})
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{escape_markup(tostring(root, encoding="unicode"))}\n'


def _element(case: _Case, suite: str, context: Context) -> Element:
    about = {"classname": suite.replace(" ", "."), "name": _line(case.name), "time": f"{case.seconds:.3f}"}
    source = context.source(case.name)
    if source:
        about["file"] = _line(source.file)
    element = Element("testcase", about)
    if case.result == "passed":
        if case.body:
            SubElement(element, "system-out").text = _lines(case.body)
        return element
    inner = SubElement(element, case.result, {"message": _line(case.message)})
    if case.kind:
        inner.attrib["type"] = case.kind
    inner.text = _lines(case.body) or None
    return element


def _line(text: str) -> str:
    return printable(text)


def _lines(text: str) -> str:
    """A text of several lines, without characters that XML does not permit or that control a terminal."""
    return "\n".join(printable_lines(text))
