"""The changelog and the files that it is made of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.changelog import ROOT, main, problems

CHANGELOG = """# Changelog

Since the last release: changelog.d.

## 0.1.0 - 2026-11-23

The first release.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one release."""
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "README.md").write_text("How to.\n", encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    return tmp_path


def change(project: Path, name: str, text: str = "`plan` says why. It is short.\n") -> None:
    (project / "changelog.d" / name).write_text(text, encoding="utf-8")


def test_the_changes_of_this_repository_follow_the_rules() -> None:
    assert problems(ROOT / "changelog.d") == []


def test_each_release_has_a_version_and_a_date_and_the_newest_is_first() -> None:
    titles = re.findall(r"(?m)^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    found = [re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", each) for each in titles]
    assert found
    assert all(found), titles
    versions = [tuple(int(part) for part in each[1].split(".")) for each in found if each]
    assert versions == sorted(versions, reverse=True)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("plan.md", "It is so.", "the name must be"),
        ("plan.broken.md", "It is so.", "the name must be"),
        ("Plan_File.added.md", "It is so.", "the name must be"),
        ("plan.added.md", "", "1 to 3 sentences"),
        ("plan.added.md", "A plan", "1 to 3 sentences"),
        ("plan.added.md", "One. Two. Three. Four.", "1 to 3 sentences"),
        ("plan.added.md", "- It is so.", "no heading, no list"),
    ],
)
def test_a_file_that_breaks_a_rule_is_named(project: Path, name: str, text: str, problem: str) -> None:
    change(project, name, text)
    (found,) = problems(project / "changelog.d")
    assert found.startswith(f"{name}: ")
    assert problem in found


def test_full_stops_in_code_and_numbers_end_no_sentence(project: Path) -> None:
    change(project, "spark.changed.md", "Delta 4.4 is the default. `a. b. c. d.` is a name. So it is.")
    assert problems(project / "changelog.d") == []


def test_the_next_section_has_the_changes_by_kind(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(project, "z.added.md", "Z\nis new.")
    change(project, "a.removed.md", "A is gone: use Z.")
    change(project, "b.added.md", "B is new.")
    assert main([], project) == 0
    assert capsys.readouterr().out == (
        "## Unreleased\n\n### Added\n\n- B is new.\n- Z is new.\n\n### Removed\n\n- A is gone: use Z.\n"
    )


def test_a_release_moves_the_changes_above_the_older_releases(project: Path) -> None:
    change(project, "b.added.md", "B is new.")
    assert main(["release", "0.2.0", "2026-12-01"], project) == 0
    assert (project / "CHANGELOG.md").read_text(encoding="utf-8") == CHANGELOG.replace(
        "## 0.1.0", "## 0.2.0 - 2026-12-01\n\n### Added\n\n- B is new.\n\n## 0.1.0"
    )
    assert [each.name for each in (project / "changelog.d").iterdir()] == ["README.md"]


def test_a_release_with_a_wrong_file_changes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(project, "b.md", "B is new.")
    assert main(["release", "0.2.0", "2026-12-01"], project) == 1
    assert "b.md" in capsys.readouterr().err
    assert (project / "CHANGELOG.md").read_text(encoding="utf-8") == CHANGELOG


def test_a_link_leads_to_the_same_page_from_the_changelog(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(project, "why.added.md", "`plan` says why ([reports](../docs/reports.md)).\n")
    assert main([], project) == 0
    assert "([reports](docs/reports.md))" in capsys.readouterr().out
