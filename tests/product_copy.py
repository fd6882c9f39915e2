"""A copy of the product with one thing added: what follows from it without a further edit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import tablectl

_SOURCE = Path(tablectl.__file__).parent


class ProductCopy:
    """``tablectl`` in a folder of its own."""

    def __init__(self, folder: Path, *, with_tests: bool = False) -> None:
        self.folder = folder
        self._copy(_SOURCE)
        if with_tests:
            self._copy(_SOURCE.parent / "tests", "golden")

    def _copy(self, source: Path, *left_out: str) -> None:
        ignore = shutil.ignore_patterns("__pycache__", *left_out)
        shutil.copytree(source, self.folder / source.name, ignore=ignore)

    def add(self, file: str, text: str) -> None:
        """A new file, by its path below ``tablectl/``."""
        (self.folder / "tablectl" / file).write_text(text, encoding="utf-8")

    def edit(self, file: str, before: str, after: str) -> None:
        """Replace a text that the file holds once."""
        path = self.folder / "tablectl" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{file} has {text.count(before)} times {before!r}"
        path.write_text(text.replace(before, after), encoding="utf-8")

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """A script that imports the copy, in an empty folder and without variables of tablectl."""
        here = self.folder / "here"
        here.mkdir()
        environ = {name: value for name, value in os.environ.items() if not name.startswith("TABLECTL_")}
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=here,
            env={**environ, "PYTHONPATH": str(self.folder), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done
