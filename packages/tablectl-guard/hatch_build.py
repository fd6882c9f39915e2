"""Selects the files of tablectl-guard: ``tablectl_guard`` and the modules of ``tablectl`` that writers need.

They are ``tablectl.writers`` and what it imports, found by reading the imports, so that they are closed. tablectl's own
wheel leaves out the same files, so the two install side by side. No file is in both.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent
IN_SDIST = (HERE / "tablectl").is_dir()
ROOT = HERE if IN_SDIST else HERE.parent.parent


def version() -> str:
    """The version of tablectl."""
    text = (ROOT / "tablectl" / "version.py").read_text(encoding="utf-8")
    return re.findall(r'__version__ = "(.+)"', text)[0]


def files(root: Path) -> list[Path]:
    """The files of ``tablectl`` in a checkout, relative to its root, sorted."""
    todo = [each for name in ("tablectl/writers", "tablectl_guard") for each in (root / name).rglob("*.py")]
    found = {root / "tablectl" / "py.typed"}
    while todo:
        file = todo.pop()
        if file not in found:
            parents = [each / "__init__.py" for each in file.parents if each != root and each.is_relative_to(root)]
            found |= {file, *filter(Path.is_file, parents)}
            todo += _imported(root, file)
    return sorted(each.relative_to(root) for each in found if each.is_relative_to(root / "tablectl"))


def _imported(root: Path, file: Path) -> Iterator[Path]:
    """The files that a module imports when it runs, which those for type checkers alone are not."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    unused = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        names = []
        if id(node) not in unused and isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif id(node) not in unused and isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        for name in names:
            place = root.joinpath(*name.split("."))
            yield from filter(Path.is_file, (place.with_suffix(".py"), place / "__init__.py"))


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
