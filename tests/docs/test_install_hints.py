"""No page and no hint installs one of the two distributions by its name: that of an index would be a stranger's."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALLS = re.compile(r"\b(?:pip3?|pipx|uv|uvx|conda|poetry)\b[^\n`#]*(?:\b(?:install|add)|--from)\b([^\n`#]*)")
BY_NAME = re.compile(r"tablectl(?:-guard)?(?:\[[^\]]*\])?(?:[=<>~!@].*)?\Z")
WARNS = re.compile(r"[Nn]ever run `pip install tablectl`")
ENDINGS = (".md", ".py", ".yml", ".yaml", ".toml", ".j2", ".html", ".sh")


def found_in(text: str) -> Iterator[str]:
    """The places that install by name, and extras of such a name wherever they stand."""
    text = WARNS.sub("", text)
    for match in INSTALLS.finditer(text):
        words = (word.strip("\"',.;:()") for word in match[1].split())
        yield from (match[0] for word in words if BY_NAME.match(word))
    yield from re.findall(r"[^\n]*\btablectl(?:-guard)?\[[a-z][^\n]*", text)


def files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    named = (ROOT / name for name in listed.splitlines() if name.endswith(ENDINGS))
    return [each for each in named if each.is_file() and ROOT / "tests" not in each.parents]


def test_no_page_and_no_hint_installs_a_name_that_the_project_does_not_own() -> None:
    wrong = [f"{file.relative_to(ROOT)}: {each}" for file in files() for each in found_in(file.read_text())]
    assert wrong == []
    assert len(files()) > 300


@pytest.mark.parametrize(
    "text",
    [
        "`pip install 'tablectl[databricks]'` installs",
        "pip install tablectl",
        "pip install --upgrade tablectl==0.1.0",
        "python -m pip install tablectl-guard",
        "uvx --from tablectl tablectl plan",
        "uv tool install tablectl-guard",
        "install `tablectl[databricks]` there",
    ],
)
def test_the_search_finds_the_names(text: str) -> None:
    assert list(found_in(text))


@pytest.mark.parametrize(
    "text", ["pip install ./packages/tablectl-guard '.[spark]'", "pip install -r requirements/tablectl.txt"]
)
def test_the_search_lets_places_pass(text: str) -> None:
    assert list(found_in(text)) == []
