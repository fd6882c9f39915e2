"""Interleavings on real Spark and Delta: a loser held inside its transaction, winners committed meanwhile.

Each ``Case`` is one of them. What happens is compared with the rules and with ``measured.json``, which remembers it for
``docs/generated/conflicts.md``: ``TABLECTL_MEASURED=write pytest tests/conflicts/test_against_spark.py -m spark``
writes it again, for the version of Delta that is installed, and with ``missing`` only what is not there yet.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tablectl.conflicts.rules import decide_all
from tablectl.conflicts.transactions import ConflictOutcome, CurrentTransaction, Level, Reads
from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.matrix import MatrixCell, decide_pair
from tablectl.insight.table_operations import operation
from tablectl.model.commit_contents import Kind, Partition
from tablectl.model.operations import ClusterBy, SetProperties
from tests.conflicts.examples import EVERYTHING
from tests.conflicts.log_records import Log
from tests.interleaving import Hold, Writer

MEASURED = Path(__file__).parent / "measured.json"


def delta_version() -> tuple[int, ...]:
    """Of the package that runs, which is that of its jar."""
    return tuple(int(part) for part in metadata.version("delta-spark").split(".")[:3])


DELTA = Client("delta-spark", delta_version())
LETTERS = "aba"
"""One file each, in this order; its two rows have the letter in ``p`` and count on from 1 in ``id``."""


@dataclass(frozen=True)
class Layout:
    """A table to start from: three columns, one file for each of ``LETTERS``."""

    partitioned: bool = False
    clustered: bool = False
    level: Level = Level.SERIALIZABLE


LAYOUTS: dict[str, tuple[Layout, list[str]]] = {
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
        return LAYOUTS[layout][0]

    def _make(self, layout: str, path: Path) -> None:
        columns = "(id, p, v) " if layout == "identity" else ""
        for statement in LAYOUTS[layout][1]:
            try:
                self._spark.sql(statement.replace("$t", f"delta.`{path}`"))
            except Exception as error:
                if "does not support identity column" in str(error):
                    pytest.skip("this Spark makes no identity columns in Delta tables")
                raise
        for index, letter in enumerate(LETTERS):
            first, second = (f"({number}, '{letter}', {number})" for number in (2 * index + 1, 2 * index + 2))
            rows = f"SELECT /*+ COALESCE(1) */ * FROM VALUES {first}, {second}"
            self._spark.sql(f"INSERT INTO delta.`{path}` {columns}{rows}")
        if layout == "vectors":
            self._spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")

    def _make_weak(self, layout: str, path: Path) -> None:
        """Spark refuses to set WriteSerializable, and honours it where another engine stored it (delta-1.2)."""
        for index, letter in enumerate(LETTERS):
            ids = [2 * index + 1, 2 * index + 2]
            write_deltalake(
                path,
                pa.table({"id": ids, "p": [letter] * 2, "v": ids}),
                mode="append",
                partition_by=["p"] if layout.endswith("partitioned") else None,
                configuration={"delta.isolationLevel": "WriteSerializable"},
            )


Write = str | Callable[[Any, str], object]
"""SQL in which ``$t`` is the table, or a function of the writer's session and the table's path."""
Describe = Callable[[Layout, Log], CurrentTransaction]


def live_files(log: Log) -> tuple[str, ...]:
    """The paths of the files, in the order of ``LETTERS``."""
    return tuple(log.files(log.newest()))


def _files(log: Log, letter: str | None) -> tuple[str, ...]:
    """The live files with the rows of a letter, in the order they came; all without one."""
    live = list(log.files(log.newest()).items())
    if letter is None:
        return tuple(path for path, _ in live)
    if live and "p" in live[0][1]:
        return tuple(path for path, values in live if values["p"] == letter)
    return tuple(path for (path, _), found in zip(live, LETTERS, strict=True) if found == letter)


def _reads(layout: Layout, log: Log, letter: str | None) -> Reads:
    partitions: tuple[Partition, ...] | None = ((letter,),) if layout.partitioned and letter else None
    return Reads(partitions=partitions, files=_files(log, letter))


def _blind(layout: Layout, log: Log) -> CurrentTransaction:
    return CurrentTransaction(kind=Kind.APPEND, client=DELTA, level=layout.level, partitioned=layout.partitioned)


def _rewrites(kind: Kind, letter: str | None) -> Describe:
    def describe(layout: Layout, log: Log) -> CurrentTransaction:
        reads = _reads(layout, log, letter)
        return replace(_blind(layout, log), kind=kind, reads=reads, removes=reads.files)

    return describe


def _reading(layout: Layout, log: Log) -> CurrentTransaction:
    return replace(_blind(layout, log), kind=Kind.READING_INSERT, reads=_reads(layout, log, "a"))


def _overwrites(layout: Layout, log: Log) -> CurrentTransaction:
    files = _files(log, None)
    domains = (CLUSTERING_DOMAIN,) if layout.clustered else ()
    reads = replace(EVERYTHING, files=files)
    return replace(_blind(layout, log), kind=Kind.OVERWRITE, reads=reads, removes=files, domains=domains)


def _overwrites_dynamically(layout: Layout, log: Log) -> CurrentTransaction:
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


def append_idempotently(session: Any, path: str) -> None:
    writer = session.sql(_ONE_ROW).write.format("delta").mode("append")
    writer.option("txnAppId", "q").option("txnVersion", 2).save(path)


def _stream(session: Any, path: str) -> None:
    source, checkpoint = f"{path}-source", f"{path}-checkpoint"
    session.range(1).write.format("delta").save(source)
    rows = session.readStream.format("delta").load(source)
    rows = rows.selectExpr("hold(id) AS id", "'a' AS p", "CAST(9 AS BIGINT) AS v")
    writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(path).awaitTermination()


CURRENT: dict[str, tuple[Write, Describe]] = {
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
    "idempotent": (append_idempotently, _with(_blind, app_ids=("q",))),
    "stream": (_stream, _with(_blind, kind=Kind.STREAMING_APPEND)),
    "identity": (f"INSERT INTO $t (id, p, v) {_ONE_ROW}", _with(_blind, metadata=True)),
}

_SET = "ALTER TABLE $t SET TBLPROPERTIES "
VECTORS_ON = f"{_SET}('delta.enableDeletionVectors' = 'true')"
_TIMESTAMPS_ON = f"{_SET}('delta.enableInCommitTimestamps' = 'true')"
_TIMESTAMPS_OFF = f"{_SET}('delta.enableInCommitTimestamps' = 'false')"
_ROW_TRACKING_ON = f"{_SET}('delta.enableRowTracking' = 'true')"
_CLUSTER = "ALTER TABLE $t CLUSTER BY (v)"
APPEND_B = "INSERT INTO $t (id, p, v) VALUES (8, 'b', 8)"
COMMITTED = {
    "property": [f"{_SET}('owner.team' = 'x')"],
    "unset of nothing": ["ALTER TABLE $t UNSET TBLPROPERTIES IF EXISTS ('owner.team')"],
    "vectors on": [VECTORS_ON],
    "vectors on with a property": [f"{_SET}('delta.enableDeletionVectors' = 'true', 'owner.team' = 'x')"],
    "vectors on and off": [VECTORS_ON, f"{_SET}('delta.enableDeletionVectors' = 'false')"],
    "row tracking on": [_ROW_TRACKING_ON],
    "checkpoints v2": [f"{_SET}('delta.checkpointPolicy' = 'v2')"],
    "timestamps on": [_TIMESTAMPS_ON],
    "mapping on": [f"{_SET}('delta.columnMapping.mode' = 'name')"],
    "cluster": [_CLUSTER],
    "add column": ["ALTER TABLE $t ADD COLUMNS (w BIGINT)"],
    "append a": ["INSERT INTO $t VALUES (8, 'a', 8)"],
    "append b": [APPEND_B],
    "reading append b": ["INSERT INTO $t SELECT id + 10, p, v FROM $t WHERE p = 'b'"],
    "delete a": ["DELETE FROM $t WHERE p = 'a' AND id = 1"],
    "delete b": ["DELETE FROM $t WHERE p = 'b' AND id = 3"],
    "delete all of a": ["DELETE FROM $t WHERE p = 'a'"],
    "delete all of b": ["DELETE FROM $t WHERE p = 'b'"],
    "optimize": ["OPTIMIZE $t"],
    "reorg": ["REORG TABLE $t APPLY (PURGE)"],
    "overwrite": ["INSERT OVERWRITE $t VALUES (8, 'a', 8)"],
    "feature dropped": ["ALTER TABLE $t DROP FEATURE checkConstraints"],
    "all that is free": [VECTORS_ON, _ROW_TRACKING_ON, _CLUSTER, f"{_SET}('delta.checkpointPolicy' = 'v2')"],
}


COMMITTED |= {
    "update a": ["UPDATE $t SET v = 0 WHERE p = 'a' AND id = 1"],
    "update b": ["UPDATE $t SET v = 0 WHERE p = 'b' AND id = 3"],
    "merge a": [
        "MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id AND t.p = 'a' WHEN MATCHED THEN UPDATE SET v = 0"
    ],
    "isolation": [f"{_SET}('delta.isolationLevel' = 'Serializable')"],
    "unset": ["ALTER TABLE $t UNSET TBLPROPERTIES ('owner.team')"],
    "vectors off": [f"{_SET}('delta.enableDeletionVectors' = 'false')"],
    "rename column": ["ALTER TABLE $t ALTER COLUMN v COMMENT 'a number'"],
    "constraint": ["ALTER TABLE $t ADD CONSTRAINT positive CHECK (v >= 0)"],
    "feature": [f"{_SET}('delta.feature.vacuumProtocolCheck' = 'supported')"],
    "restore": ["RESTORE TABLE $t TO VERSION AS OF 2"],
    "zorder": ["OPTIMIZE $t ZORDER BY (v)"],
}


def _alters(kind: Kind, **more: Any) -> Describe:
    """It reads nothing, and its commit holds metadata."""
    return lambda layout, log: replace(
        _blind(layout, log), **{"kind": kind, "data_change": False, "metadata": True, **more}
    )


def _scans(kind: Kind, **more: Any) -> Describe:
    """It reads the whole table before it changes metadata."""

    def describe(layout: Layout, log: Log) -> CurrentTransaction:
        return replace(_alters(kind, **more)(layout, log), reads=replace(EVERYTHING, files=_files(log, None)))

    return describe


def _rearranges(kind: Kind, **more: Any) -> Describe:
    """Of all files; those with a deletion vector alone where it merges these."""

    def describe(layout: Layout, log: Log) -> CurrentTransaction:
        files = _files(log, None)[:1] if kind is Kind.REORG else _files(log, None)
        if layout.partitioned and "zorder" not in more:
            files = _files(log, "a")  # a partition with one file is left as it is, but by ZORDER BY
        reads = Reads(partitions=None, files=files)
        return replace(_blind(layout, log), kind=kind, reads=reads, removes=files, data_change=False, **more)

    return describe


HELD_AT_COMMIT: dict[str, tuple[str, Describe]] = {
    "set": (f"{_SET}('owner.team' = 'y')", _alters(Kind.SET_PROPERTIES)),
    "unset nothing": ("ALTER TABLE $t UNSET TBLPROPERTIES IF EXISTS ('no.such')", _alters(Kind.UNSET_PROPERTIES)),
    "set vectors": (VECTORS_ON, _alters(Kind.SET_PROPERTIES, protocol=True)),
    "cluster": (
        "ALTER TABLE $t CLUSTER BY (id)",
        _alters(Kind.CLUSTER_BY, domains=(CLUSTERING_DOMAIN,), protocol=True),
    ),
    "cluster again": (
        "ALTER TABLE $t CLUSTER BY (p)",
        _alters(Kind.CLUSTER_BY, domains=(CLUSTERING_DOMAIN,), metadata=False),
    ),
    "add columns": ("ALTER TABLE $t ADD COLUMNS (x BIGINT)", _alters(Kind.ADD_COLUMNS)),
    "add constraint": (
        "ALTER TABLE $t ADD CONSTRAINT small CHECK (v < 1000)",
        _scans(Kind.ADD_CONSTRAINT, protocol=True),
    ),
    "optimize": ("OPTIMIZE $t", _rearranges(Kind.OPTIMIZE)),
    "zorder": ("OPTIMIZE $t ZORDER BY (v)", _rearranges(Kind.OPTIMIZE, zorder=True)),
    "purge": ("REORG TABLE $t APPLY (PURGE)", _rearranges(Kind.REORG)),
    "restore": ("RESTORE TABLE $t TO VERSION AS OF 1", _alters(Kind.RESTORE)),
}
"""Losers that no UDF can hold: Delta is stopped where it begins to write their commit."""


@dataclass(frozen=True)
class Case:
    """One interleaving: a table, who is held, what commits meanwhile."""

    layout: str
    committed: str
    current: str
    prepare: tuple[str, ...] = ()
    slow: bool = False

    @property
    def id(self) -> str:
        """Its key in ``measured.json``."""
        return f"{self.layout}: {self.current} in flight, {self.committed} commits" + (
            " after all" if self.prepare else ""
        )

    @property
    def minor(self) -> str:
        """The version of Delta that measures it."""
        return ".".join(map(str, DELTA.version[:2]))


def _cases(layout: str, all_committed: str, all_current: str, *, slow: bool = False) -> tuple[Case, ...]:
    """Every pair; names are parted by commas."""
    return tuple(
        Case(layout, committed, current, slow=slow)
        for committed in all_committed.split(", ")
        for current in all_current.split(", ")
    )


_CHANGES = (
    "property, unset of nothing, vectors on, vectors on with a property, row tracking on, checkpoints v2, "
    "timestamps on, mapping on, cluster, add column, all that is free"
)
_MORE_CHANGES = "isolation, rename column, constraint, feature, restore"
_HAS_PROPERTY = (f"{_SET}('owner.team' = 'before')",)
_ALL: tuple[Case, ...] = (
    *_cases("plain", _CHANGES, "append"),
    *_cases("plain", "property, vectors on, cluster", "merge, overwrite"),
    *_cases("clustered", "cluster", "append, merge, overwrite"),
    *_cases(
        "partitioned",
        "append a, append b, delete a, delete b, optimize",
        "append, update, delete, merge, merge by column",
        slow=True,
    ),
    *_cases(
        "plain", "append b, delete b, delete all of b, optimize, overwrite", "append, update, overwrite", slow=True
    ),
    *_cases("partitioned", "append a, append b, delete all of a", "dynamic overwrite, replaceWhere"),
    *_cases("weak", "append b", "update, overwrite, reading"),
    Case("weak", "reading append b", "update"),
    Case("weak partitioned", "reading append b", "update"),
    *_cases("vectors", "reorg", "append, update, merge"),
    *_cases("plain", "property, vectors on, append b", "stream"),
    Case("identity", "append b", "identity"),
    Case("identity", "append b", "update"),
    Case("plain", "timestamps on", "append", (_TIMESTAMPS_ON, _TIMESTAMPS_OFF)),
    Case("plain", "feature dropped", "append", (f"{_SET}('delta.feature.checkConstraints' = 'supported')",)),
    # What UDFs cannot hold.
    Case("plain", "append b", "set"),
    Case("plain", "vectors on", "set"),
    Case("plain", "append b", "optimize"),
    Case("plain", "update a", "optimize"),
    Case("plain", "property", "optimize"),
    Case("clustered", "cluster", "cluster again"),
    Case("plain", "append b", "add constraint"),
    Case("plain", "append b", "restore"),
    # The rest of the grid.
    *_cases(
        "plain",
        "append b, reading append b, update a, update b, delete a, merge a, optimize, zorder, overwrite",
        "reading, delete, merge, replaceWhere",
        slow=True,
    ),
    *_cases("plain", "reading append b, update b, merge a, zorder", "append, update, overwrite", slow=True),
    *_cases(
        "partitioned",
        "reading append b, update a, update b, merge a, zorder, overwrite",
        "append, reading, update, delete, merge, replaceWhere, dynamic overwrite, overwrite",
        slow=True,
    ),
    *_cases("partitioned", "append a, append b, delete a, delete b, optimize", "reading, overwrite", slow=True),
    *_cases("plain", _MORE_CHANGES, "append, update, merge, overwrite, reading", slow=True),
    *_cases("plain", _CHANGES, "merge, overwrite, reading, update, delete", slow=True),
    Case("plain", "unset", "append", _HAS_PROPERTY, slow=True),
    Case("plain", "unset", "merge", _HAS_PROPERTY, slow=True),
    *_cases("vectors", "vectors off, update a, delete b", "append, update, merge", slow=True),
    *_cases("weak partitioned", "append a, append b, update a, optimize", "update, merge, overwrite", slow=True),
    *_cases(
        "plain",
        "append b, update a, delete b, merge a, optimize, overwrite, property, vectors on, add column, cluster, "
        "unset of nothing, restore",
        "optimize, zorder, set, unset nothing, set vectors, add columns, add constraint, restore, cluster",
        slow=True,
    ),
    *_cases(
        "partitioned",
        "append a, append b, update a, delete b, optimize, overwrite, property, vectors on",
        "optimize, zorder, set, add constraint",
        slow=True,
    ),
    *_cases(
        "clustered",
        "append b, update a, optimize, overwrite, property, vectors on, cluster, unset of nothing",
        "cluster again, overwrite, optimize, set",
        slow=True,
    ),
    *_cases("vectors", "append b, update a, delete a, optimize, property, vectors off", "purge", slow=True),
)
CASES = tuple({case.id: case for case in reversed(_ALL)}.values())[::-1]
"""Each once; one that is named twice is slow only where both are."""


class Lab:
    """Runs cases."""

    def __init__(self, spark: Any, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake

    def run(
        self, case: Case, place: Path, *, all_committed: list[str] | None = None
    ) -> tuple[str, ConflictOutcome, str]:
        """Delta's error class, empty where the loser committed; what the rules say; and what to show if they differ."""
        layout = self._lake.copy(case.layout, place / "t")
        table, log = f"delta.`{place / 't'}`", Log(place / "t")
        for statement in case.prepare:
            self._spark.sql(statement.replace("$t", table))
        write, describe = CURRENT[case.current] if case.current in CURRENT else HELD_AT_COMMIT[case.current]
        described, read = describe(layout, log), log.newest()

        def run(session: Any) -> None:
            if callable(write):
                write(session, str(place / "t"))
            else:
                session.sql(write.replace("$t", table))

        hold = Hold.IN_UDF if case.current in CURRENT else Hold.AT_COMMIT
        with Writer(self._spark, run, hold) as writer:
            writer.wait_inside()
            for statement in all_committed or COMMITTED[case.committed]:
                self._spark.sql(statement.replace("$t", table))
            made = [log.committed(version) for version in range(read + 1, log.newest() + 1)]
            assert made
            happened = writer.release().condition.partition(".")[0]
        expected = decide_all(made, described)
        return happened, expected, f"{expected}\nafter {made}\nfor {described}"


