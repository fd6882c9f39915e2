"""The keys of a policy other than its attributes."""

from __future__ import annotations

import pytest

from tablectl.model.table_options import TableOptions
from tablectl.policies.effective_options import options_of
from tablectl.policies.parse_yaml import parse_document
from tablectl.policies.read_entry import read_entry
from tablectl.policies.value_reader import GivenValue, ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.yaml_nodes import MapNode


def read(text: str) -> tuple[dict[str, GivenValue], list[str]]:
    """The values of a map of options, and the problems."""
    reading = ValueReader(Variables({"SIZE": "2 TB"}, {}), "oss", "spark_catalog", [])
    root = parse_document(text.encode(), "p.yaml", reading.problems)
    assert isinstance(root, MapNode)
    given = read_entry(root, root.entries, reading)
    return given, [str(problem) for problem in reading.problems]


def test_what_they_take() -> None:
    given, problems = read(
        "rewrite: allowed\nmax_bytes: ${SIZE}\noptimize: full\ntruncate_history: true\n"
        "allowed_features: [deletionVectors, clustering]\nallow: [partition_writers, lockout]\n"
        "clients: {trino: '450', spark: '4.0'}\nstreams: {fraud: /checkpoints/fraud}"
    )
    assert problems == []
    assert {key: each.value for key, each in given.items()} == {
        "rewrite": "allowed",
        "max_bytes": "2000000000000",
        "optimize": "full",
        "truncate_history": "true",
        "allowed_features": ("deletionVectors", "clustering"),
        "allow": ("lockout", "partition_writers"),
        "clients.trino": "450",
        "clients.spark": "4.0",
        "streams.fraud": "/checkpoints/fraud",
    }


def test_what_holds_where_nothing_is_said() -> None:
    assert options_of({}) == TableOptions()


def test_a_consent_that_is_misspelt_is_met_with_the_right_one() -> None:
    _, (problem,) = read("allow: [partition_writer]")
    assert "did you mean" in problem.lower()
    assert "partition_writers" in problem


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ("deletion_vectors: true", "did you mean `enabled`?"),
        ("row_tracking: Off", "did you mean `disabled`?"),
        ("column_mapping: 'no'", "did you mean `none`?"),
        ("uniform: iceberg", "known here: iceberg_v1, iceberg_v2, iceberg_v3, none"),
        ("clients: {Trino: '450'}", "did you mean `trino`?"),
    ],
)
def test_a_switch_and_a_name_in_another_spelling_are_met_with_the_right_one(entry: str, hint: str) -> None:
    _, (problem,) = read(entry)
    assert hint in problem


def test_consents_become_options() -> None:
    given, _ = read("allow: [partition_writers, lockout, lockout]")
    assert options_of(given).allow == ("lockout", "partition_writers")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("rewrite: yes", '"yes" is not a value of `rewrite`'),
        ("rewrite: alowed", '"alowed" is not a value of `rewrite`'),
        ("rewrite: [allowed]", "`rewrite` takes one of allowed, refused, not a list"),
        ("optimize:", "`optimize` takes one of never, incremental, full, not nothing"),
        ("max_bytes: much", '"much" is not a size'),
        ("max_bytes: 1.5", "YAML reads 1.5 as a number, not as text"),
        ("truncate_history: 1", '"1" is not a value of `truncate_history`'),
        (
            "allowed_features: deletionVectors",
            '`allowed_features` takes a list of table features, not "deletionVectors"',
        ),
        ("streams: {fraud: relative/path}", "relative/path"),
        ("streams: {'a b': /c}", "is not a name: letters, digits, '_', '.' and '-'"),
        ("streams: [/c]", "`streams` takes a map of streams to checkpoints, not a list"),
        ("allowed_features: ['a b']", '"a b" is not a table feature'),
        ("allow: lockout", '`allow` takes a list of consents, not "lockout"'),
        ("allow: [lockouts]", '"lockouts" is not a consent of `allow`'),
        ("clients: [spark]", "`clients` takes a map of clients to versions, not a list"),
        ("clients: {Spark 4: '1'}", "`clients.Spark 4` is not a client"),
        ("clients: {spark: new}", '"new" is not a version'),
    ],
)
def test_what_is_refused(entry: str, problem: str) -> None:
    given, problems = read(entry)
    assert not given or entry.startswith("allow")
    assert len(problems) == 1
    assert problem in problems[0]
