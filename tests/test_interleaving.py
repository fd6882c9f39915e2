"""The helper itself: a held writer has begun and not committed, several can be held, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interleaving import Hold, Writer

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> str:
    name = f"delta.`{tmp_path / 't'}`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING delta")
    return name


def rows(spark: Any, table: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(f"SELECT id FROM {table}").collect())


def test_a_held_writer_loses_to_what_commits_meanwhile(spark: Any, table: str) -> None:
    with Writer(spark, f"INSERT INTO {table} SELECT hold(id) FROM range(7, 8)") as writer:
        writer.wait_inside()
        assert not writer.ended
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('owner.team' = 'x')")
        assert writer.release().condition == "DELTA_METADATA_CHANGED"
    assert rows(spark, table) == []


def test_a_held_writer_goes_on_when_nothing_was_in_its_way(spark: Any, table: str) -> None:
    with Writer(spark, f"INSERT INTO {table} SELECT hold(id) FROM range(7, 8)") as writer:
        writer.wait_inside()
        spark.sql(f"INSERT INTO {table} VALUES (1)")
        assert rows(spark, table) == [1]
        assert writer.release().condition == ""
    assert rows(spark, table) == [1, 7]


def test_two_writers_are_held_at_once_and_released_in_any_order(spark: Any, table: str, tmp_path: Path) -> None:
    def append(session: Any) -> None:
        frame = session.sql("SELECT hold(id) AS id FROM range(2, 3)")
        frame.write.format("delta").mode("append").save(str(tmp_path / "t"))

    with (
        Writer(spark, f"INSERT INTO {table} SELECT hold(id) FROM range(1, 2)") as first,
        Writer(spark, append) as second,
    ):
        first.wait_inside()
        second.wait_inside()
        assert second.release().condition == ""
        assert rows(spark, table) == [2]
        assert first.release().condition == ""
    assert rows(spark, table) == [1, 2]


def test_a_writer_that_ends_before_it_is_inside_fails_the_test(spark: Any, table: str) -> None:
    with (
        Writer(spark, f"INSERT INTO {table} SELECT nonesuch FROM range(1)") as writer,
        pytest.raises(AssertionError, match="ended before it came inside"),
    ):
        writer.wait_inside()


def test_what_calls_no_function_is_held_at_its_commit(spark: Any, table: str) -> None:
    alter = f"ALTER TABLE {table} SET TBLPROPERTIES ('owner.team' = 'x')"
    with Writer(spark, alter, Hold.AT_COMMIT) as writer:
        writer.wait_inside()
        assert not writer.ended
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('owner.team' = 'y')")
        assert writer.release().condition == "DELTA_METADATA_CHANGED"


def test_an_optimize_that_begins_again_is_held_once(spark: Any, table: str) -> None:
    for number in range(2):
        spark.sql(f"INSERT INTO {table} VALUES ({number})")
    with Writer(spark, f"OPTIMIZE {table}", Hold.AT_COMMIT) as writer:
        writer.wait_inside()
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('owner.team' = 'x')")
        assert writer.release().condition == ""
    assert rows(spark, table) == [0, 1]


def test_only_the_chosen_writer_is_held(spark: Any, table: str) -> None:
    with (
        Writer(spark, f"INSERT INTO {table} VALUES (1)", Hold.AT_COMMIT) as first,
        Writer(spark, f"INSERT INTO {table} VALUES (2)", Hold.AT_COMMIT) as second,
    ):
        first.wait_inside()
        second.wait_inside()
        spark.sql(f"INSERT INTO {table} VALUES (3)")
        assert rows(spark, table) == [3]
        assert (second.release().condition, first.release().condition) == ("", "")
    assert rows(spark, table) == [1, 2, 3]
