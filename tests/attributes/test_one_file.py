"""One attribute, one file, one entry in ``ATTRIBUTES``: everything else follows from the keys that it names."""

from __future__ import annotations

import ast
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import tablectl
from tablectl.attributes.base import Attribute
from tablectl.attributes.policy import (
    ATTRIBUTES,
    OWNED,
    OWNED_KEYS,
    basis_of,
    declarable_keys,
    planned_properties,
    why_refused,
)
from tablectl.attributes.policy import Policy as PolicyRecord
from tablectl.attributes.value_types import Declared
from tablectl.delta import keys
from tablectl.delta.dialects import DIALECTS
from tablectl.planning.explain_property import explain_property
from tablectl.planning.import_table import policy_of_table
from tests.builders import live_table as live

_SOURCES = Path(tablectl.__file__).parent
_STORED = [key for key in OWNED_KEYS if key != keys.CLUSTERING_COLUMNS]
_VALUES = {
    keys.ISOLATION_LEVEL: "Serializable",
    keys.COLUMN_MAPPING: "name",
    keys.UNIFORM_FORMATS: "iceberg",
    keys.STATISTICS_COLUMNS: "id",
    keys.LOG_RETENTION: "interval 60 days",
    keys.DELETED_FILE_RETENTION: "interval 60 days",
}
"""Values of the keys whose type is not boolean."""


def _declared(entry: Attribute) -> Declared:
    if entry.value_type.fields:
        return {each.name: each.words[0] for each in entry.value_type.fields}
    return ("id",) if entry.value_type.columns else entry.value_type.words[0]


def test_every_key_belongs_to_one_attribute() -> None:
    counts = Counter(key.lower() for key in OWNED_KEYS)
    assert [key for key, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("key", OWNED_KEYS)
def test_a_key_of_an_attribute_is_refused_under_properties(key: str) -> None:
    for dialect in DIALECTS:
        refused = why_refused(key.upper(), dialect.name)
        assert refused is not None
        assert refused[0] == f"{key.upper()} has an attribute of its own"
        assert refused[1].startswith(f"declare `{OWNED[key.lower()]}:")
        assert key not in declarable_keys(dialect.name)


@pytest.mark.parametrize("key", _STORED)
def test_an_undo_knows_the_stored_text(key: str) -> None:
    table = live(properties={key: "Some Text"})
    assert basis_of(table).stored_text(key) == "Some Text"


@pytest.mark.parametrize("key", _STORED)
def test_an_import_never_writes_the_key_under_properties(key: str) -> None:
    entry = policy_of_table(live(properties={key: _VALUES.get(key, "true")}), "oss")
    assert [each for each in entry.declared if each[0] == "properties"] == []
    assert not any(keys.UNIFORM_FORMATS not in each for each in entry.left_out if key in each)


@pytest.mark.parametrize("key", OWNED_KEYS)
def test_an_explanation_names_the_attribute(key: str) -> None:
    found = explain_property(key.lower(), "oss")
    assert found is not None
    assert (found.key, found.attribute) == (key, OWNED[key.lower()])


@pytest.mark.parametrize("entry", [each for each in ATTRIBUTES if set(each.keys) & set(_STORED)], ids=lambda e: e.name)
def test_lint_sees_the_planned_value(entry: Attribute) -> None:
    planned = planned_properties(PolicyRecord({entry.name: _declared(entry)}))
    assert set(planned) & {key.lower() for key in entry.keys}


def test_a_key_that_two_modules_use_is_spelled_in_one() -> None:
    spelled: dict[str, set[str]] = {}
    for path in sorted(_SOURCES.rglob("*.py")):
        name = path.relative_to(_SOURCES).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("delta."):
                spelled.setdefault(node.value.lower(), set()).add(name)
    known = {value.lower() for name, value in vars(keys).items() if name.isupper() and isinstance(value, str)}
    assert {key: where for key, where in spelled.items() if key in known and where != {"delta/keys.py"}} == {}


def test_attributes_do_not_import_each_other() -> None:
    modules = {type(each).__module__ for each in ATTRIBUTES}
    for name in modules - {"tablectl.attributes.properties"}:
        source = Path(str(import_module(name).__file__)).read_text("utf-8")
        imported = {
            node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module
        }
        assert imported & modules == set(), name
