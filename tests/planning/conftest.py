"""Builders of live tables and plans: every fact can be given, the others are those of a plain young table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablectl import __version__
from tablectl.attributes.policy import Policy
from tablectl.delta.names import parse_table
from tablectl.delta.protocol import Client, Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.model.plan import Plan, TableFailure, TablePlan
from tablectl.model.table import LiveTable
from tablectl.planning.plan_file import FORMAT
from tablectl.planning.plan_table import plan_table
from tests.look_back import with_look_back

VECTORS = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"}))
SCHEMA = Schema((Field("id", "long"), Field("Customer", "string"), Field("day", "date"), Field("amount", "double")))


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


def _table_plan(live: LiveTable, dialect: str = "oss", **policy: Any) -> TablePlan:
    planned = plan_table(Policy(**policy), live, dialect)
    assert planned is not None
    return planned


def _rich() -> Plan:
    tables = (
        _table_plan(
            _live(properties={"owner.team": "web", "debug": "on"}),
            isolation="Serializable",
            deletion_vectors="enabled",
            clustering=("customer", "day"),
            properties={"owner.team": "it's ${x}\n", "debug": None, "delta.enableChangeDataFeed": "true"},
        ),
        _table_plan(
            _live(
                name=parse_table("delta.`/lake/returns`"),
                location="/lake/returns",
                protocol=VECTORS,
                properties={"delta.enableDeletionVectors": "true"},
                vectors=3,
            ),
            deletion_vectors="purged",
        ),
        _table_plan(
            _live(name=parse_table("lake.s.sessions"), partition_columns=("day",)),
            partitioning=("id",),
            isolation="Serializable",
        ),
    )
    return Plan(
        format=FORMAT,
        tool=__version__,
        dialect="oss",
        policies="0" * 64,
        tables=tables,
        failures=(TableFailure(name="lake.s.gone", message="not a Delta table", hint="check the location"),),
        unchanged=("lake.s.same",),
    )


@pytest.fixture(scope="session")
def live() -> Callable[..., LiveTable]:
    """A table of version 7 without properties, written by Delta Spark 4.4."""
    return _live


@pytest.fixture(scope="session")
def vectors_protocol() -> Protocol:
    """A protocol with deletion vectors."""
    return VECTORS


@pytest.fixture(scope="session")
def table_plan() -> Callable[..., TablePlan]:
    """The plan of a policy, given by its attributes, for a live table."""
    return _table_plan


@pytest.fixture(scope="session")
def rich() -> Plan:
    """A plan with everything in it: all verbs and phases, a refusal, a failure, an unchanged table."""
    return _rich()
