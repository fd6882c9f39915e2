"""``docs/architecture.md`` shows the layers that import-linter checks, every package, and only files that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = ROOT / "tablectl"
_FILE = re.compile(r"`((?:[\w.]+/)*\w+\.(?:py|json|toml|yml|md))`")


def _contract_layers() -> list[str]:
    """The layers of import-linter, highest first, without the name of the package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = [each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    assert len(found) == 1
    return [str(line).replace("tablectl.", "") for line in found[0]]


def _table_rows() -> list[str]:
    """The first cell of each row of the package table: ``model/``, ``files.py``."""
    return re.findall(r"(?m)^\| `([\w.]+/?)` \|", PAGE.read_text(encoding="utf-8"))


def _is_somewhere(cited: str) -> bool:
    """Whether a file of that path, or of that end of a path, is in the repository."""
    folders = (ROOT, PACKAGE, ROOT / "docs")
    return any((folder / cited).exists() for folder in folders) or any(
        True for folder in (PACKAGE, ROOT / "tests") for _ in folder.rglob(cited)
    )


def test_the_picture_shows_the_layers_of_the_import_contract() -> None:
    pictures = [block.text.splitlines() for block in blocks(PAGE) if block.language == "layers"]
    assert pictures == [_contract_layers()]


def test_the_page_is_short_enough_to_be_read_at_once() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 120


def test_each_step_of_the_pipelines_names_packages_of_the_table() -> None:
    steps = re.findall(r"(?m)^\| \d+ \| .* \| (.+) \|$", PAGE.read_text(encoding="utf-8"))
    named = {each.split("/")[0].removesuffix(".py") for step in steps for each in re.findall(r"`([\w./]+)`", step)}
    assert len(steps) > 12
    assert named <= {each.removesuffix("/").removesuffix(".py") for each in _table_rows()}


def test_the_table_has_a_row_for_every_package_and_layer() -> None:
    packages = {f"{each.name}/" for each in PACKAGE.iterdir() if (each / "__init__.py").is_file()}
    modules = {f"{name}.py" for line in _contract_layers() for name in line.split(" | ")} - {
        f"{each.removesuffix('/')}.py" for each in packages
    }
    assert sorted(_table_rows()) == sorted(packages | modules)


@pytest.mark.parametrize(
    "page", ["docs/architecture.md", "CONTRIBUTING.md", "tests/README.md", "docs/glossary.md"], ids=str
)
def test_every_file_that_a_page_for_contributors_names_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    cited = set(_FILE.findall(text))
    assert [each for each in sorted(cited) if not _is_somewhere(each)] == []


def test_a_file_that_does_not_exist_is_not_found() -> None:
    assert not _is_somewhere("planning/rules.py")
    assert _is_somewhere(str(Path("planning") / "diff.py"))