def measured() -> Mapping[str, Mapping[str, str]]:
    """What was measured: case → version of Delta → error class, empty where the loser committed."""
    found: Mapping[str, Mapping[str, str]] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def is_known(case: Case) -> bool:
    """Whether a run that only measures what is missing (``TABLECTL_MEASURED=missing``) leaves a case out."""
    return os.environ.get("TABLECTL_MEASURED") == "missing" and case.minor in measured().get(case.id, {})


def remember(case: Case, happened: str) -> None:
    """Compare an outcome with what was measured before, or write it down."""
    if os.environ.get("TABLECTL_MEASURED") in {"write", "missing"}:
        known = {key: dict(value) for key, value in measured().items()} if MEASURED.exists() else {}
        known.setdefault(case.id, {})[case.minor] = happened
        wanted = {each.id for each in CASES}
        kept = {key: dict(sorted(known[key].items())) for key in sorted(known) if key in wanted}
        MEASURED.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    before = measured()[case.id].get(case.minor)
    assert before is None or before == happened, f"{case.id}: {before!r} was measured before, and now {happened!r}"


_SETTINGS: Mapping[str, ConflictContext] = {
    "plain": ConflictContext(client=DELTA),
    "partitioned": ConflictContext(client=DELTA, partitioned=True),
    "clustered": ConflictContext(client=DELTA).after([ClusterBy(("id",))]),
    "vectors": ConflictContext(client=DELTA).after([SetProperties((("delta.enableDeletionVectors", "true"),))]),
    "identity": ConflictContext(client=DELTA, partitioned=True, identity=True),
    "weak": ConflictContext(client=DELTA).after([SetProperties((("delta.isolationLevel", "WriteSerializable"),))]),
    "weak partitioned": ConflictContext(client=DELTA, partitioned=True).after(
        [SetProperties((("delta.isolationLevel", "WriteSerializable"),))]
    ),
}
_OPERATIONS = {
    "property": "set",
    "unset of nothing": "set-same",
    "unset nothing": "set-same",
    "unset": "unset",
    "vectors on": "vectors-on",
    "set vectors": "vectors-on",
    "vectors off": "vectors-off",
    "row tracking on": "row-tracking-on",
    "checkpoints v2": "checkpoints-v2",
    "timestamps on": "timestamps-on",
    "mapping on": "mapping-on",
    "cluster": "cluster",
    "cluster again": "cluster",
    "add column": "add-columns",
    "add columns": "add-columns",
    "rename column": "comment-column",
    "delete all of": "delete-files",
    "constraint": "add-constraint",
    "add constraint": "add-constraint",
    "isolation": "isolation",
    "feature": "feature",
    "set": "set",
    "append": "insert",
    "reading": "self-insert",
    "reading append": "self-insert",
    "identity": "insert",
    "update": "update",
    "delete": "delete",
    "merge": "merge",
    "overwrite": "overwrite",
    "dynamic overwrite": "dynamic-overwrite",
    "replaceWhere": "replace-where",
    "stream": "stream",
    "optimize": "optimize",
    "zorder": "zorder",
    "purge": "purge",
    "reorg": "purge",
    "restore": "restore",
}


def cell_of(case: Case, client: Client = DELTA) -> tuple[MatrixCell, bool] | None:
    """The cell of a client's matrices that a case measures, and whether it is where the two meet: losers work on the
    rows with ``a``. ``None`` for what the matrices do not tell apart.
    """
    committed, _, letter = case.committed.rpartition(" ")
    name, separate = (committed, letter == "b") if letter in {"a", "b"} else (case.committed, False)
    twice = case.current == case.committed == "stream"
    prepared = bool(case.prepare) and case.committed != "unset"
    if prepared or twice or case.committed == "restore" or not {name, case.current} <= _OPERATIONS.keys():
        return None
    setting = replace(_SETTINGS[case.layout], client=client)
    won, lost = operation(_OPERATIONS[name]), operation(_OPERATIONS[case.current])
    if not (won.fits(setting) and lost.fits(setting)):
        return None
    # Without partitions, and with ZORDER BY everywhere, an OPTIMIZE takes every file: it keeps apart from no rewrite.
    everything = case.current == "zorder" or (case.current == "optimize" and not setting.partitioned)
    return decide_pair(setting, won, lost), not separate or everything
