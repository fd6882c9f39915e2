"""The actions of a log, as other programs write them."""

from __future__ import annotations

import pytest

from tablectl.log.parse_action import parse_partition


@pytest.mark.parametrize("value", [[1], [None], [[["x"], "y"]], ["ab"], {"d": ["x"]}, {"d": {}}, "d", 7])
def test_partition_values_of_another_form_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not "):
        parse_partition(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ()),
        ({"d": "x", "a": None}, (("a", None), ("d", "x"))),
        ([("d", "x")], (("d", "x"),)),
        ({"d": 5, "e": True}, (("d", "5"), ("e", "true"))),
    ],
)
def test_partition_values_are_texts(value: object, expected: object) -> None:
    assert parse_partition(value) == expected
