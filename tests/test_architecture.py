"""What holds for the code as a whole: who imports what, and lists that must agree."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import tablectl
from tablectl.model import lint_rules as lint
from tablectl.model.errors import ExitCode
from tests.commands.log_lake import create

_PACKAGE = Path(tablectl.__file__).parent
_FILES = sorted(_PACKAGE.rglob("*.py"))
_HEAVY = ("pyspark", "delta", "pyarrow", "databricks", "py4j", "pandas")


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _importers(module: str) -> set[str]:
    """The packages (or top-level modules) of tablectl that import a module, even inside a function."""
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
        ("yaml", {"policies"}),
        ("pyarrow", {"log", "commands"}),
        ("typer", {"commands"}),
        ("rich", {"commands"}),
        ("obstore", {"storage"}),
        ("jinja2", {"reports"}),
        ("sqlglot", {"insight", "writers"}),
    ],
)
def test_one_importer_for_each_library(module: str, importers: set[str]) -> None:
    assert _importers(module) <= importers


def test_only_the_lists_of_commands_import_the_second_wing() -> None:
    assert _importers("tablectl.insight") - {"insight"} <= {"api.py", "cli", "notebook.py"}


@pytest.mark.parametrize("package", ["delta", "model", "attributes", "conflicts", "insight", "planning", "reports"])
def test_the_core_reads_no_clock_no_environment_no_file(package: str) -> None:
    pure = {"os", "time", "random", "uuid", "pathlib", "socket", "subprocess", "threading", "io", "logging"}
    for file in (_PACKAGE / package).rglob("*.py"):
        assert pure.isdisjoint(name.partition(".")[0] for name in _imports(file)), file


@pytest.mark.parametrize("module", ["tablectl", "tablectl.api", "tablectl.commands.app", "tablectl.workflow.plan"])
def test_heavy_libraries_are_loaded_only_when_they_are_needed(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "tablectl" in loaded
    assert set(loaded).isdisjoint(_HEAVY)


_FOR_FILES = ("yaml",)
_FOR_TABLES = ("obstore", "asyncio", "concurrent")
_FOR_READING_RECORDS = ("pydantic",)
_FOR_SPARK = ("pyspark", "delta", "py4j", "grpc", "google")
_FOR_CHECKPOINTS = ("pyarrow",)
_FOR_SOME_ANSWERS = ("rich", "pandas", "numpy", "databricks", "jinja2", "sqlglot")
_FOR_BUCKETS = ("obstore",)
_OFTEN_TOO_MUCH = (*_FOR_BUCKETS, *_FOR_READING_RECORDS, *_FOR_SPARK, *_FOR_CHECKPOINTS, *_FOR_SOME_ANSWERS)


@pytest.mark.parametrize(
    ("args", "unused"),
    [
        (["--help"], (*_FOR_FILES, *_FOR_TABLES, *_OFTEN_TOO_MUCH)),
        (["--version"], (*_FOR_FILES, *_FOR_TABLES, *_OFTEN_TOO_MUCH)),
        (["plan", "--help"], (*_FOR_FILES, *_FOR_TABLES, *_OFTEN_TOO_MUCH)),
        (["schema"], (*_FOR_FILES, *_FOR_TABLES, *_OFTEN_TOO_MUCH)),
        (["validate", "policies/one.yaml"], (*_FOR_TABLES, *_OFTEN_TOO_MUCH)),
        (["validate", "patterns.yaml"], (*_FOR_TABLES, *_OFTEN_TOO_MUCH)),
        (["explain", "lake.sales.orders", "patterns.yaml"], (*_FOR_TABLES, *_OFTEN_TOO_MUCH)),
        (["plan", "policies"], _OFTEN_TOO_MUCH),
        (["plan", "--out", "plan.json"], _OFTEN_TOO_MUCH),
        (["plan", "--format", "json"], _OFTEN_TOO_MUCH),
        (["plan", "--format", "markdown"], _OFTEN_TOO_MUCH),
        (["plan", "--format", "sarif"], _OFTEN_TOO_MUCH),
        (["plan", "--format", "junit"], _OFTEN_TOO_MUCH),
        (["plan", "--format", "html"], (*_FOR_READING_RECORDS, *_FOR_SPARK, *_FOR_CHECKPOINTS, "rich", "sqlglot")),
        (["conflicts", "{table}", "policies"], _OFTEN_TOO_MUCH),
    ],
    ids=" ".join,
)
def test_a_command_loads_only_what_it_needs(tmp_path: Path, args: list[str], unused: tuple[str, ...]) -> None:
    create(tmp_path / "orders")
    (tmp_path / "policies").mkdir()
    policy = f"version: 1\ntables:\n  delta.`{tmp_path}/orders`: {{isolation: Serializable}}\n"
    (tmp_path / "policies" / "one.yaml").write_text(policy)
    (tmp_path / "patterns.yaml").write_text("version: 1\ntables: {lake.sales.*: {isolation: Serializable}}\n")
    words = [each.replace("{table}", f"delta.`{tmp_path}/orders`") for each in args]
    command = [sys.executable, "-X", "importtime", "-m", "tablectl", *words]
    path = os.pathsep.join(each or str(Path.cwd()) for each in sys.path)
    ran = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    lines = (line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:"))
    loaded = {name.partition(".")[0] for name in lines}
    assert "tablectl" in loaded
    assert ran.stdout
    assert loaded.isdisjoint(unused)


def test_a_plan_loads_no_module_of_another_command() -> None:
    code = "import sys, tablectl.commands.plan; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    others = {"applying.run", "cluster_plan", "insight.matrix.matrix", "planning.drift", "planning.import_table"}
    others |= {"reports.run_document", "reports.drift_document", "reports.results"}
    assert {f"tablectl.{each}" for each in others}.isdisjoint(loaded)
    assert {f"tablectl.{each}" for each in others} <= {
        ".".join(("tablectl", *file.relative_to(_PACKAGE).with_suffix("").parts)) for file in _FILES
    }


def test_the_package_alone_costs_nothing() -> None:
    code = "import sys, tablectl; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"pydantic", "yaml", "typer"}.isdisjoint(loaded)


def test_no_module_hides_a_function_of_the_package() -> None:
    """An imported submodule becomes an attribute of its package, before the package's ``__getattr__`` is asked."""
    assert {path.stem for path in _PACKAGE.iterdir()}.isdisjoint(tablectl.__all__)
    for name in tablectl.__all__:
        assert getattr(tablectl, name) is not None


