"""What holds for the code as a whole: who imports what, and lists that must agree."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import iter_modules

import pytest

import tablectl
from tablectl import lint_rules
from tablectl.lint_rules import RULES
from tablectl.lint_rules.rule import LintRule
from tablectl.model.errors import ExitCode

_PACKAGE = Path(tablectl.__file__).parent
_FILES = sorted(_PACKAGE.rglob("*.py"))
_HEAVY = ("pyspark", "delta", "pyarrow", "databricks", "py4j", "pandas")


_BY_NAME = {
    "tablectl/__init__.py": "the functions of the package, each loaded on its first use",
    "tablectl/commands/command_line.py": "the commands, each loaded when it is called",
    "tablectl/engine/spark_executors.py": "the work of an executor, whose Python may lack tablectl",
    "tablectl/engine/spark.py": "a module of Delta that some versions lack; its import registers errors",
    "tablectl/lint_rules/__init__.py": "its own modules, so that a file is enough to add a rule",
    "tablectl_guard/inject/sitecustomize.py": "the environment's own sitecustomize, which has the same name",
}
"""The files that import a module by a name in a text, which no contract sees, and what they import so."""


def test_no_other_module_imports_by_name() -> None:
    root = _PACKAGE.parent
    names = {"import_module", "__import__"}
    found = {
        str(file.relative_to(root))
        for file in (*_FILES, *(root / "tablectl_guard").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if names & {getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", "")}
    }
    assert found == set(_BY_NAME)


def test_no_function_is_longer_than_a_reader_holds_at_once() -> None:
    """Below its signature: that of a command is a list of its options."""
    long = {
        f"{file.relative_to(_PACKAGE)}:{node.name}"
        for file in _FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or node.lineno) - node.body[0].lineno + 1 > 60
    }
    assert long == set()


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the product and of its contracts, to which a test adds a module."""
    root, copied = _PACKAGE.parent, tmp_path_factory.mktemp("copied")
    shutil.copy(root / "pyproject.toml", copied)
    for package in ("tablectl", "tablectl_guard"):
        shutil.copytree(root / package, copied / package, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


def _broken_contracts(root: Path) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "KEPT" in ran.stdout, ran.stdout + ran.stderr
    return set(re.findall(r"(?m)^(.+) BROKEN", ran.stdout))


def test_the_contracts_hold(copied: Path) -> None:
    assert _broken_contracts(copied) == set()


@pytest.mark.parametrize(
    ("module", "text", "contract"),
    [
        ("later.py", "", "Imports point one way"),
        ("model/later.py", "import tablectl.policies.config", "Imports point one way"),
        ("policies/later.py", "from pyspark.sql import SparkSession", "Spark is imported by its engine"),
        ("planning/later.py", "def read():\n    import yaml", "YAML is read by policies"),
        ("reports/later.py", "import tablectl.insight.matrix", "No plan and no apply needs insight"),
        (
            "applying/later.py",
            "from tablectl.engine.spark import SparkEngine",
            "The engine is reached by its interface",
        ),
        ("conflicts/later.py", "import os", "Only these modules touch files, clocks, processes and threads"),
        ("leases/later.py", "import tablectl.model.table", "A guard needs no more than a lease and a store"),
    ],
)
def test_a_new_module_is_bound_by_the_contracts(copied: Path, module: str, text: str, contract: str) -> None:
    new = copied / "tablectl" / module
    new.write_text(f"{text}\n", encoding="utf-8")
    try:
        assert contract in _broken_contracts(copied)
    finally:
        new.unlink()


@pytest.mark.parametrize("module", ["tablectl", "tablectl.commands.command_line", "tablectl.commands.plan"])
def test_heavy_libraries_are_loaded_only_when_they_are_needed(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "tablectl" in loaded
    assert set(loaded).isdisjoint(_HEAVY)


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


def test_every_module_that_a_docstring_names_exists() -> None:
    """``engine.x`` and ``delta.x`` are also settings and properties."""
    packages = {file.parent.name for file in _PACKAGE.glob("*/__init__.py")} - {"engine", "delta"}
    named = {each for file in _FILES for each in re.findall(r"``([a-z_]+\.[a-z_]+)``", file.read_text("utf-8"))}
    paths = {each: _PACKAGE / each.replace(".", "/") for each in named if each.split(".")[0] in packages}
    assert [
        each for each, path in sorted(paths.items()) if not (path.is_dir() or path.with_suffix(".py").exists())
    ] == []


def test_codes_of_findings_are_unique() -> None:
    rules = [
        value.code
        for module in iter_modules(lint_rules.__path__)
        for value in vars(import_module(f"tablectl.lint_rules.{module.name}")).values()
        if isinstance(value, LintRule)
    ]
    assert sorted(rules) == sorted(RULES)


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for file in _FILES:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(file.relative_to(_PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


_GENERATORS = {"block_lines"}
"""Functions that only the publishers of generated pages call (``tests/*/publish.py``)."""
_OF_THE_API = {
    "to_markdown",
    "to_html",
    "_repr_html_",
    "list_commands",
    "format_commands",
    "format_options",
    "give_up_diffing",
    "default_schema",
    "field_title_should_be_set",
    "nullable_schema",
}
"""Methods that users, notebooks, typer, deepdiff and pydantic call."""


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
    called = {name for name in unused if name.startswith("__") or name.endswith("_command")}
    assert unused - _GENERATORS - _OF_THE_API - called == set()
