"""300 races of delta-rs as the current transaction: the rules say what happens, as it was measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tablectl.conflicts.transactions import Conflict, ConflictResult
from tablectl.delta.protocol import Client
from tests.conflicts.delta_rs_races import COMMITTED, CURRENT, RACES, VERSION, Race, measured, remember, run_race

DELTA_RS = Client("delta-rs")


@pytest.mark.parametrize("current", CURRENT)
def test_delta_rs_does_what_the_rules_say(tmp_path: Path, current: str) -> None:
    known = measured()["races"] if "TABLECTL_MEASURED" not in os.environ else {}
    for number, race in enumerate(each for each in RACES if each.current == current):
        _check(race, tmp_path / str(number), known)
    if "TABLECTL_MEASURED" in os.environ:
        remember({**measured()["races"], **known})


def _check(race: Race, path: Path, known: dict[str, str]) -> None:
    raced = run_race(race, path)
    outcome = raced.expected
    if raced.condition:
        assert not outcome.succeeds, f"{race.id}: {raced.message}"
        conflict = Conflict(raced.condition)
        # Where rows that it read are gone, too, the statistics of the added files decide which of the two it says.
        lost = outcome.result is ConflictResult.FAILS and outcome.conflict is Conflict.APPEND
        assert conflict in {outcome.conflict, *([Conflict.DELETE_READ] if lost else [])}, f"{race.id}: {raced.message}"
        assert raced.message.startswith(conflict.message_of(DELTA_RS)), f"{race.id}: {raced.message}"
    else:
        # Where it asks the statistics of the files, it may commit although the records say that it may fail.
        assert outcome.result in {ConflictResult.COMMITS, ConflictResult.MAY_FAIL}, f"{race.id}: {outcome}"
    assert known.setdefault(race.id, raced.condition) == raced.condition


def test_there_are_three_hundred_races_and_all_are_measured() -> None:
    assert len(RACES) == len(CURRENT) * len(COMMITTED) * 2 >= 300
    assert measured()["deltalake"] == VERSION
    assert measured()["races"].keys() == {race.id for race in RACES}
