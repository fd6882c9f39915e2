"""The site (``make docs``): its navigation has every page, no link leaves it, and questions of users are near."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import PAGES, ROOT, blocks

SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
README = ROOT / "README.md"

QUESTIONS = {
    "How do I stop an apply, and what is then half done?": ("exit-codes.md", "Press Ctrl-C once"),
    "What happens if CI dies in the middle?": ("exit-codes.md", "run the same job again"),
    "How do I change the partitioning of a table of 5 TB?": (
        "large-tables.md",
        "A new partitioning is one write behind",
    ),
    "How do I run it on Databricks?": ("databricks.md", "No statement was ever run on Databricks"),
    "How do I keep dbt from fighting it?": ("dbt.md", "tablectl lint --dbt"),
    "How do I keep Terraform from fighting it?": ("terraform.md", "ignore_changes"),
    "Which rights does it need?": ("rights.md", '"Action": "s3:GetObject"'),
    "Which of my jobs will fail, and when would fewer?": ("forecast.md", "## Which writers are expected"),
    "How do I protect a job that I cannot edit?": ("guards.md", "tablectl-guard run"),
    "How do I undo yesterday's apply?": ("undo.md", "tablectl undo"),
    "How do I adopt 3,000 tables without changing one?": ("adopt.md", "a plan of them is empty"),
}
"""A question of a user: the page that answers it, and words of the answer."""

LONG = {
    "README.md": "has a limit of its own",
    "benchmarks.md": "measurements, for contributors",
    "between.md": "one case after the other",
    "ci.md": "one workflow, and what it refuses",
    "commands.md": "generated",
    "conflicts.md": "generated",
    "databricks.md": "reference: facts by their ids",
    "exit-codes.md": "every way in which an apply ends",
    "delta.md": "reference: sections by their ids",
    "guards.md": "each kind of writer has a section",
    "integrations.md": "scripts that are run as printed",
    "lint.md": "generated",
    "many-tables.md": "order, first tables, one window, streams",
    "object-stores.md": "each store has a section",
    "plan-file.md": "what a file holds, field by field",
    "policies.md": "every key of a policy",
    "recipes.md": "a recipe is a section",
    "reports.md": "each format, and what each hides",
    "window.md": "the whole window",
}
"""Pages of more than two screens (160 lines), and why. A new page is shorter."""


def _named(entries: list[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else _named(value)


def _published() -> list[Path]:
    """The files of the site: what ``make docs`` copies."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(r"(?m)^PAGES := (.+)$", makefile)
    assert found is not None
    places = [ROOT / name for name in found[1].split()]
    return [each for place in places for each in (place.rglob("*") if place.is_dir() else [place]) if each.is_file()]


def _links(page: Path) -> set[Path]:
    """The files of this repository that a page links to."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    targets = [*re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", text), *re.findall(r'(?:src|srcset)="([^"]+)"', text)]
    return {(page.parent / each).resolve() for each in targets if "://" not in each}


def test_the_navigation_has_every_page_but_the_decisions_once() -> None:
    named = list(_named(SETTINGS["nav"]))
    pages = {each for each in PAGES if each.parent.name != "decisions" or each.name == "README.md"}
    assert len(named) == len(set(named))
    assert {str(each.relative_to(ROOT)) for each in pages} - set(named) == set()
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_navigation_is_by_task() -> None:
    assert [next(iter(each)) for each in SETTINGS["nav"]][:5] == ["Start", "Decide", "Apply", "Operate", "Look up"]


def test_every_link_of_the_site_leads_to_a_file_of_the_site() -> None:
    published = {each.resolve() for each in _published()}
    pages = [each for each in _published() if each.suffix == ".md"]
    folders = {each.parent for each in published}
    outside = {str(page.relative_to(ROOT)): each for page in pages for each in _links(page) - published - folders}
    assert outside == {}


def test_the_build_ends_at_a_link_that_leads_nowhere() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "zensical build --strict" in makefile
    assert SETTINGS["validation"] == {"invalid_links": True, "invalid_link_anchors": True}


def test_neither_tests_nor_the_product_need_the_generator() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "zensical" not in lock


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_of_a_user_is_answered_within_two_clicks_from_the_readme(question: str) -> None:
    name, words = QUESTIONS[question]
    page = ROOT / "docs" / name
    first = _links(README)
    second = {each for link in first if link.suffix == ".md" for each in _links(link)}
    assert page in first | second
    assert words in page.read_text(encoding="utf-8")


GENERATED = {"commands.md", "conflicts.md", "lint.md", "settings.md", "README.md"}
OWN = [each for each in (ROOT / "docs").glob("*.md") if each.name not in GENERATED]


@pytest.mark.parametrize("page", OWN, ids=lambda page: page.name)
def test_the_first_line_of_a_page_is_the_question_that_it_answers(page: Path) -> None:
    title, first = page.read_text(encoding="utf-8").split("\n")[0:3:2]
    assert re.fullmatch(r"# .+", title)
    assert re.match(r"(?:How|What|Where|Which|Who|Why|Do|In which)\b[^.]*\?", first), f"{page.name}: {first}"


def test_only_pages_with_a_reason_are_longer_than_two_screens() -> None:
    pages = [each for each in PAGES if each.parent.name != "decisions"]
    long = {each.name for each in pages if len(each.read_text(encoding="utf-8").splitlines()) > 160}
    assert long - set(LONG) == set()


def test_the_readme_has_at_most_110_lines_and_small_pictures() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 110
    pictures = sorted((ROOT / "docs" / "images").iterdir())
    assert {each.resolve() for each in pictures} <= _links(README)
    assert [each.name for each in pictures if each.stat().st_size > 150_000] == []


def test_the_first_result_of_the_readme_needs_neither_java_nor_spark() -> None:
    commands = [command for block in blocks(README) for command in block.commands]
    assert [each.split()[1] for each in commands][:3] == ["check", "init", "plan"]
