"""The configuration as plain values with places."""

from __future__ import annotations

from pathlib import Path

from tablectl.model.errors import Problem
from tablectl.policies.read_config import read_values
from tablectl.policies.wrong_values import key_text
from tablectl.policies.yaml_nodes import SourceFile


def test_values_and_places(tmp_path: Path) -> None:
    path, problems = tmp_path / "c.yaml", list[Problem]()
    path.write_text("a: 1\nb:\n  c: true\n  d: ~\n")
    values, places = read_values(path, problems)
    assert values == {"a": "1", "b": {"c": "true", "d": None}}
    assert places[("b", "d")] == SourceFile(str(path), 4, 3)
    assert problems == []


def test_names_of_settings_stay_on_one_line() -> None:
    assert key_text(("engine", "dialect")) == "`engine.dialect`"
    assert key_text(("engine", "a\nb")) == r"'engine.a\nb'"