_GUARDED = """
import os, sys, tablectl
os.mkdir(sys.argv[1] + "/_delta_log")
with tablectl.guard(None, sys.argv[1], "append"):
    assert os.listdir(sys.argv[1] + "/_tablectl/guards")
print(*{name.partition(".")[0] for name in sys.modules})
"""


def test_a_guard_by_location_loads_no_spark(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _GUARDED, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert set(done.stdout.split()).isdisjoint({*_HEAVY, "yaml", "typer", "pydantic"})


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


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for file in _FILES:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(file.relative_to(_PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


_GENERATORS = {"codes_page"}
"""Functions that only the publishers of generated pages call (``tests/*/publish.py``)."""
_OF_THE_API = {"to_markdown", "to_html", "_repr_html_"}
"""Methods that users and notebooks call."""


def test_no_function_or_class_is_used_by_tests_alone() -> None:
    words: Counter[str] = Counter()
    for file in (*_FILES, *_PACKAGE.rglob("*.j2"), *(_PACKAGE.parent / "tablectl_guard").rglob("*.py")):
        words.update(re.findall(r"\w+", file.read_text(encoding="utf-8")))
    unused = {
        node.name
        for file in _FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and words[node.name] == 1 and not node.decorator_list
    }
    assert unused - _GENERATORS - _OF_THE_API - {name for name in unused if name.startswith("__")} == set()
