"""The Python of the pages: all of it compiles, that of docs/python.md is run, and the operators for Airflow."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tablectl
from tests.commands.log_lake import Logged, append, set_property
from tests.docs.conftest import Place
from tests.docs.pages import PAGES, ROOT, Block, blocks

PYTHON = blocks(ROOT / "docs" / "python.md")


@pytest.mark.parametrize(
    "block", [each for page in PAGES for each in blocks(page) if each.language == "python"], ids=str
)
def test_the_python_of_every_page_is_python(block: Block) -> None:
    compile(block.text, str(block), "exec")


_INNER = re.compile(r"(?m)^\s*(?:from|import)\s+(tablectl\.[\w.]+)|\b(tablectl\.[a-z_]+\.[A-Za-z_]\w*)")


def test_no_page_imports_from_a_package_inside() -> None:
    """What is inside may move with any version."""
    written = ["README.md", "packages/tablectl-guard/README.md"]
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / each for each in written)]
    code = {page: "\n".join(re.findall(r"(?s)```python\n(.*?)```", page.read_text(encoding="utf-8"))) for page in pages}
    found = {page.name: _INNER.findall(text) for page, text in code.items() if _INNER.search(text)}
    assert found == {}
    assert sum("import tablectl" in text for text in code.values()) >= 2


def arguments_of(function: Callable[..., object]) -> set[str]:
    """The names of a function's arguments."""
    return {*inspect.signature(function).parameters}


def test_functions_and_arguments_of_the_table_exist() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    named = re.findall(r"(?m)^\| `tablectl\.(\w+)\(([^)]*)\)` \|", page)
    assert [name for name, _ in named] == [
        "plan",
        "apply",
        "drift",
        "status",
        "advise",
        "lint",
        "import_tables",
        "explain",
        "conflict_report",
        "create",
        "set_defaults",
        "upkeep",
        "run_upkeep",
    ]
    for name, arguments in named:
        known = arguments_of(getattr(tablectl, name))
        assert {each.partition("=")[0] for each in re.findall(r"[a-z_]+(?:=None)?", arguments)} <= set(known), name
    assert set(re.findall(r"tablectl\.(\w+)[`(]", page)) <= {*tablectl.__all__, "yaml"}


@pytest.fixture
def here(place: Callable[[], Place]) -> Place:
    """The repository that the page speaks of."""
    made = place()
    (policy,) = [each for each in PYTHON if each.language == "yaml"]
    Path("policies").mkdir()
    Path(policy.file).write_text(policy.text)
    return made


def test_the_cells_of_the_notebook(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, in one namespace; no session is handed in, so one is opened."""
    orders = here.lake / "sales" / "orders"

    def append_rows(table: str) -> None:
        guards = list((orders / "_tablectl").rglob("*"))
        assert guards, "the guard is there while rows are written"
        append(Path(table), "WRITE", [])

    cells = [each for each in PYTHON if each.language == "python" and not each.file]
    names: dict[str, Any] = {"spark": None, "append_rows": append_rows}
    said = []
    for cell in cells:
        exec(compile(cell.text.replace("/lake/sales", str(here.lake / "sales")), str(cell), "exec"), names)
        said.append(capsys.readouterr().out)
        if "owner.team" not in Logged(orders).properties or "report" in names:
            continue
        assert Logged(orders).properties == {"owner.team": "web"}, "a plan changes nothing"
    planned, applied, shown, drifted, _ = said
    assert "lake.sales.orders properties.owner.team web → payments\n" in planned
    assert "closed ALTER TABLE `lake`.`sales`.`orders`" in planned
    assert applied == "lake.sales.orders applied\n"
    assert shown.startswith("**✅ Apply: Applied and verified** · 1 applied")
    assert drifted == ""
    assert Logged(orders).properties == {"owner.team": "payments", "delta.isolationLevel": "Serializable"}
    assert Logged(orders).infos[-1]["operation"] == "WRITE"


class BaseOperator:
    """As much of Airflow's as the operators use."""

    def __init__(self, *, task_id: str) -> None:
        self.task_id = task_id


@pytest.fixture
def operators(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The operators of docs/integrations.md. tests/integrations runs them in Airflow."""
    sdk = ModuleType("airflow.sdk")
    sdk.BaseOperator = BaseOperator  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    page = blocks(ROOT / "docs" / "integrations.md")
    source = next(each for each in page if each.text.startswith("# plugins/tablectl_operators.py"))
    names: dict[str, Any] = {}
    exec(compile(source.text, str(source), "exec"), names)
    return names


def test_the_airflow_operators_plan_apply_and_refuse(here: Place, operators: dict[str, Any]) -> None:
    orders, directory = here.lake / "sales" / "orders", str(Path.cwd())
    plan = operators["TablectlPlan"](task_id="plan", directory=directory, file="plans/nightly.json")

    def apply(file: str) -> str:
        return str(operators["TablectlApply"](task_id="apply", directory=directory, file=file).execute({}))

    file = plan.execute({})
    assert file == "plans/nightly.json"
    assert apply(file) == "applied: 1"
    assert apply(file) == "applied: 1", "a retry finds it done"
    assert plan.execute({}) == ""
    assert apply("") == "nothing to do"

    set_property(orders, "owner.team", "logistics")
    stale = plan.execute({})
    set_property(orders, "owner.team", "someone else")
    with pytest.raises(RuntimeError, match=r"lake\.sales\.orders: stale"):
        apply(stale)
