"""What writers need is a closed set of modules: it can be shipped without the rest of tablectl."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import tablectl

_ROOT = Path(tablectl.__file__).parents[1]
_LIBRARIES = {"obstore", "boto3", "botocore", "sqlglot", "typing_extensions"}
"""What the set imports next to the standard library: boto3 for AWS profiles alone, sqlglot for statements."""


def _writers_set() -> frozenset[str]:
    """The modules of the set, as ``pyproject.toml`` declares them; a package stands for all of its modules."""
    contracts = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (declared,) = (contract["source_modules"] for contract in contracts if contract.get("id") == "writers")
    return frozenset(module for name in declared for module in _modules(name))


def _modules(name: str) -> Iterator[str]:
    place = _ROOT / name.replace(".", "/")
    if not place.is_dir():
        yield name
    else:
        for file in place.rglob("*.py"):
            yield ".".join(file.relative_to(_ROOT).with_suffix("").parts).removesuffix(".__init__")


def _file(module: str) -> Path:
    place = _ROOT / module.replace(".", "/")
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _imports(module: str) -> Iterator[str]:
    """What a module imports when it runs."""
    tree = ast.parse(_file(module).read_text())
    checked = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in checked:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


_USE = """
import os, sys, tablectl
os.mkdir(sys.argv[1] + "/_delta_log")
tablectl.guard_batch, tablectl.retry_on_conflict, tablectl.GuardTimeout
with tablectl.guard(None, sys.argv[1], "append"):
    pass
print(*(name for name in sys.modules if name.startswith("tablectl")))
"""


def test_guards_and_retries_load_only_the_writers_set(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _USE, str(tmp_path)], cwd=_ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    parents = {"tablectl", "tablectl.delta", "tablectl.engine", "tablectl.model"}
    assert "tablectl.writers.guard" in loaded
    assert loaded - parents <= _writers_set()


def test_the_writers_set_imports_nothing_outside_of_itself() -> None:
    declared = _writers_set()
    outside = {
        (module, name)
        for module in declared
        for name in _imports(module)
        if name.startswith("tablectl") and name not in declared
    }
    assert not outside


def test_the_writers_set_needs_no_library_but_obstore() -> None:
    needed = {name.partition(".")[0] for module in _writers_set() for name in _imports(module)}
    assert needed - set(sys.stdlib_module_names) - {"tablectl"} <= _LIBRARIES


def test_the_parents_of_the_writers_set_import_nothing() -> None:
    for parent in ("tablectl.delta", "tablectl.engine", "tablectl.model"):
        assert not list(_imports(parent))


_AFTER_3_9 = {"ParamSpec", "Self", "TypeAlias", "assert_never", "StrEnum", "UTC"}


def test_the_set_runs_on_python_3_9() -> None:
    """Jobs bring their own Python. ``tests/packaging`` runs the set on every Python that the machine has."""
    for module in _writers_set() - {"tablectl.compat"}:
        tree = ast.parse(_file(module).read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "dataclass":
                assert {"slots", "kw_only"}.isdisjoint(each.arg for each in node.keywords), module
            if isinstance(node, ast.ImportFrom) and node.module in {"typing", "enum", "datetime"}:
                late = _AFTER_3_9 & {each.name for each in node.names}
                assert not late, f"{module}: take {late} from tablectl.compat"
