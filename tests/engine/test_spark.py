"""The Spark engine on real Spark and Delta: own session, exact text, Delta's error classes, where tables lie."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablectl.engine.spark import (
    INSTALL,
    STAMP_KEY,
    SparkEngine,
    SparkOptions,
    local_conf,
    open_spark,
    packages,
    wrap_spark,
)
from tablectl.live.reader import read_commits, read_table
from tablectl.model.errors import EngineError, LiveError
from tablectl.model.names import TableName, parse_table
from tablectl.model.operations import ClusterBy, SetProperties, UnsetProperties, render

pytestmark = pytest.mark.spark

STAMP = '{"tablectl":{"plan":"p","run":"r"}}'


def path_table(path: Path) -> TableName:
    return TableName("", (str(path),))


def create(spark: Any, path: Path, columns: str = "id BIGINT, name STRING") -> TableName:
    table = path_table(path)
    spark.sql(f"CREATE TABLE {table.sql} ({columns}) USING delta")
    return table


@pytest.fixture
def engine(spark: Any) -> Iterator[SparkEngine]:
    engine = wrap_spark(spark, stamp=STAMP)
    yield engine
    engine.close()


HOSTILE_TEXTS = [
    "plain",
    "it's",
    'say "hi"',
    "back\\slash",
    "ends with \\",
    "\\'; DROP TABLE x; --",
    "line\nbreak\r\ttab",
    "${env:HOME}",
    "${spark.master}",
    "$${x}",
    "%s {0} {name} :name ?",
    "ünïcødé 表 🦆",
    "",
    "  spaces  ",
    "`ticks`",
    "\\n is two characters",
    "\\u0041",
    "/* no comment */ -- nor this",
]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_the_table_holds_exactly_the_declared_text(spark: Any, engine: SparkEngine, tmp_path: Path, text: str) -> None:
    table = create(spark, tmp_path / "t")
    engine.execute(render(SetProperties((("owner.note", text),)), table))
    assert read_table(table, str(tmp_path / "t")).property("owner.note") == text


@pytest.mark.parametrize(
    "key", ["a b", "a'b", "a`b", "a.b.c", "ключ", "a;b", "a\\b", "a=b", 'a"b', "(a)", "1", "select"]
)
def test_a_property_is_set_and_unset_by_any_name(spark: Any, engine: SparkEngine, tmp_path: Path, key: str) -> None:
    table = create(spark, tmp_path / "t")
    engine.execute(render(SetProperties(((key, "v"), ("other", "w"))), table))
    assert read_table(table, str(tmp_path / "t")).property(key) == "v"
    engine.execute(render(UnsetProperties((key,)), table))
    live = read_table(table, str(tmp_path / "t"))
    assert live.property(key) is None
    assert live.property("other") == "w"


@pytest.mark.parametrize(
    "name", ["a b", "a'b", "a`b", "a.b", "表", "a;b", "100%", "a%20b", "a#b", "a?b=c", 'a"b', "[a]*"]
)
def test_a_path_of_any_name_is_the_table_that_the_log_reader_reads(
    spark: Any, engine: SparkEngine, tmp_path: Path, name: str
) -> None:
    table = create(spark, tmp_path / name)
    engine.execute(render(SetProperties((("owner.note", name),)), table))
    assert read_table(table, str(tmp_path / name)).property("owner.note") == name


@pytest.mark.parametrize("column", ["a b", "a.b", "a`b", "表", "select", "a-b", "A"])
def test_a_column_of_any_name_clusters_a_table(spark: Any, engine: SparkEngine, tmp_path: Path, column: str) -> None:
    quoted = column.replace("`", "``")
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    table = path_table(tmp_path / "t")
    spark.sql(f"CREATE TABLE {table.sql} (`{quoted}` BIGINT, s STRUCT<`{quoted}`: BIGINT>) USING delta {mapped}")
    engine.execute(render(ClusterBy(((column,), ("s", column))), table))
    assert read_table(table, str(tmp_path / "t")).clustering == ((column,), ("s", column))


def test_every_commit_carries_the_stamp_and_the_users_session_stays_as_it_was(
    spark: Any, engine: SparkEngine, tmp_path: Path
) -> None:
    before = {key: spark.conf.get(key, None) for key in (STAMP_KEY, "spark.sql.variable.substitute")}
    table = create(spark, tmp_path / "t")
    engine.execute(render(SetProperties((("a", "b"),)), table))
    spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('c' = 'd')")
    theirs, ours = read_commits(str(tmp_path / "t"), after=0)
    assert (ours.operation, ours.user_metadata) == ("SET TBLPROPERTIES", STAMP)
    assert theirs.user_metadata == ""
    assert {key: spark.conf.get(key, None) for key in before} == before


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        ("SET TBLPROPERTIES ('delta.nonesuch' = '1')", "DELTA_UNKNOWN_CONFIGURATION"),
        ("SET TBLPROPERTIES ('delta.constraints.c' = 'id > 0')", "DELTA_ADD_CONSTRAINTS"),
        ("CLUSTER BY (nonesuch)", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("SET TBLPROPERTIES (", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_errors_carry_the_engines_own_class(
    spark: Any, engine: SparkEngine, tmp_path: Path, change: str, condition: str
) -> None:
    table = create(spark, tmp_path / "t")
    with pytest.raises(EngineError) as caught:
        engine.execute(f"ALTER TABLE {table.sql} {change}")
    assert caught.value.condition == condition
    assert "\n\tat " not in caught.value.message


def test_open_source_delta_refuses_write_serializable_in_words(spark: Any, engine: SparkEngine, tmp_path: Path) -> None:
    table = create(spark, tmp_path / "t")
    with pytest.raises(EngineError, match="must be Serializable"):
        engine.execute(render(SetProperties((("delta.isolationLevel", "WriteSerializable"),)), table))


def test_a_catalog_knows_where_its_tables_lie(spark: Any, engine: SparkEngine, tmp_path: Path) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS engine_db")
    spark.sql(f"CREATE TABLE engine_db.t (id BIGINT) USING delta LOCATION '{tmp_path / 'some where 100%'}'")
    spark.sql("CREATE VIEW engine_db.v AS SELECT 1 AS one")
    spark.sql("CREATE TABLE engine_db.p (id BIGINT) USING parquet")
    try:
        found = engine.location(parse_table("engine_db.t"))
        assert read_table(parse_table("engine_db.t"), found).version == 0
        with pytest.raises(LiveError, match="is a view"):
            engine.location(parse_table("engine_db.v"))
        with pytest.raises(LiveError, match="not a Delta table"):
            engine.location(parse_table("engine_db.p"))
        with pytest.raises(LiveError, match="does not exist"):
            engine.location(parse_table("engine_db.nonesuch"))
        with pytest.raises(LiveError, match="does not exist"):
            engine.location(parse_table("nonesuch.t"))
    finally:
        spark.sql("DROP DATABASE engine_db CASCADE")


CONNECT_SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
from tablectl.engine.spark import SparkOptions, STAMP_KEY, open_spark, wrap_spark
from tablectl.model.errors import EngineError
url, table, stamp = sys.argv[1:]
alter = f"ALTER TABLE {table} SET TBLPROPERTIES "
found = {}
engine = open_spark(SparkOptions(remote=url), stamp)
engine.execute(alter + "('by.remote' = '${env:HOME}')")
wrong = {"unknown": "('delta.nonesuch' = '1')", "level": "('delta.isolationLevel' = 'WriteSerializable')"}
for name, sql in wrong.items():
    try:
        engine.execute(alter + sql)
    except EngineError as error:
        found[name] = [error.condition, error.message]
engine.close()
engine.close()
theirs = SparkSession.builder.remote(url).create()
theirs.conf.set(STAMP_KEY, "theirs")
handed = wrap_spark(theirs, stamp=stamp)
handed.execute(alter + "('by.handed' = 'b')")
handed.close()
found["theirs"] = theirs.conf.get(STAMP_KEY)
theirs.sql(alter + "('by.them' = 'c')")
theirs.stop()
print(json.dumps(found))
"""


