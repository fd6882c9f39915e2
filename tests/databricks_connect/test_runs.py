"""Whole runs with databricks-connect, against an open-source Spark Connect server: plan, apply, window, kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import tablectl
from tablectl.commands.command_line import run_cli
from tablectl.commands.run_plan import Control
from tablectl.model.run_report import RunOutcome
from tests.scenarios.test_kill import PassingClock

Commits = Callable[[], list[dict[str, Any]]]
PATIENCE = 120


@pytest.fixture
def lake(table: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose engine is databricks-connect, with one table that two statements change."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_REMOTE", url)  # where `remote: databricks` leads
    (tmp_path / "policies").mkdir()
    policy = "{isolation: Serializable, deletion_vectors: enabled, clustering: [id]}"
    (tmp_path / "policies" / "p.yaml").write_text(f"version: 1\ntables:\n  {table}: {policy}\n")
    (tmp_path / "tablectl.yaml").write_text("engine: {remote: databricks}\n")
    return tmp_path


def ours(commits: Commits) -> list[str]:
    """The operations of the commits with a stamp."""
    return [each["operation"] for each in commits() if "tablectl" in each.get("userMetadata", "")]


@pytest.mark.usefixtures("lake")
def test_a_policy_is_planned_applied_and_stamped(session: Any, commits: Commits) -> None:
    plan = tablectl.plan(spark=session)
    (planned,) = plan.tables
    assert [change.id for change in planned.changes] == ["isolation", "deletion_vectors", "clustering"]
    report = tablectl.apply(plan, spark=session)
    assert [each.outcome for each in report.tables] == [RunOutcome.APPLIED]
    stamps = [json.loads(each["userMetadata"])["tablectl"] for each in commits()[1:]]
    assert {(stamp["plan"], stamp["run"]) for stamp in stamps} == {(report.plan, report.run)}
    assert sorted(ours(commits)) == ["CLUSTER BY", "SET TBLPROPERTIES", "SET TBLPROPERTIES"]
    assert tablectl.plan(spark=session).unchanged == (planned.name,)


def test_the_command_line_uses_databricks_connect(lake: Path, commits: Commits) -> None:
    for arguments in (["plan", "--out", "p.json"], ["apply", "p.json"]):
        command = [sys.executable, "-m", "tablectl", *arguments]
        done = subprocess.run(command, cwd=lake, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
    assert len(ours(commits)) == 3


@pytest.mark.usefixtures("lake")
def test_a_guarded_writer_is_waited_for_and_does_not_fail(session: Any, table: str, commits: Commits) -> None:
    plan, steps, reports = tablectl.plan(spark=session), SimpleQueue[str](), list[Any]()

    def apply() -> None:
        reports.append(tablectl.apply(plan, spark=session, control=Control(notify=lambda event: steps.put(event.step))))

    run = threading.Thread(target=apply)
    with tablectl.guard(session, table):
        run.start()
        while steps.get(timeout=PATIENCE) != "draining":
            pass
        session.sql(f"INSERT INTO {table} VALUES (9)").collect()
    run.join(PATIENCE)
    assert [each.outcome for each in reports[0].tables] == [RunOutcome.APPLIED]
    operations = [each["operation"] for each in commits()]
    assert operations.index("WRITE") < operations.index("CLUSTER BY")


KILLED = """
import os, signal, sys
from pathlib import Path
import tablectl
from tablectl.commands.run_plan import Control

def notify(event):
    if event.step == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)

tablectl.apply(Path("p.json"), control=Control(notify=notify))
"""


@pytest.mark.parametrize("step", ["gate closed", "before closed-set", "after closed-set", "verify"])
def test_a_client_that_is_killed_in_the_window_is_finished_by_the_next_run(
    lake: Path, session: Any, commits: Commits, step: str
) -> None:
    assert run_cli(["plan", "--out", "p.json"], {}) == 0
    command = [sys.executable, "-c", KILLED, step]
    killed = subprocess.run(command, cwd=lake, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    before = len(ours(commits))
    again = tablectl.apply(lake / "p.json", spark=session, control=Control(clock=PassingClock()))
    assert again.exit_code == 0, again
    (run,) = again.tables
    assert sorted(ours(commits)) == ["CLUSTER BY", "SET TBLPROPERTIES", "SET TBLPROPERTIES"], "each one once"
    assert (len(run.commits), run.epoch) == (3 - before, 2)
