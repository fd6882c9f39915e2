"""Selects the files of tablectl-guard: ``tablectl_guard`` and the modules of ``tablectl`` that writers need.

The modules are those of the contract ``writers`` in the pyproject.toml of tablectl, which keeps them closed under
imports. tablectl's own wheel leaves out the same files, so the two install side by side. No file is in both.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
IN_SDIST = (HERE / "tablectl").is_dir()
ROOT = HERE if IN_SDIST else HERE.parent.parent


def version() -> str:
    """The version of tablectl."""
    text = (ROOT / "tablectl" / "version.py").read_text(encoding="utf-8")
    return re.findall(r'__version__ = "(.+)"', text)[0]


def files(root: Path) -> list[Path]:
    """The files in a checkout, relative to its root, sorted."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (modules,) = (each["source_modules"] for each in contracts if each.get("id") == "writers")
    found = {Path("tablectl/py.typed"), Path("tablectl/__init__.py")}
    for module in modules:
        path = Path(*module.split("."))
        found |= {parent / "__init__.py" for parent in path.parents if parent.parts}
        found |= {each.relative_to(root) for each in (root / path).rglob("*.py")}
        if (root / path.with_suffix(".py")).is_file():
            found.add(path.with_suffix(".py"))
    return sorted(found)


class FilesHook(BuildHookInterface):  # type: ignore[type-arg, misc]
    """Adds the files to a wheel and to a distribution of the sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling. An editable installation uses the checkout as it is."""
        if version == "editable":
            return
        if IN_SDIST:
            chosen = [
                each.relative_to(ROOT) for name in ("tablectl", "tablectl_guard") for each in (ROOT / name).rglob("*")
            ]
        else:
            own = (ROOT / "tablectl_guard").rglob("*")
            chosen = [*files(ROOT), *(each.relative_to(ROOT) for each in own)]
        build_data["force_include"] |= {
            str(ROOT / each): str(each) for each in sorted(chosen) if (ROOT / each).is_file() and each.suffix != ".pyc"
        }
