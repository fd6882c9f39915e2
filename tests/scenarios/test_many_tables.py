"""Several tables in one apply, and two applies at once, on real Delta: threads in one JVM."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.applying import statement_turns
from tablectl.applying.events import RunEvent
from tablectl.commands.run_plan import Control
from tablectl.delta.names import TableName
from tablectl.log.reader import read_commits, read_table
from tablectl.model.run_report import RunReport
from tablectl.model.stamp import read_stamp

pytestmark = pytest.mark.spark

NAMES = ("invoices", "orders", "returns", "stock")


def lake(spark: Any, folder: Path, config: str) -> Path:
    """Four tables, a policy for all of them, and a configuration."""
    first = folder / NAMES[0]
    spark.range(3).write.format("delta").save(str(first))
    for name in NAMES[1:]:
        spark.range(3).write.format("delta").save(str(folder / name))
    entries = "".join(f"  delta.`{folder / name}`: {{isolation: Serializable, tags: [ledger]}}\n" for name in NAMES)
    (folder / "policies").mkdir()
    (folder / "policies" / "all.yaml").write_text(f"version: 1\ntables:\n{entries}")
    (folder / "tablectl.yaml").write_text(config)
    return folder


def stamped(folder: Path) -> dict[str, list[int]]:
    """The versions that applies made, by table."""
    return {
        name: [each.version for each in read_commits(str(folder / name), after=0) if read_stamp(each.user_metadata)]
        for name in NAMES
    }


def test_two_applies_of_one_plan_share_the_tables_and_each_commit_is_made_once(spark: Any, tmp_path: Path) -> None:
    folder = lake(spark, tmp_path, "window: {parallel: 2}\n")
    plan = tablectl.plan(directory=folder)
    reports: list[RunReport] = []

    def apply() -> None:
        reports.append(tablectl.apply(plan, directory=folder, spark=spark))

    threads = [threading.Thread(target=apply) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert [report.exit_code for report in reports] == [0, 0]
    assert stamped(folder) == {name: [1] for name in NAMES}
    assert sum(bool(table.commits) for report in reports for table in report.tables) == len(NAMES)


def test_tables_that_share_a_window_are_closed_together_and_changed_one_after_the_other(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After this time a statement runs concurrently, and how long an ALTER takes depends on the machine.
    monkeypatch.setattr(statement_turns, "LONGEST_WITH_SHUT_GATE", 300.0)
    folder = lake(spark, tmp_path, "window: {together: [ledger]}\n")
    steps: list[str] = []
    lock = threading.Lock()

    def notify(event: RunEvent) -> None:
        with lock:
            steps.append(event.step)

    report = tablectl.apply(tablectl.plan(directory=folder), directory=folder, spark=spark, control=Control(notify))
    assert report.exit_code == 0
    first, last = steps.index("before closed-set"), len(steps) - 1 - steps[::-1].index("after closed-set")
    assert steps[:first].count("gate closed") == len(NAMES)
    assert "gate open" not in steps[:last]
    sent = [step for step in steps if step.endswith("closed-set")]
    assert sent == ["before closed-set", "after closed-set"] * len(NAMES)
    for name in NAMES:
        place = str(folder / name)
        assert read_table(TableName("", (place,)), place).property("delta.isolationLevel") == "Serializable"
