"""Exit codes, and how errors read."""

from __future__ import annotations

from itertools import combinations

import pytest

from tablectl.model.errors import (
    MOST_PROBLEMS,
    EngineError,
    ExitCode,
    InputError,
    LiveError,
    PlanFileError,
    Problem,
    TablectlError,
    UsageError,
    WindowError,
    error_of,
    one_line,
)

_ORDER = (ExitCode.ERROR, ExitCode.PARTIAL, ExitCode.WINDOW, ExitCode.REFUSED, ExitCode.CHANGES)


def test_codes_are_the_documented_ones() -> None:
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 5, 64]


def test_of_two_the_first_in_the_order_1_5_4_3_2_is_returned() -> None:
    for one, other in combinations(_ORDER, 2):
        assert ExitCode.worst(one, other) is ExitCode.worst(other, one) is one


def test_nothing_wrong_is_zero() -> None:
    assert ExitCode.worst() is ExitCode.DONE
    assert ExitCode.worst(ExitCode.DONE, ExitCode.DONE) is ExitCode.DONE
    assert ExitCode.worst(ExitCode.DONE, ExitCode.CHANGES) is ExitCode.CHANGES


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TablectlError("x"), 1),
        (InputError(()), 1),
        (LiveError("x"), 1),
        (EngineError("x"), 1),
        (PlanFileError("x"), 3),
        (WindowError("x"), 4),
        (UsageError("x"), 64),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_each_error_has_its_code(error: TablectlError, code: int) -> None:
    assert error.exit_code == code


def test_an_error_says_what_is_wrong_and_the_fix() -> None:
    assert str(TablectlError("the disk is full", "make room")) == "the disk is full\n  hint: make room"
    assert str(TablectlError("the disk is full")) == "the disk is full"


def test_problems_come_sorted_by_place_each_with_its_hint() -> None:
    later = Problem("b.yaml", 2, 5, "unknown key", "did you mean `clustering`?")
    whole = Problem("a.yaml", 0, 0, "larger than 1 MB")
    assert str(InputError((later, whole))) == (
        "a.yaml: larger than 1 MB\nb.yaml:2:5: unknown key\n  hint: did you mean `clustering`?"
    )


def test_no_error_repeats_the_credentials_of_a_location() -> None:
    error = TablectlError("403 for s3://KEY:SECRET@bkt/t", "open https://host/t?sig=SECRET")
    assert str(error) == "403 for s3://…@bkt/t\n  hint: open https://host/t?sig=…"
    assert one_line(OSError("https://me:SECRET@host: no")) == "OSError: https://…@host: no"


def test_the_first_problems_of_each_file_are_told_and_how_many_more_there_are() -> None:
    problems = [Problem(file, line, 1, "wrong") for file in ("a", "b") for line in range(1, 1001)]
    told = InputError(tuple(problems)).problems
    assert len(told) == 2 * (MOST_PROBLEMS + 1)
    assert [each.message for each in told if not each.line] == ["and 900 more problems"] * 2
    assert len(InputError(tuple(problems[:MOST_PROBLEMS])).problems) == MOST_PROBLEMS


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (
            PermissionError(13, "Permission denied", "/lake/a/_delta_log"),
            "/lake/a/_delta_log: Permission denied",
            "right",
        ),
        (OSError(28, "No space left on device"), "No space left on device", "look at the place"),
    ],
)
def test_a_right_that_was_taken_away_is_not_to_be_reported_as_a_fault_of_the_program(
    error: OSError, message: str, hint: str
) -> None:
    found = error_of("lake.sales.orders", error)
    assert (found.message, hint in found.hint) == (message, True)
    assert "please report" not in found.hint
