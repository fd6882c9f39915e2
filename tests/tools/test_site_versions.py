"""The folder that is published has every version, and leads to the newest release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.site_versions import publish


@pytest.fixture
def site(tmp_path: Path) -> Path:
    made = tmp_path / "site"
    made.mkdir()
    (made / "index.html").write_text("first")
    return made


def test_the_home_page_leads_to_the_newest_release_by_number_not_by_text(site: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    for version in ("0.9.0", "0.10.0", "dev"):
        publish(site, pages, version)
    assert [each["version"] for each in json.loads((pages / "versions.json").read_text())] == ["0.10.0", "0.9.0", "dev"]
    assert 'url=0.10.0/"' in (pages / "index.html").read_text()


def test_a_version_that_is_published_again_has_no_page_of_before(site: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    (site / "old.html").touch()
    publish(site, pages, "dev")
    (site / "old.html").unlink()
    publish(site, pages, "dev")
    assert not (pages / "dev" / "old.html").exists()


def test_only_a_release_is_called_latest(site: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    publish(site, pages, "dev")
    assert json.loads((pages / "versions.json").read_text()) == [{"version": "dev", "title": "dev", "aliases": []}]


@pytest.mark.parametrize("version", ["../0.1.0", "v0.1.0", "main", ""])
def test_a_name_that_is_not_a_version_is_refused(site: Path, tmp_path: Path, version: str) -> None:
    with pytest.raises(SystemExit, match="neither `dev` nor a release"):
        publish(site, tmp_path / "pages", version)
