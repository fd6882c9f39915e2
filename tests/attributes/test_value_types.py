"""What a shape admits, and how it speaks of itself."""

from __future__ import annotations

import pytest

from tablectl.attributes.value_types import ValueType

WORDS = ValueType(name="level", description="", words=("low", "high"))
COLUMNS = ValueType(name="order", description="", words=("none",), columns=True)
KEYED = ValueType(name="options", description="", keyed=True)


@pytest.mark.parametrize(
    ("shape", "value"),
    [(WORDS, "low"), (COLUMNS, ("a", "b")), (COLUMNS, "none"), (KEYED, {}), (KEYED, {"a": "b", "c": None})],
)
def test_what_is_admitted(shape: ValueType, value: object) -> None:
    assert shape.admits(value)


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (WORDS, "Low"),
        (WORDS, None),
        (WORDS, 1),
        (WORDS, ("low",)),
        (WORDS, {"low": None}),
        (COLUMNS, "a"),
        (COLUMNS, ()),
        (COLUMNS, ("a", "")),
        (COLUMNS, ("a", 1)),
        (COLUMNS, ["a"]),
        (KEYED, {"a": 1}),
        (KEYED, {"a": True}),
        (KEYED, {1: "a"}),
        (KEYED, {"a": ("b",)}),
        (KEYED, "a"),
    ],
)
def test_what_is_not(shape: ValueType, value: object) -> None:
    assert not shape.admits(value)


def test_in_words() -> None:
    assert [shape.example for shape in (WORDS, COLUMNS, KEYED)] == [
        "`level: low`",
        "`order: [customer_id, order_date]`",
        "`options: {owner.team: payments}`",
    ]
