"""What ``between`` calls safe commits on real Delta, for random pairs on tables with ambiguous names and values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.insight.statements.races import run


@pytest.mark.spark
@pytest.mark.slow
def test_no_pair_that_is_said_to_commit_fails(spark: Any) -> None:
    found, wrong = run(spark, seconds=600, seed=1, most=60)
    assert wrong == []
    assert found["raced"] >= 60
