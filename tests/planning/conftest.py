"""Builders of live tables and plans: every fact can be given, the others are those of a plain young table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl import __version__
from tablectl.delta.protocol import Protocol
from tablectl.model.plan import Plan, TableFailure, TablePlan
from tablectl.model.table import LiveTable
from tablectl.planning.plan_file import FORMAT
from tests.builders import VECTORS, live_table, planned_table


def _rich() -> Plan:
    tables = (
        planned_table(
            live_table(properties={"owner.team": "web", "debug": "on"}),
            isolation="Serializable",
            deletion_vectors="enabled",
            clustering=("customer", "day"),
            properties={"owner.team": "it's ${x}\n", "debug": None, "delta.enableChangeDataFeed": "true"},
        ),
        planned_table(
            live_table(
                "delta.`/lake/returns`",
                protocol=VECTORS,
                properties={"delta.enableDeletionVectors": "true"},
                vectors=3,
            ),
            deletion_vectors="purged",
        ),
        planned_table(
            live_table("lake.s.sessions", partition_columns=("day",)),
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
    return live_table


@pytest.fixture(scope="session")
def vectors_protocol() -> Protocol:
    """A protocol with deletion vectors."""
    return VECTORS


@pytest.fixture(scope="session")
def table_plan() -> Callable[..., TablePlan]:
    """The plan of a policy, given by its attributes, for a live table."""
    return planned_table


@pytest.fixture(scope="session")
def rich() -> Plan:
    """A plan with everything in it: all verbs and phases, a refusal, a failure, an unchanged table."""
    return _rich()
