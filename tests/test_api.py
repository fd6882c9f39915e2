from __future__ import annotations

import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.commands.project import EngineSource, Project
from tablectl.conflicts.transactions import ConflictResult
from tablectl.delta.names import parse_table
from tablectl.engine import spark
from tablectl.engine.interface import EngineOptions
from tablectl.model.errors import EngineError, InputError, PlanFileError, TablectlError, UsageError
from tablectl.planning.plan_file import dump_plan
from tablectl.policies.config import Config
from tests.commands.log_lake import LogEngine, Logged, create


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[LogEngine]:
    """The engines that were opened; no Spark is."""
    opened: list[LogEngine] = []

    def open_spark(options: Any, stamp: str = "") -> LogEngine:
        opened.append(LogEngine(stamp, options.dialect))
        return opened[-1]

    monkeypatch.setattr(spark, "open_spark", open_spark)
    return opened


@pytest.fixture
def root(tmp_path: Path, engines: list[LogEngine]) -> Path:
    (tmp_path / "policies").mkdir()
    create(tmp_path / "a")
    create(tmp_path / "b")
    (tmp_path / "policies" / "lake.yaml").write_text(
        "version: 1\ndefaults: {isolation: Serializable}\ntables:\n"
        "  delta.`${ROOT}/a`: {tags: [web]}\n  delta.`${ROOT}/b`: {}\n"
    )
    return tmp_path


def plan(root: Path, **more: Any) -> Any:
    return tablectl.plan(directory=root, variables={"ROOT": str(root)}, **more)


def test_plan_and_apply_as_functions(root: Path, engines: list[LogEngine]) -> None:
    planned = plan(root)
    assert [table.name for table in planned.tables] == [f"delta.`{root}/a`", f"delta.`{root}/b`"]
    assert engines == []
    report = tablectl.apply(planned, directory=root, variables={"ROOT": str(root)})
    assert report.exit_code == 0
    assert (len(engines), engines[0].closed) == (1, True)
    assert plan(root).tables == ()
    assert len(Logged(root / "a").stamps) == 1


def test_policies_may_be_named_one_or_many(root: Path) -> None:
    file = root / "policies" / "lake.yaml"
    assert len(plan(root, paths=file).tables) == 2
    assert len(plan(root, paths=str(root / "policies")).tables) == 2
    assert len(plan(root, paths=[file, root / "policies"]).tables) == 2


def test_selections(root: Path) -> None:
    assert [table.name for table in plan(root, tags=["web"]).tables] == [f"delta.`{root}/a`"]
    assert [table.name for table in plan(root, select=["*/b"]).tables] == [f"delta.`{root}/b`"]
    with pytest.raises(UsageError):
        plan(root, select=["nix"])


def test_lint_looks_at_all_tables(root: Path, engines: list[LogEngine]) -> None:
    create(root / "c", properties={"delta.deletedFileRetentionDuration": "interval 1 day"})
    (root / "policies" / "more.yaml").write_text("version: 1\ntables:\n  delta.`${ROOT}/c`: {isolation: default}\n")
    found = tablectl.lint(directory=root, variables={"ROOT": str(root)})
    assert {table.name[-2:-1]: [each.code for each in table.findings] for table in found.tables} == {
        "a": [],
        "b": [],
        "c": ["L006"],
    }
    assert (found.exit_code, engines) == (0, [])


def test_a_saved_plan_is_applied(root: Path) -> None:
    (root / "p.json").write_bytes(dump_plan(plan(root)))
    variables = {"ROOT": str(root)}
    assert tablectl.apply(str(root / "p.json"), directory=root, variables=variables).exit_code == 0
    assert tablectl.apply(root / "p.json", directory=root, variables=variables).committed is False


@pytest.mark.parametrize(
    ("given", "result"), [({}, ConflictResult.COMMITS), ({"auto_compact": True}, ConflictResult.MAY_FAIL)]
)
def test_a_conflict_report_knows_the_sessions_setting_of_automatic_compaction(
    root: Path, given: Any, result: ConflictResult
) -> None:
    found = tablectl.conflict_report(f"delta.`{root}/a`", directory=root, variables={"ROOT": str(root)}, **given)
    (view,) = found.views
    assert view.live.cell("optimize", "insert").overlapping.result is result


def test_a_ready_plan_needs_policies_or_says_that_it_needs_none(root: Path, tmp_path: Path) -> None:
    planned = plan(root)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(UsageError, match="no policies to compare the plan with"):
        tablectl.apply(planned, directory=elsewhere)
    for wrong in ({"policies": root / "policies"}, {"without_policies": True}):
        with pytest.raises(UsageError, match="for a ready plan"):
            tablectl.apply(root / "policies", directory=elsewhere, **wrong)
    named = tablectl.apply(
        planned, directory=elsewhere, policies=root / "policies", variables={"ROOT": str(root)}, max_bytes=10
    )
    assert named.committed
    assert tablectl.apply(planned, directory=elsewhere, without_policies=True).exit_code == 0


def test_policies_are_planned_and_applied(root: Path) -> None:
    report = tablectl.apply(root / "policies", directory=root, variables={"ROOT": str(root)}, select=["*/a"])
    assert [table.name for table in report.tables] == [f"delta.`{root}/a`"]


