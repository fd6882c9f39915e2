"""The rules against real Spark and Delta: a writer held inside its transaction, another statement committed meanwhile.

The winner is read from the log that Delta wrote, the loser is described beside its statement; what ``decide`` says is
what must happen. A disagreement is an error in the rules.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tablectl.conflicts.effects import commits_of, effect_of
from tablectl.conflicts.rules import decide_all
from tablectl.conflicts.transactions import (
    CLUSTERING_DOMAIN,
    EVERYTHING,
    Conflict,
    Kind,
    Level,
    Loser,
    Partition,
    Reads,
)
from tablectl.live.reader import read_table
from tablectl.model.live import Client
from tablectl.model.names import TableName
from tablectl.model.operations import ClusterBy, Operation, Purge, SetProperties, UnsetProperties, render
from tablectl.model.plan import Basis
from tests.conflicts.log_records import Log
from tests.interleaving import Writer

pytestmark = pytest.mark.spark

_DELTA = Client("delta-spark", (4, 4, 0))
_LETTERS = "aba"
"""One file each, in this order; its two rows have the letter in ``p`` and count on from 1 in ``id``."""


@dataclass(frozen=True)
class Layout:
    """A table to start from: three columns, one file for each of ``_LETTERS``."""

    partitioned: bool = False
    clustered: bool = False
    level: Level = Level.SERIALIZABLE


_LAYOUTS: dict[str, tuple[Layout, list[str]]] = {
    "plain": (Layout(), ["CREATE TABLE $t (id BIGINT, p STRING, v BIGINT) USING delta"]),
    "partitioned": (
        Layout(partitioned=True),
        ["CREATE TABLE $t (id BIGINT, p STRING, v BIGINT) USING delta PARTITIONED BY (p)"],
    ),
    "clustered": (
        Layout(clustered=True),
        ["CREATE TABLE $t (id BIGINT, p STRING, v BIGINT) USING delta CLUSTER BY (id)"],
    ),
    "vectors": (
        Layout(),
        [
            (
                "CREATE TABLE $t (id BIGINT, p STRING, v BIGINT) USING delta "
                "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
            ),
        ],
    ),
    "identity": (
        Layout(partitioned=True),
        [
            (
                "CREATE TABLE $t (id BIGINT, p STRING, v BIGINT, n BIGINT GENERATED ALWAYS AS IDENTITY) USING delta "
                "PARTITIONED BY (p)"
            ),
        ],
    ),
}


class Lake:
    """Makes each layout once, and copies of it for the tests."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def copy(self, layout: str, to: Path) -> Layout:
        template = self._folder / layout
        if not template.exists():
            if layout.startswith("weak"):
                self._make_weak(layout, template)
            else:
                self._make(layout, template)
        shutil.copytree(template, to)
        if layout.startswith("weak"):
            return Layout(partitioned=layout.endswith("partitioned"), level=Level.WRITE_SERIALIZABLE)
        return _LAYOUTS[layout][0]

    def _make(self, layout: str, path: Path) -> None:
        columns = "(id, p, v) " if layout == "identity" else ""
        for statement in _LAYOUTS[layout][1]:
            self._spark.sql(statement.replace("$t", f"delta.`{path}`"))
        for index, letter in enumerate(_LETTERS):
            first, second = (f"({number}, '{letter}', {number})" for number in (2 * index + 1, 2 * index + 2))
            rows = f"SELECT /*+ COALESCE(1) */ * FROM VALUES {first}, {second}"
            self._spark.sql(f"INSERT INTO delta.`{path}` {columns}{rows}")
        if layout == "vectors":
            self._spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")

    def _make_weak(self, layout: str, path: Path) -> None:
        """Spark refuses to set WriteSerializable, and honours it where another engine stored it (delta.md 1.2)."""
        for index, letter in enumerate(_LETTERS):
            ids = [2 * index + 1, 2 * index + 2]
            write_deltalake(
                path,
                pa.table({"id": ids, "p": [letter] * 2, "v": ids}),
                mode="append",
                partition_by=["p"] if layout.endswith("partitioned") else None,
                configuration={"delta.isolationLevel": "WriteSerializable"},
            )


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(spark, tmp_path_factory.mktemp("layouts"))


