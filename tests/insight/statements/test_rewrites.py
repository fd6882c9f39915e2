"""Suggested rewrites on real Spark: the rows afterwards are those of the statement as its user wrote it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.insight.statements.rewrites import run

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("most", [6, pytest.param(300, marks=pytest.mark.slow)])
def test_a_rewrite_leaves_the_same_rows(spark: Any, most: int) -> None:
    found, wrong = run(spark, most, seed=1)
    assert wrong == []
    assert found["compared"] - found["that failed alike"] >= most * 0.8
    assert found["by hand"] == 0
