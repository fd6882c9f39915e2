"""``apply --canary`` on real Delta: a write that fails after the first table's change stops the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.commands.run_plan import Control
from tests.interleaving import Writer

pytestmark = pytest.mark.spark


class WatchingClock:
    """Real time plus all that was slept. ``on_first_sleep`` runs when the watching begins."""

    def __init__(self, on_first_sleep: Callable[[], object]) -> None:
        self._slept = 0.0
        self._on_sleep: Callable[[], object] | None = on_first_sleep

    def monotonic(self) -> float:
        return time.monotonic() + self._slept

    def sleep(self, seconds: float) -> None:
        self._slept += seconds
        if self._on_sleep is not None:
            act, self._on_sleep = self._on_sleep, None
            act()

    def utc(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._slept)


def test_a_write_that_fails_after_the_first_table_stops_the_others_and_one_that_commits_does_not(
    spark: Any, policies: Callable[[str], None], tmp_path: Path
) -> None:
    tables = [tmp_path / name for name in "abc"]
    for table in tables:
        spark.sql(f"CREATE TABLE delta.`{table}` USING delta AS SELECT id, id AS v FROM range(0, 9, 1, 1)")
    policies("".join(f"  delta.`{table}`: {{isolation: Serializable}}\n" for table in tables))
    plan = tablectl.plan(directory=tmp_path)

    def run(act: Callable[[], object]) -> tuple[tablectl.RunReport, list[str]]:
        control = Control(clock=WatchingClock(act))
        report = tablectl.apply(plan, directory=tmp_path, spark=spark, canary=1, soak=5, control=control)
        return report, [str(each.outcome) for each in report.tables]

    # The writer has read the first table before its change, and writes its file and commits afterwards.
    with Writer(spark, f"UPDATE delta.`{tables[0]}` SET v = hold(v) WHERE id = 3") as writer:
        writer.wait_inside()
        report, outcomes = run(writer.release)
        assert writer.ended
    assert outcomes == ["applied", "no window", "no window"]
    assert report.exit_code == 5
    assert report.canary is not None
    assert [each.orphans for each in report.canary.tables] == [1]
    assert "1 data file that no commit names" in report.canary.reason

    # The file is removed, as VACUUM does, and the same plan is applied again; its writer commits now.
    named = {
        row[0].rpartition("/")[2]
        for row in spark.sql(f"SELECT DISTINCT input_file_name() FROM delta.`{tables[0]}`").collect()
    }
    for file in tables[0].glob("*.parquet"):
        if file.name not in named:
            file.unlink()
    report, outcomes = run(lambda: spark.sql(f"UPDATE delta.`{tables[0]}` SET v = 9 WHERE id = 3"))
    assert outcomes == ["already", "applied", "applied"]
    assert report.canary is not None
    assert [(each.writes, each.orphans) for each in report.canary.tables] == [(1, 0)]
    assert report.exit_code == 0
