"""``properties``: keys that may stand there, values taken to the letter."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.attributes.policy import why_refused
from tablectl.model.errors import InputError
from tablectl.policies.declared_tables import Specs

Read = Callable[..., Specs]
Wrong = Callable[..., list[str]]


def test_keys_are_canonical_and_values_exact(read: Read) -> None:
    text = """
version: 1
tables:
  a.b:
    properties:
      delta.APPENDONLY: TRUE_
      Owner.Team: "  pay'ments \\\\ \\n "
      sampling: 42
      flag: true
      home: ${env:HOME}
      literal: $${NAME}
      filled: <${NAME}>
      gone: null
      gone too:
""".replace("TRUE_", '"TRUE"')
    (spec,) = read(text, variables={"NAME": "x"}).tables
    assert spec.policy.properties == {
        "delta.appendOnly": "true",
        "Owner.Team": "  pay'ments \\ \n ",
        "sampling": "42",
        "flag": "true",
        "home": "${env:HOME}",
        "literal": "${NAME}",
        "filled": "<x>",
        "gone": None,
        "gone too": None,
    }
    assert str(spec.sources["properties.delta.appendOnly"]) == "policies.yaml:6:7"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            "delta.isolationLevel: Serializable",
            ('"delta.isolationLevel" has an attribute of its own\n  hint: declare `isolation:` instead'),
        ),
        ("delta.constraints.c: x > 1", '"delta.constraints.c" has an attribute of its own'),
        ("delta.feature.v2Checkpoint: supported", '"delta.feature.v2Checkpoint" raises the protocol'),
        ("delta.columnMapping.maxColumnId: 1", '"delta.columnMapping.maxColumnId" is written by Delta itself'),
        ("delta.minReaderVersion: 3", '"delta.minReaderVersion" is written by Delta itself'),
        ("owner: me", '"owner" is reserved by Spark'),
        (
            "delta.appendOnlyy: true",
            '"delta.appendOnlyy" is not known to Delta\n  hint: did you mean `delta.appendOnly`?',
        ),
        ("delta.xyz: 1", "check its spelling"),
        ("delta.tuneFileSizesForRewrites: true", "exists only in the databricks dialect"),
        ('"a\\nb": 1', "a property key needs text without control characters"),
        ('"": 1', "a property key needs text"),
        ("delta.appendOnly: maybe", '"maybe" is not a value of delta.appendOnly: it needs true or false'),
        ("delta.checkpointRetentionDuration: 1 month", "months and years have no fixed length"),
        ("delta.checkpointRetentionDuration: " + "9" * 5000, "it needs an interval such as"),
        ("delta.checkpointInterval: 0", "it needs a whole number of at least 1"),
        ("delta.CheckpointInterval: 1, delta.checkpointInterval: 2", "is declared twice: first on line 3"),
        ("a: no", 'YAML reads no as true or false, not as text\n  hint: quote it: "no"'),
        ("a: 12:30", 'YAML reads 12:30 as a number, not as text\n  hint: quote it: "12:30"'),
        ("a: 010", 'quote it: "010"'),
        ("a: 2024-01-31", 'YAML reads 2024-01-31 as a date, not as text\n  hint: quote it: "2024-01-31"'),
        ("a: [b]", "`properties.a` takes text or null, not a list"),
        ("delta: {appendOnly: true}", 'hint: write whole keys, such as "delta.appendOnly"'),
        ('a: "x\\0"', "cannot be stored: it holds a NUL character"),
    ],
)
def test_what_is_refused(table_wrong: Wrong, entry: str, problem: str) -> None:
    (said,) = table_wrong(f"properties: {{{entry}}}")
    assert problem in said


def test_the_dialect_decides_what_is_known(read: Read, table_wrong: Wrong) -> None:
    text = "version: 1\ntables:\n  a.b: {properties: {delta.autoOptimize.autoCompact: auto}}"
    (spec,) = read(text, dialect="databricks").tables
    assert spec.policy.properties == {"delta.autoOptimize.autoCompact": "auto"}
    (said,) = table_wrong("properties: {delta.autoOptimize.autoCompact: auto}")
    assert "needs true or false" in said


def test_half_a_character_is_refused(read: Read) -> None:
    with pytest.raises(InputError, match="lone surrogate"):
        read("version: 1\ntables:\n  a.b: {properties: {a: '${V}'}}", variables={"V": "\udc80"})


def _yaml(text: str) -> str:
    """A text in YAML's double quotes. JSON's are the same but for characters that it writes as two."""
    return "".join(char if char < "\x7f" else f"\\U{ord(char):08X}" for char in json.dumps(text, ensure_ascii=False))


_KEYS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]))
_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@settings(deadline=None)
@given(value=_TEXTS)
def test_any_value_arrives_as_it_was_written(read: Read, value: str) -> None:
    text = f"version: 1\ntables:\n  a.b:\n    properties:\n      k: {_yaml(value.replace('${', '$${'))}\n"
    (spec,) = read(text).tables
    assert spec.policy.properties == {"k": value}


@settings(deadline=None)
@given(key=_KEYS.filter(lambda key: why_refused(key, "oss") is None and not key.lower().startswith("delta.")))
def test_any_key_of_the_user_arrives_as_it_was_written(read: Read, key: str) -> None:
    (spec,) = read(f"version: 1\ntables:\n  a.b:\n    properties:\n      ? {_yaml(key)}\n      : v\n").tables
    assert spec.policy.properties == {key: "v"}
