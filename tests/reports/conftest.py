"""Golden files, and a plan and a run with everything in them.

``TABLECTL_GOLDEN=write pytest tests/reports`` rewrites the golden files; look at the difference before you commit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tablectl.delta.schema import Field, Schema
from tablectl.model.plan import Phase, Plan, TableFailure, TablePlan
from tablectl.model.run_report import (
    CommitRun,
    GateRun,
    PossibleFailure,
    RunOutcome,
    RunReport,
    StatementRun,
    TableRun,
    WriterRun,
)
from tablectl.model.table import LiveTable
from tests.builders import CLUSTERED, VECTORS, live_table, planned_table

_GOLDEN = Path(__file__).parent.parent / "golden"
_WRITES = os.environ.get("TABLECTL_GOLDEN") == "write"  # before a test clears the variables of tablectl
_SCHEMA = Schema(
    (
        Field("order_id", "long"),
        Field("customer_id", "long"),
        Field("order_date", "date"),
        Field("address", "struct", fields=(Field("city", "string"),)),
    )
)


def _golden(name: str, text: str) -> None:
    file = _GOLDEN / name
    if _WRITES:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def _live(name: str = "lake.sales.orders", **facts: Any) -> LiveTable:
    return live_table(name, **{"version": 12, "schema": _SCHEMA, **facts})


def _planned(name: str, facts: dict[str, Any], policy: dict[str, Any]) -> TablePlan:
    return planned_table(_live(name, **facts), **policy)


def _plan() -> Plan:
    return _plan_with(
        _planned(
            "lake.sales.orders",
            {"properties": {"debug.trace": "on", "owner.team": "web"}},
            {
                "isolation": "Serializable",
                "deletion_vectors": "enabled",
                "clustering": ("customer_id", "address.city"),
                "properties": {
                    "delta.logRetentionDuration": "interval 60 days",
                    "owner.team": "payments",
                    "debug.trace": None,
                },
            },
        ),
        _planned(
            "delta.`/lake/returns`",
            {"protocol": VECTORS, "properties": {"delta.enableDeletionVectors": "true"}, "vectors": 1},
            {"deletion_vectors": "purged"},
        ),
        _planned(
            "lake.sales.sessions",
            {"partition_columns": ("order_date",), "files": None, "bytes": None},
            {"isolation": "WriteSerializable", "partitioning": ("month",), "properties": {"owner.team": "web"}},
        ),
        _planned(
            "lake.sales.clicks",
            {
                "protocol": CLUSTERED,
                "clustering": (("order_id",),),
                "properties": {"note": "the text that stood here before, which is rather long"},
                "files": 1,
                "bytes": 999,
            },
            {
                "clustering": ("order_date",),
                "properties": {
                    "delta.dataSkippingStatsColumns": "order_date",
                    "note": "a text that does not fit next to the other one and is shown below it",
                },
            },
        ),
    )


def _plan_with(*tables: TablePlan) -> Plan:
    return Plan(
        format=2,
        tool="0.1.0",
        dialect="oss",
        policies="0" * 64,
        tables=tables,
        failures=(
            TableFailure(
                name="lake.sales.gone",
                message="/lake/gone: not a Delta table: there is no _delta_log",
                hint="check the location",
            ),
        ),
        unchanged=("lake.sales.ledger", "lake.sales.payments"),
    )


_FAILS = "all concurrent writes fail once (MetadataChangedException)"


def _statement(**facts: Any) -> StatementRun:
    plain = {
        "id": "closed-set",
        "sql": "ALTER TABLE `lake`.`sales`.`orders`\nSET TBLPROPERTIES ('owner.team' = 'payments')",
        "phase": Phase.CLOSED,
        "milliseconds": 412,
    }
    return StatementRun(**{**plain, **facts})


_START = 1_795_000_000_000


def _commit(version: int, operation: str = "SET TBLPROPERTIES", user: str = "ann", after: int = 0) -> CommitRun:
    return CommitRun(version=version, operation=operation, user=user, at=_START + after, metadata=operation != "MERGE")


def _run() -> RunReport:
    cluster = "ALTER TABLE `lake`.`sales`.`orders`\nCLUSTER BY (`customer_id`)"
    return RunReport(
        run="5f0c",
        plan="0" * 64,
        tables=(
            TableRun(
                name="lake.sales.orders",
                outcome=RunOutcome.APPLIED,
                changed=("clustering", "properties.owner.team"),
                statements=(
                    _statement(id="free-cluster", sql=cluster, phase=Phase.FREE, at=_START - 420, separate=1),
                    _statement(fails=_FAILS, at=_START + 280, separate=6),
                ),
                commits=(_commit(13, "CLUSTER BY"), _commit(15, after=690)),
                foreign=(
                    replace(_commit(14, "MERGE", "etl", after=200), inside=True),
                    replace(_commit(16, after=900), user="apply", run="77aa", late=True),
                ),
                later=("properties.owner.team",),
                possible_failures=(
                    PossibleFailure(writer="nightly load (any)", reason="did not end in time", fails=_FAILS),
                    *(
                        PossibleFailure(writer=f"WRITE by {name}", reason="no guard was seen", fails=_FAILS)
                        for name in "abcd"
                    ),
                ),
                window_ms=412,
                drain_ms=300_012,
                gates=(
                    GateRun(gate="no-schema", since=_START - 800, until=_START + 150),
                    GateRun(gate="closed", since=_START + 150, until=_START + 850),
                ),
                writers=(
                    WriterRun(name="WRITE by a", commits=9, last=1_795_000_000_000),
                    WriterRun(name="STREAMING UPDATE of 4f1c", commits=3, last=1_795_000_000_000),
                ),
                took_ms=301_250,
            ),
            TableRun(name="lake.sales.ledger", outcome=RunOutcome.ALREADY),
            TableRun(
                name="lake.sales.fees",
                outcome=RunOutcome.WAITING,
                message="deletion_vectors: due at 2026-11-22 11:02:00 UTC, when history is old enough to be given up",
                hint="apply again then",
                commits=(_commit(4, "REORG"), _commit(5, "SET TBLPROPERTIES")),
            ),
            TableRun(
                name="lake.sales.clicks",
                outcome=RunOutcome.STALE,
                message="clustering was none and is [page]",
                hint="plan again, and see who changed it below",
                foreign=(_commit(9, "CLUSTER BY", "bob"),),
            ),
            TableRun(
                name="lake.sales.returns",
                outcome=RunOutcome.FAILED,
                message="[DELTA_UNKNOWN_CONFIGURATION] Unknown configuration was specified: delta.someday. To disable "
                "this check, set a session configuration that must stay unset.",
                hint="this Delta version does not know the property: remove it, or upgrade the engine",
                statements=(_statement(), _statement(error="unknown", condition="DELTA_UNKNOWN_CONFIGURATION")),
                commits=(_commit(4),),
            ),
            TableRun(name="lake.sales.sessions", outcome=RunOutcome.REFUSED, message="isolation: not on this engine"),
            TableRun(
                name="lake.sales.events", outcome=RunOutcome.NO_WINDOW, message="held by ann@host since 3 minutes"
            ),
            TableRun(
                name="lake.sales.visits",
                outcome=RunOutcome.NO_WINDOW,
                message="waited 300 s for writers, since 2026-11-21 11:00:00 UTC: nightly load (any)",
                hint="run again when they are done",
                drain_ms=300_012,
            ),
            TableRun(
                name="lake.sales.stock",
                outcome=RunOutcome.NO_WINDOW,
                message="the window ended at 2026-11-21 06:00 UTC; the next one begins at 2026-11-21 22:00 UTC",
                hint="run again then",
                commits=(_commit(7, "CLUSTER BY"),),
            ),
            TableRun(
                name="lake.sales.clicks",
                outcome=RunOutcome.NO_WINDOW,
                message="no quiet moment within 6 h: now it would cost 3.1 failed writes, 210 s of work, and the limit "
                "is 0.1 failed writes",
                hint="run again in the quietest hour, Sunday 04:00–05:00 UTC (0.0)",
            ),
            TableRun(
                name="lake.sales.swapped",
                outcome=RunOutcome.UNVERIFIED,
                message="SET TBLPROPERTIES went to ANOTHER TABLE: it is version 3 of s3://lake/green",
                hint="undo it there by hand, and plan again",
            ),
            TableRun(
                name="lake.sales.unanswered",
                outcome=RunOutcome.UNKNOWN,
                message="the connection was reset; what became of the statement is unknown",
                hint="run the same command again: it interrupts the statement, or waits until it has ended",
            ),
            TableRun(
                name="lake.sales.paused",
                outcome=RunOutcome.FAILED,
                message="the lease was lost by epoch 2: it is held by ben on laptop (pid 7)",
            ),
            TableRun(
                name="lake.sales.resumed",
                outcome=RunOutcome.ALREADY,
                message="the lease was taken over by ben on laptop (pid 7), which ran the same plan",
            ),
            TableRun(
                name="lake.sales.leads",
                outcome=RunOutcome.HOOK_FAILED,
                message="the before-hook ./pause.sh nightly ended with exit code 3",
                hint="its output is above",
                owed=("./resume.sh",),
                notes=("the after-hook ./resume.sh cannot be run: Permission denied; it stays owed",),
            ),
            TableRun(
                name="lake.sales.feeds",
                outcome=RunOutcome.NO_WINDOW,
                message="after 10 min, the stream 4f1c has read version 11, and the table is at version 12",
                hint="run again when the stream has read the table",
            ),
            TableRun(
                name="lake.sales.items",
                outcome=RunOutcome.NO_WINDOW,
                message="a write of lake.sales.orders failed after the first tables were changed",
                hint="find out why, then run again",
            ),
            TableRun(name="lake.sales.carts", outcome=RunOutcome.UNVERIFIED, message="isolation was default and is x"),
            TableRun(
                name="lake.sales.taxes", outcome=RunOutcome.INTERRUPTED, message="stopped before all statements ran"
            ),
        ),
        failures=(TableFailure(name="lake.sales.gone", message="not a Delta table", hint="check the location"),),
        proceed="the load hangs since Monday",
        override="hotfix for the close of the year",
        at=_START - 1_000,
        took_ms=302_500,
    )


@pytest.fixture(scope="session")
def golden() -> Callable[[str, str], None]:
    """Compares a text with a golden file, or writes it."""
    return _golden


@pytest.fixture(scope="session")
def plan() -> Plan:
    """A plan with everything in it."""
    return _plan()


@pytest.fixture(scope="session")
def run_report() -> RunReport:
    """A run with every outcome in it."""
    return _run()


@pytest.fixture(scope="session")
def table_planned() -> Callable[..., TablePlan]:
    """The plan of a table, by name, facts and policy."""
    return _planned


@pytest.fixture(scope="session")
def live() -> Callable[..., LiveTable]:
    """A table of version 12 without properties, written by Delta Spark 4.4."""
    return _live
