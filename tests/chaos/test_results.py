from __future__ import annotations

from pathlib import Path

import pytest

from chaos.check import Violation
from chaos.results import Explanation, append, explain, next_seed, read, summary


def test_lines_accumulate_and_the_next_seed_is_new(tmp_path: Path) -> None:
    path = tmp_path / "results" / "chaos.jsonl"
    assert (read(path), next_seed(path, "faults")) == ([], 1)
    facts = {"mode": "faults", "seed": 4, "fault": "kill", "hits": 2, "attempts": {"ok": 10}, "conflicts": 1}
    append(path, facts, [])
    append(path, {**facts, "seed": 5}, [Violation("rows", "t0", "lost"), Violation("rows", "t1", "lost")])
    assert next_seed(path, "faults") == 6
    assert next_seed(path, "races") == 1
    assert [line["verdict"] for line in read(path)] == ["kept", "broken"]
    assert read(path)[1]["broken"] == {"rows": 2}


def test_the_summary_counts_rounds_faults_and_broken_promises(tmp_path: Path) -> None:
    path = tmp_path / "chaos.jsonl"
    facts = {"mode": "faults", "seed": 4, "fault": "kill", "hits": 2, "attempts": {"ok": 10}, "conflicts": 1}
    append(path, facts, [])
    append(path, facts, [Violation("rows", "t0", "lost"), Violation("rows", "t1", "lost")])
    append(path, {**facts, "fault": "server", "hits": 1}, [Violation("free", "t0", "99 s")])
    lines = summary(read(path)).splitlines()
    assert lines[2] == "| kill -9 of the apply | 2 | 4 | 20 | 2 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |"
    assert lines[3] == "| kill -9 of the server | 1 | 1 | 10 | 1 | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |"
    assert lines[4] == "| all | 3 | 5 | 30 | 3 | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |"


def test_a_broken_round_is_listed_with_its_cause_and_stays_counted(tmp_path: Path) -> None:
    path = tmp_path / "chaos.jsonl"
    facts = {"mode": "faults", "seed": 4, "fault": "kill", "hits": 2, "attempts": {"ok": 10}, "conflicts": 1}
    append(path, facts, [Violation("exits", "t0", "exit code 0")])
    append(path, {**facts, "seed": 5}, [Violation("rows", "t0", "lost")])
    explain(path, Explanation("faults", 4, "harness", "an outcome was missing in its list"))
    append(path, facts, [])
    lines = summary(read(path)).splitlines()
    assert lines[2] == "| kill -9 of the apply | 3 | 6 | 30 | 3 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |"
    assert lines[-2:] == [
        "* faults 4 (kill), exits: harness: an outcome was missing in its list; the same seed again: kept",
        "* faults 5 (kill), rows: not explained",
    ]
    assert next_seed(path, "faults") == 6


def test_only_a_broken_round_can_be_explained(tmp_path: Path) -> None:
    path = tmp_path / "chaos.jsonl"
    append(path, {"mode": "faults", "seed": 4, "fault": "kill", "hits": 2}, [])
    with pytest.raises(ValueError, match="no round of faults with seed 4 is broken"):
        explain(path, Explanation("faults", 4, "harness", "none"))
