"""What holds for the code as a whole: who imports what, and lists that must agree."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from itertools import product
from pathlib import Path

import pytest

import tablectl
from tablectl.attributes.policy import ATTRIBUTES, Policy
from tablectl.model.errors import ExitCode
from tablectl.planning import lint

_PACKAGE = Path(tablectl.__file__).parent
_FILES = sorted(_PACKAGE.rglob("*.py"))
_HEAVY = ("pyspark", "delta", "pyarrow", "deepdiff", "databricks", "py4j", "pandas")


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _importers(module: str) -> set[str]:
    """The packages (or top-level modules) of tablectl that import a module, be it inside a function."""
    return {
        file.relative_to(_PACKAGE).parts[0]
        for file in _FILES
        if any(name == module or name.startswith(f"{module}.") for name in _imports(file))
    }


@pytest.mark.parametrize(
    ("module", "importers"),
    [
        ("pydantic", {"model"}),
        ("pyspark", {"engine"}),
        ("delta", {"engine"}),
        ("py4j", {"engine"}),
        ("yaml", {"specs"}),
        ("pyarrow", {"live"}),
        ("typer", {"cli"}),
        ("rich", {"cli"}),
        ("obstore", {"live", "window"}),
        ("deepdiff", {"planning"}),
    ],
)
def test_one_importer_for_each_library(module: str, importers: set[str]) -> None:
    assert _importers(module) <= importers


@pytest.mark.parametrize("package", ["model", "attributes", "conflicts", "planning", "reports"])
def test_the_core_reads_no_clock_no_environment_no_file(package: str) -> None:
    pure = {"os", "time", "random", "uuid", "pathlib", "socket", "subprocess", "threading", "io", "logging"}
    for file in (_PACKAGE / package).rglob("*.py"):
        assert pure.isdisjoint(name.partition(".")[0] for name in _imports(file)), file


@pytest.mark.parametrize("module", ["tablectl", "tablectl.api", "tablectl.cli.app", "tablectl.workflow"])
def test_heavy_libraries_are_loaded_only_when_they_are_needed(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "tablectl" in loaded
    assert set(loaded).isdisjoint(_HEAVY)


def test_the_package_alone_costs_nothing() -> None:
    code = "import sys, tablectl; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"pydantic", "yaml", "typer"}.isdisjoint(loaded)


def test_every_field_of_a_policy_has_its_attribute_in_the_same_order() -> None:
    assert [attribute.name for attribute in ATTRIBUTES] == [field.name for field in fields(Policy)]


def test_exit_codes_are_chosen_in_the_documented_order() -> None:
    order = [1, 5, 4, 3, 2, 0]
    for one, other in product(order, order):
        assert ExitCode.worst(ExitCode(one), ExitCode(other)) == min(one, other, key=order.index)


def test_codes_of_findings_are_unique() -> None:
    tree = ast.parse(Path(lint.__file__).read_text(encoding="utf-8"))
    codes = [
        keyword.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    ]
    assert codes
    assert len(set(codes)) == len(codes)
