"""No plan that was not refused fails on a table that did not change: random pairs of table and policy, on real Delta.

``python -m tests.scenarios.preconditions`` compares more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablectl.engine.interface import Engine, EngineOptions
from tablectl.engine.spark import open_spark
from tests.scenarios.preconditions import Lab, Pair, corners, drawn

pytestmark = pytest.mark.spark

_USUAL = range(8)
_MORE = range(8, 48)


@pytest.fixture(scope="module")
def lab(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    engine: Engine = open_spark(EngineOptions())
    spark.conf.set("spark.databricks.delta.geo.preview.enabled", "true")
    yield Lab(spark, engine, tmp_path_factory.mktemp("preconditions"))
    spark.conf.unset("spark.databricks.delta.geo.preview.enabled")
    engine.close()


@pytest.mark.parametrize("seed", [*_USUAL, *(pytest.param(each, marks=pytest.mark.slow) for each in _MORE)])
def test_a_plan_refuses_a_random_pair_if_and_only_if_delta_refuses_it(lab: Lab, seed: int) -> None:
    _check(lab, drawn(seed), f"t{seed}")


@pytest.mark.slow
@pytest.mark.parametrize("pair", [pytest.param(each, id=f"c{index}") for index, each in enumerate(corners())])
def test_a_plan_refuses_what_delta_refuses_of_a_table_with_a_past(
    lab: Lab, pair: Pair, request: pytest.FixtureRequest
) -> None:
    _check(lab, pair, request.node.callspec.id)


def _check(lab: Lab, pair: Pair, name: str) -> None:
    kind, words = lab.compare(pair, name)
    assert not kind.isupper(), f"{kind}: {words}"
