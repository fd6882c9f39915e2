from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tablectl.leases.guards import GuardMode
from tablectl.writers.options import guard_options, parse_target


@pytest.mark.parametrize(
    ("table", "location"),
    [
        ("/lake/orders", "/lake/orders"),
        ("/lake/orders/", "/lake/orders"),
        (Path("/lake/a b"), "/lake/a b"),
        ("/lake/it`s", "/lake/it`s"),
        ("s3a://bucket/orders", "s3a://bucket/orders"),
        ("file:/lake/orders", "file:/lake/orders"),
        ("delta.`/lake/orders`", "/lake/orders"),
        ("DELTA.`gs://bucket/orders`", "gs://bucket/orders"),
        ("sales.orders", None),
        ("lake.sales.`my orders`", None),
    ],
)
def test_a_table_is_a_location_or_a_name(table: Any, location: str | None) -> None:
    assert parse_target(table).location == location


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("lake/orders", "the path 'lake/orders' is relative"),
        ("./orders", "relative"),
        ("delta.`lake/orders`", "relative"),
        ("/lake/../orders", "step"),
        ("/lake/a\nb", "control character"),
        ("orders", "1 part"),
        ("", "empty part"),
        ("a.b.c.d", "4 parts"),
        ("sales.my orders", "backticks"),
        ("sales.`orders", "never closed"),
    ],
)
def test_what_is_neither_is_refused(table: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_target(table)


@pytest.mark.parametrize("table", [None, 5, b"/lake", object()])
def test_a_table_is_text(table: Any) -> None:
    with pytest.raises(TypeError):
        parse_target(table)


def _terms(**changed: Any) -> Any:
    given = {"table": "/t", "mode": "any", "name": "", "timeout": None, "state": None, "ttl": 60.0}
    return guard_options(**{**given, **changed})


@pytest.mark.parametrize("mode", ["any", "rewrite", "append", GuardMode.APPEND])
def test_modes_are_words(mode: Any) -> None:
    assert _terms(mode=mode).mode is GuardMode(mode)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "merge"},
        {"mode": "ANY"},
        {"mode": None},
        {"name": "two\nlines"},
        {"name": None},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": True},
        {"timeout": "5"},
        {"state": "state"},
        {"ttl": 0},
        {"ttl": 1e9},
        {"ttl": None},
    ],
)
def test_a_mistake_shows_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        _terms(**wrong)
