"""Orders of MERGE, ALTER and WriteSerializable pairs on real Delta: what is said to commit does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.insight.statements.orders import Raced, run


@pytest.mark.spark
@pytest.mark.slow
def test_no_order_that_is_said_to_commit_fails(spark: Any) -> None:
    raced = Raced()
    run(spark, 60, 1, raced, lambda text: None)
    assert [each for each in raced.wrong if each[1] == "commits"] == []
    assert raced.found["raced"] == 60
