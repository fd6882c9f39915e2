"""A table to hold policies against: every fact can be given, the others are those of a plain young table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablectl.delta.names import parse_table
from tablectl.delta.protocol import Client, Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.model.table import LiveTable
from tests.look_back import with_look_back

SCHEMA = Schema(
    (
        Field("id", "long"),
        Field("Customer", "string"),
        Field("amount", "decimal(10,2)"),
        Field("day", "date"),
        Field("paid", "boolean"),
        Field("blob", "binary"),
        Field("address", "struct", fields=(Field("City", "string"), Field("street.no", "integer"))),
        Field("tags", "array"),
        Field("facts", "map"),
        Field("a.b", "string"),
    )
)


def _live(**facts: Any) -> LiveTable:
    plain: dict[str, Any] = {
        "name": parse_table("lake.s.t"),
        "location": "/lake/t",
        "version": 7,
        "table_id": "0b1c",
        "protocol": Protocol(1, 2),
        "schema": SCHEMA,
        "clients": (Client("delta-spark", (4, 4, 0)),),
        "files": 12,
        "bytes": 4_100_000,
        "vectors": 0,
    }
    return LiveTable(**with_look_back({**plain, **facts}))


@pytest.fixture(scope="session")
def live() -> Callable[..., LiveTable]:
    """A table of version 7 without properties, written by Delta Spark 4.4."""
    return _live
