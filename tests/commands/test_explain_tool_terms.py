"""``tablectl explain`` for the tool's own words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tablectl.insight.terms.facts import fact_ids
from tablectl.insight.terms.glossary import find_tool_term, tool_terms
from tablectl.lint_rules import RULES
from tablectl.reports.sarif import RULES as SARIF_RULES
from tests.commands.conftest import Cli, Repository
from tests.docs.publish_facts import FILE, page
from tests.docs.sources import FACTS, SECTIONS

ROOT = Path(__file__).parents[2]


def test_a_word_of_a_plan_and_its_old_spelling(cli: Cli, repo: Repository) -> None:
    result = cli("explain", "closed")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("blocking  (also: closed)\n  The phase of statements")
    assert cli("explain", "Blocking").out == result.out
    assert result.out.endswith("  docs/window.md\n")


def test_a_fact_is_printed_with_the_page_that_states_it(cli: Cli, repo: Repository) -> None:
    said = " ".join(cli("explain", "D37").out.split())
    assert said == (
        "D37 `REORG` that rewrites files to apply what deletion vectors record has exactly the isolation of "
        "OPTIMIZE: use the OPTIMIZE rows. https://docs.databricks.com/aws/en/optimizations/isolation-level "
        "docs/reference/databricks.md#D37"
    )
    body = json.loads(cli("explain", "DELTA-2.2", "--format", "json").out)
    assert body["id"] == "delta-2.2"
    assert body["source"].startswith("https://github.com/delta-io/delta/blob/v4.4.0/")
    assert body["page"] == "docs/reference/delta.md#delta-2.2"


def test_the_facts_are_those_of_the_reference_pages() -> None:
    assert FILE.read_text(encoding="utf-8") == page(), "run python -m tests.docs.publish_facts"
    assert set(FACTS) | set(SECTIONS) <= set(fact_ids())


@pytest.mark.parametrize(
    ("word", "hint"),
    [("D999", "did you mean D99?"), ("delta-" + "2.33", "did you mean delta-2.3?"), ("gaurd", "did you mean guard?")],
)
def test_an_unknown_word_is_answered_with_the_nearest_one(cli: Cli, repo: Repository, word: str, hint: str) -> None:
    result = cli("explain", word)
    assert result.code == 64
    assert hint in result.err


@pytest.mark.parametrize("word", ["x" * 100_000, "\x1b[2J" * 100, "gate" * 50])
def test_no_word_makes_the_answer_long(cli: Cli, repo: Repository, word: str) -> None:
    result = cli("explain", word)
    assert result.code == 64
    assert len(result.err) < 600
    assert "\x1b" not in result.err


@pytest.mark.parametrize("word", ["closed", "safe", "gate", "guard", "lease", "stale", "drain", "finding", "drift"])
def test_each_word_of_a_report_is_known(cli: Cli, repo: Repository, word: str) -> None:
    result = cli("explain", word)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-1].startswith("  docs/")


def test_each_finding_and_fact_is_known(cli: Cli, repo: Repository) -> None:
    for name in (*RULES, *fact_ids()[::20]):
        assert cli("explain", name).code == 0


def test_every_page_exists() -> None:
    for name in tool_terms():
        word = find_tool_term(name)
        assert word is not None
        assert (ROOT / word.page.partition("#")[0]).is_file(), word.page


def test_every_rule_of_a_sarif_file_can_be_explained() -> None:
    unknown = [rule for rule in SARIF_RULES if rule not in RULES and find_tool_term(rule) is None]
    assert unknown == []
