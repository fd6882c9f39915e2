"""The methods of PySpark and of Delta's Python API that write, and how they are wrapped.

A wrapped method finds the table that it is about to write, enters a guard for it, and calls the original. Nothing of
PySpark is imported here: its modules are passed in once they are loaded.
"""

from __future__ import annotations

import inspect
import logging
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from types import ModuleType
from typing import Any

from tablectl.delta.locations import canonical_location, is_absolute
from tablectl.leases.guards import GuardMode
from tablectl.writers.dataframe_writes import Call, FrameWrite, may_read, only_table, reads_name, v1_write, v2_write
from tablectl.writers.guard import GuardedBatch
from tablectl.writers.session_guards import PendingWrite, SessionGuards, fixed_mode, run_guarded
from tablectl.writers.sql_writes import SqlWrite, sql_write

_CALLS = "_tablectl_calls"
_TABLE = "_tablectl_table"
_DONE = "_tablectl_guarded"
_UNKNOWN = "unknown"
"""Stands for the calls before the first known one; its argument is the object that they made."""
_log = logging.getLogger(__name__)


# What the methods of PySpark write


def _frame_write(found: FrameWrite, frame: Any, session: Any) -> PendingWrite:
    target = found.target
    if found.is_path and target is not None and not is_absolute(target):
        target = None
    if not found.may_append:
        return PendingWrite(target, fixed_mode(found.mode))
    return PendingWrite(
        target, lambda location: found.mode if may_read(frame, session, location) else GuardMode.APPEND, "an append"
    )


def _sql_write(found: SqlWrite, statement: str, session: Any) -> PendingWrite:
    def mode(location: str) -> GuardMode:
        reads = found.reads and _sql_may_read(statement, session, location)
        return found.mode if reads or not found.may_append else GuardMode.APPEND

    return PendingWrite(found.table, mode, f"the statement {statement.strip()[:60]!r}")


def _formatted(statement: str, values: Mapping[str, Any]) -> str:
    """A statement with the tables that its DataFrames are, and some text for all other values."""

    def text(field: re.Match[str]) -> str:
        value = values.get(field[1])
        return only_table(value) if hasattr(value, "sparkSession") else "''"

    return re.sub(r"\{(\w+)(?:[^\w{}][^{}]*)?\}", text, statement)


def _sql_may_read(statement: str, session: Any, location: str) -> bool:
    """Whether an INSERT reads its target, by the tables in its text. sqlglot is an extra; without it, it may."""
    try:
        import sqlglot  # noqa: PLC0415  # an extra of tablectl-guard, which jobs may lack

        tree = sqlglot.parse_one(statement, read="databricks")
        target = tree.this.find(sqlglot.exp.Table)
        names = [each for each in tree.find_all(sqlglot.exp.Table) if each is not target]
        place = canonical_location(location)
        return any(
            reads_name(_plain_name(each), session, place)
            for each in names
            if each.db or each.name.casefold() not in _known_ctes(each, sqlglot.exp)
        )
    except Exception:  # noqa: BLE001  # what cannot be parsed may read it
        return True


def _known_ctes(node: Any, exp: Any) -> set[str]:
    """The names that mean a CTE at a place in a query: those of each WITH around it. In a CTE, it is those before it in
    its WITH; without RECURSIVE, its own name means a table.
    """
    known: list[Any] = []
    while node.parent is not None:
        inner, node = node, node.parent
        if isinstance(node, exp.With):
            known += node.expressions if node.recursive else node.expressions[: inner.index]
        elif not isinstance(inner, exp.With):
            known += getattr(node, "ctes", ())
    return {each.alias.casefold() for each in known}


def _plain_name(table: Any) -> str:
    parts = (table.catalog, table.db, table.name)
    return ".".join("`{}`".format(part.replace("`", "``")) for part in parts if part)


# Wrappers of methods


Patch = Callable[[ModuleType, SessionGuards], None]


def _calls(self: Any) -> tuple[Call, ...]:
    found: tuple[Call, ...] = getattr(self, _CALLS, ((_UNKNOWN, (self,), {}),))
    return found


