"""Numbers in messages are written in full: a text such as `1e+06` is refused by the reader itself."""

from __future__ import annotations

import pytest

from tablectl.policies.value_kinds import number_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e6, "1000000"), (123456.75, "123456.75"), (0.00001, "0.00001"), (300, "300"), (-0.5, "-0.5"), (0.0, "0")],
)
def test_a_number_is_written_in_full(value: float, text: str) -> None:
    assert number_text(value) == text
