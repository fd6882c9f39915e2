"""What ``make size`` counts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tools.size import BEFORE, FEATURES, ROOT, Size, feature_of, figures, page, product_files, report, size_of, sizes

SOURCE = '''"""A module.

Of two paragraphs.
"""

import os  # an import
from typing import (
    Any,
)

# A comment.
LIMIT = 3
"""The limit."""


def run(path: Any) -> str:
    """What it does."""
    text = """two
lines"""  # code with a comment

    return os.fspath(path) + text
'''


def put(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_code_is_what_is_neither_blank_nor_comment_nor_docstring_nor_import() -> None:
    assert size_of(SOURCE) == Size(files=1, lines=21, code=5)


def test_lines_are_those_that_wc_counts() -> None:
    sample = product_files(ROOT)[::20]
    counted = subprocess.run(["wc", "-l", *sample], capture_output=True, text=True, check=True).stdout
    by_wc = [int(line.split()[0]) for line in counted.splitlines()[:-1]]
    assert [size_of(each.read_text(encoding="utf-8")).lines for each in sample] == by_wc


def test_packages_and_features_add_up_to_the_whole() -> None:
    found = report(sizes(ROOT))
    (whole,) = found["all"].values()
    assert sum(found["package"].values(), Size()) == whole
    assert sum(found["feature"].values(), Size()) == whole


def test_a_file_belongs_to_the_first_feature_with_a_pattern_for_it() -> None:
    assert feature_of("insight/advice/advise.py") == "advice"
    assert feature_of("tablectl_guard/launcher.py") == "guards for writers"
    assert feature_of("anything.py") == list(FEATURES)[-1]


def test_every_feature_has_files() -> None:
    assert list(report(sizes(ROOT))["feature"]) == list(FEATURES)


def test_the_page_compares_each_figure_with_the_one_before(tmp_path: Path) -> None:
    put(tmp_path / "old", "tablectl/planning/order.py", SOURCE)
    put(tmp_path / "new", "tablectl/planning/order.py", "X = 1\n")
    put(tmp_path / "new", "tablectl/log/reader.py", SOURCE)
    text = page(figures(tmp_path / "new"), figures(tmp_path / "old"))
    assert "| the product | 1 → 2 | 21 → 22 | 5 → 6 |" in text
    assert "| planning/ | 1 → 1 | 21 → 1 | 5 → 1 |" in text
    assert "| log/ | 0 → 1 | 0 → 21 | 0 → 5 |" in text


def test_the_figures_before_are_those_of_the_same_features() -> None:
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    assert list(before["feature"]) == list(FEATURES)
    assert before["all"]["the product"] == {"files": 469, "lines": 64352, "code": 39011}