Write = str | Callable[[Any, str], object]
"""SQL in which ``$t`` is the table, or a function of the writer's session and the table's path."""
Describe = Callable[[Layout, Log], Loser]


def _files(log: Log, letter: str | None) -> tuple[str, ...]:
    """The live files with the rows of a letter, in the order they came; all without one."""
    live = list(log.files(log.newest()).items())
    if letter is None:
        return tuple(path for path, _ in live)
    if live and "p" in live[0][1]:
        return tuple(path for path, values in live if values["p"] == letter)
    return tuple(path for (path, _), found in zip(live, _LETTERS, strict=True) if found == letter)


def _reads(layout: Layout, log: Log, letter: str | None) -> Reads:
    partitions: tuple[Partition, ...] | None = ((letter,),) if layout.partitioned and letter else None
    return Reads(partitions=partitions, files=_files(log, letter))


def _blind(layout: Layout, log: Log) -> Loser:
    return Loser(kind=Kind.APPEND, client=_DELTA, level=layout.level, partitioned=layout.partitioned)


def _rewrites(kind: Kind, letter: str | None) -> Describe:
    def describe(layout: Layout, log: Log) -> Loser:
        reads = _reads(layout, log, letter)
        return replace(_blind(layout, log), kind=kind, reads=reads, removes=reads.files)

    return describe


def _reading(layout: Layout, log: Log) -> Loser:
    return replace(_blind(layout, log), kind=Kind.READING_INSERT, reads=_reads(layout, log, "a"))


def _overwrites(layout: Layout, log: Log) -> Loser:
    files = _files(log, None)
    domains = (CLUSTERING_DOMAIN,) if layout.clustered else ()
    reads = replace(EVERYTHING, files=files)
    return replace(_blind(layout, log), kind=Kind.OVERWRITE, reads=reads, removes=files, domains=domains)


def _overwrites_dynamically(layout: Layout, log: Log) -> Loser:
    """It reads the partitions that it writes, and no file of them."""
    files = _files(log, "a")
    reads = Reads(partitions=(("a",),))
    return replace(_blind(layout, log), kind=Kind.DYNAMIC_OVERWRITE, reads=reads, removes=files)


def _with(describe: Describe, **more: Any) -> Describe:
    return lambda layout, log: replace(describe(layout, log), **more)


_ONE_ROW = "SELECT hold(9) AS id, 'a' AS p, CAST(9 AS BIGINT) AS v FROM range(1)"


def _dynamic(session: Any, path: str) -> None:
    writer = session.sql(_ONE_ROW).write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").save(path)


def _replace_where(session: Any, path: str) -> None:
    session.sql(_ONE_ROW).write.format("delta").mode("overwrite").option("replaceWhere", "p = 'a'").save(path)


def _idempotent(session: Any, path: str) -> None:
    writer = session.sql(_ONE_ROW).write.format("delta").mode("append")
    writer.option("txnAppId", "q").option("txnVersion", 2).save(path)


def _stream(session: Any, path: str) -> None:
    source, checkpoint = f"{path}-source", f"{path}-checkpoint"
    session.range(1).write.format("delta").save(source)
    rows = session.readStream.format("delta").load(source)
    rows = rows.selectExpr("hold(id) AS id", "'a' AS p", "CAST(9 AS BIGINT) AS v")
    writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(path).awaitTermination()


