"""The methods of the installed PySpark and Delta, wrapped, over a JVM and a server that are mocks.

They show what is asked of PySpark; the JVM answers on real Spark alone.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tablectl.engine.describe import ViewError
from tablectl.engine.spark import SessionFacts, SparkEngine
from tablectl.leases.guards import GuardMode
from tablectl.leases.lease_records import Gate
from tablectl.model.errors import EngineError, LiveError
from tablectl.writers import dataframe_writes as dataframe_writes_module
from tablectl.writers import session as patching
from tablectl.writers import session_guards
from tablectl.writers.gate_entry import GuardTimeout
from tablectl.writers.options import GuardOptions
from tablectl.writers.session_guards import SETTING, SessionGuards
from tablectl.writers.spark_methods import PATCHES
from tests.writers.conftest import Place

pytest.importorskip("pyspark")
pytest.importorskip("delta")

CLASSES = (
    *("DataFrameWriter", "DataFrameWriterV2", "MergeIntoWriter", "SparkSession", "DataStreamWriter", "DeltaTable"),
    *("DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTableBuilder"),
)


def module(name: str) -> Any:
    return importlib.import_module(name)


PATCHED = [name for name in PATCHES if not name.startswith("delta.connect")]
BEFORE = {
    each: dict(vars(each)) for name in PATCHED for each in (vars(module(name)).get(one) for one in CLASSES) if each
}


def put_back() -> None:
    """The methods of PySpark as they were."""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, patching._Finder)]
    for each, members in BEFORE.items():
        for name, member in members.items():
            if vars(each)[name] is not member:
                setattr(each, name, member)


@pytest.fixture(autouse=True)
def wrapped() -> Iterator[None]:
    """Wrapped methods for one test."""
    patching.install(SessionGuards())
    yield
    put_back()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, GuardMode]]:
    """The guards that are entered: location and mode."""
    found: list[tuple[str, GuardMode]] = []

    class Noted:
        def __init__(self, _spark: Any, terms: GuardOptions, **_settings: object) -> None:
            self.terms = terms

        def __enter__(self) -> None:
            found.append((str(self.terms.target.location), self.terms.mode))

        def __exit__(self, *_error: object) -> None:
            pass

    monkeypatch.setattr(session_guards, "Guard", Noted)
    monkeypatch.setattr(session_guards, "locate", lambda _session, name: f"/lake/{name}")
    return found


def session(*, guarded: bool = True, **conf: str) -> Any:
    made = MagicMock()
    settings = {SETTING: "on"} if guarded else {}
    settings |= {key.replace("__", "."): value for key, value in conf.items()}
    made.conf.get.side_effect = lambda key, default=None: settings.get(key, default)
    return made


class Leaf:
    """A leaf of a plan in the JVM."""

    def __init__(self, kind: str, *paths: str) -> None:
        self.kind, self.paths = kind, paths

    def nodeName(self) -> str:  # noqa: N802
        return self.kind

    def getClass(self) -> Any:  # noqa: N802
        return MagicMock(getSimpleName=lambda: self.kind)

    def relation(self) -> Any:
        made = MagicMock()
        made.location().rootPaths().mkString.return_value = "\n".join(self.paths)
        return made


def frame(spark: Any, *leaves: Leaf, text: str = "Project") -> Any:
    made = MagicMock(sparkSession=spark)
    plan = made._jdf.queryExecution().analyzed()
    plan.toString.return_value = text
    plan.collectLeaves().size.return_value = len(leaves)
    plan.collectLeaves().apply.side_effect = lambda number: leaves[number]
    return made


PLAIN, OWN, OTHER = Leaf("LocalRelation"), Leaf("LogicalRelation", "file:/lake/t"), Leaf("LogicalRelation", "/lake/u")


def v1(made: Any) -> Any:
    return module("pyspark.sql.readwriter").DataFrameWriter(made)


def v2(made: Any, table: str = "t") -> Any:
    return module("pyspark.sql.readwriter").DataFrameWriterV2(made, table)


@pytest.mark.parametrize(
    ("leaves", "text", "mode"),
    [
        ([PLAIN], "Project", "append"),
        ([OTHER], "Project", "append"),
        ([OWN], "Project", "rewrite"),
        ([PLAIN, OWN], "Union", "rewrite"),
        ([Leaf("LogicalRelation", "/lake/t/day=1")], "Project", "rewrite"),
        ([Leaf("InMemoryRelation")], "Project", "rewrite"),
        ([Leaf("DataSourceV2Relation")], "Project", "rewrite"),
        ([PLAIN], "Filter NOT id IN (list#3 [])", "rewrite"),
        ([PLAIN], "Filter (a > scalar-subquery#3 [])", "rewrite"),
    ],
)
def test_an_append_is_one_only_if_it_does_not_read_its_target(
    seen: list[tuple[str, GuardMode]], leaves: list[Leaf], text: str, mode: str
) -> None:
    made = frame(session(), *leaves, text=text)
    v1(made).format("delta").mode("append").save("/lake/t")
    v1(made).mode("append").saveAsTable("t")
    v1(made).insertInto("t")
    v2(made).append()
    assert seen == [("/lake/t", GuardMode(mode))] * 4


@pytest.mark.parametrize(
    "write",
    [
        lambda made: v1(made).format("delta").mode("overwrite").save("/lake/t"),
        lambda made: v1(made).format("delta").mode("append").option("mergeSchema", "true").save("/lake/t"),
        lambda made: v1(made).saveAsTable("t", mode="append", mergeSchema="true"),
        lambda made: v1(made).insertInto("t", overwrite=True),
        lambda made: v2(made).overwritePartitions(),
        lambda made: v2(made).option("mergeSchema", "true").append(),
        lambda made: v2(made).createOrReplace(),
    ],
)
def test_what_may_change_the_schema_is_guarded_as_any(
    seen: list[tuple[str, GuardMode]], write: Callable[[Any], None]
) -> None:
    write(frame(session(), PLAIN))
    assert seen == [("/lake/t", GuardMode.ANY)]


def test_a_session_that_merges_schemas_has_no_looser_mode(seen: list[tuple[str, GuardMode]]) -> None:
    spark = session(spark__databricks__delta__schema__autoMerge__enabled="true")
    v1(frame(spark, PLAIN)).insertInto("t")
    assert seen == [("/lake/t", GuardMode.ANY)]


def test_other_sessions_and_other_formats_are_left_alone(seen: list[tuple[str, GuardMode]]) -> None:
    v1(frame(session(guarded=False), PLAIN)).insertInto("t")
    v1(frame(session(), PLAIN)).format("csv").mode("append").save("/lake/t")
    assert seen == []


@pytest.mark.parametrize(
    ("statement", "modes"),
    [
        ("INSERT INTO t VALUES (1)", [GuardMode.APPEND]),
        ("INSERT INTO t SELECT * FROM u", [GuardMode.APPEND]),
        ("INSERT INTO t SELECT * FROM t WHERE a", [GuardMode.REWRITE]),
        ("INSERT INTO t SELECT * FROM ((", [GuardMode.REWRITE]),
        ("INSERT INTO t WITH u AS (SELECT 1) SELECT * FROM u", [GuardMode.APPEND]),
        ("INSERT INTO t WITH t AS (SELECT DISTINCT * FROM t) SELECT * FROM t", [GuardMode.REWRITE]),
        ("WITH t AS (SELECT DISTINCT * FROM t) INSERT INTO t SELECT * FROM t", [GuardMode.REWRITE]),
        ("INSERT INTO t WITH u AS (SELECT * FROM t), t AS (SELECT 1) SELECT * FROM u", [GuardMode.REWRITE]),
        ("INSERT INTO t WITH t AS (SELECT 1), u AS (SELECT * FROM t) SELECT * FROM u", [GuardMode.APPEND]),
        ("INSERT INTO t SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) CROSS JOIN t", [GuardMode.REWRITE]),
        ("INSERT INTO t WITH t AS (SELECT 1) SELECT * FROM u WHERE a IN (SELECT * FROM t)", [GuardMode.APPEND]),
        ("INSERT INTO t WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT * FROM t", [GuardMode.APPEND]),
        ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE", [GuardMode.REWRITE]),
        ("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')", [GuardMode.ANY]),
        ("SELECT 1", []),
    ],
)
@pytest.mark.parametrize("kind", ["pyspark.sql.session", "pyspark.sql.connect.session"])
def test_statements(
    seen: list[tuple[str, GuardMode]],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    statement: str,
    modes: list[GuardMode],
) -> None:
    monkeypatch.setattr(dataframe_writes_module, "locate", _by_name)
    monkeypatch.setattr(session_guards, "locate", _by_name)
    ran: list[str] = []
    cls = module(kind).SparkSession
    original = cls.sql.__wrapped__
    cls.sql = patched(original, ran)
    cls.sql(session(), statement)
    assert [mode for _, mode in seen] == modes
    assert ran == [statement]


def _by_name(_session: Any, name: str) -> str:
    return f"/lake/{name.replace('`', '')}"


def patched(original: Any, ran: list[str]) -> Any:
    """The wrapper around a stand-in for the original, which needs a JVM."""
    holder = MagicMock()

    class SparkSession:
        def sql(self, sqlQuery: str) -> str:  # noqa: N803
            ran.append(sqlQuery)
            return sqlQuery

    holder.SparkSession = SparkSession
    PATCHES["pyspark.sql.session"](holder, SessionGuards())
    assert original is not None
    return SparkSession.sql


def test_a_handle_is_made_again_inside_its_guard(
    seen: list[tuple[str, GuardMode]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = module("delta.tables").DeltaTable
    monkeypatch.setattr(tables, "_condition_to_jcolumn", MagicMock())
    spark, source = session(), MagicMock(spec=module("pyspark.sql").DataFrame)
    source._jdf = MagicMock()
    handle = tables.forPath(spark, "/lake/t")
    made = spark._sc._jvm.io.delta.tables.DeltaTable.forPath
    before = made.call_count
    handle.alias("t").merge(source, "t.id = 1").whenMatchedDelete().execute()
    handle.delete("id = 1")
    handle.optimize().executeCompaction()
    assert seen == [("/lake/t", GuardMode.REWRITE)] * 3
    assert made.call_count == before + 3
    handle.restoreToVersion(1)
    assert seen[-1] == ("/lake/t", GuardMode.ANY)
    created = tables.createIfNotExists(spark).location("/lake/new").execute()
    assert seen[-1] == ("/lake/new", GuardMode.ANY)
    created.alias("n").merge(source, "n.id = 1").whenMatchedDelete().execute()
    assert seen[-1] == ("/lake/new", GuardMode.REWRITE)
    assert made.call_args.args[1] == "/lake/new"


def test_a_clone_is_guarded_by_the_table_that_it_replaces(seen: list[tuple[str, GuardMode]]) -> None:
    handle = module("delta.tables").DeltaTable.forPath(session(), "/lake/t")
    handle.clone("/lake/a", True, True)
    handle.cloneAtVersion(3, "b", isShallow=True)
    handle.cloneAtTimestamp("2026-11-22", isShallow=True, target="/lake/c")
    assert seen == [("/lake/a", GuardMode.ANY), ("/lake/b", GuardMode.ANY), ("/lake/c", GuardMode.ANY)]


def test_a_streaming_query_without_batches_is_said_to_be_unguarded(
    seen: list[tuple[str, GuardMode]], caplog: pytest.LogCaptureFixture
) -> None:
    writer = module("pyspark.sql.streaming.readwriter").DataStreamWriter
    with caplog.at_level(logging.WARNING, "tablectl"):
        writer(MagicMock(sparkSession=session())).format("delta").start("/lake/t")
        writer(MagicMock(sparkSession=session())).format("console").start()
    assert caplog.text.count("without foreachBatch") == 1
    assert seen == []


class Job:
    """What a job has: objects that it made before its session was guarded, and its session."""

    def __init__(self, place: Path) -> None:
        self.place, self.spark = str(place), session()
        self.frame = frame(self.spark, PLAIN)
        self.own = frame(self.spark, Leaf("LogicalRelation", self.place))
        tables = module("delta.tables").DeltaTable
        self.writer = module("pyspark.sql.readwriter").DataFrameWriter(self.frame)
        self.writer2 = module("pyspark.sql.readwriter").DataFrameWriterV2(self.frame, "t")
        self.stream = module("pyspark.sql.streaming.readwriter").DataStreamWriter(MagicMock(sparkSession=self.spark))
        self.table = tables(self.spark, MagicMock())
        self.table.detail = lambda: MagicMock(select=lambda _: MagicMock(first=lambda: [self.place]))
        self.merge = tables(self.spark, MagicMock()).optimize()

    def sql(self, text: str, **values: Any) -> object:
        return module("pyspark.sql.session").SparkSession.sql(self.spark, text, **values)

    def created(self) -> Any:
        return module("delta.tables").DeltaTable.createIfNotExists(self.spark).location(self.place).execute()


@pytest.fixture
def job(place: Place, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job whose session is guarded, at a closed gate. A guard that waits raises ``GuardTimeout`` at once."""
    monkeypatch.setattr(session_guards, "locate", lambda _session, _name: str(place))
    put_back()
    made = Job(place.path)
    patching.install(SessionGuards(timeout=0))
    place.apply().gate(Gate.CLOSED)
    return made


