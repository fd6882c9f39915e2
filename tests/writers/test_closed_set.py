"""What tablectl-guard ships: what its guards load, on every Python that jobs may bring."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import tablectl

_ROOT = Path(tablectl.__file__).parents[1]
_LIBRARIES = {"obstore", "boto3", "botocore", "sqlglot", "typing_extensions"}
"""What they import next to the standard library: boto3 for AWS profiles alone, sqlglot for statements."""


def _shipped() -> list[Path]:
    """The modules of tablectl-guard, as its build finds them."""
    spec = spec_from_file_location("guard_build", _ROOT / "packages" / "tablectl-guard" / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    build = module_from_spec(spec)
    spec.loader.exec_module(build)
    files: list[Path] = build.files(_ROOT)
    return [each for each in files if each.suffix == ".py"]


SHIPPED = _shipped()

_USE = """
import os, sys, tablectl
os.mkdir(sys.argv[1] + "/_delta_log")
tablectl.guard_batch, tablectl.guard_session, tablectl.retry_on_conflict, tablectl.GuardTimeout, tablectl.TablectlError
with tablectl.guard(None, sys.argv[1], "append"):
    pass
print(*(sys.modules[name].__file__ for name in sys.modules if name.startswith("tablectl")))
"""


def test_guards_and_retries_load_only_what_ships(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _USE, str(tmp_path)], cwd=_ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {Path(each).relative_to(_ROOT) for each in done.stdout.split()}
    assert Path("tablectl/writers/guard.py") in loaded
    assert loaded <= set(SHIPPED)


def test_what_ships_needs_no_library_but_obstore() -> None:
    needed = set()
    for file in SHIPPED:
        for node in ast.walk(ast.parse((_ROOT / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                needed |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                needed.add(node.module.partition(".")[0])
    assert needed - set(sys.stdlib_module_names) - {"tablectl"} <= _LIBRARIES


def test_ruff_refuses_a_match_in_every_module_that_ships_and_in_no_other(tmp_path: Path) -> None:
    shutil.copy(_ROOT / "pyproject.toml", tmp_path)
    for each in (_ROOT / "tablectl").rglob("*.py"):
        copy = tmp_path / each.relative_to(_ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("match 1:\n    case _:\n        pass\n", encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise", "--select=F", "tablectl"]
    told = subprocess.run(ruff, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    refused = {Path(line.partition(":")[0]) for line in told.splitlines() if "`match` statement on Python 3.9" in line}
    assert refused == set(SHIPPED)


_AFTER_3_9 = {"ParamSpec", "Self", "TypeAlias", "assert_never", "StrEnum", "UTC"}


@pytest.mark.parametrize("file", SHIPPED, ids=str)
def test_what_ships_runs_on_python_3_9(file: Path) -> None:
    """Jobs bring their own Python. ``tests/packaging`` runs it on every Python that the machine has."""
    tree = ast.parse((_ROOT / file).read_text(encoding="utf-8"), feature_version=(3, 9))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "dataclass":
            assert {"slots", "kw_only"}.isdisjoint(each.arg for each in node.keywords)
        if (
            isinstance(node, ast.ImportFrom)
            and node.module in {"typing", "enum", "datetime"}
            and file.name != "compat.py"
        ):
            late = _AFTER_3_9 & {each.name for each in node.names}
            assert not late, f"take {late} from tablectl.support.compat"
