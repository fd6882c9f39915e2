"""``tablectl explain`` for the tool's own words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tablectl.attributes.policy import VALUE_TYPES
from tablectl.insight.explain_word import explained_words, fact_ids, rows_about
from tablectl.lint_rules import RULES
from tablectl.policies.config import config_schema
from tablectl.reports.sarif import RULES as SARIF_RULES
from tests.commands.conftest import Cli, Repository
from tests.docs.publish_facts import FILE, page
from tests.docs.publish_settings import rows as settings
from tests.docs.sources import FACTS, SECTIONS

ROOT = Path(__file__).parents[2]


def test_a_word_of_a_plan_and_its_old_spelling(cli: Cli, repo: Repository) -> None:
    result = cli("explain", "closed")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("blocking  (also: closed)\n  the phase of statements")
    assert cli("explain", "Blocking").out == result.out
    assert result.out.endswith("  docs/window.md#phases-and-gates\n")


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


def test_every_page_that_a_row_names_exists() -> None:
    for name in explained_words():
        for row in rows_about(name):
            for cell in (row.page, *(text for _, text in row.cells if text.startswith("docs/"))):
                assert (ROOT / cell.split("#")[0].split(",")[0]).is_file(), (name, cell)


def test_every_rule_of_a_sarif_file_can_be_explained() -> None:
    assert [rule for rule in SARIF_RULES if rule not in RULES and not rows_about(rule)] == []


@pytest.mark.parametrize("word", [*(set(VALUE_TYPES) - {"properties"}), "upkeep", "locked", "allow", "max_bytes"])
def test_every_key_of_a_policy_is_explained(word: str) -> None:
    assert [row.page for row in rows_about(word)][-1] == "docs/policies.md"


@pytest.mark.parametrize(
    ("word", "rows"),
    [
        ("upkeep.optimize", 3),
        ("upkeep.vacuum", 1),
        ("upkeep.vacuum.every", 1),
        ("vacuum", 1),
        ("target", 1),
        ("every", 2),
    ],
)
def test_every_key_of_upkeep_is_explained(word: str, rows: int) -> None:
    assert [row.page for row in rows_about(word)] == ["docs/upkeep.md"] * rows


def test_the_codes_of_advice_are_explained(cli: Cli, repo: Repository) -> None:
    advice = ROOT / "tablectl" / "insight" / "advice"
    codes = {code for file in advice.glob("*.py") for code in re.findall(r'"(A[0-9]{2})"', file.read_text())}
    assert "A14" in codes
    assert {code for code in codes if [row.page for row in rows_about(code)] != ["docs/advise.md"]} == set()
    said = cli("explain", "a12").flat
    assert said.startswith("A12 drop features that the table supports and does not use, if clients gain access by it")
    assert said.endswith("`deletion_vectors: dropped` docs/advise.md")


def test_every_setting_is_explained_and_so_is_a_group_of_them(cli: Cli, repo: Repository) -> None:
    for keys, _, _ in settings(config_schema()):
        assert rows_about(".".join(keys)), keys
    allow = cli("explain", "window.allow").out
    assert "  window.allow[].cron" in allow
    assert allow.endswith("  docs/generated/settings.md\n")


def test_a_word_that_has_no_row_leads_to_the_pages_about_it(cli: Cli, repo: Repository) -> None:
    result = cli("explain", "terabytes")
    assert result.code == 64
    assert "`tablectl explain docs/large-tables.md`" in result.err
