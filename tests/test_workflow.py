from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tablectl.applying.events import RunEvent
from tablectl.applying.run_report import RunOutcome
from tablectl.attributes.policy import Policy
from tablectl.delta.names import parse_table
from tablectl.leases.clock import SystemClock
from tablectl.model.errors import EngineError, LiveError, PlanFileError
from tablectl.model.plan import Plan
from tablectl.planning.plan_file import digest_of, dump_plan
from tablectl.policies.config import Config
from tablectl.policies.spec import Specs, TableSpec
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.selection import Selection
from tablectl.version import __version__
from tablectl.workflow import Control, LogReader, make_plan, run
from tests.cli.log_lake import LogEngine, Logged, create

HERE = SourceFile("lake.yaml", 1, 1)
PINNED = Policy(isolation="Serializable")


def spec(name: str, policy: Policy = PINNED, location: Path | None = None, tags: tuple[str, ...] = ()) -> TableSpec:
    return TableSpec(parse_table(name), policy, str(location) if location else None, tags, {}, HERE)


def specs(*given: TableSpec) -> Specs:
    return Specs.of(given)


def planned(*given: TableSpec, catalog: Mapping[str, Path] | None = None) -> Plan:
    named = {("spark_catalog", *name.split(".")): path for name, path in (catalog or {}).items()}
    return make_plan(specs(*given), Selection(), "oss", lambda: LogEngine(catalog=named))


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
    def start() -> LogEngine:
        raise EngineError("no Spark", "install it")

    given = specs(spec(f"delta.`{create(tmp_path / 'a')}`"), spec("sales.orders"))
    plan = make_plan(given, Selection(), "oss", start)
    assert (len(plan.tables), plan.failures[0].message) == (1, "no Spark")


def test_two_names_that_lead_to_one_table_are_failures_of_both(tmp_path: Path) -> None:
    path = create(tmp_path / "a")
    catalog = {"sales.orders": path, "sales.view": path}
    plan = planned(spec("sales.orders"), spec("sales.view"), spec(f"delta.`{create(tmp_path / 'b')}`"), catalog=catalog)
    assert [failure.name for failure in plan.failures] == ["sales.orders", "sales.view"]
    assert "sales.view lies in" in plan.failures[0].message
    assert len(plan.tables) == 1


def test_vectors_are_counted_only_where_they_shall_be_purged(tmp_path: Path) -> None:
    facts = {"delta.enableDeletionVectors": "true"}
    one = create(tmp_path / "a", vectors=2, features=["deletionVectors"], properties=facts)
    two = create(tmp_path / "b", vectors=2, features=["deletionVectors"], properties=facts)
    purged, off = Policy(deletion_vectors="purged"), Policy(deletion_vectors="disabled")
    plan = planned(spec(f"delta.`{one}`", purged), spec(f"delta.`{two}`", off))
    assert [table.basis.vectors for table in plan.tables] == [2, None]


def test_a_plan_does_not_depend_on_the_order_of_policies(tmp_path: Path) -> None:
    given = [spec(f"delta.`{create(tmp_path / name)}`") for name in "abc"]
    assert dump_plan(planned(*given)) == dump_plan(planned(*reversed(given)))


# Runs


def test_a_run_stamps_and_closes_its_engine(tmp_path: Path) -> None:
    plan = planned(spec(f"delta.`{create(tmp_path / 'a')}`"))
    engines: list[LogEngine] = []

    def opened(stamp: str) -> LogEngine:
        engines.append(LogEngine(stamp))
        return engines[-1]

    report = run(plan, opened, Config(), {}, Control())
    assert (report.exit_code, report.plan) == (0, digest_of(plan))
    assert Logged(tmp_path / "a").stamps == [{"plan": digest_of(plan), "run": report.run}]
    assert engines[0].closed


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_engine_is_closed_whatever_is_raised(tmp_path: Path, error: type[BaseException]) -> None:
    plan = planned(spec(f"delta.`{create(tmp_path / 'a')}`"))
    engine = LogEngine()

    def raises(_event: RunEvent) -> None:
        raise error

    with pytest.raises(error):
        run(plan, lambda _stamp: engine, Config(), {}, Control(notify=raises))
    assert (engine.closed, engine.sent) == (True, [])


def test_an_engine_of_another_dialect_is_refused_and_closed(tmp_path: Path) -> None:
    plan = planned(spec(f"delta.`{create(tmp_path / 'a')}`"))
    engine = LogEngine(dialect="databricks")
    with pytest.raises(PlanFileError, match="the engine speaks databricks"):
        run(plan, lambda _stamp: engine, Config(), {}, Control())
    assert engine.closed
    assert not (tmp_path / "a" / "_tablectl").exists()


def test_nothing_to_do_opens_no_engine(tmp_path: Path) -> None:
    create(tmp_path / "a", partitions=["day"])
    refused = planned(spec(f"delta.`{tmp_path}/a`", Policy(partitioning="none")), spec("sales.gone"))
    assert run(refused, pytest.fail, Config(), {}, Control()).exit_code == 1
    assert run(planned(), pytest.fail, Config(), {}, Control()).exit_code == 0


def test_a_stop_before_the_run_begins_is_heeded(tmp_path: Path) -> None:
    plan = planned(spec(f"delta.`{create(tmp_path / 'a')}`"))
    control = Control()
    control.stop.set()
    assert isinstance(control.clock, SystemClock)
    report = run(plan, LogEngine, Config(), {}, control)
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
