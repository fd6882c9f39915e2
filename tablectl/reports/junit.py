"""A document as JUnit XML, with a test case per table: CI systems show it as tests.

Times are seconds. A plan and drift read their tables in parallel, so only the suite has a time, that of all tables.
"""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tablectl.documents.document import Case, Document
from tablectl.documents.style import Style, printable_lines
from tablectl.model.safe_text import escape_markup, printable
from tablectl.reports.document_text import card_lines
from tablectl.reports.report_context import Context


def document_junit(document: Document, context: Context) -> str:
    """The test cases of a document."""
    programs = document.programs
    name = printable(f"tablectl {document.subject.lower()} {document.env}".rstrip())
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", name=name)
    counts = dict.fromkeys(("passed", "failure", "error", "skipped"), 0)
    measured = 0.0
    for case in programs.cases():
        counts[case.result] += 1
        measured += case.seconds or 0.0
        suite.append(_element(case, name, context))
    numbers = {
        "tests": sum(counts.values()),
        "failures": counts["failure"],
        "errors": counts["error"],
        "skipped": counts["skipped"],
    }
    about = {each: str(count) for each, count in numbers.items()}
    about["time"] = _seconds(measured if programs.seconds is None else programs.seconds)
    for each in (root, suite):
        each.attrib.update(about)
    if programs.at:
        suite.attrib["timestamp"] = datetime.fromtimestamp(programs.at // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00")
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{escape_markup(tostring(root, encoding="unicode"))}\n'


def _element(case: Case, suite: str, context: Context) -> Element:
    about = {"classname": suite.replace(" ", "."), "name": printable(case.name), "time": _seconds(case.seconds or 0.0)}
    source = case.source or context.source(case.name)
    if source:
        about["file"] = printable(source.file)
    element = Element("testcase", about)
    body = _body(case)
    if case.result == "passed":
        if body:
            SubElement(element, "system-out").text = body
        return element
    inner = SubElement(element, case.result, {"message": printable(case.message)})
    if case.kind:
        inner.attrib["type"] = case.kind
    inner.text = body or None
    return element


def _body(case: Case) -> str:
    """Lines without characters that XML does not permit or that control a terminal."""
    if case.card:
        text = "\n".join(card_lines(case.card, Style(), verbose=True)) + "\n"
        return "\n".join(printable_lines(text))
    return "\n".join(line for text in case.body for line in printable_lines(text))


def _seconds(seconds: float) -> str:
    return f"{max(seconds, 0.0):.3f}"
