"""The Spark engine on real Spark and Delta: own session, exact text, Delta's error classes, where tables lie."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablectl.delta.names import TableName
from tablectl.engine.interface import EngineOptions
from tablectl.engine.local_spark import INSTALL, delta_coordinates, local_conf, packages, why_not_started
from tablectl.engine.spark import SessionFacts, SparkEngine, open_spark, wrap_spark
from tablectl.engine.spark_connect import is_connect
from tablectl.log.reader import read_commits, read_table
from tablectl.model.errors import EngineError, LiveError
from tests.engine.contract import STAMP, EngineContract, create

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark: Any) -> Any:
    """Classic Spark."""
    return spark


class OldSession:
    """A session whose catalog knows no ``SHOW TABLE EXTENDED``."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def sql(self, text: str) -> Any:
        if text.startswith("SHOW TABLE EXTENDED"):
            raise RuntimeError("[NOT_SUPPORTED_COMMAND_FOR_V2_TABLE] SHOW TABLE EXTENDED is not supported")
        return self._session.sql(text)


class TestClassicSpark(EngineContract):
    """Classic Spark does what every engine does."""

    def test_a_session_handed_in_is_the_writers_own_driver(self, spark: Any, engine: SparkEngine) -> None:
        assert engine.shared
        assert engine.log_store("file") == engine.log_store("s3a") == ""
        spark.conf.set("spark.delta.logStore.s3a.impl", "io.delta.storage.S3DynamoDBLogStore")
        try:
            other = wrap_spark(spark)
            assert other.log_store("s3a") == "", "what a user sets in a session does not reach Delta's log store"
        finally:
            spark.conf.unset("spark.delta.logStore.s3a.impl")

    def test_a_catalog_without_the_statement_is_asked_table_by_table(
        self, spark: Any, schema: str, tmp_path: Path
    ) -> None:
        spark.sql(f"CREATE TABLE {schema}.t (id BIGINT) USING delta LOCATION '{tmp_path}/t'")
        spark.sql(f"CREATE TABLE {schema}.u (id BIGINT) USING parquet")
        engine = SparkEngine(OldSession(spark), "oss", SessionFacts(shared=True))
        assert engine.tables("spark_catalog", schema, "t|x") == {
            TableName("spark_catalog", (schema, "t")): f"file:{tmp_path}/t"
        }
        assert len(engine.tables("spark_catalog", schema)) == 2


def test_a_driver_that_we_started_is_not(spark: Any) -> None:
    """The shared session of the tests was started by ``open_spark``, and so is one for each command."""
    beside = open_spark(EngineOptions())
    assert not beside.shared
    beside.close()


class DatabricksSession:
    """As databricks-connect 19 makes them: a Connect session that has ``newSession`` as well."""

    __module__ = "pyspark.sql.connect.session"

    def newSession(self) -> None:  # noqa: N802 - pyspark's name
        raise AssertionError("a session of Spark Connect is cloned")


def test_the_kind_of_a_session_is_its_class_and_not_the_names_of_its_methods(spark: Any) -> None:
    assert is_connect(type("Session", (DatabricksSession,), {})())
    assert not is_connect(spark)


THEIRS = """
import json, threading
from pyspark.sql import SparkSession
from tablectl.engine.sql_catalog import STAMP_KEY
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
from tablectl.engine.local_spark import local_conf
builder = SparkSession.builder
for key, value in {**local_conf({"spark.master": "local[1]"}), "spark.sql.shuffle.partitions": "7"}.items():
    builder = builder.config(key, value)
theirs = builder.getOrCreate()
found = {}
def use():
    engine = open_spark(EngineOptions(), "stamp")
    found["row"] = engine.row("SELECT 1")
    engine.close()
thread = threading.Thread(target=use)
thread.start()
thread.join()
found["stamp"] = theirs.conf.get(STAMP_KEY, None)
found["partitions"] = theirs.conf.get("spark.sql.shuffle.partitions")
found["lives"] = theirs.range(3).count()
theirs.stop()
print(json.dumps(found))
"""


@pytest.mark.slow
def test_another_thread_finds_the_users_session_and_leaves_it_as_it_is() -> None:
    """An active session is one of a thread: in a pool's thread there is none, and yet the user's Spark runs."""
    script = [sys.executable, "-c", THEIRS]
    answer = subprocess.run(script, capture_output=True, text=True, timeout=600, check=False)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found == {"row": ["1"], "stamp": None, "partitions": "7", "lives": 3}