@pytest.mark.parametrize(
    "write",
    [
        lambda job: job.sql("WITH s AS (SELECT 1 a) MERGE INTO t USING s ON true WHEN MATCHED THEN UPDATE SET *"),
        lambda job: job.sql("FROM s INSERT INTO t SELECT *"),
        lambda job: job.sql("DELETE FROM {t}", t=job.own),
        lambda job: job.sql("INSERT INTO t SELECT * FROM {s}", s=job.frame),
        lambda job: job.sql(f"UPDATE t SET a = '{'x' * 1_000_000}'"),
        lambda job: job.created(),
        lambda job: job.writer.save(job.place),
        lambda job: job.writer.mode("append").insertInto("t"),
        lambda job: job.writer.saveAsTable("t"),
        lambda job: job.table.delete("a = 1"),
        lambda job: job.table.alias("t").delete(),
        lambda job: job.table.optimize().executeCompaction(),
    ],
)
def test_a_write_of_a_guarded_session_waits_at_a_closed_gate(job: Job, write: Callable[[Job], object]) -> None:
    with pytest.raises(GuardTimeout):
        write(job)


@pytest.mark.parametrize(
    ("write", "warning"),
    [
        (lambda job: job.sql("FROM s INSERT INTO a SELECT 1 INSERT INTO b SELECT 2"), "cannot be read"),
        (lambda job: job.sql("INSERT INTO IDENTIFIER(:t) VALUES (1)"), "its table cannot be read from it"),
        (lambda job: job.sql("BEGIN INSERT INTO t VALUES (1); END"), "its table cannot be read from it"),
        (lambda job: job.sql("DELETE FROM {t}", t=frame(job.spark, OWN, OTHER)), "its table cannot be read from it"),
        (lambda job: job.writer2.append(), "its table cannot be read from it"),
        (lambda job: job.merge.executeCompaction(), "executeCompaction is not guarded"),
        (lambda job: job.stream.start("/lake/t"), "without foreachBatch"),
        (lambda job: job.stream.toTable("t"), "without foreachBatch"),
        (lambda job: v1(frame(session(guarded=False), PLAIN)).insertInto("t"), "its session is another one"),
    ],
)
def test_a_write_that_cannot_be_guarded_is_a_warning_each_time(
    job: Job, caplog: pytest.LogCaptureFixture, write: Callable[[Job], object], warning: str
) -> None:
    for _ in range(2):
        write(job)
    assert [warning in message for message in caplog.messages] == [True, True]


