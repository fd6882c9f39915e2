"""Streams that read a table, against real Spark and Delta: who goes on, who stops once, who stops again."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tablectl.conflicts.streaming_readers import ReaderEffect, stream_reader
from tests.conflicts.interleavings import COMMITTED, Lake
from tests.conflicts.log_records import Log

pytestmark = pytest.mark.spark

_CONDITION = re.compile(r"\[?((?:DELTA|DIFFERENT_DELTA)_[A-Z_]+)")
_BEFORE = {"widen": "ALTER TABLE $t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"}
_STATEMENTS = {
    **{name: each[0] for name, each in COMMITTED.items() if len(each) == 1},
    "comment on table": "COMMENT ON TABLE $t IS 'numbers'",
    "widen": "ALTER TABLE $t ALTER COLUMN v TYPE DECIMAL(20, 0)",
    "replace": "CREATE OR REPLACE TABLE $t (id BIGINT, p STRING, v BIGINT) USING delta",
}


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(spark, tmp_path_factory.mktemp("layouts"))


class _Stream:
    """A stream from a table to nowhere, with a checkpoint."""

    def __init__(self, spark: Any, path: Path) -> None:
        self._spark, self._path = spark, path
        self._query: Any = None

    def read(self) -> str:
        """Read all there is, from the checkpoint if it was told to have stopped; Delta's condition where it stops."""
        try:
            if self._query is None:
                rows = self._spark.readStream.format("delta").load(str(self._path))
                writer = rows.writeStream.format("noop").option("checkpointLocation", f"{self._path}-checkpoint")
                self._query = writer.start()
            self._query.processAllAvailable()
        except Exception as error:  # noqa: BLE001  # whatever ends a stream is the answer
            self._query = None
            found = _CONDITION.search(str(error))
            return found.group(1) if found else f"{type(error).__name__}: {str(error)[:300]}"
        return ""

    def stop(self) -> None:
        with suppress(Exception):
            self._query.stop()


@pytest.mark.parametrize(
    "name",
    [
        "append a",
        "update a",
        "property",
        "add column",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "delete all of a",
                "overwrite",
                "optimize",
                "vectors on",
                "checkpoints v2",
                "timestamps on",
                "mapping on",
                "cluster",
                "constraint",
                "feature",
                "restore",
                "rename column",
                "comment on table",
                "widen",
                "new partitions",
                "replace",
                "row tracking on",
            )
        ),
    ],
)
def test_what_a_stream_does_is_what_the_rules_say(spark: Any, lake: Lake, tmp_path: Path, name: str) -> None:
    lake.copy("plain", tmp_path / "t")
    table, log = f"delta.`{tmp_path / 't'}`", Log(tmp_path / "t")
    if name in _BEFORE:
        spark.sql(_BEFORE[name].replace("$t", table))
    stream, read = _Stream(spark, tmp_path / "t"), log.newest()
    assert stream.read() == ""
    try:
        if name == "new partitions":
            rows = spark.read.format("delta").load(str(tmp_path / "t"))
            writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", True)
            writer.partitionBy("p").save(str(tmp_path / "t"))
        else:
            spark.sql(_STATEMENTS[name].replace("$t", table))
        made = [log.committed(version) for version in range(read + 1, log.newest() + 1)]
        expected = stream_reader(made, "oss")
        spark.sql(f"INSERT INTO {table} (id, p, v) VALUES (10, 'a', 10)")  # a stream looks up when there are rows
        first = stream.read()
        again = stream.read()
    finally:
        stream.stop()
    told = f"{expected} after {made}: {first!r}, then {again!r}"
    assert (first == "") == (expected.effect is ReaderEffect.GOES_ON), told
    assert (again == "") == (expected.effect is not ReaderEffect.STOPS), told
    assert first == expected.condition, told
