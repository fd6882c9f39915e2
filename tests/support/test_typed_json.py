"""Records as JSON and back: nothing is guessed, nothing coerced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import computed_field

from tablectl.support.json_text import write_json
from tablectl.support.typed_json import Omitted, Unwritten, json_form, read_record, record_schema


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    size: int
    colour: Colour = Colour.RED

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"size: {self.size} is impossible")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    name: str
    kind: Literal["", "new"] = ""
    value: str | tuple[str, ...] | None = None
    parts: tuple[Part, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    wide: bool = False
    weight: float = 1.0
    at: datetime | None = None


WHOLES = st.builds(
    Whole,
    name=st.text(),
    kind=st.sampled_from(["", "new"]),
    value=st.none() | st.text() | st.lists(st.text(), max_size=3).map(tuple),
    parts=st.lists(st.builds(Part, size=st.integers(0, 2**70), colour=st.sampled_from(Colour)), max_size=3).map(tuple),
    pairs=st.lists(st.tuples(st.text(), st.text()), max_size=2).map(tuple),
    wide=st.booleans(),
    weight=st.floats(allow_nan=False, allow_infinity=False),
    at=st.none() | st.datetimes(timezones=st.just(UTC)),
)


@settings(deadline=None)  # the first reading loads pydantic
@given(WHOLES)
def test_there_and_back(whole: Whole) -> None:
    assert read_record(Whole, json.dumps(json_form(whole))) == whole


def test_how_it_is_written() -> None:
    whole = Whole(name="a", parts=(Part(size=1),), at=datetime(2026, 8, 22, 10, tzinfo=UTC))
    assert json.loads(json.dumps(json_form(whole))) == {
        "name": "a",
        "kind": "",
        "value": None,
        "parts": [{"size": 1, "colour": "red"}],
        "pairs": [],
        "wide": False,
        "weight": 1.0,
        "at": "2026-08-22T10:00:00Z",
    }


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "name: "),
        ({"name": 1}, "name: "),
        ({"name": "a", "more": 1}, "more: "),
        ({"name": "a", "kind": "old"}, "kind: "),
        ({"name": "a", "value": ["x", 1]}, "value."),
        ({"name": "a", "wide": 1}, "wide: "),
        ({"name": "a", "wide": "true"}, "wide: "),
        ({"name": "a", "weight": "1"}, "weight: "),
        ({"name": "a", "parts": {}}, "parts: "),
        ({"name": "a", "parts": [{"size": True}]}, "parts.0.size: "),
        ({"name": "a", "parts": [{"size": "1"}]}, "parts.0.size: "),
        ({"name": "a", "parts": [{"size": 1.0}]}, "parts.0.size: "),
        ({"name": "a", "parts": [{"size": 1, "more": 2}]}, "parts.0.more: "),
        ({"name": "a", "parts": [{"size": 1, "colour": "RED"}]}, "parts.0.colour: "),
        ({"name": "a", "parts": [{"size": -1}]}, "parts.0: size: -1 is impossible"),
        ({"name": "a", "pairs": [["a", "b", "c"]]}, "pairs.0"),
        ({"name": "a", "at": "yesterday"}, "at: "),
        ([], "Input should be an object"),
        (None, "Input should be an object"),
    ],
    ids=str,
)
def test_what_is_refused_is_named(body: object, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_record(Whole, json.dumps(body))
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"name": "\\ud800"}'])
def test_what_is_not_json(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_record(Whole, data)


@dataclass(frozen=True)
class Leaf:
    """A leaf."""

    name: str


@dataclass(frozen=True)
class Tree:
    """A ``tree``
    of two lines.
    """

    leaves: tuple[Leaf, ...]
    """All of them."""
    kind: Literal["oak", "elm"]
    age: int | None
    value: str | tuple[str, ...] | None
    pair: tuple[str, int]
    sizes: Mapping[str, int]
    owner: Omitted[str] = ""
    roots: Unwritten[object] = None

    @computed_field
    @property
    def rooted(self) -> bool:
        """Whether it has roots."""
        return self.roots is not None


def test_a_record() -> None:
    schema = record_schema(Tree, "tree:1", "a tree", {"sum": {"type": "integer"}}, {"maybe": {"type": "null"}})
    assert (schema["$id"], schema["title"], schema["description"]) == (
        "urn:tablectl:tree:1",
        "a tree",
        "A `tree` of two lines.",
    )
    assert schema["required"] == ["age", "kind", "leaves", "pair", "rooted", "sizes", "sum", "value"]
    assert schema["additionalProperties"] is False
    assert schema["properties"] == {
        "leaves": {"description": "All of them.", "type": "array", "items": {"$ref": "#/$defs/Leaf"}},
        "kind": {"enum": ["oak", "elm"], "type": "string"},
        "age": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "value": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "integer"}],
            "maxItems": 2,
            "minItems": 2,
        },
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "owner": {"type": "string"},
        "rooted": {"description": "Whether it has roots.", "type": "boolean"},
        "sum": {"type": "integer"},
        "maybe": {"type": "null"},
    }
    assert list(schema["$defs"]) == ["Leaf"]


@pytest.mark.parametrize("indent", [None, 2])
def test_what_is_unset_or_never_written_is_left_out(indent: int | None) -> None:
    tree = Tree((), "elm", 7, None, ("a", 1), MappingProxyType({"b": 2}), roots=object())
    found = json.loads(write_json(json_form({"trees": (tree, replace(tree, owner="ann", roots=None))}), indent=indent))
    common = {"leaves": [], "kind": "elm", "age": 7, "value": None, "pair": ["a", 1], "sizes": {"b": 2}}
    assert found == {"trees": [{**common, "rooted": True}, {**common, "owner": "ann", "rooted": False}]}
