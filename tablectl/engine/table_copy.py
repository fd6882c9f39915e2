"""A copy of a table's rows in new files, and the commit that puts them in place, by Delta's own classes in the driver.

Only classic Spark can do this: py4j reaches the JVM of the driver, and Spark Connect does not. The classes are those
that Delta's commands use (``OptimisticTransaction``, ``TransactionalWrite`` and ``DeltaLog`` of Delta 4.4.0):

* ``TransactionalWrite.writeFiles`` writes files into the folder of the table and commits nothing.
* ``OptimisticTransaction.commitLarge`` commits exactly the version after the one that was read, and fails with
  DELTA_CONCURRENT_WRITE if it exists. So no commit can come in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import unquote

from tablectl.delta.keys import CLUSTERING_DOMAIN, COLUMN_MAPPING, ROW_TRACKING_DOMAIN
from tablectl.delta.schema import parse_schema
from tablectl.engine.interface import FollowedFile, FollowedTable
from tablectl.model.errors import EngineError
from tablectl.support.json_text import read_json, write_json

_DELTA = "org.apache.spark.sql.delta"
_HIGH_WATER_MARK = "delta.identity.highWaterMark"
_TIME_ZONE = "spark.sql.session.timeZone"
"""Decides how expressions of the table read timestamps, and how partition values are written."""
_EXCHANGES = 5
"""Attempts to commit repaired files among other writers."""
_OF_FILES = frozenset({"add", "remove", "commitInfo", "cdc", "txn"})
"""Actions that change neither columns nor properties."""
_P = ParamSpec("_P")
_T = TypeVar("_T")
Run = Callable[[Callable[[], Any]], Any]
"""Calls a function, and raises what Spark or py4j raise as an ``EngineError``."""


def _in_driver(
    method: Callable[Concatenate[DriverTableCopy, _P], _T],
) -> Callable[Concatenate[DriverTableCopy, _P], _T]:
    """Calls a method in the session of the engine. Delta takes settings, and the stamp of the commit, from the session
    that is active in the thread.
    """

    @wraps(method)
    def call(self: DriverTableCopy, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        def work() -> _T:
            self.activate()
            return method(self, *args, **kwargs)

        result: _T = self.run(work)
        return result

    return call


class DriverTableCopy:
    """``TableCopy`` in the driver of a classic session."""

    def __init__(self, session: Any, location: str, partitions: Sequence[str], run: Run) -> None:
        self.run = run
        self._session = session
        self._jvm = session._jvm
        self._loader = self._jvm.Thread.currentThread().getContextClassLoader()
        self._action = self._module("actions.Action")
        self._partitions = tuple(partitions)
        self.activate()
        self._log = self._module("DeltaLog").forTable(session._jsparkSession, location)
        self._snapshot: Any = None
        self._layout = ""
        self._sizes: dict[str, int] = {}
        self._sources: dict[str, Any] = {}
        self._removes: Any = None
        self._adds = self._jvm.java.util.LinkedHashMap()
        self._bytes = 0

    @_in_driver
    def follow(self) -> FollowedTable:
        before = self._snapshot
        now = self._log.update(False, self._none(), self._none())
        if before is None or not self._follow_commits(before, now):
            # Read the whole table, and keep what is known of files that it still has
            found = {}
            for file in now.allFiles().collect():
                entry = read_json(file.json())["add"]
                found[_key(entry)] = file, int(entry["size"])
            for key in self._sources.keys() - found.keys():
                self._forget(key)
            for key, (file, size) in found.items():
                if key not in self._sources:
                    self._learn(key, file, size)
            self._layout = _layout(now, self._domains(now))
        self._snapshot = now
        files = tuple(FollowedFile(key, size) for key, size in self._sizes.items())
        metadata = read_json(now.metadata().json())["metaData"]
        schema, settings = metadata["schemaString"], metadata.get("configuration", {})
        layout = write_json([self._layout, self._session.conf.get(_TIME_ZONE)])
        keys = _physical(schema, settings, self._partitions)
        return FollowedTable(now.version(), metadata["id"], layout, schema, files, settings, keys)

    @_in_driver
    def write(self, keys: Sequence[str]) -> tuple[str, ...]:
        transaction = self._transaction()
        options = getattr(self._jvm, f"{_DELTA}.DeltaOptions")(
            self._map({"optimizeWrite": "true"}), self._session._jsparkSession.sessionState().conf()
        )
        made = transaction.writeFiles(self._rows(keys), self._some(options), False, self._seq(()))
        return tuple(each.json() for each in self._items(made))

    @_in_driver
    def compare(self, keys: Sequence[str], adds: Sequence[str], sums: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        copied = self._log.createDataFrame(
            self._with_layout(), self._seq(map(self._action.fromJson, adds)), False, self._none()
        )
        sides = [
            self._frame(rows).selectExpr(f"{side} AS side", *sums)
            for side, rows in enumerate((self._rows(keys), copied))
        ]
        found = sorted((tuple(row) for row in sides[0].union(sides[1]).collect()), key=lambda row: row[0])
        return tuple(tuple(map(str, row[1:])) for row in found)

    @_in_driver
    def measure(self, adds: Sequence[str]) -> tuple[str, ...]:
        """As ``TableCopy.measure``, by the expression that Delta's own writes use (``StatisticsCollection``)."""
        from pyspark.sql.classic.column import Column  # noqa: PLC0415, TID251  # only if a table is copied
        from pyspark.sql.functions import col, to_json  # noqa: PLC0415, TID251

        snapshot = self._with_layout()
        files = self._seq(map(self._action.fromJson, adds))
        frame = self._frame(self._log.createDataFrame(snapshot, files, False, self._none()))
        made = frame.groupBy(col("_metadata.file_path")).agg(to_json(Column(snapshot.statsCollector()))).collect()
        stats = {unquote(row[0]): row[1] for row in made}
        measured = []
        for text in adds:
            action = read_json(text)
            ends = "/" + unquote(action["add"]["path"])
            (action["add"]["stats"],) = [each for path, each in stats.items() if path.endswith(ends)]
            measured.append(write_json(action))
        return tuple(measured)

    @_in_driver
    def use(self, adds: Iterable[str]) -> None:
        for text in adds:
            file = self._action.fromJson(text)
            self._adds.put(file.path(), file)
            self._bytes += file.size()

    @_in_driver
    def drop(self, adds: Iterable[str]) -> None:
        for text in adds:
            gone = self._adds.remove(_path(text))
            self._bytes -= gone.size() if gone is not None else 0

    @_in_driver
    def prepare(self) -> None:
        self._prepare()

    def _prepare(self) -> None:
        self._removes = self._jvm.java.util.LinkedHashMap()
        for key, file in self._sources.items():
            self._remove(key, file)

    @_in_driver
    def commit(self) -> int:
        if self._removes is None:
            self._prepare()
        self._module("DeltaLog").assertRemovable(self._snapshot)  # ``commitLarge`` does not ask
        transaction = self._transaction()
        actions = self._jvm.java.util.ArrayList()
        actions.addAll(self._removes.values())
        actions.addAll(self._adds.values())
        for domain in self._clustering():
            actions.add(domain)
        operation = getattr(self._jvm, f"{_DELTA}.DeltaOperations$Write")(
            self._jvm.org.apache.spark.sql.SaveMode.Overwrite,
            self._some(self._seq(self._partitions)),
            self._none(),
            self._none(),
            self._none(),
            self._some(True),  # ``canOverwriteSchema``
            self._none(),
            self._none(),
            self._none(),
        )
        metrics = {
            "numFiles": str(self._adds.size()),
            "numRemovedFiles": str(self._removes.size()),
            "numOutputBytes": str(self._bytes),
        }
        self._commit(transaction, actions, operation, metrics)
        return int(self._snapshot.version()) + 1

    @_in_driver
    def exchange(self, old: Sequence[str], new: Sequence[str]) -> int:
        """As ``TableCopy.exchange``. The rows stay what they are, so no action changes data: streams see nothing."""
        wanted = {_path(text) for text in old}
        for left in reversed(range(_EXCHANGES)):
            now = self._log.update(False, self._none(), self._none())
            live = {each.path(): each for each in now.allFiles().collect() if each.path() in wanted}
            if live.keys() != wanted or any(each.deletionVector() is not None for each in live.values()):
                raise EngineError("others have changed these files since the commit", "")
            actions = self._jvm.java.util.ArrayList()
            for each in live.values():
                actions.add(each.removeWithTimestamp(int(time.time() * 1000), False))
            for text in new:
                action = read_json(text)
                action["add"]["dataChange"] = False
                actions.add(self._action.fromJson(write_json(action)))
            transaction = self._log.startTransaction(self._none(), self._some(now))
            try:
                self._commit(transaction, actions, self._module("DeltaOperations$ManualUpdate"), {})
            except Exception as error:
                if left and "ConcurrentWrite" in str(error):
                    continue
                raise
            return int(now.version()) + 1
        raise AssertionError("not reached")

    def _commit(self, transaction: Any, actions: Any, operation: Any, metrics: Mapping[str, str]) -> None:
        transaction.commitLarge(
            self._session._jsparkSession,
            self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(actions).iterator(),
            self._none(),
            operation,
            self._map({}),
            self._map(metrics),
        )

    def _follow_commits(self, before: Any, now: Any) -> bool:
        """Apply the commits after a snapshot. False if they cannot be, and the table must be read whole: commits are
        missing, or one changes columns, properties or features.
        """
        wanted, seen = int(before.version()), int(before.version())
        changes = self._log.getChanges(wanted + 1, self._none(), False)  # a gap is found below
        while seen < now.version():
            if not changes.hasNext():
                return False
            commit = changes.next()
            seen += 1
            if commit._1() != seen:
                return False
            actions = [read_json(each.json()) for each in self._items(commit._2())]
            if any(each.keys() - _OF_FILES for each in actions):
                return False
            # Within a commit, no file is both added and removed under one deletion vector.
            for each in actions:
                if "remove" in each:
                    self._forget(_key(each["remove"]))
            for each in actions:
                if "add" in each:
                    self._learn(_key(each["add"]), self._action.fromJson(write_json(each)), each["add"]["size"])
        return True

    def _learn(self, key: str, file: Any, size: int) -> None:
        self._sources[key], self._sizes[key] = file, int(size)
        if self._removes is not None:
            self._remove(key, file)

    def _forget(self, key: str) -> None:
        self._sources.pop(key, None)
        self._sizes.pop(key, None)
        if self._removes is not None:
            self._removes.remove(key)

    def _remove(self, key: str, file: Any) -> None:
        self._removes.put(key, file.removeWithTimestamp(int(time.time() * 1000), True))

    def _rows(self, keys: Sequence[str]) -> Any:
        files = self._seq([self._sources[key] for key in keys])
        return self._log.createDataFrame(self._snapshot, files, False, self._none())

    def _transaction(self) -> Any:
        """A transaction on the followed version, with the new partition columns."""
        made = self._log.startTransaction(self._none(), self._some(self._snapshot))
        made.updateMetadataForTableOverwrite(self._metadata())
        return made

    def _metadata(self) -> Any:
        found = read_json(self._snapshot.metadata().json())
        found["metaData"]["partitionColumns"] = list(self._partitions)
        return self._action.fromJson(write_json(found))

    def _with_layout(self) -> Any:
        """A snapshot that reads files under the new partition columns."""
        make = getattr(self._jvm, f"{_DELTA}.DummySnapshot")
        protocol = self._some(self._snapshot.protocol())
        return make(self._log.logPath(), self._log, self._metadata(), self._none(), protocol)

    def _clustering(self) -> list[Any]:
        """The removal of the clustering columns, which an overwrite under partition columns makes too."""
        if not self._partitions:
            return []
        ours = [each for each in self._domains(self._snapshot) if each["domain"] == CLUSTERING_DOMAIN]
        gone = [{"domainMetadata": {**each, "removed": True}} for each in ours]
        return [self._action.fromJson(write_json(each)) for each in gone]

    def _domains(self, snapshot: Any) -> list[dict[str, Any]]:
        return [read_json(each.json())["domainMetadata"] for each in self._items(snapshot.domainMetadata())]

    def activate(self) -> None:
        """Make the engine's session the active one of this thread."""
        self._object("org.apache.spark.sql.classic.SparkSession").setActiveSession(self._session._jsparkSession)

    def _module(self, name: str) -> Any:
        return self._object(f"{_DELTA}.{name}")

    def _object(self, name: str) -> Any:
        """A Scala object. Delta's jar may be known to the context's class loader only."""
        found = self._jvm.java.lang.Class.forName(f"{name}$", True, self._loader)
        return found.getField("MODULE$").get(None)

    def _frame(self, rows: Any) -> Any:
        from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415, TID251  # only if a table is copied

        return DataFrame(rows, self._session)

    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()

    def _some(self, value: Any) -> Any:
        return self._jvm.scala.Option.apply(value)

    def _map(self, items: Mapping[str, str]) -> Any:
        return self._jvm.PythonUtils.toScalaMap(dict(items))

    def _seq(self, items: Iterable[Any]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for each in items:
            made.add(each)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(made).toSeq()

    def _items(self, sequence: Any) -> Any:
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(sequence)


def open_table_copy(session: Any, location: str, partitions: Sequence[str], run: Run) -> DriverTableCopy:
    """A copy of the table at a location. Raises ``EngineError`` if this Delta has other classes than Delta 4.4.0."""
    try:
        made: DriverTableCopy = run(partial(DriverTableCopy, session, location, partitions, run))
    except EngineError as error:
        message = f"the driver's Delta cannot make a copy beside the table: {error.message}"
        raise EngineError(message, "use Delta 4.4, or declare `rewrite: allowed`", error.condition) from error
    return made


def _path(add: str) -> str:
    return str(read_json(add)["add"]["path"])


def _key(entry: Mapping[str, Any]) -> str:
    """A file and its deletion vector: what they hold together never changes."""
    vector = entry.get("deletionVector") or {}
    parts = (vector.get("storageType", ""), vector.get("pathOrInlineDv", ""), vector.get("offset", ""))
    return " ".join((entry["path"], *map(str, parts))) if vector else str(entry["path"])


def _layout(snapshot: Any, domains: Iterable[Mapping[str, Any]]) -> str:
    """What files are written under, as text. Numbers that identity columns and row tracking have given out do not
    count.
    """
    metadata = read_json(snapshot.metadata().json())["metaData"]
    schema = read_json(metadata["schemaString"])
    for column in schema["fields"]:
        column.get("metadata", {}).pop(_HIGH_WATER_MARK, None)
    settings = metadata.get("configuration", {})
    protocol = read_json(snapshot.protocol().json())
    kept = sorted((each["domain"], each["configuration"]) for each in domains if each["domain"] != ROW_TRACKING_DOMAIN)
    return write_json([metadata["id"], schema, settings, metadata["partitionColumns"], protocol, kept], sort=True)


def _physical(text: str, settings: Mapping[str, str], columns: Iterable[str]) -> tuple[str, ...]:
    """The names of partition columns in the log (``DeltaColumnMapping.getPhysicalName`` of Delta 4.4.0)."""
    schema = parse_schema(text)
    names = tuple(name for name in columns if schema.find((name,)) is not None)
    return schema.physical_names(names) if settings.get(COLUMN_MAPPING, "none") != "none" else names
