"""Jobs that know nothing of guards, in sessions that are guarded: what each write is guarded as, and a race."""

from __future__ import annotations

import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.leases.guards import GuardMode
from tablectl.writers import session as patching
from tablectl.writers import session_guards
from tablectl.writers.options import GuardOptions
from tablectl.writers.session_guards import SETTING, SessionGuards
from tablectl.writers.spark_methods import PATCHES
from tests.interleaving import TIMEOUT, Writer
from tests.scenarios.test_guarded_writers import Apply, Lake, append, append_batch, merge, update

pytestmark = pytest.mark.spark

_CLASSES = (
    *("DataFrameWriter", "DataFrameWriterV2", "MergeIntoWriter", "SparkSession", "DataStreamWriter", "DeltaTable"),
    *("DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTableBuilder"),
)


@pytest.fixture(autouse=True)
def put_back(spark: Any) -> Iterator[None]:
    """The methods of PySpark as they were."""
    modules = [importlib.import_module(name) for name in PATCHES]
    classes = {vars(module)[name] for module in modules for name in _CLASSES if name in vars(module)}
    before = {each: dict(vars(each)) for each in classes}
    yield
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, patching._Finder)]
    for each, members in before.items():
        for name, member in members.items():
            if vars(each)[name] is not member:
                setattr(each, name, member)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, GuardMode]]:
    """The guards that are entered: the last folder of the table, and the mode."""
    found: list[tuple[str, GuardMode]] = []

    class Noted:
        def __init__(self, _spark: Any, terms: GuardOptions, **_settings: object) -> None:
            self.terms = terms

        def __enter__(self) -> None:
            assert self.terms.target.location is not None
            found.append((self.terms.target.location.rstrip("/").rsplit("/", 1)[-1], self.terms.mode))

        def __exit__(self, *_error: object) -> None:
            pass

    monkeypatch.setattr(session_guards, "Guard", Noted)
    return found


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Lake:
    made = Lake(spark, tmp_path)
    made.make()
    made.declare("\n    properties: {delta.checkpointRetentionDuration: interval 60 days}\n")
    return made


def made_before(session: Any, place: str, *, handles: bool) -> list[tuple[str, Callable[[], object], str]]:
    """Writes of objects that a job made before its session was guarded."""
    frame = session.range(1).selectExpr("id", "id AS v")
    writer = frame.write.format("delta").mode("append")
    made: list[tuple[str, Callable[[], object], str]] = [
        ("append of an old writer", lambda: writer.save(place), "any"),
        ("insertInto of an old writer", lambda: writer.insertInto(f"delta.`{place}`"), "any"),
    ]
    if handles:
        table: Any = importlib.import_module("delta.tables").DeltaTable.forPath(session, place)
        merge = table.alias("t").merge(frame.alias("s"), "t.id = s.id + 100").whenMatchedDelete()
        made += [
            ("delete by an old handle", lambda: table.delete("id = 2"), "rewrite"),
            (
                "merge by an old handle",
                lambda: table.alias("t").merge(frame.alias("s"), "t.id = s.id + 100").whenMatchedDelete().execute(),
                "rewrite",
            ),
            ("old merge", lambda: merge.execute(), "warning"),  # noqa: PLW0108  # looked up when it is called
        ]
    return made


