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

from tablectl.leases.guards import GuardMode
from tablectl.writers import dataframe_writes as dataframe_writes_module
from tablectl.writers import session as patching
from tablectl.writers import session_guards
from tablectl.writers.gate_entry import GuardTimeout
from tablectl.writers.options import GuardOptions
from tablectl.writers.session_guards import SETTING, SessionGuards
from tablectl.writers.spark_methods import PATCHES

pytest.importorskip("pyspark")
pytest.importorskip("delta")

CLASSES = (
    *("DataFrameWriter", "DataFrameWriterV2", "MergeIntoWriter", "SparkSession", "DataStreamWriter", "DeltaTable"),
    *("DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTableBuilder"),
)


def module(name: str) -> Any:
    return importlib.import_module(name)


@pytest.fixture(autouse=True)
def wrapped() -> Iterator[None]:
    """Wrapped methods for one test."""
    modules = [module(name) for name in PATCHES if not name.startswith("delta.connect")]
    classes = {vars(each)[name] for each in modules for name in CLASSES if name in vars(each)}
    before = {each: dict(vars(each)) for each in classes}
    patching.install(SessionGuards())
    yield
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, patching._Finder)]
    for each, members in before.items():
        for name, member in members.items():
            if vars(each)[name] is not member:
                setattr(each, name, member)


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
    tables.create(spark).location("/lake/new").execute()
    assert seen[-1] == ("/lake/new", GuardMode.ANY)


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
