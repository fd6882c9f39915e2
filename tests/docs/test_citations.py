"""Every citation in code, docs and output leads to a file, section or fact that a reader can open."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, anchors
from tests.docs.sources import FACTS, SECTIONS

_REFERENCE = ROOT / "docs" / "reference"
_TEXT = {".py", ".md", ".txt", ".json", ".sarif", ".j2", ".yml", ".yaml", ".toml"}
_UNOPENABLE = re.compile(r"\bdelta\.md \d|\bDESIGN\b|\bwindow\.md \d|databricks-concurrency|\.\./shared/reference")
_PAGE = re.compile(r"\bdocs/[\w/-]+\.md(?:#[\w.-]+)?")
_HEADING = re.compile(r'\b(docs/[\w/-]+\.md), "([^"\n]+)"')
_SECTION = re.compile(r"\bdelta-\d+(?:\.\d+)?\b(?!\.\d)")


def _files() -> list[Path]:
    """The text files of the repository: what git tracks, else what lies there."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.splitlines() or [
        str(each.relative_to(ROOT)) for each in ROOT.rglob("*") if ".venv" not in each.parts
    ]
    files = [ROOT / each for each in names if Path(each).suffix in _TEXT]
    return [each for each in files if each.is_file() and each != Path(__file__)]


FILES = _files()


def _found(pattern: re.Pattern[str]) -> dict[str, str]:
    """Each citation, and one file that has it."""
    return {cited: str(each.relative_to(ROOT)) for each in FILES for cited in pattern.findall(each.read_text("utf-8"))}


def test_nothing_cites_a_file_that_is_not_in_the_repository() -> None:
    assert _found(_UNOPENABLE) == {}


def test_every_page_that_is_cited_exists_with_its_anchor() -> None:
    for cited, file in _found(_PAGE).items():
        name, _, anchor = cited.partition("#")
        assert (ROOT / name).is_file(), f"{file} cites {cited}"
        assert not anchor or anchor in anchors(ROOT / name), f"{file} cites {cited}"


def test_every_heading_that_is_cited_by_its_words_exists() -> None:
    for each in FILES:
        for name, heading in _HEADING.findall(each.read_text("utf-8")):
            headings = re.findall(r"(?m)^#+ (.+)$", (ROOT / name).read_text("utf-8"))
            assert heading in headings, f"{each.relative_to(ROOT)} cites {name}, {heading!r}"


def test_every_section_that_is_cited_exists() -> None:
    known = anchors(_REFERENCE / "delta.md")
    cited = _found(_SECTION)
    assert len(cited) > 20
    for section, file in cited.items() - {("delta-9.9", "tests/insight/test_glossary.py")}:
        assert section in known, f"{file} cites {section}"


@pytest.mark.parametrize(("names", "page"), [(SECTIONS, "delta.md"), (FACTS, "databricks.md")])
def test_what_explain_knows_stands_in_the_reference(names: dict[str, object], page: str) -> None:
    assert set(names) <= anchors(_REFERENCE / page)


def test_explain_knows_every_fact_that_the_product_names() -> None:
    product = [each for each in FILES if each.is_relative_to(ROOT / "tablectl") and each.suffix == ".py"]
    facts = {fact for each in product for fact in re.findall(r"\bD\d{1,2}\b", each.read_text("utf-8"))}
    assert facts - set(FACTS) == set()


def test_explain_knows_every_section_that_the_product_names() -> None:
    product = [each for each in FILES if each.is_relative_to(ROOT / "tablectl") and each.suffix == ".py"]
    sections = {section for each in product for section in _SECTION.findall(each.read_text("utf-8"))}
    assert sections - set(SECTIONS) == set()