_LOSERS: dict[str, tuple[Write, Describe]] = {
    "append": (f"INSERT INTO $t (id, p, v) {_ONE_ROW}", _blind),
    "reading": ("INSERT INTO $t SELECT hold(id), 'a', v FROM $t WHERE p = 'a'", _reading),
    "update": ("UPDATE $t SET v = hold(v) WHERE p = 'a'", _rewrites(Kind.UPDATE, "a")),
    "delete": ("DELETE FROM $t WHERE p = 'a' AND hold(id) = 1", _rewrites(Kind.DELETE, "a")),
    "merge": (
        (
            "MERGE INTO $t t USING (SELECT hold(id) AS id FROM range(1, 2)) s ON t.id = s.id AND t.p = 'a' "
            "WHEN MATCHED THEN UPDATE SET v = 9"
        ),
        _rewrites(Kind.MERGE, "a"),
    ),
    "merge by column": (
        (
            "MERGE INTO $t t USING (SELECT hold(id) AS id, 'a' AS p FROM range(1, 2)) s ON t.id = s.id AND t.p = s.p "
            "WHEN MATCHED THEN UPDATE SET v = 9"
        ),
        _rewrites(Kind.MERGE, None),
    ),
    "overwrite": (f"INSERT OVERWRITE $t {_ONE_ROW}", _overwrites),
    "dynamic overwrite": (_dynamic, _overwrites_dynamically),
    "replaceWhere": (_replace_where, _rewrites(Kind.REPLACE_WHERE, "a")),
    "idempotent": (_idempotent, _with(_blind, app_ids=("q",))),
    "stream": (_stream, _with(_blind, kind=Kind.STREAMING_APPEND)),
    "identity": (f"INSERT INTO $t (id, p, v) {_ONE_ROW}", _with(_blind, metadata=True)),
}

_SET = "ALTER TABLE $t SET TBLPROPERTIES "
_VECTORS_ON = f"{_SET}('delta.enableDeletionVectors' = 'true')"
_TIMESTAMPS_ON = f"{_SET}('delta.enableInCommitTimestamps' = 'true')"
_TIMESTAMPS_OFF = f"{_SET}('delta.enableInCommitTimestamps' = 'false')"
_ROW_TRACKING_ON = f"{_SET}('delta.enableRowTracking' = 'true')"
_CLUSTER = "ALTER TABLE $t CLUSTER BY (v)"
_APPEND_B = "INSERT INTO $t (id, p, v) VALUES (8, 'b', 8)"
_WINNERS = {
    "property": [f"{_SET}('owner.team' = 'x')"],
    "unset of nothing": ["ALTER TABLE $t UNSET TBLPROPERTIES IF EXISTS ('owner.team')"],
    "vectors on": [_VECTORS_ON],
    "vectors on with a property": [f"{_SET}('delta.enableDeletionVectors' = 'true', 'owner.team' = 'x')"],
    "vectors on and off": [_VECTORS_ON, f"{_SET}('delta.enableDeletionVectors' = 'false')"],
    "row tracking on": [_ROW_TRACKING_ON],
    "checkpoints v2": [f"{_SET}('delta.checkpointPolicy' = 'v2')"],
    "timestamps on": [_TIMESTAMPS_ON],
    "mapping on": [f"{_SET}('delta.columnMapping.mode' = 'name')"],
    "cluster": [_CLUSTER],
    "add column": ["ALTER TABLE $t ADD COLUMNS (w BIGINT)"],
    "append a": ["INSERT INTO $t VALUES (8, 'a', 8)"],
    "append b": [_APPEND_B],
    "reading append b": ["INSERT INTO $t SELECT id + 10, p, v FROM $t WHERE p = 'b'"],
    "delete a": ["DELETE FROM $t WHERE p = 'a' AND id = 1"],
    "delete b": ["DELETE FROM $t WHERE p = 'b' AND id = 3"],
    "delete all of a": ["DELETE FROM $t WHERE p = 'a'"],
    "delete all of b": ["DELETE FROM $t WHERE p = 'b'"],
    "optimize": ["OPTIMIZE $t"],
    "reorg": ["REORG TABLE $t APPLY (PURGE)"],
    "overwrite": ["INSERT OVERWRITE $t VALUES (8, 'a', 8)"],
    "feature dropped": ["ALTER TABLE $t DROP FEATURE checkConstraints"],
    "all that is free": [_VECTORS_ON, _ROW_TRACKING_ON, _CLUSTER, f"{_SET}('delta.checkpointPolicy' = 'v2')"],
}


