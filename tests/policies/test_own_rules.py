"""Which environments may have lint rules of packages. The search for entry points is made only there."""

from __future__ import annotations

import sys
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from tablectl.policies.own_rules import own_rule_codes

RULES = "[tablectl.lint_rules]\nACME001 = acme:check\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place of packages."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "absent")])
    return tmp_path


def install(folder: Path, entry_points: str | None = RULES) -> None:
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (folder / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    if entry_points is not None:
        (folder / "entry_points.txt").write_text(entry_points)


@pytest.mark.parametrize("name", ["acme-1.0.dist-info", "acme.egg-info", "acme-1.0.egg/EGG-INFO"])
def test_rules_of_an_installed_package_are_found(place: Path, name: str) -> None:
    if name.endswith("EGG-INFO"):
        sys.path.append(str(place / "acme-1.0.egg"))
    install(place / name)
    assert own_rule_codes() == ("ACME001",)


def test_packages_without_rules_have_none(place: Path) -> None:
    install(place / "acme-1.0.dist-info", "[console_scripts]\nacme = acme:main\n")
    install(place / "other-1.0.dist-info", None)
    (place / "file.egg-info").write_text("Name: old")
    assert own_rule_codes() == ()


def test_rules_in_an_archive_are_found(place: Path) -> None:
    archive = place / "acme.zip"
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("acme-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        files.writestr("acme-1.0.dist-info/entry_points.txt", RULES)
    sys.path.append(str(archive))
    assert own_rule_codes() == ("ACME001",)


def test_rules_that_a_finder_of_its_own_knows_are_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(place / "elsewhere" / "acme-1.0.dist-info")

    class Finder:
        def find_spec(self, *_: object) -> None:
            """Finds no module."""

        def find_distributions(self, _context: object) -> list[Distribution]:
            return [Distribution.at(place / "elsewhere" / "acme-1.0.dist-info")]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert own_rule_codes() == ("ACME001",)
