from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import pytest

from tablectl.applying.events import RunEvent
from tablectl.attributes.policy import Policy
from tablectl.commands.plan import make_plan
from tablectl.commands.project import EngineSource, Project
from tablectl.commands.run_plan import Control, LogReader, run
from tablectl.commands.selection import Selection
from tablectl.delta.names import parse_table
from tablectl.leases.clock import SystemClock
from tablectl.log import recent_commits
from tablectl.model.errors import EngineError, LiveError, PlanFileError
from tablectl.model.plan import Phase, Plan
from tablectl.model.run_report import RunOutcome
from tablectl.model.table_options import TableOptions
from tablectl.planning.plan_file import digest_of, dump_plan
from tablectl.policies.config import Config
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.version import __version__
from tests.commands.log_lake import LogEngine, Logged, append, create

HERE = SourceFile("lake.yaml", 1, 1)
PINNED = Policy({"isolation": "Serializable"})


def spec(name: str, policy: Policy = PINNED, location: Path | None = None, tags: tuple[str, ...] = ()) -> TableSpec:
    return TableSpec(parse_table(name), policy, str(location) if location else None, tags, {}, HERE)


def specs(*given: TableSpec) -> Specs:
    return Specs.of(given)


def project(engine: Callable[[str], LogEngine]) -> Project:
    return Project(Config(), source=EngineSource(open=engine), environ={})


def planned(*given: TableSpec, catalog: Mapping[str, Path] | None = None) -> Plan:
    named = {("spark_catalog", *name.split(".")): path for name, path in (catalog or {}).items()}
    return make_plan(project(lambda _stamp: LogEngine(catalog=named)), specs(*given), Selection())


_BY_PROCESSES = """
import sys
from dataclasses import replace
from functools import partial
from tablectl.log import reader, worker_processes
from tablectl.commands.project import Project
from tablectl.commands.selection import Selection
from tablectl.commands.drift import find_drift
from tablectl.commands.status import StatusOptions, collect_status
from tablectl.commands.import_tables import import_policies
from tablectl.commands.lint import lint_tables
from tablectl.commands.parameters import Choice
from tablectl.commands.plan import make_plan

started = []
def counted(work, items, count, at_end, forked=reader.in_processes):
    started.append(count)
    return forked(work, items, count, at_end)
worker_processes._MANY, reader.in_processes = 2, counted

def found(processes):
    opened = Project.open(sys.argv[1], cached=True)
    stores = replace(opened.config.stores, processes=processes)
    project = replace(opened, config=replace(opened.config, stores=stores))
    specs, told = project.policies(), []
    results = [make(project, specs, Selection(), on_read=lambda *done: told.append(done))
               for make in (make_plan, partial(find_drift, look_back=20))]
    results.append(lint_tables(project, Choice(), on_read=lambda *done: told.append(done))[0])
    results.append(import_policies(project, specs, {}))
    return [*results, replace(collect_status(project, StatusOptions(look_back=20)), at=0), told]

alone = found(1)
print(started, [len(each.tables) for each in alone[:3]], len(alone[0].failures))
print(found(3) == alone == found(3), set(started))
"""


def test_several_processes_find_what_one_finds(tmp_path: Path) -> None:
    declared = {"delta.isolationLevel": "Serializable"}
    for number in range(50):
        create(tmp_path / f"t{number}", properties=declared if number % 2 else {}, partitions=["day"])
    (tmp_path / "t7" / "_delta_log" / f"{1:020d}.json").write_text("{")
    (tmp_path / "tablectl.yaml").write_text("cache: cache\npolicies: policies.yaml\n")
    (tmp_path / "policies.yaml").write_text(
        f"version: 1\ndefaults: {{isolation: Serializable}}\ntables: {{'delta.`{tmp_path}/t*`': {{}}}}\n"
    )
    command = [sys.executable, "-c", _BY_PROCESSES, str(tmp_path)]  # a process with threads, as this one, may not fork
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[] [25, 25, 49] 1\nTrue {3}\n", "")


# Plans


def test_tables_are_planned_failed_or_as_declared(tmp_path: Path) -> None:
    pinned = create(tmp_path / "c", properties={"delta.isolationLevel": "Serializable"})
    plan = planned(
        spec(f"delta.`{create(tmp_path / 'b')}`"),
        spec("sales.a", location=create(tmp_path / "a")),
        spec("sales.c"),
        spec("sales.gone"),
        spec(f"delta.`{tmp_path}/none`"),
        catalog={"sales.c": pinned},
    )
    assert [table.name for table in plan.tables] == [f"delta.`{tmp_path}/b`", "sales.a"]
    assert plan.unchanged == ("sales.c",)
    assert [failure.name for failure in plan.failures] == [f"delta.`{tmp_path}/none`", "sales.gone"]
    assert "sales.gone does not exist" in plan.failures[1].message
    assert (plan.tool, plan.dialect) == (__version__, "oss")


