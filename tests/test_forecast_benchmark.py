"""The workloads of ``benchmarks/forecast.py``, and what it computes from their results."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tablectl.conflicts.past_writers import past_writers
from tablectl.log.reader import read_commits
from tests.commands.log_lake import create
from tests.conflicts.test_past_writers import BASIS

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    import _forecast_writers  # from the folder of the benchmarks

    yield _forecast_writers
    sys.modules.pop("_forecast_writers", None)


def test_a_seed_always_gives_the_same_workload(writers: ModuleType) -> None:
    assert writers.generate(7) == writers.generate(7)
    assert writers.generate(7) != writers.generate(8)
    assert {len(writers.generate(seed)) for seed in range(40)} == {2, 3, 4, 5}


def test_a_writer_writes_one_transaction_after_the_other(writers: ModuleType) -> None:
    table = writers.generate(7)
    found = writers.simulate(table, 0.0, 7 * writers.DAY, 7)
    assert found == writers.simulate(table, 0.0, 7 * writers.DAY, 7)
    for number, each in enumerate(table):
        own = [one for one in found if one.writer == number]
        assert len(own) > 5
        assert all(before.end <= after.start for before, after in pairwise(own))
        assert {int(one.start % writers.DAY // writers.HOUR) for one in own} <= each.active


def test_the_past_in_the_log_is_what_the_writers_did(writers: ModuleType, tmp_path: Path) -> None:
    table, place = writers.generate(7), create(tmp_path / "t")
    until = 1e9 + 14 * writers.DAY
    past = [each for each in writers.simulate(table, 1e9, until, 7) if each.end < until]
    writers.write_past(str(place), table, past)
    commits = read_commits(str(place), after=-1)
    found = past_writers(commits, BASIS, "oss")
    assert found is not None
    assert found.writes == len(past) + 1  # the table's own first row
    ends = sorted(write.end for writer in found.writers for write in writer.writes)
    assert ends[1:] == pytest.approx([each.end for each in past], abs=0.001)
    files = {each["path"] for line in _actions(place) for kind, each in line.items() if kind == "add"}
    assert len(files) >= len(past)
    assert {each["path"] for line in _actions(place) for kind, each in line.items() if kind == "remove"} <= files


def _actions(place: Path) -> list[dict[str, Any]]:
    files = sorted((place / "_delta_log").glob("*.json"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def applied(*, proposed: bool, predicted: float, failed: int) -> dict[str, Any]:
    return {"proposed": proposed, "predicted": predicted, "failed": failed}


def line(seed: int, *moments: dict[str, Any]) -> dict[str, Any]:
    return {"seed": seed, "writers": ["merge"], "writes": 40, "applied": list(moments)}


def test_the_summary_has_the_error_and_what_waiting_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.syspath_prepend(str(FOLDER))
    import forecast  # as above

    assert forecast.ratio(1.5, 1.5) == 0
    assert forecast.ratio(0.0, 0.0) == 0
    assert forecast.ratio(3.5, 1.5) == 1
    random, quiet = applied(proposed=False, predicted=3.5, failed=1), applied(proposed=True, predicted=0.0, failed=0)
    text = forecast.summary([line(2, random, quiet), line(1, applied(proposed=False, predicted=1.5, failed=4), quiet)])
    assert "2 workloads, 4 moments" in text
    assert "median |log2(predicted / counted)| at random moments: 1.29" in text
    assert "loss avoided by waiting: 100% (5 failed writes at random moments, 0 at the proposed ones)" in text


def test_a_seed_that_ran_again_counts_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.syspath_prepend(str(FOLDER))
    import _results  # as above

    file = tmp_path / "results.jsonl"
    assert (_results.read(file), _results.next_seed(file)) == ([], 1)
    lines = [{"seed": seed, "writes": number} for number, seed in enumerate([1, 2, 1])]
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert [(each["seed"], each["writes"]) for each in _results.read(file)] == [(1, 2), (2, 1)]
    assert _results.next_seed(file) == 3


def test_a_simulated_workload_needs_no_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.syspath_prepend(str(FOLDER))
    import forecast  # as above

    measured = forecast.measure(None, tmp_path, 7)
    assert measured.writes > 100
    assert [each.proposed for each in measured.applied] == [False] * forecast.MOMENTS + [True] * forecast.MOMENTS
    assert all(each.failed == each.in_flight for each in measured.applied)
    assert sum(each.predicted for each in measured.applied[: forecast.MOMENTS]) > 0.2