def test_spark_connect_behaves_the_same(spark: Any, connect_url: str, tmp_path: Path) -> None:
    """In a process of its own: PySpark keeps classic and Connect sessions of one process apart."""
    table = create(spark, tmp_path / "t")
    script = [sys.executable, "-c", CONNECT_SCRIPT, connect_url, table.sql, STAMP]
    answer = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["unknown"][0] == "DELTA_UNKNOWN_CONFIGURATION"
    assert "must be Serializable" in found["level"][1]
    assert "JVM stacktrace" not in found["level"][1]
    assert found["theirs"] == "theirs"
    live = read_table(table, str(tmp_path / "t"))
    assert live.property("by.remote") == "${env:HOME}"
    stamps = [commit.user_metadata for commit in read_commits(str(tmp_path / "t"), after=0)]
    assert stamps == ["theirs", STAMP, STAMP]


def test_a_connect_server_that_does_not_answer_is_one_sentence() -> None:
    script = """
from tablectl.engine.spark import SparkOptions, open_spark
from tablectl.model.errors import EngineError
try:
    open_spark(SparkOptions(remote="sc://127.0.0.1:1"))
except EngineError as error:
    print(error.message[:60])
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert answer.stdout.startswith("no Spark Connect server answers at sc://127.0.0.1:1"), answer.stderr


def test_the_users_settings_win_and_delta_stays_among_the_packages() -> None:
    conf = local_conf({"spark.master": "local[1]", "spark.jars.packages": "a:b:1"})
    assert conf["spark.master"] == "local[1]"
    assert conf["spark.jars.packages"] == f"{packages()},a:b:1"
    own_delta = local_conf({"spark.jars.packages": "io.delta:delta-spark_2.13:9.9.9"})
    assert own_delta["spark.jars.packages"] == "io.delta:delta-spark_2.13:9.9.9"


def test_without_pyspark_the_install_line_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(EngineError) as caught:
        open_spark(SparkOptions())
    assert caught.value.hint == INSTALL
