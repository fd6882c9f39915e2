"""The benchmarks run, and what they read are tables as others see them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

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
    printed = run(script, *options, "--repeat", "1")
    assert says in printed
    assert max(map(len, printed.splitlines())) <= 100


def run(script: str, *options: str) -> str:
    """What a benchmark prints on its way to its end; the time limit only ends a benchmark that hangs."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), *options], capture_output=True, text=True, timeout=1800, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_profile_of_a_plan_counts_samples() -> None:
    """Which parts are among the samples depends on the machine."""
    assert re.match(r"20 tables, [\d,]+ samples; ", run("plan_profile.py", "--tables", "20"))


def test_a_sample_counts_for_the_innermost_known_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    from plan_profile import part_of

    assert part_of(("JSONDecoder.raw_decode", "JSONDecoder.decode", "parse_commit", "read_many", "main")) == "JSON"
    assert part_of(("strip", "parse_commit", "read_many", "main")) == "commits"
    assert part_of(("main", "<module>")) == part_of(()) == "everything else"


def test_every_function_that_the_profile_knows_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function with a new name would silently count for its caller."""
    monkeypatch.syspath_prepend(str(FOLDER))
    from plan_profile import PARTS

    sources = [Path(json.decoder.__file__), *(FOLDER.parent / "tablectl").rglob("*.py")]
    known = {name for source in sources for name in qualified_names(source)}
    known.add("_find_and_load")  # of importlib._bootstrap, which Python has frozen
    assert PARTS.keys() - known == set()


def qualified_names(source: Path) -> Iterator[str]:
    """Those of all functions in a file, as a stack names them."""
    left = [compile(source.read_bytes(), str(source), "exec")]
    while left:
        code = left.pop()
        yield code.co_qualname
        left += [each for each in code.co_consts if isinstance(each, CodeType)]


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