def test_an_engine_that_does_not_start_fails_only_the_tables_that_need_it(tmp_path: Path) -> None:
    def start(_stamp: str) -> LogEngine:
        raise EngineError("no Spark", "install it")

    given = specs(spec(f"delta.`{create(tmp_path / 'a')}`"), spec("sales.orders"))
    plan = make_plan(project(start), given, Selection())
    assert (len(plan.tables), plan.failures[0].message) == (1, "no Spark")


def test_two_names_that_lead_to_one_table_are_failures_of_both(tmp_path: Path) -> None:
    path = create(tmp_path / "a")
    catalog = {"sales.orders": path, "sales.view": path}
    plan = planned(spec("sales.orders"), spec("sales.view"), spec(f"delta.`{create(tmp_path / 'b')}`"), catalog=catalog)
    assert [failure.name for failure in plan.failures] == ["sales.orders", "sales.view"]
    assert "sales.view lies in" in plan.failures[0].message
    assert len(plan.tables) == 1


def test_vectors_are_counted_only_where_they_are_to_be_purged(tmp_path: Path) -> None:
    facts = {"delta.enableDeletionVectors": "true"}
    one = create(tmp_path / "a", vectors=2, features=["deletionVectors"], properties=facts)
    two = create(tmp_path / "b", vectors=2, features=["deletionVectors"], properties=facts)
    purged, off = Policy({"deletion_vectors": "purged"}), Policy({"deletion_vectors": "disabled"})
    plan = planned(spec(f"delta.`{one}`", purged), spec(f"delta.`{two}`", off))
    assert [table.basis.vectors for table in plan.tables] == [2, None]


def test_a_plan_does_not_depend_on_the_order_of_policies(tmp_path: Path) -> None:
    given = [spec(f"delta.`{create(tmp_path / name)}`") for name in "abc"]
    assert dump_plan(planned(*given)) == dump_plan(planned(*reversed(given)))


# Writers that may be in flight

OLD = "Apache-Spark/4.0.0 Delta-Lake/4.0.1"
VECTORS = Policy({"deletion_vectors": "enabled"})


def streamed(path: Path, commits: int) -> Path:
    """A table that an old client wrote once, before a stream of a new client."""
    create(path)
    append(path, "MERGE", [], client=OLD)
    for _ in range(commits):
        append(path, "STREAMING UPDATE", [])
    return path


@pytest.mark.parametrize("commits", [19, 20, 200])
def test_a_nightly_job_of_an_old_client_is_expected_next_to_a_stream(tmp_path: Path, commits: int) -> None:
    """A job that runs for hours is in flight although the newest twenty commits are those of the stream."""
    plan = planned(spec(f"delta.`{streamed(tmp_path / 'a', commits)}`", VECTORS))
    (statement,) = plan.tables[0].statements
    assert statement.phase is Phase.CLOSED
    assert "Delta Spark 4.0.1 writes this table" in statement.reason


def test_a_full_overwrite_of_last_week_is_expected_again(tmp_path: Path) -> None:
    path = create(tmp_path / "a", features=["clustering", "domainMetadata"])
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["id"]]}', "removed": False}
    append(path, "WRITE", [{"domainMetadata": domain}])
    append(path, "REPLACE TABLE", [])
    for _ in range(25):
        append(path, "STREAMING UPDATE", [])
    plan = planned(spec(f"delta.`{path}`", Policy({"clustering": ("kind",)})))
    (statement,) = plan.tables[0].statements
    assert (statement.verb, statement.phase) == ("CLUSTER BY", Phase.CLOSED)
    assert "full overwrite" in statement.fails


def test_declared_clients_are_expected_although_the_log_does_not_show_them(tmp_path: Path) -> None:
    path = create(tmp_path / "a")
    one = spec(f"delta.`{path}`", VECTORS)
    assert planned(one).tables[0].statements[0].phase is Phase.FREE
    declared = replace(one, options=TableOptions(clients=(("spark", "4.0"),)))
    (statement,) = planned(declared).tables[0].statements
    assert statement.phase is Phase.CLOSED


def test_a_safe_statement_says_for_which_writers(tmp_path: Path) -> None:
    path = create(tmp_path / "a")
    one = replace(spec(f"delta.`{path}`", VECTORS), options=TableOptions(clients=(("spark", "4.1"),)))
    assert planned(one).tables[0].statements[0].reason == (
        "the known writers adopt this change and continue: 2 commits since 14 November 2023, by Delta Spark 4.4.0; "
        "declared: spark 4.1"
    )