def _is_known(calls: tuple[Call, ...]) -> bool:
    """Whether these are all calls that built an object: those before ``guard_session`` are not known."""
    return calls[0][0] != _UNKNOWN


def _record(cls: type, *names: str) -> None:
    """Remember the calls that build a writer, on whatever each of them returns."""
    for name in names:
        original = getattr(cls, name, None)
        if original is None or hasattr(original, _DONE):
            continue
        setattr(cls, name, _recorder(name, original))


def _recorder(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def recorded(self: Any, *args: Any, **given: Any) -> Any:
        made = original(self, *args, **given)
        with suppress(AttributeError, TypeError):
            setattr(made, _CALLS, (*_calls(self), (name, args, given)))
            if hasattr(self, _TABLE) and not hasattr(made, _TABLE):
                setattr(made, _TABLE, getattr(self, _TABLE))
        return made

    setattr(recorded, _DONE, True)
    return recorded


def _record_made(cls: type) -> None:
    """Mark the objects of a class that are made from now on, and remember the argument ``table`` of its constructor."""
    original: Callable[..., None] = cls.__init__  # type: ignore[misc]
    if hasattr(original, _DONE):
        return
    signature = inspect.signature(original)

    @wraps(original)
    def recorded(self: Any, *args: Any, **given: Any) -> None:
        original(self, *args, **given)
        with suppress(TypeError, AttributeError):
            setattr(self, _CALLS, ())
            bound = signature.bind(self, *args, **given).arguments
            setattr(self, _TABLE, bound.get("table"))
            self._tablectl_session = bound.get("session")

    setattr(recorded, _DONE, True)
    setattr(cls, "__init__", recorded)  # noqa: B010


def _wrap(
    cls: type,
    guards: SessionGuards,
    names: tuple[str, ...],
    write: Callable[[Any, Call], tuple[Any, PendingWrite | None]],
    rebuild: Callable[[Any], Any] = lambda self: self,
) -> None:
    """Guard methods that write. ``write`` says the session and what a call writes, ``rebuild`` makes the object
    again inside of the guard.
    """
    for name in names:
        original = getattr(cls, name, None)
        if original is not None and not hasattr(original, _DONE):
            setattr(cls, name, _guarding(name, original, guards, write, rebuild))


def _guarding(
    name: str,
    original: Callable[..., Any],
    guards: SessionGuards,
    write: Callable[[Any, Call], tuple[Any, PendingWrite | None]],
    rebuild: Callable[[Any], Any],
) -> Callable[..., Any]:
    @wraps(original)
    def guarded(self: Any, *args: Any, **given: Any) -> Any:
        try:
            session, found = write(self, (name, args, given))
            said = guards.said(session) if found is not None else "off"
        except Exception as error:  # noqa: BLE001  # never the job's problem
            _log.warning("%s is not guarded: %s: %s", name, type(error).__name__, error)
            found = None
        if found is None or said == "off":
            return original(self, *args, **given)
        found = replace(found, covered=said == "on")
        return run_guarded(guards, session, found, lambda: original(rebuild(self), *args, **given))

    setattr(guarded, _DONE, True)
    return guarded


# The modules


def _writers(module: Any, guards: SessionGuards) -> None:
    """``DataFrameWriter`` and ``DataFrameWriterV2``, classic or Connect."""

    def v1(self: Any, call: Call) -> tuple[Any, PendingWrite | None]:
        session = self._spark
        calls = (*_calls(self), call)
        if not _is_known(calls):  # it may do anything
            found = v1_write(calls, "delta")
            return session, None if found is None else _frame_write(
                FrameWrite(found.target, found.is_path), None, session
            )
        default = "" if call[0] != "save" else str(session.conf.get("spark.sql.sources.default", "parquet"))
        found = v1_write(calls, default)
        return session, None if found is None else _frame_write(found, self._df, session)

    def v2(self: Any, call: Call) -> tuple[Any, PendingWrite | None]:
        found = v2_write(getattr(self, _TABLE, None), (*_calls(self), call))
        return self._spark, _frame_write(found, self._df, self._spark)

    _record_made(module.DataFrameWriter)
    _record(module.DataFrameWriter, "mode", "format", "option", "options")
    _wrap(module.DataFrameWriter, guards, ("save", "saveAsTable", "insertInto"), v1)
    _record_made(module.DataFrameWriterV2)
    _record(module.DataFrameWriterV2, "option", "options")
    commits = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")
    _wrap(module.DataFrameWriterV2, guards, commits, v2)


def _merge_into(module: Any, guards: SessionGuards) -> None:
    """``df.mergeInto(…)`` of Spark 4."""

    def merge(self: Any, _call: Call) -> tuple[Any, PendingWrite | None]:
        evolves = any(name == "withSchemaEvolution" for name, _, _ in _calls(self))
        mode = GuardMode.ANY if evolves else GuardMode.REWRITE
        session = getattr(self, "_spark", None) or self._tablectl_session
        return session, PendingWrite(getattr(self, _TABLE), fixed_mode(mode), "a merge")

    _record_made(module.MergeIntoWriter)
    _record(module.MergeIntoWriter, "withSchemaEvolution")
    _wrap(module.MergeIntoWriter, guards, ("merge",), merge)


def _session(module: Any, guards: SessionGuards) -> None:
    """``spark.sql``."""

    def sql(self: Any, call: Call) -> tuple[Any, PendingWrite | None]:
        _, args, given = call
        statement = args[0] if args else given.get("sqlQuery")
        if not isinstance(statement, str):
            return self, None
        values = {name: value for name, value in given.items() if name not in {"sqlQuery", "args"}}
        found = sql_write(_formatted(statement, values) if values else statement)
        found = replace(found, may_append=False) if found and values else found  # what the DataFrames read is not known
        return self, None if found is None else _sql_write(found, statement, self)

    _wrap(module.SparkSession, guards, ("sql",), sql)


def _streams(module: Any, guards: SessionGuards) -> None:
    """Plain sinks cannot be guarded: a guard would last as long as the query."""

    def warn(self: Any, call: Call) -> tuple[Any, PendingWrite | None]:
        calls = (*_calls(self), call)
        session: Any = getattr(self, "_spark", None) or getattr(self, "_session", None)
        if guards.said(session) == "off":
            return session, None
        batches = [(*args, *given.values())[0] for name, args, given in calls if name == "foreachBatch"]
        values = [args[0] for name, args, _ in calls if name == "format" and args]
        source = (
            calls[-1][2].get("format")
            or (values[-1] if values else "")
            or session.conf.get("spark.sql.sources.default", "")
        )
        if batches and ".connect." in module.__name__ and not isinstance(batches[-1], GuardedBatch):
            _log.warning("this streaming query runs its batches in the server, and so without guards: use guard_batch")
        elif not batches and (call[0] == "toTable" or str(source).lower() == "delta" or not _is_known(calls)):
            _log.warning("this streaming query writes a table without foreachBatch, and so without guards")
        return session, None

    _record_made(module.DataStreamWriter)
    _record(module.DataStreamWriter, "format", "option", "options", "foreachBatch", "outputMode", "trigger")
    _wrap(module.DataStreamWriter, guards, ("start", "toTable"), warn)


def _delta(module: Any, guards: SessionGuards) -> None:
    """``DeltaTable`` and its builders. An object that was made before the guard has the table's state of that time, so
    it is made again inside.
    """
    tables = module.DeltaTable
    for name in ("forPath", "forName", "create", "createIfNotExists", "replace", "createOrReplace"):
        _record_factory(tables, name)
    _record(tables, "alias", "merge", "optimize")

    def write(mode: GuardMode) -> Callable[[Any, Call], tuple[Any, PendingWrite | None]]:
        def found(self: Any, call: Call) -> tuple[Any, PendingWrite | None]:
            calls = _calls(self)
            evolves = any(name == "withSchemaEvolution" for name, _, _ in calls)
            what = f"{type(self).__name__}.{call[0]}"
            return self._spark, PendingWrite(_delta_target(calls), fixed_mode(GuardMode.ANY if evolves else mode), what)

        return found

    rewrites, others = write(GuardMode.REWRITE), write(GuardMode.ANY)
    _wrap(tables, guards, ("delete", "update"), rewrites, _made_again)
    changes = ("restoreToVersion", "restoreToTimestamp", "upgradeTableProtocol", "addFeatureSupport")
    _wrap(tables, guards, (*changes, "dropFeatureSupport"), others, _made_again)
    _wrap(tables, guards, ("clone", "cloneAtVersion", "cloneAtTimestamp"), _clone)
    builder = module.DeltaMergeBuilder
    _record(builder, *(name for name in vars(builder) if name.startswith(("when", "with"))))
    _wrap(builder, guards, ("execute",), rewrites, _made_again)
    optimizer = module.DeltaOptimizeBuilder
    _record(optimizer, "where")
    _wrap(optimizer, guards, ("executeCompaction", "executeZOrderBy"), rewrites, _made_again)
    creator = module.DeltaTableBuilder
    _record(creator, "tableName", "location")
    _wrap(creator, guards, ("execute",), others)
    creator.execute = _recorder("execute", creator.execute)


def _clone(self: Any, call: Call) -> tuple[Any, PendingWrite | None]:
    """A clone writes its target. The table that it copies is only read."""
    name, args, given = call
    before_target = 0 if name == "clone" else 1
    target = given["target"] if "target" in given else args[before_target]
    return self._spark, PendingWrite(target, fixed_mode(GuardMode.ANY), f"DeltaTable.{name}")


def _record_factory(cls: Any, name: str) -> None:
    original = getattr(cls, name, None)
    if original is None or hasattr(original, _DONE):
        return

    @wraps(original)
    def made(_cls: Any, *args: Any, **given: Any) -> Any:
        found = original(*args, **given)
        with suppress(AttributeError, TypeError):
            setattr(found, _CALLS, ((name, args, given),))
        return found

    setattr(made, _DONE, True)
    setattr(cls, name, classmethod(made))


def _delta_target(calls: tuple[Call, ...]) -> str | None:
    """The table of a ``DeltaTable`` or builder, from the calls that made it."""
    for name, args, given in reversed(calls):
        if name in {"tableName", "location"}:
            return str(args[0] if args else next(iter(given.values())))
        if name in {"forPath", "forName"}:
            key = "path" if name == "forPath" else "tableOrViewName"
            return str(args[1] if len(args) > 1 else given[key])
        if name == _UNKNOWN and hasattr(args[0], "detail"):
            return str(args[0].detail().select("location").first()[0])
    return None


def _made_again(self: Any) -> Any:
    """The same object, built by the same calls."""
    calls = _calls(self)
    try:
        if not _is_known(calls):
            return self
        built = next((number for number, each in enumerate(calls) if each[0] == "execute"), 0)
        (name, args, given), rest = calls[built], calls[built + 1 :]
        if name == "execute":  # a table that the job created is looked up
            target = str(_delta_target(calls[:built]))
            name, args = "forPath" if is_absolute(target) else "forName", (self._spark, target)
        tables = sys.modules[type(self).__module__].DeltaTable
        made = getattr(tables, name)(*args, **given)
        for name, args, given in rest:
            made = getattr(made, name)(*args, **given)
    except Exception as error:  # noqa: BLE001  # the job's own object is what it asked for
        _log.debug("the job's own %s is used: %s", type(self).__name__, error)
        return self
    return made


PATCHES: dict[str, Patch] = {
    "pyspark.sql.session": _session,
    "pyspark.sql.connect.session": _session,
    "pyspark.sql.readwriter": _writers,
    "pyspark.sql.connect.readwriter": _writers,
    "pyspark.sql.merge": _merge_into,
    "pyspark.sql.connect.merge": _merge_into,
    "pyspark.sql.streaming.readwriter": _streams,
    "pyspark.sql.connect.streaming.readwriter": _streams,
    "delta.tables": _delta,
    "delta.connect.tables": _delta,
}
