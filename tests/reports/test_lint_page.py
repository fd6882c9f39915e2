"""The pages of the codes of lint."""

from __future__ import annotations

import pytest

from tablectl.documents.style import Style
from tablectl.lint_rules import RULES
from tablectl.reports.document_text import document_text
from tablectl.reports.explain_document import CodeExplanation, document_of_code
from tests.reports.lint_page import codes_page
from tests.reports.publish import PAGE


def test_the_page_is_that_of_the_rules() -> None:
    assert PAGE.read_text(encoding="utf-8") == codes_page(), "run python -m tests.reports.publish"


def code_text(code: str, width: int, here: str = "", reason: str = "") -> str:
    rule = RULES[code]
    return document_text(document_of_code(CodeExplanation(rule, here or rule.severity, reason)), Style(width=width))


@pytest.mark.parametrize("code", RULES)
def test_every_code_has_a_page(code: str) -> None:
    rule = RULES[code]
    text = code_text(code, 10_000)
    for part in (rule.breaks, rule.why, rule.fix, rule.source, rule.title, code):
        assert part in text
    assert f"## {code}\n" in codes_page()
    assert [line for line in code_text(code, 80).splitlines() if len(line) > 80 and "https://" not in line] == []


def test_what_the_repository_says_of_it() -> None:
    text = code_text("L005", 200, "ignored", "no time travel")
    assert "warning, checked by validate, plan and lint; here ignored: no time travel" in text
