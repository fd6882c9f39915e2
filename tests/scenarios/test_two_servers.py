"""500 real tables applied through two Spark Connect servers, each a process of its own, of which one is killed.

The tables are copies of one that Spark made, each with an id of its own. Two JVMs may commit on one disk here because
no table is ever on both: that is what the test proves. It prints how long both applies took and which server ran what.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tablectl
from chaos.server import Server
from tablectl.applying.events import RELEASED, RunEvent
from tablectl.commands.run_plan import Control
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
from tablectl.model.run_report import RunOutcome, RunReport
from tablectl.model.stamp import read_stamp

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_TABLES = 500
_KILLED_AFTER = 150
"""The number of tables that are done when the server is killed."""
_GOOD = {RunOutcome.APPLIED, RunOutcome.ALREADY}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    made = []
    for name in "ab":
        (tmp_path / f"server-{name}").mkdir()
        made.append(Server(tmp_path / f"server-{name}", dict(os.environ)))
    try:
        for server in made:
            server.start()
        yield made[0], made[1]
    finally:
        for server in made:
            server.kill()


def make_tables(folder: Path, server: Server) -> list[Path]:
    """A table that Spark made, and its copies."""
    engine = open_spark(EngineOptions(remote=server.url))
    try:
        engine.execute(f"CREATE TABLE delta.`{folder}/t000` (id BIGINT, day DATE) USING delta")
        engine.execute(f"INSERT INTO delta.`{folder}/t000` VALUES (1, DATE'2026-01-01')")
    finally:
        engine.close()
    (first,) = folder.iterdir()
    log = first / "_delta_log"
    created = (json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines())
    table_id = next(action["metaData"]["id"] for action in created if "metaData" in action)
    for number in range(1, _TABLES):
        copy = folder / f"t{number:03}"
        shutil.copytree(first, copy, ignore=lambda _folder, names: [each for each in names if each.startswith(".")])
        for file in [*(copy / "_delta_log").glob("*.json"), *(copy / "_delta_log").glob("*.crc")]:
            file.write_text(file.read_text().replace(table_id, str(uuid.UUID(int=number + 1))))
    return sorted(folder.iterdir())


def stamped_versions(table: Path) -> list[int]:
    """The versions that an apply made, read from the log without tablectl's reader."""
    found = []
    for file in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        texts = [each["commitInfo"].get("userMetadata", "") for each in actions if "commitInfo" in each]
        found += [int(file.stem) for text in texts if read_stamp(text)]
    return found


def kill_after(server: Server, tables: int) -> Callable[[RunEvent], None]:
    """Kills a server, in a thread of its own, once so many tables have been released."""
    done, lock = Counter[str](), threading.Lock()

    def notify(event: RunEvent) -> None:
        with lock:
            done[event.step] += 1
            if event.step == RELEASED and done[RELEASED] == tables:
                threading.Thread(target=server.kill).start()

    return notify


def told(report: RunReport, began: float) -> dict[str, Any]:
    return {
        "seconds": round(time.monotonic() - began),
        "outcomes": dict(Counter(str(table.outcome) for table in report.tables)),
        "by server": dict(Counter(table.driver for table in report.tables)),
        "moved": sum(any("moved from" in note for note in table.notes) for table in report.tables),
        "notes": report.notes,
    }


def test_a_killed_server_costs_no_commit_and_no_table(tmp_path: Path, servers: tuple[Server, Server]) -> None:
    lake, repository = tmp_path / "lake", tmp_path / "repository"
    lake.mkdir()
    (repository / "policies").mkdir(parents=True)
    tables = make_tables(lake, servers[0])
    entries = "".join(f"  delta.`{table}`: {{isolation: Serializable}}\n" for table in tables)
    (repository / "policies/all.yaml").write_text(f"version: 1\ntables:\n{entries}")
    (repository / "tablectl.yaml").write_text(
        f"engine:\n  remotes: [{', '.join(server.url for server in servers)}]\n"
        "  heartbeat: 1\n  dead_after: 5\n  statement_bound: 30\n"
    )
    plan = tablectl.plan(directory=repository)
    assert sum(table.applies for table in plan.tables) == _TABLES

    began = time.monotonic()
    control = Control(kill_after(servers[1], _KILLED_AFTER))
    first = tablectl.apply(plan, directory=repository, control=control)
    sys.stdout.write(json.dumps({"first": told(first, began)}) + "\n")
    began = time.monotonic()
    again = tablectl.apply(plan, directory=repository)
    sys.stdout.write(json.dumps({"again": told(again, began)}) + "\n")

    versions = Counter(tuple(stamped_versions(table)) for table in tables)
    assert versions == {(2,): _TABLES}, "each table has exactly one commit of an apply"
    assert {table.outcome for table in again.tables} <= _GOOD
    assert {table.driver for table in first.tables} == {server.url for server in servers}
    assert not any(table.applies for table in tablectl.plan(directory=repository).tables)
