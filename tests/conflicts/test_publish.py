"""``docs/generated/conflicts.md`` is what the generator makes of the rules and the measurements of today."""

from __future__ import annotations

import pytest

from tablectl.delta.protocol import Client
from tests.conflicts.interleavings import CASES, cell_of, measured
from tests.conflicts.publish import PAGE, page, unknown_facts


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.conflicts.publish"


def test_every_fact_that_an_outcome_names_is_explained() -> None:
    assert unknown_facts() == set()


VERSIONS = {"4.0": (4, 0, 1), "4.1": (4, 1, 0), "4.3": (4, 3, 1), "4.4": (4, 4, 0)}
"""The versions of Delta that were measured: that of the other tests, and those of `make test-versions`."""


def test_every_case_was_measured_on_every_version() -> None:
    known, quick = measured(), {case.id for case in CASES if not case.slow}
    assert quick <= set(known) <= {case.id for case in CASES}
    assert {minor for outcomes in known.values() for minor in outcomes} == set(VERSIONS)


@pytest.mark.parametrize("minor", VERSIONS)
def test_the_matrices_say_what_was_measured(minor: str) -> None:
    client, known, compared = Client("delta-spark", VERSIONS[minor]), measured(), 0
    for case in CASES:
        found, outcome = cell_of(case, client), known.get(case.id, {}).get(minor)
        if found and outcome is not None:
            cell, overlapping = found
            expected = cell.overlapping if overlapping else cell.separate
            assert outcome == (expected.conflict or ""), case.id
            compared += 1
    assert compared >= 55
