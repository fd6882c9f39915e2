"""How large the product is: files, lines and code, by package and by feature, compared with an earlier commit.

``make size`` prints the tables, as Markdown. ``tools/size_before.json`` has the figures of the
earlier commit; they are made by this module, too::

    git archive 3788ccec tablectl tablectl_guard | tar -x -C /tmp/before
    python -m tools.size json /tmp/before > tools/size_before.json

*Lines* are those that ``wc -l`` counts. *Code* are the lines that are neither blank nor only a comment, a docstring or
an import.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("tablectl", "tablectl_guard")
BEFORE = Path(__file__).with_name("size_before.json")

FEATURES: dict[str, tuple[str, ...]] = {
    "guards for writers": ("tablectl_guard/*", "writers/*"),
    "conflicts: two statements": ("statements/*", "insight/statements/*", "*between*"),
    "advice": ("advice/*", "*advice*", "*advise*"),
    "conflicts: matrix and terms": (
        "insight/*",
        "conflicts/matrix.py",
        "conflicts/operations.py",
        "conflicts/glossary.py",
        "conflicts/anomaly*",
        "conflicts/dropped_features.py",
        "conflicts/facts.py",
        "conflicts/fixes.py",
        "conflicts/row_level.py",
        "conflicts/sources.py",
        "*conflict_report*",
        "*conflicts.py",
        "*conflicts_*",
        "*explain*",
        "*explanation*",
        "*term*.py",
    ),
    "conflicts: rules and phases": ("conflicts/*",),
    "lint": ("*lint*", "*own_rules*"),
    "drift and import": ("*drift*", "*blame*", "*import*", "*live_values*", "*policy_changes*", "*adopt*", "*rename*"),
    "canary, quiet moments, streams": ("*canary*", "*quiet*", "*forecast*", "*stream*"),
    "several drivers, pace, shared windows": ("*drivers*", "*pace.py", "*shared_window*", "*turns*"),
    "many tables": (
        "*executors*",
        "*changed_policies*",
        "log/worker_processes.py",
        "*pattern_index*",
    ),
    "CI, init, lock": ("ci/*", "*/init.py", "*install*", "*/lock.py"),
    "status, runs, undo": ("*status*", "*run_history*", "*past_runs*", "*/runs*", "*undo*", "*comparison*"),
    "notify, dbt, demo, doctor": ("*notif*", "*dbt*", "*demo*", "*doctor*"),
    "catalogs and Databricks": ("catalogs/*", "*databricks*", "*managed_table*", "*unity*"),
    "bounds of hostile logs": ("*parquet*", "*budget*"),
    "log, storage, engine": ("log/*", "storage/*", "engine/*"),
    "apply and leases": ("applying/*", "leases/*", "*approval*"),
    "policies and configuration": ("policies/*", "settings*"),
    "attributes and operations": ("attributes/*", "model/operations/*"),
    "planning": ("planning/*",),
    "reports": ("reports/*",),
    "records, Delta, support": ("model/*", "delta/*", "support/*"),
    "commands and Python functions": ("*",),
}
"""The features and the patterns of their paths, below ``tablectl/``. A file belongs to the first that matches."""


@dataclass(frozen=True)
class Size:
    """Files, lines and lines of code."""

    files: int = 0
    lines: int = 0
    code: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.lines + other.lines, self.code + other.code)


def size_of(source: str) -> Size:
    """The size of one file."""
    counted: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.string.strip() and token.type != tokenize.COMMENT:
            counted.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)) or (isinstance(node, ast.Expr) and _is_docstring(node)):
            counted.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return Size(1, source.count("\n"), len(counted))


def _is_docstring(node: ast.Expr) -> bool:
    """Whether a statement is a text that stands alone: of a module, class, function or field."""
    return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def product_files(root: Path) -> list[Path]:
    """The Python files of the product."""
    return [file for package in PRODUCT for file in sorted((root / package).rglob("*.py"))]


def sizes(root: Path) -> dict[str, Size]:
    """The size of each product file, by its path below ``tablectl/`` (``tablectl_guard/`` as it is)."""
    return {
        str(each.relative_to(root)).removeprefix("tablectl/"): size_of(each.read_text(encoding="utf-8"))
        for each in product_files(root)
    }


def shape(root: Path) -> dict[str, float]:
    """How dense the code is: what must not grow where lines are saved."""
    texts = [each.read_text(encoding="utf-8") for each in product_files(root)]
    nodes = (node for text in texts for node in ast.walk(ast.parse(text)))
    functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    widths = [len(line.strip()) for text in texts for line in text.splitlines() if line.strip()]
    return {
        "functions": len(functions),
        "median lines of a function, its head included": median(
            (each.end_lineno or each.lineno) - each.lineno + 1 for each in functions
        ),
        "mean characters of a line, without indentation": round(fmean(widths), 1),
    }


def package_of(path: str) -> str:
    """The package of a file; the modules at the root are one."""
    return f"{path.partition('/')[0]}/" if "/" in path else "the root"


def feature_of(path: str) -> str:
    """The first feature that a pattern names."""
    return next(name for name, patterns in FEATURES.items() if any(fnmatch(path, each) for each in patterns))


def report(found: Mapping[str, Size]) -> dict[str, dict[str, Size]]:
    """The sizes by package, by feature and of the whole."""
    by_feature = _added((feature_of(path), size) for path, size in found.items())
    return {
        "package": dict(sorted(_added((package_of(path), size) for path, size in found.items()).items())),
        "feature": {name: by_feature[name] for name in FEATURES if name in by_feature},
        "all": _added(("the product", size) for size in found.values()),
    }


def _added(named: Iterable[tuple[str, Size]]) -> dict[str, Size]:
    total: dict[str, Size] = {}
    for name, size in named:
        total[name] = total.get(name, Size()) + size
    return total


def table(title: str, now: Mapping[str, Size], before: Mapping[str, Size]) -> str:
    """A table in Markdown: each name with its sizes before and now."""
    lines = [f"| {title} | files | lines | code |", "|---|---|---|---|"]
    for name in dict.fromkeys([*now, *before]):
        old, new = before.get(name, Size()), now.get(name, Size())
        pairs = ((old.files, new.files), (old.lines, new.lines), (old.code, new.code))
        cells = " | ".join(f"{one:,} → {other:,}" for one, other in pairs)
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)


def figures(root: Path) -> dict[str, Any]:
    """All figures, as JSON holds them."""
    rows = {kind: {name: asdict(size) for name, size in named.items()} for kind, named in report(sizes(root)).items()}
    return {**rows, "shape": shape(root)}


def page(now: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """The tables, from the figures of two commits."""

    def rows(kind: str) -> str:
        title = "" if kind == "all" else kind
        return table(title, *({name: Size(**size) for name, size in each[kind].items()} for each in (now, before)))

    shapes = "\n".join(f"| {name} | {before['shape'][name]} | {value} |" for name, value in now["shape"].items())
    return f"""# Size

The Python files of `tablectl/` and `tablectl_guard/`, at commit `3788ccec` (22 November 2026) → now.

*Lines* are those that `wc -l` counts. *Code* are the lines that are neither blank nor only a comment, a docstring
or an import. Each file belongs to one feature: the first in `tools/size.py` with a pattern that matches its path.

{rows("all")}

Fewer lines must not be denser lines:

| | before | now |
|---|---|---|
{shapes}

{rows("package")}

{rows("feature")}
"""


def main(arguments: list[str]) -> int:
    """Print the tables and write the page, or print the figures of another folder as JSON."""
    match arguments:
        case []:
            print(page(figures(ROOT), json.loads(BEFORE.read_text(encoding="utf-8"))), end="")
        case ["json", folder]:
            print(json.dumps(figures(Path(folder)), indent=1))
        case _:
            print("usage: python -m tools.size [json FOLDER]", file=sys.stderr)
            return 64
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
