"""What pydantic refuses, in words with a position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from tablectl.policies.value_kinds import WHOLE, FileSchema, FileSection, Parsed, Words, inlined
from tablectl.policies.wrong_values import FileFacts, Keys, flow, problems_of
from tablectl.policies.yaml_nodes import SourceFile


@dataclass(frozen=True, kw_only=True)
class Inner(FileSection):
    size: Annotated[int, Field(ge=1, le=9), WHOLE] = 1
    level: Annotated[str, Words(("low", "high"))] = "low"


@dataclass(frozen=True, kw_only=True)
class Outer(FileSection):
    name: str = "x"
    place: Annotated[str, Parsed(str.upper)] | None = None
    inner: Inner = Inner()
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


OUTER = TypeAdapter(Outer)


def read(values: Mapping[str, Any], places: Mapping[Keys, SourceFile] | None = None) -> Outer | list[str]:
    def place(keys: Keys) -> SourceFile:
        known = places or {}
        found = (known[keys[:end]] for end in range(len(keys), 0, -1) if keys[:end] in known)
        return next(found, SourceFile("f", 1, 1))

    try:
        return OUTER.validate_python(values)
    except ValidationError as error:
        schema = inlined(OUTER.json_schema(schema_generator=FileSchema))
        facts = FileFacts(schema=lambda: schema, place=place, key_place=place)
        return [f"{each.line}: {each.message}" for each in problems_of(error, facts)]


def test_what_is_not_said_has_its_default() -> None:
    assert read({}) == read({"inner": {}}) == read({"place": None}) == Outer()


def test_what_is_said() -> None:
    values = {"place": "a", "inner": {"size": "+9", "level": "high"}, "options": {"s3": {"region": "eu", "x": ""}}}
    assert read(values) == Outer(
        place="A", inner=Inner(size=9, level="high"), options={"s3": {"region": "eu", "x": ""}}
    )


def test_everything_wrong_is_said() -> None:
    values = {
        "name": None,
        "inner": {"size": "0", "level": "high"},
        "options": {"s3": "x", "gs": {"a": {}}},
        "nmae": "y",
    }
    assert read(values) == [
        "1: `name` has no value",
        '1: `inner.size` needs at least 1, not "0"',
        "1: `options.s3` takes a map, not text",
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
        (None, "`inner` takes a map with `size` and `level`, not nothing"),
    ],
)
def test_what_is_refused(inner: object, said: str) -> None:
    (problem,) = [each for each in [read({"inner": inner})] if isinstance(each, list)]
    assert len(problem) == 1
    assert problem[0].startswith(f"1: {said}")


def test_a_problem_lies_at_the_innermost_place_known() -> None:
    places = {("inner",): SourceFile("f", 3, 1), ("inner", "size"): SourceFile("f", 4, 1)}
    both = read({"inner": {"size": "0"}, "nmae": ""}, places)
    assert isinstance(both, list)
    assert [each[0] for each in both] == ["4", "1"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"spark": "4.0"}, '{spark: "4.0"}'),
        (["a", "b c"], "[a, b c]"),
        ("30%", "30%"),
        ("a: b", '"a: b"'),
        (True, "true"),
    ],
)
def test_an_example_is_yaml_on_one_line(value: object, text: str) -> None:
    assert flow(value) == text
