"""How tests replace parts of the code."""

from __future__ import annotations

import re
from pathlib import Path

_DOTTED = re.compile(r"(?:setattr|patch)\(\s*f?[\"']tablectl\.")
"""A name in a text: a rename does not find it, and mypy does not check it."""


def test_no_part_of_the_code_is_replaced_by_its_dotted_name() -> None:
    files = [file for file in Path(__file__).parent.rglob("*.py") if _DOTTED.search(file.read_text(encoding="utf-8"))]
    assert not files, "replace it on the imported module, or better pass a record or a parameter"


def test_a_dotted_name_is_found() -> None:
    assert _DOTTED.search("monkeypatch.setattr(" + '"tablectl.applying.retry.PAUSES", (0.1,))')