OWN_DRIVER = """
import json
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
conf = {"spark.master": "local[1]", "spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}
engine = open_spark(EngineOptions(conf=conf), "stamp")
other = open_spark(EngineOptions(), "stamp")
stores = [*map(engine.log_store, ("s3a", "s3", "file")), other.log_store("s3a")]
print(json.dumps([engine.shared, other.shared, *stores]))
engine.close()
"""


@pytest.mark.slow
def test_the_log_store_is_what_the_driver_was_started_with() -> None:
    """In a driver of its own: the setting is one of the whole driver."""
    script = [sys.executable, "-c", OWN_DRIVER]
    answer = subprocess.run(script, capture_output=True, text=True, timeout=600, check=False)
    assert answer.returncode == 0, answer.stderr
    dynamo = "io.delta.storage.S3DynamoDBLogStore"
    assert json.loads(answer.stdout) == [False, False, dynamo, "", "", dynamo]


@pytest.fixture
def other_catalog(spark: Any, tmp_path: Path) -> Iterator[str]:
    """A catalog of Spark's second kind, with names of any sort and no Delta tables: Derby behind JDBC."""
    settings = {
        "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        ".url": f"jdbc:derby:{tmp_path}/other;create=true",
        ".driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.engine_other{key}", value)
    yield "engine_other"
    for key in settings:
        spark.conf.unset(f"spark.sql.catalog.engine_other{key}")


def test_catalogs_of_the_second_kind(spark: Any, other_catalog: str) -> None:
    engine = SparkEngine(spark, "oss", SessionFacts(shared=True))
    spark.sql(f"CREATE SCHEMA {other_catalog}.`Odd One`")
    spark.sql(f"CREATE TABLE {other_catalog}.`Odd One`.`A b.c` (id INT)")
    assert "Odd One" in engine.schemas(other_catalog)
    ((name, why),) = engine.tables(other_catalog, "Odd One").items()
    assert name == TableName(other_catalog, ("Odd One", "A b.c"))
    assert "not a Delta table" in str(why)
    with pytest.raises(LiveError, match="not a Delta table"):
        engine.location(name)
    assert engine.tables(other_catalog, "nonesuch") == {}


CONNECT_SCRIPT = """
import json, os, sys
from pyspark.sql import SparkSession
from tablectl.engine.sql_catalog import STAMP_KEY
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark, wrap_spark
from tablectl.model.errors import EngineError
url, table, stamp = sys.argv[1:]
alter = f"ALTER TABLE {table} SET TBLPROPERTIES "
found = {}
engine = open_spark(EngineOptions(remote=url), stamp)
engine.execute(alter + "('by.remote' = '${env:HOME}')")
found["listed"] = {name.text: where for name, where in engine.tables("spark_catalog", "engine_connect").items()}
wrong = {"feature": "('delta.feature.no' = 'supported')", "level": "('delta.isolationLevel' = 'WriteSerializable')"}
for name, sql in wrong.items():
    try:
        engine.execute(alter + sql)
    except EngineError as error:
        found[name] = [error.condition, error.message]
engine.close()
engine.close()
fresh = SparkSession.builder.remote(url).create()  # its server does not know it before its first request
wrap_spark(fresh).close()
fresh.stop()
theirs = SparkSession.builder.remote(url).create()
theirs.conf.set(STAMP_KEY, "theirs")
theirs.conf.set("spark.databricks.delta.write.txnAppId", "nightly")
theirs.conf.set("spark.databricks.delta.write.txnVersion", "7")
theirs.conf.set("spark.databricks.delta.commitInfo.enabled", "false")
# As in a process whose session was made by .remote("local[*]"): PySpark's stop() would stop its server.
os.environ["SPARK_LOCAL_REMOTE"] = "1"
keys = (STAMP_KEY, "spark.sql.variable.substitute", "spark.sql.parser.escapedStringLiterals")
before = [theirs.conf.get(key, None) for key in keys]
handed = wrap_spark(theirs, stamp=stamp)
handed.execute(alter + "('by.handed' = '${env:HOME}')")
found["shared"] = [engine.shared, handed.shared, handed.log_store("file")]
handed.close()
found["local server"] = os.environ.pop("SPARK_LOCAL_REMOTE", "stopped")
found["theirs"] = theirs.conf.get(STAMP_KEY)
found["kept"] = [theirs.conf.get(key, None) for key in keys] == before
theirs.sql(alter + "('by.them' = 'c')")
theirs.stop()
print(json.dumps(found))
"""