def test_the_writers_are_judged_again_under_the_lease(tmp_path: Path) -> None:
    """An old client commits after the plan, and a stream after it: the statement now needs a stricter phase."""
    path = create(tmp_path / "a")
    plan = planned(spec(f"delta.`{path}`", VECTORS))
    append(path, "MERGE", [], client=OLD)
    for _ in range(30):
        append(path, "STREAMING UPDATE", [])
    report = run(project(LogEngine), plan, Control())
    (table,) = report.tables
    assert table.outcome is RunOutcome.REFUSED
    assert "was planned for the free phase and now needs closed: Delta Spark 4.0.1 writes this table" in table.message
    assert Logged(path).stamps == []


def test_a_forged_cache_changes_a_plan_but_not_an_apply(tmp_path: Path) -> None:
    path = streamed(tmp_path / "a", 30)
    given, where = specs(spec(f"delta.`{path}`", VECTORS)), {"XDG_CACHE_HOME": str(tmp_path)}
    cached = Project(Config(), source=EngineSource(open=LogEngine), environ=where, cached=True)
    assert make_plan(cached, given, Selection()).tables[0].statements[0].phase is Phase.CLOSED
    (file,) = (tmp_path / "tablectl").iterdir()
    file.write_bytes(file.read_bytes().replace(b'["delta-spark",[4,0,1]]', b'["delta-spark",[4,4,0]]'))
    plan = make_plan(replace(cached), given, Selection())
    assert plan.tables[0].statements[0].phase is Phase.FREE
    (table,) = run(project(LogEngine), plan, Control()).tables
    assert table.outcome is RunOutcome.REFUSED


# Runs


def test_a_run_stamps_and_closes_its_engine(tmp_path: Path) -> None:
    plan = planned(spec(f"delta.`{create(tmp_path / 'a')}`"))
    engines: list[LogEngine] = []

    def opened(stamp: str) -> LogEngine:
        engines.append(LogEngine(stamp))
        return engines[-1]

    report = run(project(opened), plan, Control())
    assert (report.exit_code, report.plan) == (0, digest_of(plan))
    assert Logged(tmp_path / "a").stamps == [{"plan": digest_of(plan), "run": report.run, "by": ANY}]
    assert engines[0].closed


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_engine_is_closed_whatever_is_raised(tmp_path: Path, error: type[BaseException]) -> None:
    plan = planned(spec(f"delta.`{create(tmp_path / 'a')}`"))
    engine = LogEngine()

    def raises(_event: RunEvent) -> None:
        raise error

    with pytest.raises(error):
        run(project(lambda _stamp: engine), plan, Control(notify=raises))
    assert (engine.closed, engine.sent) == (True, [])


def test_an_engine_of_another_dialect_is_refused_and_closed(tmp_path: Path) -> None:
    plan = planned(spec(f"delta.`{create(tmp_path / 'a')}`"))
    engine = LogEngine(dialect="databricks")
    with pytest.raises(PlanFileError, match="the engine speaks databricks"):
        run(project(lambda _stamp: engine), plan, Control())
    assert engine.closed
    assert not (tmp_path / "a" / "_tablectl").exists()


def test_nothing_to_do_opens_no_engine(tmp_path: Path) -> None:
    create(tmp_path / "a", partitions=["day"])
    refused = planned(spec(f"delta.`{tmp_path}/a`", Policy({"partitioning": "none"})), spec("sales.gone"))
    assert run(project(pytest.fail), refused, Control()).exit_code == 1
    as_declared = planned(spec(f"delta.`{tmp_path}/a`", Policy()))
    assert run(project(pytest.fail), as_declared, Control()).exit_code == 0


def test_a_stop_before_the_run_begins_is_obeyed(tmp_path: Path) -> None:
    plan = planned(spec(f"delta.`{create(tmp_path / 'a')}`"))
    control = Control()
    control.stop.set()
    assert isinstance(control.clock, SystemClock)
    report = run(project(LogEngine), plan, control)
    assert [table.outcome for table in report.tables] == [RunOutcome.INTERRUPTED]
    assert len(Logged(tmp_path / "a").commits) == 2


def test_the_log_reader_reads_at_a_version(tmp_path: Path) -> None:
    path = create(tmp_path / "a")
    name = parse_table(f"delta.`{path}`")
    assert LogReader().read(name, str(path), version=0).version == 0
    assert [commit.version for commit in LogReader().commits(str(path), after=0)] == [1]
    nowhere_to_be_found = pytest.raises(LiveError)
    with nowhere_to_be_found:
        LogReader().read(name, str(path), version=7)


def test_copied_files_are_found_in_a_table_of_any_number_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_commits, "MOST_FILES", 1)
    (tmp_path / "_delta_log").mkdir()
    for name in ("d=1/a.parquet", "d=1/b.parquet", "d=2/c.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (5, 7))
    wanted = {"d=1/b.parquet", "d=2/gone.parquet"}
    assert LogReader().modified(str(tmp_path), wanted) == {"d=1/b.parquet": 7.0}
    with pytest.raises(LiveError):
        LogReader().modified(str(tmp_path / "gone"), wanted)
