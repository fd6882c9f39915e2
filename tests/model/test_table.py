"""Protocols, clients, and how properties are found."""

from __future__ import annotations

import pytest

from tablectl.delta.protocol import Client, Protocol
from tablectl.model.commit import Commit
from tests.builders import live_table

_DOMAINS = frozenset({"clustering", "domainMetadata"})


def _set(*names: str) -> frozenset[str]:
    return frozenset(names)


@pytest.mark.parametrize(
    ("protocol", "feature", "supported"),
    [
        (Protocol(1, 2), "appendOnly", True),
        (Protocol(1, 2), "changeDataFeed", False),
        (Protocol(1, 4), "changeDataFeed", True),
        (Protocol(2, 5), "columnMapping", True),
        (Protocol(1, 6), "columnMapping", False),  # it needs readers to know it too
        (Protocol(1, 6), "identityColumns", True),
        (Protocol(1, 6), "deletionVectors", False),
        (Protocol(1, 7, _set(), _set("clustering")), "clustering", True),
        (Protocol(1, 7, _set(), _set("clustering")), "appendOnly", False),
    ],
)
def test_features_of_numbered_protocols_are_implied(protocol: Protocol, feature: str, supported: bool) -> None:
    assert protocol.has(feature) is supported


@pytest.mark.parametrize(
    ("before", "features", "after"),
    [
        (Protocol(1, 2), _set(), Protocol(1, 2)),
        (Protocol(1, 2), _set("appendOnly"), Protocol(1, 2)),
        (Protocol(1, 1), _set("appendOnly", "invariants"), Protocol(1, 2)),
        (Protocol(1, 2), _set("checkConstraints"), Protocol(1, 3)),
        # (1, 4) would bring check constraints and generated columns too
        (
            Protocol(1, 2),
            _set("changeDataFeed"),
            Protocol(1, 7, _set(), _set("appendOnly", "invariants", "changeDataFeed")),
        ),
        (
            Protocol(1, 2),
            _set("columnMapping"),
            Protocol(2, 7, _set(), _set("appendOnly", "invariants", "columnMapping")),
        ),
        (Protocol(1, 2), _DOMAINS, Protocol(1, 7, _set(), _DOMAINS | {"appendOnly", "invariants"})),
        (
            Protocol(1, 2),
            _set("deletionVectors"),
            Protocol(3, 7, _set("deletionVectors"), _set("appendOnly", "invariants", "deletionVectors")),
        ),
        (
            Protocol(2, 5),
            _set("deletionVectors"),
            Protocol(
                3,
                7,
                _set("columnMapping", "deletionVectors"),
                _set(
                    "appendOnly",
                    "invariants",
                    "checkConstraints",
                    "changeDataFeed",
                    "generatedColumns",
                    "columnMapping",
                    "deletionVectors",
                ),
            ),
        ),
        (
            Protocol(1, 6),
            _DOMAINS,
            Protocol(
                1,
                7,
                _set(),
                _DOMAINS
                | {
                    "appendOnly",
                    "invariants",
                    "checkConstraints",
                    "changeDataFeed",
                    "generatedColumns",
                    "identityColumns",
                },
            ),
        ),
        (
            Protocol(3, 7, _set("deletionVectors"), _set("deletionVectors")),
            _set("v2Checkpoint"),
            Protocol(3, 7, _set("deletionVectors", "v2Checkpoint"), _set("deletionVectors", "v2Checkpoint")),
        ),
        (
            Protocol(3, 7, _set("deletionVectors"), _set("deletionVectors")),
            _DOMAINS,
            Protocol(3, 7, _set("deletionVectors"), _DOMAINS | {"deletionVectors"}),
        ),
    ],
    ids=lambda value: value.text() if isinstance(value, Protocol) else "+".join(sorted(value)),
)
def test_raising_a_protocol(before: Protocol, features: frozenset[str], after: Protocol) -> None:
    raised = before.raised(features)
    assert raised == after
    assert all(raised.has(feature) for feature in features)
    assert raised.raised(features) == raised


def test_a_protocol_for_people() -> None:
    assert Protocol(1, 2).text() == "reader 1, writer 2"
    assert Protocol(3, 7, _set("deletionVectors"), _DOMAINS | {"deletionVectors"}).text() == (
        "reader 3, writer 7: clustering, deletionVectors, domainMetadata"
    )


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (Client("delta-spark", (4, 4, 0)), "Delta Spark 4.4.0"),
        (Client("kernel", (4, 1)), "Delta Kernel 4.1"),
        (Client("databricks"), "Databricks"),
        (Client("unknown"), "an unknown client"),
        (Client("something-new", (1,)), "an unknown client 1"),
    ],
)
def test_a_client_for_people(client: Client, text: str) -> None:
    assert client.text() == text


def test_a_key_in_another_letter_case_is_not_the_key_that_engines_read() -> None:
    table = live_table(properties={"delta.appendonly": "true", "Owner": "ann"})
    assert table.property("delta.appendOnly") is None
    assert table.property("Owner") == "ann"
    assert table.property("owner") is None


def test_an_old_name_counts_where_the_current_one_is_not_set() -> None:
    old = {"delta.enableChangeDataCapture": "true"}
    assert live_table(properties=old).property("delta.enableChangeDataFeed") == "true"
    both = {**old, "delta.enableChangeDataFeed": "false"}
    assert live_table(properties=both).property("delta.enableChangeDataFeed") == "false"


@pytest.mark.parametrize(
    ("before", "features", "after"),
    [
        (Protocol(1, 2), _set("deletionVectors"), Protocol(1, 2)),
        (
            Protocol(3, 7, _set("deletionVectors"), _set("appendOnly", "deletionVectors", "invariants")),
            _set("deletionVectors"),
            Protocol(1, 2),
        ),
        (
            Protocol(3, 7, _set("deletionVectors"), _set("deletionVectors", "clustering", "domainMetadata")),
            _set("deletionVectors"),
            Protocol(1, 7, _set(), _set("clustering", "domainMetadata")),
        ),
        (
            Protocol(3, 7, _set("deletionVectors", "v2Checkpoint"), _set("deletionVectors", "v2Checkpoint")),
            _set("deletionVectors"),
            Protocol(3, 7, _set("v2Checkpoint"), _set("v2Checkpoint")),
        ),
    ],
)
def test_a_feature_that_leaves_takes_the_numbers_it_needed_with_it(
    before: Protocol, features: frozenset[str], after: Protocol
) -> None:
    assert before.lowered(features) == after


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("999999999999999999", 999_999_999_999_999_999),
        ("9" * 5000, 0),
        ("-7", 0),
        ("7.5", 0),
        ("٧", 0),
        ("", 0),
    ],
)
def test_a_metric_beyond_64_bits_or_without_a_number_counts_as_zero(text: str, number: int) -> None:
    assert Commit(1, 0, "OPTIMIZE", metrics={"numRemovedBytes": text}).metric("numRemovedBytes") == number


def test_the_first_of_several_names_of_a_metric_counts() -> None:
    commit = Commit(1, 0, "OPTIMIZE", metrics={"b": "2", "c": "3"})
    assert commit.metric("a", "b", "c") == 2
    assert commit.metric("a") == 0
