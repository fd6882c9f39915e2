"""``apply --when quiet`` on a real table: the window opens in the quiet hour, and a real write in flight is not failed.

The log has weeks of writes that were never made, all in the hour in which the test runs and in the next one. The clock
passes hours while the apply waits; nothing sleeps.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.applying.events import RunEvent
from tablectl.commands.run_plan import Control
from tablectl.leases.clock import SystemClock
from tablectl.model.run_report import RunOutcome
from tests.conflicts.log_records import Log
from tests.interleaving import Writer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_BUSY = timedelta(hours=2)
_MINUTE = 60.0


class PassingHours(SystemClock):
    """A clock of which a minute passes with each sleep, as long as the apply waits for a quiet moment."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0
        self.passes = False

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    def utc(self) -> datetime:
        return super().utc() + timedelta(seconds=self.ahead)

    def sleep(self, seconds: float) -> None:
        if self.passes:
            self.ahead += _MINUTE
        else:
            super().sleep(seconds)


def _write_past(table: Path, busy: datetime) -> None:
    """For 20 days, a MERGE of a whole hour in each of two hours of the day. Their files do not exist: a last commit,
    which has the stamp of an apply and is not a write, removes them.
    """
    log = Log(table)
    version = log.newest()
    files: list[str] = []
    ends = [busy - timedelta(days=day) + timedelta(hours=hour) for day in range(20, 0, -1) for hour in (1, 2)]
    for end in ends:
        version += 1
        at = round(end.timestamp() * 1000)
        files.append(f"past-{version}.parquet")
        info = {
            "timestamp": at,
            "operation": "MERGE",
            "operationParameters": {},
            "operationMetrics": {"executionTimeMs": "3600000"},
            "readVersion": version - 1,
            "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
            "isBlindAppend": False,
            "userName": "etl",
        }
        add = {"path": files[-1], "partitionValues": {}, "size": 1, "modificationTime": at, "dataChange": True}
        _commit(table, version, {"commitInfo": info}, {"add": add})
    gone = [{"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True}} for path in files]
    info = {"timestamp": at, "operation": "DELETE", "userMetadata": '{"tablectl":"the past is only in the log"}'}
    _commit(table, version + 1, {"commitInfo": info}, *gone)


def _commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    text = "\n".join(map(json.dumps, actions))
    (table / "_delta_log" / f"{version:020}.json").write_text(text, encoding="utf-8")


def test_an_apply_waits_for_the_quiet_hour_and_a_write_of_the_busy_one_commits(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, clock = tmp_path / "t", PassingHours()
    name, hour = f"delta.`{table}`", clock.utc().replace(minute=0, second=0, microsecond=0)
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING delta")
    _write_past(table, hour)
    (tmp_path / "p.yaml").write_text(f"version: 1\ntables:\n  {name}: {{properties: {{owner.team: web}}}}\n")
    waited: list[str] = []
    with Writer(spark, f"INSERT INTO {name} SELECT hold(id) FROM range(1)") as writer:
        writer.wait_inside()

        def notify(event: RunEvent) -> None:
            clock.passes = event.step == "quiet"
            if event.step == "quiet" and not waited:
                waited.append(event.words)
                assert writer.release().condition == "", "the write ends while the apply waits"

        report = tablectl.apply(
            tmp_path / "p.yaml", directory=tmp_path, spark=spark, when="quiet", control=Control(notify, clock=clock)
        )
    (run,) = report.tables
    assert run.outcome is RunOutcome.APPLIED, run
    assert clock.utc() >= hour + _BUSY
    assert waited[0].startswith("the next quiet moment is "), waited
    usual = f"{hour:%H}:00 and {hour + _BUSY:%H}:00 UTC"
    assert waited[0].endswith(f"; MERGE by etl: 20 runs, each between {usual}"), waited
    assert run.quiet is not None
    assert run.quiet.failed == 0.0
    assert (run.quiet.seconds or 0.0) < 1
    assert run.quiet.actual == len(run.possible_failures)  # a bound: failed transactions leave no trace
    assert run.quiet.waited_ms > 55 * _MINUTE * 1000
    operations = [json.loads(line)["commitInfo"]["operation"] for line in _infos(table)]
    assert operations[-2:] == ["WRITE", "SET TBLPROPERTIES"]


def _infos(table: Path) -> list[str]:
    """The commits' ``commitInfo`` in order."""
    files = sorted((table / "_delta_log").glob("*.json"))
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines() if "commitInfo" in line]
