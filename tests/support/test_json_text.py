"""The one reader and writer of JSON: bounded before it parses, and used everywhere."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import tablectl
import tablectl_guard
from tablectl.model.errors import PlanFileError, UsageError
from tablectl.planning.plan_file import load_plan
from tablectl.policies.dbt_manifest import read_manifest
from tablectl.support.json_text import LARGEST, VALUES, JsonBudgetError, read_json, write_json

_WRITERS = {"dump", "dumps", "JSONEncoder", "model_dump_json", "dump_json"}
_JSON = _WRITERS | {"loads", "load", "JSONDecoder", "raw_decode", "scan_once", "model_validate_json", "validate_json"}
_OWN = {
    "support/json_text.py": "the reader and the writer",
    "support/typed_json.py": "pydantic, for text that was read and written again (planning/plan_file.py)",
    "log/worker_processes.py": "pickle, from a process of our own",
}


def _uses(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        # Other things have a ``load`` and a ``dump``, too.
        if isinstance(node, ast.Attribute) and (
            node.attr not in {"dump", "dumps", "load", "loads"} or ast.unparse(node.value) == "json"
        ):
            names |= {node.attr} & _JSON
        if isinstance(node, ast.ImportFrom) and node.module in {"json", "json.decoder"}:
            names |= {each.name for each in node.names} & _JSON
    return names


@pytest.mark.parametrize("package", [tablectl, tablectl_guard], ids=lambda each: str(each.__name__))
def test_nothing_else_reads_or_writes_json(package: Any) -> None:
    root = Path(package.__file__).parent
    files = {str(file.relative_to(root)): _uses(file) for file in root.rglob("*.py")}
    assert {name: found for name, found in files.items() if found and name not in _OWN} == {}


@pytest.mark.parametrize("text", ['{"a": [1, "é", null]}', " [1] ", "7", '"x"', "{}\n"])
def test_it_reads_what_json_reads(text: str) -> None:
    assert read_json(text) == read_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", "[1] 2", "[" * 100_000, "\x00", "nul"])
def test_everything_else_is_a_value_error(text: str) -> None:
    for given in (text, text.encode()):
        with pytest.raises(ValueError):
            read_json(given)


@pytest.mark.parametrize("text", ["[" + "[]," * VALUES + "1]", '"' + "x" * LARGEST + '"', '"' + "é" * LARGEST + '"'])
def test_a_text_above_its_limits_is_not_parsed(text: str) -> None:
    for given in (text, text.encode()):
        with pytest.raises(JsonBudgetError):
            read_json(given)


_BOMB = b'{"nodes":{},"metadata":{},"tables":[' + b"{}," * 4_000_000 + b"{}]}"


def test_a_plan_of_many_empty_values_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(PlanFileError, match="too many of its kind"):
        load_plan(_BOMB, "plan.json")


def test_so_is_a_manifest_of_dbt(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(_BOMB)
    with pytest.raises(UsageError, match="too many of its kind"):
        read_manifest(tmp_path / "manifest.json", "lake")


@pytest.mark.parametrize("node", [{"resource_type": []}, {"resource_type": "model", "config": {"materialized": {}}}])
def test_a_node_of_dbt_of_another_form_is_not_a_table(tmp_path: Path, node: object) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"nodes": {"a": node}, "metadata": {}}))
    assert read_manifest(tmp_path / "manifest.json", "lake") == ()


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@hypothesis.given(_PLAIN, st.sampled_from([1, 2]), st.booleans(), st.booleans())
def test_indented_text_is_that_of_the_standard_library(value: object, indent: int, sort: bool, ascii: bool) -> None:  # noqa: A002
    shown = json.dumps(value, indent=indent, sort_keys=sort, ensure_ascii=ascii)
    assert write_json(value, indent=indent, sort=sort, ascii=ascii) == shown


@pytest.mark.parametrize("indent", [None, 2])
def test_what_is_not_json_is_refused(indent: int | None) -> None:
    with pytest.raises(TypeError):
        write_json({"a": object()}, indent=indent)
