"""Findings of a plan."""

from __future__ import annotations

import pytest

from tablectl.model.live import Protocol
from tablectl.planning.lint import lint

_NUMBERED = Protocol(1, 2)


@pytest.mark.parametrize(
    ("before", "features", "found"),
    [
        (_NUMBERED, set(), []),
        (_NUMBERED, {"appendOnly"}, []),
        (_NUMBERED, {"changeDataFeed"}, [("P002", "writers need protocol 7 with changeDataFeed")]),
        (
            _NUMBERED,
            {"deletionVectors"},
            [
                ("P001", "readers need protocol 3 with deletionVectors"),
                ("P002", "writers need protocol 7 with deletionVectors"),
            ],
        ),
        (_NUMBERED, {"clustering"}, [("P002", "writers need protocol 7 with clustering")]),
        # What a numbered protocol implies is no news when it is written out.
        (
            Protocol(2, 5),
            {"deletionVectors"},
            [
                ("P001", "readers need protocol 3 with deletionVectors"),
                ("P002", "writers need protocol 7 with deletionVectors"),
            ],
        ),
        (
            Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"})),
            {"v2Checkpoint"},
            [
                ("P001", "readers need protocol 3 with v2Checkpoint"),
                ("P002", "writers need protocol 7 with v2Checkpoint"),
            ],
        ),
    ],
)
def test_a_raised_protocol_is_found(before: Protocol, features: set[str], found: list[tuple[str, str]]) -> None:
    findings = lint(before, before.raised(frozenset(features)))
    assert [(finding.code, finding.message) for finding in findings] == found
    assert {finding.severity for finding in findings if finding.code == "P001"} <= {"warning"}
