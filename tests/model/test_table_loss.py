"""The expected loss in a plan file, which may have been made by anybody."""

from __future__ import annotations

from typing import Any

import pytest

from tablectl.model.expected_loss import StatementLoss, TableLoss
from tablectl.support.typed_json import read_record

WEEK = (0.5,) * 168


def test_a_known_loss_has_168_hours() -> None:
    loss = TableLoss(writes=40, failed=WEEK, seconds=WEEK, statements=())
    assert loss.week[167].failed == 0.5
    assert loss.week_of_statement("none") == ()


@pytest.mark.parametrize(
    "facts",
    [
        {"failed": WEEK},
        {"failed": WEEK[1:], "seconds": WEEK[1:]},
        {"failed": (*WEEK[1:], -1.0), "seconds": WEEK},
        {"failed": WEEK, "seconds": (*WEEK[1:], float("inf"))},
        {"failed": WEEK, "seconds": WEEK, "unknown": "too few"},
        {"failed": WEEK, "seconds": WEEK, "quietest": 168},
        {},
    ],
)
def test_an_impossible_loss_is_not_a_loss(facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"loss|hour"):
        TableLoss(writes=40, **facts)


def test_a_file_with_such_a_loss_is_refused() -> None:
    with pytest.raises(ValueError, match="168 hours"):
        read_record(StatementLoss, '{"statement":"a","failed":[1.0],"seconds":[1.0]}')