@pytest.mark.parametrize(
    ("error", "warned"),
    [
        (EngineError("[UNAVAILABLE] the catalog does not answer"), True),
        (EngineError("no right", condition="FORBIDDEN"), True),
        (ViewError("t is a view"), True),
        (LiveError("t does not exist"), False),
    ],
)
def test_a_failed_look_up_is_a_warning_unless_there_is_no_table(
    job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, warned: bool
) -> None:
    monkeypatch.setattr(session_guards, "locate", MagicMock(side_effect=error))
    v1(job.frame).insertInto("t")
    v1(job.frame).insertInto("t")
    assert len(caplog.messages) == 2 * warned
    assert all(str(error) in message for message in caplog.messages)


@pytest.mark.parametrize(
    "write",
    [
        lambda job: job.sql("WITH s AS (SELECT 1 update, 2 delete) SELECT update, delete, insert FROM s"),
        lambda job: job.sql("SELECT * FROM {t}", t=job.own),
        lambda job: job.writer.save("/no/such/table"),
        lambda job: v1(frame(session(guarded=False), PLAIN)).format("csv").save("/lake/t"),
        lambda job: v1(frame(unguarded(), PLAIN)).insertInto("t"),
    ],
)
def test_what_needs_no_guard_neither_waits_nor_warns(
    job: Job, caplog: pytest.LogCaptureFixture, write: Callable[[Job], object]
) -> None:
    write(job)
    assert caplog.messages == []


