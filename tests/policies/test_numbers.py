"""Numbers in messages and from Python are written in full: a text such as `1e+06` is refused by the reader itself."""

from __future__ import annotations

import pytest

from tablectl.model.errors import UsageError
from tablectl.policies.declare_setting import Setting
from tablectl.policies.field_types import number
from tablectl.policies.value_kinds import number_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e6, "1000000"), (123456.75, "123456.75"), (0.00001, "0.00001"), (300, "300"), (-0.5, "-0.5"), (0.0, "0")],
)
def test_a_number_is_written_in_full(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize("value", [123456.75, 0.00001, 1e6, 7])
def test_a_number_of_python_keeps_its_value(value: float) -> None:
    assert Setting(takes=number(0, 1e6)).checked("ttl", value) == value


def test_the_bounds_in_a_message_are_written_in_full() -> None:
    with pytest.raises(UsageError, match="needs a number from 0 to 1000000, not '1000001'"):
        Setting(takes=number(0, 1e6)).checked("ttl", 1_000_001.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_only_a_finite_number_is_taken(value: float) -> None:
    with pytest.raises(UsageError, match="needs a number"):
        Setting(takes=number(0, 1e6)).checked("ttl", value)
