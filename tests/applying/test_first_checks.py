"""One commit stream: where an apply in a driver of its own may lose commits."""

from __future__ import annotations

import pytest

from tablectl.applying.first_checks import ON_DISK, check_commits, check_scheme
from tablectl.applying.run_context import StopTableError
from tablectl.model.errors import EngineError
from tablectl.model.run_report import RunOutcome
from tablectl.model.stamp import Stamp
from tablectl.model.table import CatalogFacts
from tests.applying.fake_lake import FakeEngine, FakeLake
from tests.applying.lake_run import Run, only, outcomes
from tests.leases.lease_fakes import MemoryRecords

DYNAMO = "io.delta.storage.S3DynamoDBLogStore"


def engine(*, shared: bool = False, stated: bool = True, dialect: str = "oss", **stores: str) -> FakeEngine:
    return FakeEngine(FakeLake(), Stamp("r", "d"), dialect, shared=shared, stated=stated, stores=stores)


def test_on_s3_a_session_handed_in_is_not_taken_for_the_writers_own_unless_the_caller_says_so() -> None:
    with pytest.raises(StopTableError) as caught:
        check_commits(engine(shared=True, stated=False), "s3a://lake/orders", exclusive=False)
    assert 'driver="shared"' in caught.value.hint
    assert not check_commits(engine(shared=True, stated=False), "/lake/orders", exclusive=False)


@pytest.mark.parametrize(
    "location", ["s3://lake/orders", "s3a://lake/orders", "S3A://lake/orders", "s3n://lake/orders"]
)
def test_on_s3_a_driver_of_its_own_is_refused(location: str) -> None:
    with pytest.raises(StopTableError) as caught:
        check_commits(engine(), location, exclusive=False)
    assert caught.value.outcome is RunOutcome.REFUSED
    assert caught.value.message == (
        "on S3, Delta's default log store does not keep this driver and the writers' "
        "from overwriting each other's commits"
    )
    assert "`--remote`" in caught.value.hint
    assert "engine.exclusive_commits: true" in caught.value.hint
    scheme = location.partition(":")[0].lower()
    assert f"`spark.delta.logStore.{scheme}.impl: io.delta.storage.S3DynamoDBLogStore`" in caught.value.hint


def test_a_log_store_that_no_one_knows_to_be_exclusive_is_named() -> None:
    with pytest.raises(StopTableError, match=r"the log store com.acme.Store does not"):
        check_commits(engine(s3a="com.acme.Store"), "s3a://lake/orders", exclusive=False)


@pytest.mark.parametrize(
    ("made", "exclusive"),
    [
        (engine(shared=True), False),
        (engine(s3a=DYNAMO), False),
        (engine(dialect="databricks"), False),
        (engine(), True),
    ],
)
def test_where_commits_are_exclusive_it_is_fine(made: FakeEngine, exclusive: bool) -> None:
    assert not check_commits(made, "s3a://lake/orders", exclusive=exclusive)


def test_the_log_store_of_another_scheme_does_not_help() -> None:
    with pytest.raises(StopTableError):
        check_commits(engine(s3a=DYNAMO), "s3://lake/orders", exclusive=False)


@pytest.mark.parametrize("location", ["/lake/orders", "file:/lake/orders", "file:///lake/orders"])
def test_on_a_local_disk_it_is_worth_a_warning(location: str) -> None:
    assert check_commits(engine(), location, exclusive=False)
    assert not check_commits(engine(shared=True), location, exclusive=False)
    assert not check_commits(engine(), location, exclusive=True)


@pytest.mark.parametrize(
    "location", ["abfss://lake@acme.dfs.core.windows.net/orders", "gs://lake/orders", "hdfs://nn/o"]
)
def test_elsewhere_deltas_own_stores_are_exclusive(location: str) -> None:
    assert not check_commits(engine(), location, exclusive=False)


# A whole run


def test_a_barred_table_is_left_out_before_any_is_begun() -> None:
    run = Run(parallel=1).tables("a")
    run.lake.add("delta.`s3a://lake/b`")
    run.stores["s3a://lake/b"] = MemoryRecords()
    run.engine.shared = False
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "refused"}
    assert report.exit_code == 5
    assert run.stores["s3a://lake/b"].kept == {}
    assert report.notes == (ON_DISK,)
    assert [event.words for event in run.told if not event.table] == [ON_DISK]


def test_alone_it_is_a_refusal() -> None:
    run = Run()
    run.lake.add("delta.`s3a://lake/b`")
    run.stores["s3a://lake/b"] = MemoryRecords()
    run.engine.shared = False
    report = run.apply()
    assert (report.exit_code, report.notes, run.engine.sent) == (3, (), [])


def test_a_table_whose_commits_go_through_its_catalog_needs_no_log_store() -> None:
    run = Run()
    for place, catalog in (("s3a://lake/a", None), ("s3a://lake/b", CatalogFacts(metadata_version=0))):
        run.lake.add(f"delta.`{place}`", catalog=catalog)
        run.stores[place] = MemoryRecords()
    run.engine.shared = False
    assert outcomes(run.apply()) == {"a": "refused", "b": "applied"}


@pytest.mark.parametrize("name", ["delta.`s3a://lake/b`", "lake.sales.b"])
@pytest.mark.parametrize(("scheme", "outcome"), [("s3a", "applied"), ("s3", "refused")])
def test_the_scheme_is_the_one_by_which_the_engine_opens_the_table(name: str, scheme: str, outcome: str) -> None:
    run = Run()
    table = run.lake.add(name, location="s3://lake/b")  # as a log is read
    table.moved_to = "s3a://lake/b"  # as the catalog says
    run.stores["s3://lake/b"] = MemoryRecords()
    run.engine.shared = False
    run.engine.stores = {scheme: DYNAMO}
    assert [each.outcome for each in run.apply().tables] == [outcome]


def test_a_rewrite_goes_to_the_scheme_of_the_catalog() -> None:
    run = Run()
    run.lake.add("lake.sales.b", location="s3://lake/b").moved_to = "s3a://lake/b"
    context = run.context()
    planned = run.plan(isolation="Serializable").tables[0]
    assert context.target(planned).parts == ("s3a://lake/b",)
    assert context.opened_at(planned.table, "s3://lake/c") == "s3://lake/c", "the name leads elsewhere"


def test_what_the_configuration_states_is_believed() -> None:
    run = Run(exclusive_commits=True).tables("a")
    run.engine.shared = False
    assert run.apply().notes == ()


def test_an_engine_that_does_not_tell_fails_the_table() -> None:
    run = Run().tables("a")
    run.engine.shared = False

    def no(scheme: str) -> str:
        raise EngineError("the session is gone")

    run.engine.log_store = no  # type: ignore[method-assign]
    report = run.apply()
    assert (outcomes(report), only(report, "a").message) == ({"a": "failed"}, "the session is gone")


def test_a_scheme_that_the_engine_cannot_open_is_refused_before_anything_is_written() -> None:
    spark = engine(s3a=DYNAMO)
    spark.unknown = ("s3", "az")
    check_scheme(spark, "s3a://lake/orders")
    check_scheme(spark, "/lake/orders")
    with pytest.raises(StopTableError) as caught:
        check_scheme(spark, "S3://lake/orders")
    assert caught.value.outcome is RunOutcome.REFUSED
    assert caught.value.message == "the engine has no file system for s3:// locations"
    assert "stores: {s3:" in caught.value.hint
    with pytest.raises(StopTableError, match="no file system for az://") as caught:
        check_scheme(spark, "az://lake/orders")
    assert "engine.conf" in caught.value.hint
