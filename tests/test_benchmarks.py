"""The benchmarks run, and what they read are tables as others see them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tablectl.model.table import LiveTable
from tests.builders import read_path

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize(
    ("script", "options", "says"),
    [
        ("many_tables.py", ["--tables", "10", "--sample", "0"], "deltalake loop"),
        pytest.param("big_checkpoint.py", ["--files", "1000"], "tablectl, no .crc", marks=pytest.mark.slow),
        pytest.param("ten_thousand.py", ["--tables", "20"], "20, all to change", marks=pytest.mark.slow),
        pytest.param("store_latency.py", ["--tables", "10", "--commits", "30"], "deltalake", marks=pytest.mark.slow),
        pytest.param("pull_request.py", ["--tables", "200"], "conflicts, of the one table", marks=pytest.mark.slow),
        ("quadratic.py", ["--size", "20"], "unknown properties"),
        ("read_cost.py", ["--tables", "20"], "with checksums"),
    ],
)
def test_each_runs_to_its_end(script: str, options: list[str], says: str) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), *options, "--repeat", "1"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert says in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_the_profile_of_a_plan_names_its_parts() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "plan_profile.py"), "--tables", "20"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert {"imports", "policies", "JSON"} <= {line.partition("  ")[0] for line in done.stdout.splitlines()}


def read(location: Path) -> LiveTable:
    return read_path(str(location), counts=True)


def test_the_tables_are_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deltalake = pytest.importorskip("deltalake")
    monkeypatch.syspath_prepend(str(FOLDER))
    from _mix import build_lake

    lake = build_lake(tmp_path, 10)
    assert lake.kinds.total() == 10
    for location, files in zip(lake.locations, lake.files, strict=True):
        ours, theirs = read(location), deltalake.DeltaTable(str(location))
        assert ours.files == len(theirs.file_uris()) == files
        assert (ours.version, ours.table_id) == (theirs.version(), theirs.metadata().id)
        assert (dict(ours.properties), list(ours.partition_columns)) == (
            theirs.metadata().configuration,
            theirs.metadata().partition_columns,
        )
    assert [read(location).clustering for location in lake.locations].count((("id",), ("day",))) == 2


def test_a_copied_table_is_another_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    from _mix import build_lake
    from ten_thousand import multiply

    lake = multiply(build_lake(tmp_path, 10), 30)
    tables = [read(location) for location in lake.locations]
    assert [table.files for table in tables] == list(lake.files)
    assert len({table.table_id for table in tables}) == 28  # the id of one in ten is read from its checkpoint