def check(lake: Lake, spark: Any, place: Path, layout_name: str, winner: str, loser: str, *prepare: str) -> str:
    """Holds the loser, runs the winner, compares what happens with what the rules say, and gives the condition back."""
    layout = lake.copy(layout_name, place / "t")
    table, log = f"delta.`{place / 't'}`", Log(place / "t")
    for statement in prepare:
        spark.sql(statement.replace("$t", table))
    write, describe = _LOSERS[loser]
    described, read = describe(layout, log), log.newest()

    def run(session: Any) -> None:
        if callable(write):
            write(session, str(place / "t"))
        else:
            session.sql(write.replace("$t", table))

    with Writer(spark, run) as writer:
        writer.wait_inside()
        for statement in _WINNERS[winner]:
            spark.sql(statement.replace("$t", table))
        winners = [log.winner(version) for version in range(read + 1, log.newest() + 1)]
        assert winners
        happened = writer.release().condition.partition(".")[0]
    expected = decide_all(winners, described)
    assert happened == (expected.conflict or ""), f"{expected}\nafter {winners}\nfor {described}"
    return happened


@pytest.mark.parametrize("loser", ["append", "merge", "overwrite"])
@pytest.mark.parametrize(
    ("winner", "layout"),
    [
        ("property", "plain"),
        ("unset of nothing", "plain"),
        ("vectors on", "plain"),
        ("vectors on with a property", "plain"),
        ("row tracking on", "plain"),
        ("checkpoints v2", "plain"),
        ("timestamps on", "plain"),
        ("mapping on", "plain"),
        ("cluster", "plain"),
        ("cluster", "clustered"),
        ("add column", "plain"),
        ("all that is free", "plain"),
    ],
)
def test_changes_of_metadata(lake: Lake, spark: Any, tmp_path: Path, winner: str, layout: str, loser: str) -> None:
    check(lake, spark, tmp_path, layout, winner, loser)


@pytest.mark.slow
@pytest.mark.parametrize("loser", ["append", "update", "delete", "merge", "merge by column"])
@pytest.mark.parametrize("winner", ["append a", "append b", "delete a", "delete b", "optimize"])
def test_data_with_partitions(lake: Lake, spark: Any, tmp_path: Path, winner: str, loser: str) -> None:
    check(lake, spark, tmp_path, "partitioned", winner, loser)


@pytest.mark.slow
@pytest.mark.parametrize("loser", ["append", "update", "overwrite"])
@pytest.mark.parametrize("winner", ["append b", "delete b", "delete all of b", "optimize", "overwrite"])
def test_data_without_partitions(lake: Lake, spark: Any, tmp_path: Path, winner: str, loser: str) -> None:
    check(lake, spark, tmp_path, "plain", winner, loser)


@pytest.mark.parametrize("loser", ["dynamic overwrite", "replaceWhere"])
@pytest.mark.parametrize("winner", ["append a", "append b", "delete all of a"])
def test_overwrites_of_a_partition(lake: Lake, spark: Any, tmp_path: Path, winner: str, loser: str) -> None:
    check(lake, spark, tmp_path, "partitioned", winner, loser)


@pytest.mark.parametrize(
    ("layout", "winner", "loser"),
    [
        ("weak", "append b", "update"),
        ("weak", "append b", "overwrite"),
        ("weak", "append b", "reading"),
        ("weak", "reading append b", "update"),
        ("weak partitioned", "reading append b", "update"),
    ],
)
def test_write_serializable_where_another_engine_stored_it(
    lake: Lake, spark: Any, tmp_path: Path, layout: str, winner: str, loser: str
) -> None:
    check(lake, spark, tmp_path, layout, winner, loser)


@pytest.mark.parametrize("loser", ["append", "update", "merge"])
def test_vectors_merged_into_their_files(lake: Lake, spark: Any, tmp_path: Path, loser: str) -> None:
    check(lake, spark, tmp_path, "vectors", "reorg", loser)


@pytest.mark.parametrize("winner", ["property", "vectors on", "append b"])
def test_a_stream(lake: Lake, spark: Any, tmp_path: Path, winner: str) -> None:
    check(lake, spark, tmp_path, "plain", winner, "stream")


def test_identity_values_drawn_by_both_conflict(lake: Lake, spark: Any, tmp_path: Path) -> None:
    assert check(lake, spark, tmp_path, "identity", "append b", "identity") == Conflict.METADATA_CHANGED


def test_identity_values_drawn_beside_an_update_do_not(lake: Lake, spark: Any, tmp_path: Path) -> None:
    assert check(lake, spark, tmp_path, "identity", "append b", "update") == ""


