"""What every engine on Spark does, whatever its client: exact text, stamps, Delta's error classes, where tables are.

A test module inherits ``EngineContract`` and has a fixture ``session``: classic Spark (``test_spark.py``), or
databricks-connect (``tests/databricks_connect``).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablectl.commands.project import CatalogEngine
from tablectl.delta.names import TableName, column_text, parse_table
from tablectl.engine.spark import wrap_spark
from tablectl.engine.sql_catalog import STAMP_KEY
from tablectl.log.reader import read_commits, read_table
from tablectl.model.errors import EngineError, LiveError, WindowError
from tablectl.model.operations import ClusterBy, SetProperties, UnsetProperties

STAMP = '{"tablectl":{"plan":"p","run":"r"}}'


def path_table(path: Path) -> TableName:
    return TableName("", (str(path),))


def create(session: Any, path: Path, columns: str = "id BIGINT, name STRING") -> TableName:
    table = path_table(path)
    session.sql(f"CREATE TABLE {table.sql} ({columns}) USING delta")
    return table


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


class EngineContract:
    """The tests. ``session`` is the caller's; the engine uses one next to it."""

    @pytest.fixture
    def engine(self, session: Any) -> Iterator[CatalogEngine]:
        engine = wrap_spark(session, stamp=STAMP)
        yield engine
        engine.close()

    @pytest.mark.parametrize("text", HOSTILE_TEXTS)
    def test_the_table_holds_exactly_the_declared_text(
        self, session: Any, engine: CatalogEngine, tmp_path: Path, text: str
    ) -> None:
        table = create(session, tmp_path / "t")
        engine.execute(SetProperties((("owner.note", text),)).sql(table))
        assert read_table(table, str(tmp_path / "t")).property("owner.note") == text

    @pytest.mark.parametrize(
        "key", ["a b", "a'b", "a`b", "a.b.c", "ключ", "a;b", "a\\b", "a=b", 'a"b', "(a)", "1", "select"]
    )
    def test_a_property_is_set_and_unset_by_any_name(
        self, session: Any, engine: CatalogEngine, tmp_path: Path, key: str
    ) -> None:
        table = create(session, tmp_path / "t")
        engine.execute(SetProperties(((key, "v"), ("other", "w"))).sql(table))
        assert read_table(table, str(tmp_path / "t")).property(key) == "v"
        engine.execute(UnsetProperties((key,)).sql(table))
        live = read_table(table, str(tmp_path / "t"))
        assert live.property(key) is None
        assert live.property("other") == "w"

    @pytest.mark.parametrize(
        "name", ["a b", "a'b", "a`b", "a.b", "表", "a;b", "100%", "a%20b", "a#b", "a?b=c", 'a"b', "[a]*"]
    )
    def test_a_path_of_any_name_is_the_table_that_the_log_reader_reads(
        self, session: Any, engine: CatalogEngine, tmp_path: Path, name: str
    ) -> None:
        table = create(session, tmp_path / name)
        engine.execute(SetProperties((("owner.note", name),)).sql(table))
        assert read_table(table, str(tmp_path / name)).property("owner.note") == name

    @pytest.mark.parametrize("column", ["a b", "a.b", "a`b", "表", "select", "a-b", "A"])
    def test_a_column_of_any_name_clusters_a_table(
        self, session: Any, engine: CatalogEngine, tmp_path: Path, column: str
    ) -> None:
        quoted = column.replace("`", "``")
        mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        table = path_table(tmp_path / "t")
        session.sql(f"CREATE TABLE {table.sql} (`{quoted}` BIGINT, s STRUCT<`{quoted}`: BIGINT>) USING delta {mapped}")
        engine.execute(ClusterBy((column_text((column,)), column_text(("s", column)))).sql(table))
        assert read_table(table, str(tmp_path / "t")).clustering == ((column,), ("s", column))

    def test_every_commit_carries_the_stamp_and_the_users_session_stays_as_it_was(
        self, session: Any, engine: CatalogEngine, tmp_path: Path
    ) -> None:
        keys = (STAMP_KEY, "spark.sql.variable.substitute", "spark.sql.parser.escapedStringLiterals")
        before = {key: session.conf.get(key, None) for key in keys}
        table = create(session, tmp_path / "t")
        engine.execute(SetProperties((("a", "b"),)).sql(table))
        session.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('c' = 'd')")
        theirs, ours = read_commits(str(tmp_path / "t"), after=0)
        assert (ours.operation, ours.user_metadata) == ("SET TBLPROPERTIES", STAMP)
        assert theirs.user_metadata == ""
        assert {key: session.conf.get(key, None) for key in before} == before

    @pytest.mark.parametrize(
        ("change", "condition"),
        [
            ("SET TBLPROPERTIES ('delta.constraints.c' = 'id > 0')", "DELTA_ADD_CONSTRAINTS"),
            ("CLUSTER BY (nonesuch)", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
            ("SET TBLPROPERTIES (", "PARSE_SYNTAX_ERROR"),
        ],
    )
    def test_errors_carry_the_engines_own_class(
        self, session: Any, engine: CatalogEngine, tmp_path: Path, change: str, condition: str
    ) -> None:
        table = create(session, tmp_path / "t")
        with pytest.raises(EngineError) as caught:
            engine.execute(f"ALTER TABLE {table.sql} {change}")
        assert caught.value.condition == condition
        assert "\n\tat " not in caught.value.message

    def test_open_source_delta_refuses_write_serializable_in_words(
        self, session: Any, engine: CatalogEngine, tmp_path: Path
    ) -> None:
        table = create(session, tmp_path / "t")
        with pytest.raises(EngineError, match="must be Serializable"):
            engine.execute(SetProperties((("delta.isolationLevel", "WriteSerializable"),)).sql(table))

    def test_a_catalog_knows_where_its_tables_lie(self, session: Any, engine: CatalogEngine, tmp_path: Path) -> None:
        session.sql("CREATE DATABASE IF NOT EXISTS engine_db")
        session.sql(f"CREATE TABLE engine_db.t (id BIGINT) USING delta LOCATION '{tmp_path / 'some where 100%'}'")
        session.sql("CREATE VIEW engine_db.v AS SELECT 1 AS one")
        session.sql("CREATE TABLE engine_db.p (id BIGINT) USING parquet")
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
            session.sql("DROP DATABASE engine_db CASCADE")

    @pytest.fixture
    def schema(self, session: Any) -> Iterator[str]:
        session.sql("CREATE DATABASE engine_list")
        yield "engine_list"
        session.sql("DROP DATABASE engine_list CASCADE")

    def test_one_statement_lists_the_tables_of_a_schema(
        self, session: Any, engine: CatalogEngine, schema: str, tmp_path: Path
    ) -> None:
        session.sql(f"CREATE TABLE {schema}.Managed (id BIGINT) USING delta")
        session.sql(f"CREATE TABLE {schema}.moved (id BIGINT) USING delta LOCATION '{tmp_path}/some where 100%25#'")
        forged = "x\\nLocation: /evil\\nProvider: parquet\\nType: VIEW"
        session.sql(f"CREATE TABLE {schema}.forged (`Location` BIGINT) USING delta COMMENT '{forged}'")
        session.sql(f"CREATE TABLE {schema}.plain (id BIGINT) USING parquet")
        session.sql(f"CREATE VIEW {schema}.seen AS SELECT 1 AS one")
        session.sql("CREATE OR REPLACE GLOBAL TEMPORARY VIEW engine_global AS SELECT 1 AS one")
        engine.execute("CREATE OR REPLACE TEMPORARY VIEW engine_temporary AS SELECT 1 AS one")
        found = {name.parts[1]: where for name, where in engine.tables("spark_catalog", schema.upper()).items()}
        assert sorted(found) == ["forged", "managed", "moved", "plain", "seen"]
        assert isinstance(found["seen"], LiveError)
        assert isinstance(found["plain"], LiveError)
        for name in ("forged", "managed", "moved"):
            where = found[name]
            assert isinstance(where, str)
            assert where == engine.location(parse_table(f"{schema}.{name}"))
            assert read_table(parse_table(f"{schema}.{name}"), where).version == 0
        assert found["moved"] == f"file:{tmp_path}/some where 100%25#"

    @pytest.mark.parametrize(
        ("like", "names"),
        [
            ("*", ["a_1", "a_2", "ab1", "b_1"]),
            ("A*", ["a_1", "a_2", "ab1"]),
            ("a_1|B_1|nix", ["a_1", "b_1"]),
            ("a_*", ["a_1", "a_2"]),
            ("*1", ["a_1", "ab1", "b_1"]),
            ("nix", []),
        ],
    )
    def test_a_listing_is_narrowed_by_the_catalog(
        self, session: Any, engine: CatalogEngine, schema: str, like: str, names: list[str]
    ) -> None:
        for name in ("a_1", "a_2", "ab1", "b_1"):
            session.sql(f"CREATE TABLE {schema}.{name} (id BIGINT) USING delta")
        assert sorted(name.parts[1] for name in engine.tables("spark_catalog", schema, like)) == names

    def test_schemas_are_listed_and_missing_ones_told(self, engine: CatalogEngine, schema: str) -> None:
        assert schema in engine.schemas("spark_catalog")
        with pytest.raises(LiveError, match=r"the schema spark_catalog\.nonesuch does not exist"):
            engine.tables("spark_catalog", "nonesuch")
        with pytest.raises(LiveError, match="the engine has no such catalog"):
            engine.tables("nonesuch", "sales")
        with pytest.raises(LiveError, match="catalog nonesuch"):
            engine.schemas("nonesuch")
        with pytest.raises(LiveError, match="the engine has no such catalog"):
            engine.location(parse_table("nonesuch.sales.`a b`"))

    def test_where_a_table_lies_is_reported_without_loading_it(
        self, session: Any, engine: CatalogEngine, schema: str, tmp_path: Path
    ) -> None:
        """A ``DESCRIBE TABLE`` of a clustered table rebuilds its state, and fails if the log is broken."""
        session.sql(f"CREATE TABLE {schema}.t (id BIGINT) USING delta CLUSTER BY (id) LOCATION '{tmp_path}/t'")
        shutil.rmtree(tmp_path / "t" / "_delta_log")
        assert engine.location(parse_table(f"{schema}.t")) == f"file:{tmp_path}/t"
        assert list(engine.tables("spark_catalog", schema).values()) == [f"file:{tmp_path}/t"]

    def test_an_overwrite_keeps_what_the_columns_say(self, session: Any, engine: CatalogEngine, tmp_path: Path) -> None:
        table = create(session, tmp_path / "t", "id BIGINT COMMENT 'of the sale', day STRING")
        session.sql(f"INSERT INTO {table.sql} VALUES (1, 'a'), (2, 'b')").collect()
        engine.overwrite(table, [("id", {"comment": "of the sale"}), ("day", {})], ("day",))
        live = read_table(table, str(tmp_path / "t"))
        assert (live.partition_columns, "of the sale" in live.schema.text) == (("day",), True)
        assert engine.row(f"SELECT count(*), sum(id) FROM {table.sql}") == ("2", "3")
        with pytest.raises(EngineError, match="are not those that were decided on: day"):
            engine.overwrite(table, [("id", {})], ())

    def test_a_statement_is_asked_for_at_the_last_moment(
        self, session: Any, engine: CatalogEngine, tmp_path: Path
    ) -> None:
        table = create(session, tmp_path / "t")

        def never() -> None:
            raise WindowError("the lease was lost")

        with pytest.raises(WindowError, match="lease was lost"):
            engine.execute(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('a' = '1')", "tablectl-run-1", never)
        assert read_commits(str(tmp_path / "t"), after=0) == ()

    def test_it_lives_and_closes_twice(self, session: Any, engine: CatalogEngine) -> None:
        assert engine.alive()
        engine.close()
        engine.close()
        assert session.sql("SELECT 1").collect()[0][0] == 1, "the caller's session goes on"
