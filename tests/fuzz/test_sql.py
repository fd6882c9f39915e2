"""A short, fixed run of the fuzzer of statements, on the shared session."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tablectl.model.operations import OPERATIONS, Repartition
from tests.fuzz.fuzz_sql import EVERY, KINDS, ONLY_ON_DATABRICKS, parses


def test_the_fuzzer_tries_every_operation() -> None:
    assert {*KINDS, Repartition, *ONLY_ON_DATABRICKS} == set(OPERATIONS)


@pytest.mark.spark
def test_every_statement_is_one_of_its_kind_with_the_exact_text(spark: Any) -> None:
    # Spark's parser expands variables by the settings of the thread's active session, which is the shared one.
    before = spark.conf.get("spark.sql.variable.substitute")
    try:
        kinds = Counter(parses(Random(f"sql {number}"), spark) for number in range(300))
    finally:
        spark.conf.set("spark.sql.variable.substitute", before)
    assert set(kinds) == EVERY