@pytest.mark.parametrize("more", [{"select": ["*/a"]}, {"tags": ["web"]}])
def test_a_ready_plan_obeys_no_selection_and_says_so(root: Path, engines: list[LogEngine], more: Any) -> None:
    planned = plan(root)
    (root / "p.json").write_bytes(dump_plan(planned))
    for given in (planned, root / "p.json"):
        with pytest.raises(UsageError, match="a ready plan is applied as it is"):
            tablectl.apply(given, directory=root, **more)
    assert engines == []


def test_what_is_wrong_is_raised(root: Path) -> None:
    with pytest.raises(InputError):
        tablectl.plan(directory=root)  # without ROOT
    with pytest.raises(TablectlError, match="No such file"):
        tablectl.apply(root / "nix.json", directory=root)
    (root / "p.json").write_text("{}")
    with pytest.raises(PlanFileError):
        tablectl.apply(root / "p.json", directory=root)


def test_a_session_handed_in_is_wrapped(root: Path, engines: list[LogEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped: list[Any] = []

    def wrap_spark(session: Any, dialect: str, stamp: str, options: EngineOptions, *, stated: bool) -> LogEngine:
        wrapped.append((session, dialect, bool(stamp), options.dead_after, stated))
        return LogEngine(stamp, dialect)

    monkeypatch.setattr(spark, "wrap_spark", wrap_spark)
    assert tablectl.apply(plan(root), directory=root, spark="the session", variables={"ROOT": str(root)}).exit_code == 0
    assert (wrapped, engines) == ([("the session", "oss", True, 20, False)], [])


def test_a_caller_states_that_a_session_is_the_writers_own(
    root: Path, engines: list[LogEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []

    def wrap_spark(*_: Any, stated: bool) -> LogEngine:
        told.append(stated)
        return LogEngine()

    monkeypatch.setattr(spark, "wrap_spark", wrap_spark)
    tablectl.apply(plan(root), directory=root, spark="the session", driver="shared", variables={"ROOT": str(root)})
    assert told == [True]
    for wrong in ({"driver": "mine", "spark": "the session"}, {"driver": "shared"}):
        with pytest.raises(UsageError, match="makes no sense here"):
            tablectl.apply(plan(root), directory=root, **wrong)  # type: ignore[arg-type]


def test_an_engine_that_does_not_start_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    def broken(_options: Any, _stamp: str = "") -> None:
        nonlocal tries
        tries += 1
        raise EngineError("no Spark Connect server answers")

    monkeypatch.setattr(spark, "open_spark", broken)
    notes: list[str] = []
    with Project(Config(), source=EngineSource(on_start=notes.append)) as project:
        for name in ("a.b", "a.c"):
            with pytest.raises(EngineError, match="no Spark Connect"):
                project.open_catalog().location(parse_table(name))
    assert (tries, notes) == (1, ["starting Spark"])


def test_look_ups_share_one_engine_which_is_closed(engines: list[LogEngine]) -> None:
    with Project(Config()) as opened:
        assert opened.engines.start() is opened.engines.start()
    assert (len(engines), engines[0].closed, engines[0].stamp) == (1, True, "")


def test_the_function_is_not_hidden_by_the_package_of_its_name() -> None:
    code = """
import tablectl
for _ in range(2):
    assert callable(tablectl.plan) and callable(tablectl.apply)
import tablectl.model.run_report as report
from tablectl import apply
assert callable(apply) and callable(tablectl.apply) and report.RunOutcome
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_unknown_names_of_the_package_are_not_attributes() -> None:
    with pytest.raises(AttributeError):
        _ = tablectl.destroy


def test_advice_is_read_without_an_engine_for_policies_and_further_tables(root: Path, engines: list[LogEngine]) -> None:
    names = [table.name for table in plan(root).tables]
    found = tablectl.advise(directory=root, variables={"ROOT": str(root)})
    assert ([each.table for each in found.tables], found.exit_code) == (names, 0)
    named = tablectl.advise(tables=names[0], directory=root, variables={"ROOT": str(root)}, list_files=True, days=7)
    assert [each.commits for each in named.tables] == [found.tables[0].commits]
    assert engines == []
    with pytest.raises(UsageError, match="`days` needs a whole number from 1 to 365, not 0"):
        tablectl.advise(days=0, directory=root)
    with pytest.raises(UsageError, match="`soak` needs a number from 0 to 10080, not -1"):
        tablectl.apply(directory=root, soak=-1)
    for wrong in (2.5, True, "many", float("nan")):
        with pytest.raises(UsageError, match="`days` needs a whole number"):
            tablectl.advise(days=wrong, directory=root)  # type: ignore[arg-type]
    assert tablectl.advise(days="7", directory=root, variables={"ROOT": str(root)}).exit_code == 0  # type: ignore[arg-type]


def test_a_function_says_what_it_returns_and_which_parameters_it_has_not() -> None:
    for name in ("plan", "apply", "drift", "status", "advise", "lint", "import_tables", "explain", "conflict_report"):
        assert signature(getattr(tablectl, name)).return_annotation not in {None, "None"}
    wrong: Any = {"nix": 1}
    with pytest.raises(TypeError, match=r"plan\(\): got an unexpected keyword argument 'nix'"):
        tablectl.plan(**wrong)
