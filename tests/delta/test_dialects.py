"""A dialect is a record, and so is a client family: no other module names one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tablectl
from tablectl.conflicts.rules import RULES
from tablectl.delta.client_families import FAMILIES, UNKNOWN, client_in, family_of, find_family
from tablectl.delta.clients import known_clients
from tablectl.delta.dialects import DATABRICKS, DIALECTS, OPEN_SOURCE, dialect_for, dialect_of

_SOURCES = Path(tablectl.__file__).parent
_RECORDS = {"delta/client_families.py", "delta/dialects.py"}
_OTHER_MEANINGS = {
    ("engine/local_spark.py", "delta-spark"),
    ("commands/doctor.py", "delta-spark"),
    ("commands/doctor.py", "databricks"),
    ("commands/project.py", "databricks"),
    ("engine/databricks_login.py", "databricks"),
    ("catalogs/open_catalogs.py", "databricks"),
    ("engine/spark_connect.py", "databricks"),
    ("engine/databricks_warehouse.py", "databricks"),
    ("planning/table_makers.py", "delta-rs"),
    ("policies/config.py", "databricks"),
    ("writers/spark_methods.py", "databricks"),
    ("policies/catalog_config.py", "databricks"),
    ("policies/dbt_manifest.py", "databricks"),
    ("insight/explain_word.py", "databricks"),
}
"""Names of pages, packages and dbt's adapters, ways to log in to a catalog, the address of Databricks Connect."""
_NAMES = {*(each.name for each in FAMILIES), *(each.name for each in DIALECTS)}


def _named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in _NAMES:
            yield node.lineno, str(node.value)


def test_no_module_outside_of_the_records_names_a_dialect_or_a_family() -> None:
    found = [
        f"{name}:{line}: {value!r}"
        for path in sorted(_SOURCES.rglob("*.py"))
        if (name := path.relative_to(_SOURCES).as_posix()) not in _RECORDS
        for line, value in _named(ast.parse(path.read_text("utf-8")))
        if (name, value) not in _OTHER_MEANINGS
    ]
    assert found == []


def test_the_check_finds_a_comparison_with_a_name() -> None:
    assert list(_named(ast.parse('if dialect == "databricks":\n    pass'))) == [(1, "databricks")]


def test_every_family_has_conflict_rules() -> None:
    assert {each.family.name for each in RULES} == {each.name for each in FAMILIES}
    assert all(each.strictest.family is each.family for each in RULES)
    assert all(release.family is each.family for each in RULES for release in each.releases)


def test_every_engine_of_the_client_data_is_a_family() -> None:
    assert {each.engine for each in known_clients() if each.engine} <= {each.name for each in FAMILIES}


def test_an_unknown_engine_is_the_unknown_family() -> None:
    assert family_of("duckdb") is UNKNOWN
    assert client_in("duckdb/1.0") == (UNKNOWN, ())


@pytest.mark.parametrize("text", ["delta-spark", "spark", "delta", "dbr", "deltalake", "kernel", "unknown"])
def test_a_family_is_found_by_name_and_alias(text: str) -> None:
    found = find_family(text)
    assert found is not None
    assert text in (found.name, *found.aliases)


def test_names_and_aliases_are_used_once() -> None:
    names = [name for each in (*FAMILIES, UNKNOWN) for name in (each.name, *each.aliases)]
    assert len(names) == len(set(names))
    assert find_family("") is None


def test_a_dialect_is_found_by_name_and_by_its_runtime() -> None:
    assert [dialect_of(each.name) for each in DIALECTS] == list(DIALECTS)
    assert [dialect_for(each) for each in FAMILIES] == [DATABRICKS, OPEN_SOURCE, OPEN_SOURCE, OPEN_SOURCE]
    with pytest.raises(KeyError):
        dialect_of("fabric")
