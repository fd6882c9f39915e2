from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

import tablectl
from tests.writers.conftest import Place


class MetadataChangedException(Exception):  # noqa: N818  # Delta's name
    """As ``delta.exceptions`` defines it."""


class CommitFailedError(Exception):
    """As ``deltalake.exceptions`` defines it."""


class ConnectError(Exception):
    """As Spark Connect raises it."""

    def getCondition(self) -> str:  # noqa: N802  # Spark's name
        return "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"


CONFLICTS = [
    MetadataChangedException("changed"),
    ConnectError("files were added"),
    CommitFailedError("Failed to commit transaction: Metadata changed since last commit."),
    RuntimeError(": io.delta.exceptions.ConcurrentWriteException: [DELTA_CONCURRENT_WRITE] a concurrent …"),
]


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    monkeypatch.setattr("random.uniform", lambda low, high: (low, high)[1])
    return slept


def failing(*errors: Exception) -> tuple[Any, list[int]]:
    """A function that fails so many times, and then does its work."""
    left, runs = list(errors), list[int]()

    def work(rows: int) -> str:
        """Writes."""
        runs.append(rows)
        if left:
            raise left.pop(0)
        return f"wrote {rows}"

    return work, runs


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_the_whole_function_runs_again_after_a_conflict(
    conflict: Exception, sleeps: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    work, runs = failing(conflict, conflict)
    assert tablectl.retry_on_conflict()(work)(3) == "wrote 3"
    assert runs == [3, 3, 3]
    told = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == len(sleeps) == 2
    assert "work: DELTA_" in told[0].message
    assert "in run 1 of 5" in told[0].message


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        CommitFailedError("The transaction includes Remove action with data change but Delta table is append-only"),
        tablectl.GuardTimeout("waited"),
    ],
)
def test_any_other_error_is_raised_at_once(error: Exception, sleeps: list[float]) -> None:
    work, runs = failing(error)
    with pytest.raises(type(error)) as caught:
        tablectl.retry_on_conflict()(work)(1)
    assert caught.value is error
    assert (len(runs), sleeps) == (1, [])


def test_an_error_that_cannot_be_printed_is_raised_as_it_is(sleeps: list[float]) -> None:
    class GoneError(Exception):
        def __str__(self) -> str:
            raise ConnectionError("the JVM is gone")

    work, _ = failing(GoneError())
    with pytest.raises(GoneError):
        tablectl.retry_on_conflict()(work)(1)


def test_it_gives_up_with_the_last_conflict(sleeps: list[float]) -> None:
    conflicts = [MetadataChangedException(str(n)) for n in range(9)]
    work, runs = failing(*conflicts)
    with pytest.raises(MetadataChangedException) as caught:
        tablectl.retry_on_conflict(attempts=3)(work)(1)
    assert caught.value is conflicts[2]
    assert len(runs) == 3


def test_pauses_grow_to_a_bound(sleeps: list[float]) -> None:
    work, _ = failing(*[MetadataChangedException()] * 6)
    tablectl.retry_on_conflict(attempts=7, base=0.5, longest=6)(work)(1)
    assert sleeps == [0.5, 1.0, 2.0, 4.0, 6, 6]


def test_they_are_random_from_nothing_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that writers which failed together do not meet again."""
    bounds: list[tuple[float, float]] = []

    def least(low: float, high: float) -> float:
        bounds.append((low, high))
        return low

    monkeypatch.setattr("random.uniform", least)
    work, _ = failing(MetadataChangedException())
    tablectl.retry_on_conflict()(work)(1)
    assert bounds == [(0, 0.5)]


def test_one_attempt_is_not_a_retry(sleeps: list[float]) -> None:
    work, runs = failing(MetadataChangedException())
    with pytest.raises(MetadataChangedException):
        tablectl.retry_on_conflict(attempts=1)(work)(1)
    assert len(runs) == 1


def test_the_function_keeps_its_name() -> None:
    work, _ = failing()
    assert tablectl.retry_on_conflict()(work).__doc__ == "Writes."


def test_mistakes_show_at_once() -> None:
    def generator() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="needs its parentheses"):
        tablectl.retry_on_conflict(generator)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="retry_on_conflict cannot wrap"):
        tablectl.retry_on_conflict()(generator)
    with pytest.raises(ValueError, match="attempts 0"):
        tablectl.retry_on_conflict(attempts=0)
    with pytest.raises(ValueError, match="base -1"):
        tablectl.retry_on_conflict(base=-1)


def test_with_the_retry_outside_each_run_has_a_guard_of_its_own_and_none_sleeps(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, int]] = []
    asleep: list[dict[str, int]] = []
    monkeypatch.setattr("time.sleep", lambda _seconds: asleep.append(place.guards))

    @tablectl.retry_on_conflict()
    @tablectl.guard(None, str(place))
    def load() -> None:
        seen.append(place.guards)
        if len(seen) < 3:
            raise MetadataChangedException

    load()
    assert len({guard for guards in seen for guard in guards}) == 3
    assert asleep == [{}, {}]


def test_with_the_retry_inside_one_guard_covers_all_runs(place: Place, sleeps: list[float]) -> None:
    seen: list[dict[str, int]] = []

    @tablectl.guard(None, str(place))
    @tablectl.retry_on_conflict()
    def load() -> None:
        seen.append(place.guards)
        if len(seen) < 3:
            raise MetadataChangedException

    load()
    assert len({guard for guards in seen for guard in guards}) == 1
