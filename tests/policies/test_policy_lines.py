"""Which lines ask for what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from tablectl.commands.project import Project
from tablectl.delta.names import parse_table
from tablectl.policies import effective_policy
from tablectl.policies.config import Config
from tablectl.policies.declared_tables import Specs
from tablectl.policies.effective_policy import policy_lines_of

POLICIES = """version: 1
defaults:
  isolation: Serializable
tables:
  lake.sales.orders:
    properties:
      owner.team: web
  lake.sales.located:
    location: /lake/located
    deletion_vectors: enabled
  "lake.logs.*":
    clustering: [day]
"""


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Specs:
    monkeypatch.chdir(tmp_path)
    Path("policies").mkdir()
    Path("policies/a.yaml").write_text(POLICIES)
    return Project(Config(), environ={}).policies()


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        ("lake.sales.orders", {"": 5, "isolation": 3, "properties.owner.team": 7}),
        ("lake.logs.web", {"": 11, "isolation": 3, "clustering": 12}),
        ("delta.`/lake/located`", {"": 8, "isolation": 3, "deletion_vectors": 10, "location": 9}),
    ],
)
def test_lines_of_a_table(specs: Specs, table: str, lines: dict[str, int]) -> None:
    found = policy_lines_of(specs, [table])[table]
    assert {change: source.line for change, source in found.items()} == lines
    assert {source.file for source in found.values()} == {"policies/a.yaml"}


@pytest.mark.parametrize("table", ["lake.sales.other", "no table `at all"])
def test_no_one_speaks_for_it(specs: Specs, table: str) -> None:
    assert policy_lines_of(specs, [table]) == {}


def test_the_tables_are_not_looked_through_for_each_of_them(
    read: Callable[..., Specs], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``check`` and ``advise`` look up each table of the policies."""
    entries = "".join(
        f"  a.t{number}: {{location: /lake/t{number}, isolation: Serializable}}\n" for number in range(50)
    )
    specs = read(f"version: 1\ntables:\n{entries}")
    look_at = Mock(side_effect=lambda place: place)
    monkeypatch.setattr(effective_policy, "canonical_location", look_at)
    find = effective_policy.spec_finder(specs)
    assert [find(spec.name) for spec in specs.tables] == [*specs.tables]
    by_place = find(parse_table("delta.`/lake/t7`"))
    assert by_place is not None
    assert by_place.name.text == "a.t7"
    assert look_at.call_count == 50