def unguarded() -> Any:
    """The session of an apply."""
    made = session()
    SparkEngine(made, "oss", SessionFacts(shared=True))
    return made


def test_a_job_never_fails_by_its_guard(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(session_guards, "Guard", MagicMock(side_effect=RuntimeError("no catalog")))
    with caplog.at_level(logging.WARNING, "tablectl"):
        v1(frame(session(), PLAIN)).format("delta").mode("append").save("/lake/t")
    assert "an append is not guarded: no catalog" in caplog.text


def test_a_timeout_of_the_guard_is_an_error_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    entered = MagicMock(__enter__=MagicMock(side_effect=GuardTimeout("waited")))
    monkeypatch.setattr(session_guards, "Guard", lambda *_args, **_settings: entered)
    with pytest.raises(GuardTimeout):
        v1(frame(session(), PLAIN)).format("delta").mode("append").save("/lake/t")


def test_a_write_inside_a_guard_of_the_job_is_made(tmp_path: Path) -> None:
    import tablectl

    (tmp_path / "_delta_log").mkdir()
    made = frame(session(), PLAIN)
    with tablectl.guard(None, str(tmp_path), "append"):
        v1(made).format("delta").mode("overwrite").save(str(tmp_path))
    assert made._jdf.write().mode().save.called or made._jdf.write().format().mode().save.called
