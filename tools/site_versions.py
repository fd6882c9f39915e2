"""Put a built site into the folder of its version, and list the versions for the theme's selector.

``python -m tools.site_versions build/site PAGES 0.1.0`` copies the site to ``PAGES/0.1.0``, writes
``PAGES/versions.json`` in the form that the theme reads (that of mike, https://github.com/jimporter/mike), and makes
``PAGES/index.html`` lead to the newest release. ``dev`` is the default branch.
docs/decisions/0037-site-generator.md says why this is not mike.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

_RELEASE = re.compile(r"\d+\.\d+\.\d+\Z")
_HOME = """<!doctype html>
<meta charset="utf-8">
<title>tablectl</title>
<meta http-equiv="refresh" content="0; url={version}/">
<link rel="canonical" href="{version}/">
<a href="{version}/">tablectl {version}</a>
"""


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def versions(pages: Path) -> list[str]:
    """The versions in a folder: releases, the newest first, then ``dev``."""
    names = [each.name for each in pages.iterdir() if each.is_dir()]
    releases = sorted((name for name in names if _RELEASE.match(name)), key=_number, reverse=True)
    return [*releases, *(name for name in names if name == "dev")]


def publish(site: Path, pages: Path, version: str) -> None:
    """Replace one version, and write the list and the home page again."""
    if version != "dev" and not _RELEASE.match(version):
        raise SystemExit(f"{version} is neither `dev` nor a release such as 0.1.0")
    pages.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(pages / version, ignore_errors=True)
    shutil.copytree(site, pages / version)
    found = versions(pages)
    listed = [
        {"version": name, "title": name, "aliases": ["latest"] if name == found[0] != "dev" else []} for name in found
    ]
    (pages / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    (pages / "index.html").write_text(_HOME.format(version=found[0]), encoding="utf-8")
    (pages / ".nojekyll").touch()  # GitHub would leave out folders that begin with an underscore


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