def test_identity_marks_spoil_what_is_free_without_them(
    lake: Lake, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_WINNERS, "both", [_APPEND_B, _VECTORS_ON])
    assert check(lake, spark, tmp_path, "identity", "both", "update") == Conflict.METADATA_CHANGED


def test_timestamps_turned_on_again_are_not_free(lake: Lake, spark: Any, tmp_path: Path) -> None:
    before = (_TIMESTAMPS_ON, _TIMESTAMPS_OFF)
    assert check(lake, spark, tmp_path, "plain", "timestamps on", "append", *before) == Conflict.METADATA_CHANGED


def test_a_feature_that_leaves_the_protocol_fails_everybody(lake: Lake, spark: Any, tmp_path: Path) -> None:
    before = f"{_SET}('delta.feature.checkConstraints' = 'supported')"
    assert check(lake, spark, tmp_path, "plain", "feature dropped", "append", before) == Conflict.PROTOCOL_CHANGED


def test_one_idempotent_write_twice_at_once(lake: Lake, spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    first = spark.createDataFrame([(8, "b", 8)], "id BIGINT, p STRING, v BIGINT")
    layout, log = lake.copy("plain", tmp_path / "t"), Log(tmp_path / "t")
    with Writer(spark, lambda session: _idempotent(session, path)) as writer:
        writer.wait_inside()
        first.write.format("delta").mode("append").option("txnAppId", "q").option("txnVersion", 1).save(path)
        expected = decide_all([log.winner(log.newest())], _LOSERS["idempotent"][1](layout, log))
        assert writer.release().condition == expected.conflict == Conflict.TRANSACTION


@pytest.mark.parametrize(
    ("layout", "operation"),
    [
        ("plain", SetProperties((("delta.enableDeletionVectors", "true"),))),
        ("plain", SetProperties((("delta.checkpointPolicy", "v2"), ("owner.team", "x")))),
        ("plain", UnsetProperties(("owner.team",))),
        ("plain", ClusterBy((("v",),))),
        ("clustered", ClusterBy((("v",),))),
        ("clustered", ClusterBy(())),
        ("vectors", Purge()),
    ],
)
def test_a_statement_commits_what_its_effect_says(
    lake: Lake, spark: Any, tmp_path: Path, layout: str, operation: Operation
) -> None:
    lake.copy(layout, tmp_path / "t")
    table = TableName("", (str(tmp_path / "t"),))
    spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('owner.team' = 'y')")
    basis = Basis.of(read_table(table, str(tmp_path / "t")))
    before = Log(tmp_path / "t").newest()
    spark.sql(render(operation, table))
    (said,) = commits_of(effect_of(operation, basis), basis)
    (made,) = [Log(tmp_path / "t").winner(version) for version in range(before + 1, Log(tmp_path / "t").newest() + 1)]
    assert (said.kind, said.domains, said.blind) == (made.kind, made.domains, made.blind)
    assert (bool(said.added), bool(said.removed)) == (bool(made.added), bool(made.removed))
    assert set(said.protocol.adds if said.protocol else ()) == set(made.protocol.adds if made.protocol else ())
    assert (said.metadata is None) == (made.metadata is None)
    if said.metadata and made.metadata:
        assert said.metadata.sets == made.metadata.sets
        assert said.metadata.removes == made.metadata.removes


def test_row_tracking_on_commits_what_its_effect_says(lake: Lake, spark: Any, tmp_path: Path) -> None:
    lake.copy("plain", tmp_path / "t")
    table, log = TableName("", (str(tmp_path / "t"),)), Log(tmp_path / "t")
    basis, before = Basis.of(read_table(table, str(tmp_path / "t"))), log.newest()
    operation = SetProperties((("delta.enableRowTracking", "true"),))
    spark.sql(render(operation, table))
    made = [log.winner(version) for version in range(before + 1, log.newest() + 1)]
    said = commits_of(effect_of(operation, basis), basis)
    assert [winner.kind for winner in said] == [winner.kind for winner in made]
    assert [winner.metadata and winner.metadata.tag for winner in made] == [None, None, "row tracking"]
    assert said[-1].metadata is not None
    assert made[-1].metadata is not None
    keys = {key for key, _ in said[-1].metadata.sets}
    assert keys == {key for key, _ in made[-1].metadata.sets}
