"""Amounts of data as people write them."""

from __future__ import annotations

import pytest

from tablectl.model.table_options import parse_size


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("500000", 500_000), (" 20 GB ", 20_000_000_000), ("1tb", 10**12), ("7 B", 7)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "1.5 GB", "1 GiB", "1 GB x", "9" * 19])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="needs a number and a unit"):
        parse_size(text)
