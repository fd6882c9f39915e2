"""Differences between values: the smallest parts, by their path, and none that deepdiff alone would leave out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tablectl.support.differences import differences, whole


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    keys: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, ["a removed", "b changed", "c added"]),
        ({"a": {"b": (1, 2)}}, {"a": {"b": (1, 3, 4)}}, ["a.b[1] changed", "a.b[2] added"]),
        (
            {"steps": (Step("x"),)},
            {"steps": (Step("x", ("k",)), Step("y"))},
            ["steps[0].keys[0] added", "steps[1] added"],
        ),
        ({"a": None}, {"a": (1,)}, ["a changed"]),
        ({"__a": 1, "b": 1}, {"__a": 2, "b": 2}, ["__a changed", "b changed"]),
        ({"__a": 1}, {}, ["__a removed"]),
    ],
)
def test_each_part_that_differs_is_named(before: Any, after: Any, told: list[str]) -> None:
    assert [f"{each.where} {each.kind}" for each in differences(before, after)] == told


def test_a_list_can_be_one_value() -> None:
    (found,) = differences({"a": {"b": (1, 2)}}, {"a": {"b": (1, 3)}}, whole)
    assert (found.where, found.before, found.after) == ("a.b", (1, 2), (1, 3))


def test_the_caller_decides_what_is_equal() -> None:
    def same(path: object, before: Any, after: Any) -> bool | None:
        return None if isinstance(before, dict) else bool(before.lower() == after.lower())

    assert differences({"a": {"b": "X", "c": "y"}}, {"a": {"b": "x", "c": "Y"}}, same) == ()
    assert [each.where for each in differences({"a": "X", "b": "y"}, {"a": "x", "b": "z"}, same)] == ["b"]


class _Opaque:
    """Equal to nothing, and without fields in which deepdiff could see it."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


def test_what_deepdiff_does_not_see_differs_all_the_same() -> None:
    """A check of a plan must not pass because its parts cannot be compared."""
    assert [each.kind for each in differences(_Opaque(), _Opaque())] == ["changed"]
