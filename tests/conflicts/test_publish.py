"""``docs/generated/conflicts.md`` is what the generator makes of the rules and the measurements of today."""

from __future__ import annotations

from tests.conflicts.interleavings import CASES, cell_of, measured
from tests.conflicts.publish import PAGE, page, unknown_facts


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.conflicts.publish"


def test_every_fact_that_an_outcome_names_is_explained() -> None:
    assert unknown_facts() == set()


def test_every_case_was_measured_and_the_matrix_says_the_same() -> None:
    known = measured()
    assert {case.id for case in CASES if not case.slow} <= set(known) <= {case.id for case in CASES}
    for case in CASES:
        found, outcome = cell_of(case), known.get(case.id, {}).get("4.4")
        if found and outcome is not None:
            cell, overlapping = found
            expected = cell.overlapping if overlapping else cell.separate
            assert outcome == (expected.conflict or ""), case.id
