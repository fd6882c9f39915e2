"""docs/lint-rules.md: its package is installed as written, and finds what the page shows."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablectl.policies.own_rules import own_rules
from tests.commands.conftest import Cli, Repository, cli, repo
from tests.docs.pages import ROOT, blocks

__all__ = ["cli", "repo"]

PAGE = ROOT / "docs/lint-rules.md"


def _install(folder: Path, name: str, rules: dict[str, str]) -> None:
    """What an installer leaves of the entry points of a package."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{code} = {place}\n" for code, place in rules.items())
    (info / "entry_points.txt").write_text(f"[tablectl.lint_rules]\n{lines}")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    own_rules.cache_clear()
    yield folder
    own_rules.cache_clear()


def _install_the_example(folder: Path) -> None:
    found = {
        each.text.splitlines()[0].removeprefix("# "): each.text for each in blocks(PAGE) if each.text.startswith("# ")
    }
    (folder / "acme_rules.py").write_text(found["acme_rules.py"])
    project = tomllib.loads(found["pyproject.toml"])["project"]
    _install(folder, project["name"], project["entry-points"]["tablectl.lint_rules"])


def test_the_example_finds_what_the_page_shows(repo: Repository, cli: Cli, packages: Path) -> None:
    _install_the_example(packages)
    repo.table("clicks", partitions=["country"], columns={"id": "long", "country": "string"})
    repo.policies({"clicks": "{isolation: Serializable}"})
    ran = cli("lint")
    shown = next(each.text for each in blocks(PAGE) if "ACME001: its policy" in each.text)
    assert shown.replace("/lake/clicks", f"{repo.lake}/clicks") in ran.out
    assert "Every table has an owner" in cli("explain", "ACME001").out
    assert '"ruleId": "ACME001"' in cli("lint", "--format", "sarif").out


def test_the_configuration_can_make_it_an_error(repo: Repository, cli: Cli, packages: Path) -> None:
    _install_the_example(packages)
    repo.table("clicks")
    repo.policies({"clicks": "{properties: {a: b}}"})
    (repo.root / "tablectl.yaml").write_text("lint: {ACME001: error}\n")
    assert cli("plan", "--out", "p.json").code == 3
    assert cli("show", "p.json").code == 0


def test_a_code_that_no_package_has_is_an_error(repo: Repository, cli: Cli, packages: Path) -> None:
    repo.policies({"clicks": "{}"})
    (repo.root / "tablectl.yaml").write_text("lint: {ACME001: error}\n")
    ran = cli("validate")
    assert ran.code == 1
    assert "is the code of no lint rule that is installed here" in ran.err


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"ACME001": "no_such_module:rule"}, "the rule ACME001 of broken cannot be loaded: ModuleNotFoundError"),
        ({"ACME001": "json:__name__"}, "the rule ACME001 of broken cannot be loaded: json:__name__ is not a function"),
        ({"acme": "json:dumps"}, "the rule acme of broken cannot be loaded: its name is not a code, such as ACME001"),
        ({"ACME001": "json:dumps"}, "the rule ACME001 of broken failed: TypeError"),
    ],
)
def test_a_broken_package_costs_no_plan(
    repo: Repository, cli: Cli, packages: Path, rules: dict[str, str], why: str
) -> None:
    _install(packages, "broken", rules)
    repo.table("clicks")
    repo.policies({"clicks": "{properties: {a: b}}"})
    ran = cli("plan")
    assert (ran.code, why in ran.flat) == (0, True), ran.out


def test_two_packages_with_one_code_are_told(repo: Repository, cli: Cli, packages: Path) -> None:
    _install(packages, "one", {"ACME001": "json:dumps"})
    _install(packages, "two", {"ACME001": "json:loads"})
    (rule,) = own_rules()
    assert rule.trouble == "two packages have a rule of this code"
