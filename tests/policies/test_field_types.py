"""Reading plain values by a tree of fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tablectl.model.errors import Problem
from tablectl.policies.field_types import FieldName, MapOf, Section, Text, Word, environment_variables, whole
from tablectl.policies.read_config import as_node
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.yaml_nodes import SourceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    size: int = 1
    level: str = "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    name: str = "x"
    place: str | None = None
    inner: Inner = field(default_factory=Inner)
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


OUTER = Section(
    make=Outer,
    keys={
        "name": Text(),
        "place": Text(parse=str.upper),
        "inner": Section(make=Inner, keys={"size": whole(1, 9), "level": Word(words=("low", "high"))}),
        "options": MapOf(of=MapOf(of=Text())),
    },
)


def read(values: Mapping[str, Any], **places: SourceFile) -> tuple[object, list[str]]:
    problems: list[Problem] = []
    positions = {tuple(name.split("_")): each for name, each in places.items()}
    node = as_node(values, positions, SourceFile("f", 1, 1))
    found = OUTER.read(node, FieldName(()), ValueReader(Variables(), "", "", problems, literal=True))
    return found, [f"{problem.line}: {problem.message}" for problem in problems]


def test_what_is_not_said_has_its_default() -> None:
    assert read({}) == (Outer(), [])
    assert read({"inner": {}}) == (Outer(), [])
    assert read({"place": None}) == (Outer(), [])


def test_what_is_said() -> None:
    values = {"place": "a", "inner": {"size": "+9", "level": "high"}, "options": {"s3": {"region": "eu", "x": ""}}}
    assert read(values) == (
        Outer(place="A", inner=Inner(size=9, level="high"), options={"s3": {"region": "eu", "x": ""}}),
        [],
    )


def test_everything_wrong_is_said_and_the_rest_is_read() -> None:
    values = {
        "name": None,
        "inner": {"size": "0", "level": "high"},
        "options": {"s3": "x", "gs": {"a": {}}},
        "nmae": "y",
    }
    found, said = read(values)
    assert found == Outer(inner=Inner(level="high"), options={"gs": {}})
    assert said == [
        "1: `name` has no value",
        '1: `inner.size` needs at least 1, not "0"',
        '1: `options.s3` takes a map, not "x"',
        "1: `options.gs.a` takes text, not a map",
        '1: unknown key "nmae"',
    ]


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ({"size": "10"}, '`inner.size` needs at most 9, not "10"'),
        ({"size": "9" * 50}, "`inner.size` needs at most 9"),
        ({"size": "-" + "9" * 50}, "`inner.size` needs at least 1"),
        ({"size": "1.0"}, '`inner.size` needs a whole number, not "1.0"'),
        ({"size": "１"}, "`inner.size` needs a whole number, not '\\uff11'"),
        ({"size": {}}, "`inner.size` takes a whole number, not a map"),
        ({"level": "mid"}, '"mid" is not a value of `inner.level`'),
        ({"level": None}, "`inner.level` takes one of low, high, not nothing"),
        (None, "`inner` takes a map, not nothing"),
    ],
)
def test_what_is_refused(inner: object, said: str) -> None:
    found, problems = read({"inner": inner})
    assert found == Outer()
    assert len(problems) == 1
    assert problems[0].startswith(f"1: {said}")


def test_a_problem_lies_at_the_innermost_place_known() -> None:
    _, said = read({"inner": {"size": "0"}, "nmae": ""}, inner=SourceFile("f", 3, 1), inner_size=SourceFile("f", 4, 1))
    assert [each[0] for each in said] == ["4", "1"]
    _, said = read({"inner": {"size": "0"}}, inner=SourceFile("f", 3, 1))
    assert [each[0] for each in said] == ["3"]


def test_single_values_have_variables() -> None:
    assert dict(environment_variables(OUTER)) == {
        "TABLECTL_NAME": ("name",),
        "TABLECTL_PLACE": ("place",),
        "TABLECTL_INNER_SIZE": ("inner", "size"),
        "TABLECTL_INNER_LEVEL": ("inner", "level"),
    }
