"""A short, fixed run of the fuzzer of statements, on the shared session."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from tests.fuzz.fuzz_sql import KINDS, parser_of, parses


def test_every_statement_is_one_of_its_kind_with_the_exact_text(spark: Any) -> None:
    parser = parser_of(spark.newSession())
    kinds = Counter(parses(Random(f"sql {number}"), parser) for number in range(300))
    assert set(kinds) == set(KINDS.values())
