"""``--stop-if-failed`` and ``--stop-if-silent``: which thresholds are reached, and what is unknown."""

from __future__ import annotations

import pytest

from tablectl.applying.canary import _stop_if, _why_rest_stays
from tablectl.model.run_report import CanaryTable, RunOutcome, TableRun
from tablectl.policies.config import RunSettings


def stop_if(failed: int, silent: int = 0) -> RunSettings:
    return RunSettings(stop_if_failed=failed, stop_if_silent=silent)


def why(failed: int, silent: int = 0, *, unknown: tuple[str, ...] = (), over: bool = True) -> str:
    """Why no other table starts after two failed tables with four silent writers, and one that may be unknown."""
    writes = None if unknown else 3
    seen = [
        CanaryTable(table="a", writes=3, silent=("x", "y", "z")),
        CanaryTable(table="b", writes=3, stopped=("q",)),
        CanaryTable(table="c", writes=writes, unknown=unknown),
    ]
    runs = {each.table: TableRun(name=each.table, outcome=RunOutcome.APPLIED) for each in seen}
    return _why_rest_stays(stop_if(failed, silent), seen, runs, over=over).split(":")[0]


@pytest.mark.parametrize(
    ("failed", "silent", "reason"),
    [
        (1, 0, "`--stop-if-failed 1` is reached, by 2"),
        (2, 0, "`--stop-if-failed 2` is reached, by 2"),
        (3, 4, "`--stop-if-silent 4` is reached, by 4"),
        (2, 4, "`--stop-if-failed 2` is reached, by 2; `--stop-if-silent 4` is reached, by 4"),
        (3, 5, ""),
    ],
)
def test_a_threshold_is_reached_by_its_own_count(failed: int, silent: int, reason: str) -> None:
    assert why(failed, silent) == reason


@pytest.mark.parametrize("unknown", [(), ("access is denied",)])
def test_a_threshold_of_zero_is_off(unknown: tuple[str, ...]) -> None:
    assert why(0, 0, unknown=unknown) == ""
    assert "failed" not in why(0, 5, unknown=unknown)


def test_an_unknown_count_neither_reaches_a_threshold_nor_stays_below_it() -> None:
    unknown = ("access is denied",)
    assert why(2, 5, unknown=unknown) == "`--stop-if-failed 2` is reached, by 2"  # what is known is enough
    assert why(3, unknown=unknown) == "whether `--stop-if-failed 3` is reached is unknown"
    assert why(3, 5, unknown=unknown) == ("whether `--stop-if-failed 3` or `--stop-if-silent 5` is reached is unknown")
    assert why(3, unknown=unknown, over=False) == ""  # it may become known


def test_they_are_written_as_their_options_are() -> None:
    assert (_stop_if(stop_if(1)), _stop_if(stop_if(0, 3)), _stop_if(stop_if(2, 3))) == (
        "failed 1",
        "silent 3",
        "failed 2 or silent 3",
    )