def writes(session: Any, place: str, other: str, *, handles: bool) -> list[tuple[str, Callable[[], object], str]]:
    """What jobs do, and the modes of its guards; empty for none. The table has the columns ``id`` and ``v``.

    ``DeltaTable`` on Connect needs a plug-in of the server, which the test server does not have: no ``handles`` there.
    """
    table, frame = f"delta.`{place}`", session.range(1).selectExpr("id", "id AS v")
    own = session.read.format("delta").load(place)
    foreign = session.read.format("delta").load(other)
    frame.createOrReplaceTempView("new_rows")
    own.createOrReplaceTempView("old_view")
    delta: Any = importlib.import_module("delta.tables").DeltaTable.forPath(session, place) if handles else None

    def merge_handle() -> object:
        return delta.alias("t").merge(frame.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"}).execute()

    def merge_created() -> object:
        made = importlib.import_module("delta.tables").DeltaTable.createIfNotExists(session).location(place)
        created = made.addColumn("id", "BIGINT").addColumn("v", "BIGINT").partitionedBy("id").execute()
        return created.alias("t").merge(frame.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"}).execute()

    of_handles: list[tuple[str, Callable[[], object], str]] = [
        ("merge of a table that the job created", merge_created, "any rewrite"),
        ("merge of handles", merge_handle, "rewrite"),
        ("delete by handle", lambda: delta.delete("id = 2"), "rewrite"),
        ("optimize by handle", lambda: delta.optimize().executeCompaction(), "rewrite"),
    ]
    return [
        *(of_handles if handles else ()),
        ("append", lambda: frame.write.format("delta").mode("append").save(place), "append"),
        ("append by argument", lambda: frame.write.save(place, format="delta", mode="append"), "append"),
        (
            "append of another table",
            lambda: foreign.write.format("delta").mode("append").save(place),
            "append" if handles else "rewrite",  # the plan of a Connect DataFrame does not say what it reads
        ),
        ("append of itself", lambda: own.write.format("delta").mode("append").save(place), "rewrite"),
        (
            "append that merges schemas",
            lambda: frame.write.format("delta").mode("append").option("mergeSchema", True).save(place),
            "any",
        ),
        ("overwrite", lambda: frame.write.format("delta").mode("overwrite").save(place), "any"),
        ("insertInto", lambda: frame.write.insertInto(table), "append"),
        ("insertInto that overwrites", lambda: frame.write.insertInto(table, overwrite=True), "any"),
        ("v2 append", lambda: frame.writeTo(table).append(), "append"),
        ("v2 overwritePartitions", lambda: frame.writeTo(table).overwritePartitions(), "any"),
        ("insert of values", lambda: session.sql(f"INSERT INTO {table} VALUES (7, 7)"), "append"),
        (
            "insert of another table",
            lambda: session.sql(f"INSERT INTO {table} SELECT * FROM delta.`{other}`"),
            "append",
        ),
        ("insert of itself", lambda: session.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE id = 1"), "rewrite"),
        ("insert of a view", lambda: session.sql(f"INSERT INTO {table} SELECT * FROM new_rows"), "rewrite"),
        ("update", lambda: session.sql(f"UPDATE {table} SET v = 1 WHERE id = 1"), "rewrite"),
        (
            "merge after a CTE",
            lambda: session.sql(
                f"WITH s AS (SELECT 1 AS id, 5 AS v) MERGE INTO {table} t USING s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
            ),
            "rewrite",
        ),
        ("insert after FROM", lambda: session.sql(f"FROM new_rows INSERT INTO {table} SELECT id, v"), "rewrite"),
        ("update of a DataFrame", lambda: session.sql("UPDATE {t} SET v = 1 WHERE id = 1", t=own), "rewrite"),
        ("insert of a DataFrame", lambda: session.sql(f"INSERT INTO {table} SELECT * FROM {{s}}", s=own), "rewrite"),
        ("long insert", lambda: session.sql(f"INSERT INTO {table} VALUES (7, 7) /* {'x' * 1_000_000} */"), "rewrite"),
        (
            "columns called update and delete",
            lambda: session.sql("WITH s AS (SELECT 1 AS update, 2 AS delete) SELECT update, delete FROM s").collect(),
            "",
        ),
        ("update of a view", lambda: session.sql("UPDATE old_view SET v = 1 WHERE id = 1"), "warning"),
        ("ddl", lambda: session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('x' = 'y')"), "any"),
        ("csv", lambda: frame.write.mode("overwrite").csv(f"{place}-csv"), ""),
        ("query", lambda: session.sql(f"SELECT * FROM {table}").count(), ""),
    ]


def session_of(request: pytest.FixtureRequest, spark: Any, connect_url: str, kind: str) -> Any:
    """A session of its own."""
    if kind == "classic":
        return spark.newSession()
    session = importlib.import_module("pyspark.sql.connect.session").SparkSession.builder.remote(connect_url).create()
    # A client that is not closed calls its server again at the exit of the process, for minutes if it is gone.
    request.addfinalizer(session.client.close)
    return session


@pytest.mark.parametrize(
    ("launched", "kind"),
    [
        pytest.param(True, "connect", id="tablectl-guard run, connect"),
        pytest.param(False, "classic", id="guard_session, classic"),
        pytest.param(True, "classic", id="tablectl-guard run, classic", marks=pytest.mark.slow),
        pytest.param(False, "connect", id="guard_session, connect", marks=pytest.mark.slow),
    ],
)
def test_an_apply_is_never_guarded(
    request: pytest.FixtureRequest,
    spark: Any,
    connect_url: str,
    lake: Lake,
    seen: list[tuple[str, GuardMode]],
    kind: str,
    launched: bool,
) -> None:
    """Its statements would wait at its own gate, which it keeps shut as long as it lives."""
    session = session_of(request, spark, connect_url, kind)
    if launched:
        patching.install(SessionGuards(everywhere=True))
    else:
        tablectl.guard_session(session)
    lake.declare("\n    partitioning: none\n    rewrite: allowed\n    isolation: Serializable\n")
    report = tablectl.apply(directory=lake.folder, spark=session)
    assert report.exit_code == 0, report
    assert len(lake.operations()) == 2
    assert seen == []
    session.sql(f"DELETE FROM delta.`{lake.place}` WHERE id = 1")
    assert seen == [("orders", GuardMode.REWRITE)]


@pytest.mark.parametrize("kind", ["classic", pytest.param("connect", marks=pytest.mark.slow)])
def test_each_write_is_guarded_as_what_it_does(
    request: pytest.FixtureRequest,
    spark: Any,
    connect_url: str,
    lake: Lake,
    seen: list[tuple[str, GuardMode]],
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    pytest.importorskip("sqlglot")
    other = f"{lake.place}-other"
    spark.range(2).selectExpr("id", "id AS v").write.format("delta").save(other)
    session, handles = session_of(request, spark, connect_url, kind), kind == "classic"
    early = made_before(session, lake.place, handles=handles)
    tablectl.guard_session(session)
    found, expected = {}, {}
    for name, write, modes in (*early, *writes(session, lake.place, other, handles=handles)):
        seen.clear()
        caplog.clear()
        write()
        warned = any("is not guarded" in message for message in caplog.messages)
        found[name] = [*(str(each) for _, each in seen), *(["warning"] if warned else [])]
        expected[name] = modes.split()
        assert all(table == "orders" for table, _ in seen)
    assert found == expected
    session.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    seen.clear()
    session.sql(f"INSERT INTO delta.`{lake.place}` VALUES (7, 7)")
    assert [str(mode) for _, mode in seen] == ["any"]
    session.conf.set(SETTING, "off")
    seen.clear()
    session.sql(f"INSERT INTO delta.`{lake.place}` VALUES (7, 7)")
    assert seen == []


JOBS: dict[str, Callable[[Any, str], object]] = {
    "insert": append,
    "update": update,
    "merge": merge,
    "save": lambda session, place: append_batch(session.sql("SELECT 9L AS id"), place),
}


@pytest.mark.parametrize("name", JOBS)
def test_an_apply_waits_for_the_write_of_an_unedited_job(lake: Lake, name: str) -> None:
    def job(session: Any) -> object:
        tablectl.guard_session(session, name="nightly")
        return JOBS[name](session, lake.place)

    with Writer(lake.spark, job) as writer:
        writer.wait_inside()
        apply = Apply(lake)
        apply.wait_for("draining")
        ended = writer.release()
        report = apply.report()
    assert ended.error is None
    assert report.exit_code == 0, report
    assert lake.operations()[-1] == "SET TBLPROPERTIES"
    (trace,) = (Path(lake.place) / "_tablectl" / "writers").iterdir()
    assert json.loads(trace.read_text())["writer"].startswith("nightly, ")


def test_a_handle_of_an_earlier_time_is_made_again_inside_the_guard(lake: Lake) -> None:
    """A job that keeps its ``DeltaTable`` fails after some changes (``test_guarded_writers``); in a guarded session it
    does not.
    """
    from delta.tables import DeltaTable

    lake.spark.sql(f"INSERT INTO delta.`{lake.place}` SELECT /*+ COALESCE(1) */ 7, id FROM range(2)")
    session = lake.spark.newSession()
    tablectl.guard_session(session)
    before = DeltaTable.forPath(session, lake.place)
    lake.declare("\n    deletion_vectors: enabled\n")
    assert Apply(lake).report().exit_code == 0
    before.update("id = 7 AND v = 1", {"v": "90"})
    assert 90 in lake.rows().values()


def test_tables_are_created_and_cloned_in_a_guarded_session(lake: Lake) -> None:
    """Delta creates no table in a folder that holds something, such as the trace of its writer."""
    from delta.tables import DeltaTable

    session = lake.spark.newSession()
    tablectl.guard_session(session)
    new, clone = f"{lake.place}-new", f"{lake.place}-clone"
    session.sql(f"CREATE TABLE delta.`{new}` (id LONG) USING delta")
    DeltaTable.forPath(session, new).clone(clone, isShallow=True)
    assert not (Path(clone) / "_tablectl").exists()
    DeltaTable.forPath(session, lake.place).clone(clone, isShallow=True, replace=True)
    assert session.read.format("delta").load(clone).columns == ["id", "v"]
    assert len(list((Path(clone) / "_tablectl" / "writers").iterdir())) == 1


class Loop:
    """A job that runs again and again in a guarded session, until it is stopped."""

    def __init__(self, session: Any, job: Callable[[Any], None]) -> None:
        tablectl.guard_session(session)
        self.failures: list[str] = []
        self.runs = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(session, job), daemon=True)
        self._thread.start()

    def _run(self, session: Any, job: Callable[[Any], None]) -> None:
        while not self._over.is_set():
            try:
                job(session)
                self.runs += 1
            except Exception as error:  # noqa: BLE001  # what the test counts
                self.failures.append(f"{job.__name__}: {error}"[:300])

    def stop(self) -> None:
        self._over.set()
        self._thread.join(TIMEOUT)


@pytest.mark.slow
def test_unedited_jobs_race_with_applies_and_none_fails(lake: Lake) -> None:
    """Each job writes partitions of its own, so that only an apply could fail it."""

    def merges(session: Any) -> None:
        session.sql(
            f"MERGE INTO delta.`{lake.place}` t USING (SELECT 3 AS id, 90 AS v) s ON t.id = s.id AND t.id = 3 "
            "WHEN MATCHED THEN UPDATE SET v = s.v"
        )

    def saves(session: Any) -> None:
        session.sql("SELECT 8L AS id, 80L AS v").write.format("delta").mode("append").save(lake.place)

    def inserts(session: Any) -> None:
        session.sql(f"INSERT INTO delta.`{lake.place}` VALUES (9, 90)")

    jobs = [Loop(lake.spark.newSession(), job) for job in (merges, saves, inserts)]
    try:
        for days in range(61, 67):
            lake.declare(f"\n    properties: {{delta.checkpointRetentionDuration: interval {days} days}}\n")
            assert Apply(lake).report().exit_code == 0
    finally:
        for each in jobs:
            each.stop()
    assert [failure for each in jobs for failure in each.failures] == []
    assert all(each.runs > 0 for each in jobs)
    assert lake.operations().count("SET TBLPROPERTIES") == 6