def test_spark_connect_behaves_the_same(spark: Any, connect_url: str, tmp_path: Path) -> None:
    """In a process of its own: PySpark keeps classic and Connect sessions of one process apart."""
    table = create(spark, tmp_path / "t")
    spark.sql("CREATE DATABASE engine_connect")
    spark.sql(f"CREATE TABLE engine_connect.t (id BIGINT) USING delta LOCATION '{tmp_path}/named'")
    script = [sys.executable, "-W", "error::UserWarning", "-c", CONNECT_SCRIPT, connect_url, table.sql, STAMP]
    answer = subprocess.run(script, capture_output=True, text=True, timeout=600, check=False)
    assert answer.returncode == 0, answer.stderr
    spark.sql("DROP DATABASE engine_connect CASCADE")
    found = json.loads(answer.stdout)
    assert found["listed"] == {"engine_connect.t": f"file:{tmp_path}/named"}
    assert found["feature"][0] == "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"
    assert "must be Serializable" in found["level"][1]
    assert "JVM stacktrace" not in found["level"][1]
    assert (found["theirs"], found["kept"], found["shared"]) == ("theirs", True, [True, True, ""])
    live = read_table(table, str(tmp_path / "t"))
    assert live.property("by.remote") == live.property("by.handed") == "${env:HOME}"
    assert found["local server"] == "1"
    commits = read_commits(str(tmp_path / "t"), after=0)
    assert [commit.user_metadata for commit in commits] == ["theirs", STAMP, STAMP]
    assert [commit.transactions for commit in commits[1:]] == [(), ()]


def test_a_connect_server_that_does_not_answer_is_one_sentence() -> None:
    script = """
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
from tablectl.model.errors import EngineError
try:
    open_spark(EngineOptions(remote="sc://127.0.0.1:1"))
except EngineError as error:
    print(error.message[:60])
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
    assert answer.stdout.startswith("no Spark Connect server answers at sc://127.0.0.1:1"), answer.stderr


@pytest.mark.parametrize(
    ("spark", "delta", "coordinates"),
    [
        ("4.2.0", "4.4.0", "io.delta:delta-spark_4.2_2.13:4.4.0"),
        ("4.0.1", "4.1.0", "io.delta:delta-spark_4.0_2.13:4.1.0"),
        ("4.0.1", "4.0.1", "io.delta:delta-spark_2.13:4.0.1"),
    ],
)
def test_the_jar_of_delta_is_named_after_spark_since_4_1(spark: str, delta: str, coordinates: str) -> None:
    assert delta_coordinates(spark, delta) == coordinates


def test_a_local_session_lists_the_files_of_a_vacuum_in_few_tasks() -> None:
    key = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    assert local_conf({})[key] == "32"
    assert local_conf({key: "500"})[key] == "500"


def test_the_users_settings_win_and_delta_stays_among_the_packages() -> None:
    conf = local_conf({"spark.master": "local[1]", "spark.jars.packages": "a:b:1"})
    assert conf["spark.master"] == "local[1]"
    assert conf["spark.jars.packages"] == f"{packages()},a:b:1"
    own_delta = local_conf({"spark.jars.packages": "io.delta:delta-spark_2.13:9.9.9"})
    assert own_delta["spark.jars.packages"] == "io.delta:delta-spark_2.13:9.9.9"


def test_a_log_store_among_the_packages_is_not_taken_for_delta() -> None:
    dynamo = "io.delta:delta-storage-s3-dynamodb:4.4.0"
    assert local_conf({"spark.jars.packages": dynamo})["spark.jars.packages"] == f"{packages()},{dynamo}"


def test_a_package_that_cannot_be_downloaded_is_named_and_not_a_host() -> None:
    log = (
        "\tHost repos.spark-packages.org not found. url=https://repos.spark-packages.org/io/x.pom\n"
        "\t\t:: unresolved dependency: io.delta#delta-x;1.0: not found\n"
    )
    reason = why_not_started(log, RuntimeError("Java gateway process exited"))
    assert reason == "the local Spark session did not start: unresolved dependency: io.delta#delta-x;1.0: not found"


def test_without_pyspark_the_install_line_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(EngineError) as caught:
        open_spark(EngineOptions())
    assert caught.value.hint == INSTALL
