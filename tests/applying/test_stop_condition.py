"""``--stop-if-failed`` and ``--stop-if-silent``: which thresholds are reached, and what is unknown."""

from __future__ import annotations

import pytest

from tablectl.applying.run_context import Count, Counts, StopCondition

_NONE = Count(0)


def counts(failed: Count = _NONE, silent: Count = _NONE) -> Counts:
    return {"failed": failed, "silent": silent}


@pytest.mark.parametrize(
    ("condition", "reached"),
    [
        (StopCondition(), ("failed",)),
        (StopCondition(failed=2), ("failed",)),
        (StopCondition(failed=3, silent=4), ("silent",)),
        (StopCondition(failed=0, silent=5), ()),
        (StopCondition(failed=0), ()),
    ],
)
def test_a_threshold_is_reached_by_its_own_count(condition: StopCondition, reached: tuple[str, ...]) -> None:
    assert condition.reached(counts(Count(2), Count(4))) == reached


def test_a_threshold_of_zero_is_off() -> None:
    assert StopCondition(failed=0, silent=0).reached(counts(Count(9), Count(9))) == ()
    assert StopCondition(failed=0).unknown(counts(Count(0, unknown=True))) == ()


def test_an_unknown_count_neither_reaches_a_threshold_nor_stays_below_it() -> None:
    condition = StopCondition(failed=3, silent=1)
    assert condition.reached(counts(Count(3, unknown=True))) == ("failed",)  # what is known is enough
    assert condition.unknown(counts(Count(3, unknown=True))) == ()
    assert condition.reached(counts(Count(2, unknown=True))) == ()
    assert condition.unknown(counts(Count(2, unknown=True))) == ("failed",)
    assert condition.unknown(counts(Count(2))) == ()


def test_it_is_written_as_its_options_are() -> None:
    assert (StopCondition().text, StopCondition(0, 3).text, StopCondition(2, 3).text) == (
        "failed 1",
        "silent 3",
        "failed 2 or silent 3",
    )
