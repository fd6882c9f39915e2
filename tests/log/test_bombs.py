"""A log that takes gigabytes to read costs its own table, little time and little memory; others are read."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tablectl.log.reader import read_commits
from tablectl.model.errors import LiveError
from tests.log.bombs import BOMBS

_SECONDS = 20
"""Of CPU, for 0.9 on a good machine: read without limits, most take minutes."""
_MEGABYTES = 200
_ADDRESSES = 3 << 30
"""Python with pyarrow maps 1 GiB, each thread 64 MiB more."""


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


@pytest.fixture(scope="session")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bombs")
    subprocess.run([sys.executable, "-m", "tests.log.bombs", str(folder), "--write"], check=True, timeout=300)
    return folder


HINTS = tuple(name for name in BOMBS if name.startswith("hint"))
"""Bombs in ``_last_checkpoint``. A directory is listed whole, so no plan opens it, and a link is refused."""


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_costs_its_own_table_only(bombs: Path, name: str) -> None:
    command = [sys.executable, "-m", "tests.log.bombs", str(bombs / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limited, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["error"] == "" if name in HINTS and "link" not in name else str(bombs / name / "bomb") in told["error"]
    assert told["good"]
    assert told["seconds"] < _SECONDS
    assert told["megabytes"] < _MEGABYTES


@pytest.mark.parametrize("name", HINTS)
def test_a_history_does_not_open_a_hint_that_is_not_a_file(bombs: Path, name: str) -> None:
    table = bombs / name / "bomb"
    with pytest.raises(LiveError, match=f"{table}/_delta_log/_last_checkpoint: cannot be read"):
        read_commits(str(table))


@pytest.mark.slow
@pytest.mark.parametrize("state_first", [True, False])
def test_a_table_with_10000_columns_and_a_million_files_is_read_within_the_same_limits(
    tmp_path: Path, state_first: bool
) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    code = f"from benchmarks.large_table import write; from pathlib import Path; write(Path({str(log)!r}), "
    subprocess.run([sys.executable, "-c", f"{code}state_first={state_first})"], check=True, timeout=300)
    command = [sys.executable, "-m", "benchmarks.large_table", str(tmp_path), "counts"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limited, check=False)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"10,000 columns, 1,000,000 files counted: ([0-9.]+) s of CPU, ([0-9]+) MB\n", done.stdout)
    assert found, done.stdout
    assert float(found[1]) < _SECONDS
    assert int(found[2]) < _MEGABYTES
