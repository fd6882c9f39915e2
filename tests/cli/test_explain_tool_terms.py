"""``tablectl explain`` for the tool's own words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tablectl.model.tool_terms import find_tool_term, tool_terms
from tests.cli.conftest import Cli, Repository

ROOT = Path(__file__).parents[2]


def test_a_word_of_a_plan_and_its_old_spelling(cli: Cli, repo: Repository) -> None:
    result = cli("explain", "closed")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("blocking (also: closed)\n  The phase of statements")
    assert cli("explain", "Blocking").out == result.out
    assert result.out.endswith("  docs/window.md\n")


@pytest.mark.parametrize("fact", ["delta-2.2", "D37"])
def test_a_fact_has_its_page(cli: Cli, repo: Repository, fact: str) -> None:
    body = json.loads(cli("explain", fact, "--format", "json").out)
    assert body["word"] == fact
    assert body["page"].startswith("docs/reference/")


def test_every_page_exists() -> None:
    for name in (*tool_terms(), "delta-2.2", "D37"):
        word = find_tool_term(name)
        assert word is not None
        assert (ROOT / word.page.partition("#")[0]).is_file(), word.page
