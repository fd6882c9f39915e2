"""A live table with columns of every kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tablectl.delta.schema import Field, Schema
from tablectl.model.table import LiveTable
from tests.builders import live_table

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


@pytest.fixture(scope="session")
def live() -> Callable[..., LiveTable]:
    """A table of version 7 without properties, written by Delta Spark 4.4."""
    return partial(live_table, schema=SCHEMA)
