"""The pages of the codes of lint."""

from __future__ import annotations

import pytest

from tablectl.lint_rules import RULES
from tablectl.reports.lint_page_text import code_json, code_text, codes_page
from tablectl.reports.style import Style
from tests.reports.publish import PAGE


def test_the_page_is_that_of_the_rules() -> None:
    assert PAGE.read_text(encoding="utf-8") == codes_page(), "run python -m tests.reports.publish"


@pytest.mark.parametrize("code", RULES)
def test_every_code_has_a_page(code: str) -> None:
    rule = RULES[code]
    text = code_text(rule, rule.severity, "", Style(width=10_000))
    for part in (rule.breaks, rule.why, rule.fix, rule.source, rule.title, code):
        assert part in text
    assert f"## {code}\n" in codes_page()
    assert all(len(line) <= 80 for line in code_text(rule, rule.severity, "", Style(width=80)).splitlines())


def test_what_the_repository_says_of_it() -> None:
    text = code_text(RULES["L005"], "ignored", "no time travel", Style(width=200))
    assert "warning, checked by validate, plan and lint; here ignored: no time travel" in text
    assert code_json(RULES["L005"], "ignored", "no time travel")["here"] == "ignored"
