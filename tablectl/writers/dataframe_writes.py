"""What a write through a DataFrame may do: the calls that built it, and whether its source reads the target.

Everything is asked of the objects that the job made. Whatever cannot be asked counts as the stricter answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tablectl.delta.locations import canonical_location
from tablectl.delta.names import quote_name
from tablectl.engine.describe import locate
from tablectl.leases.guards import GuardMode
from tablectl.model.errors import TablectlError

Call = tuple[str, tuple[Any, ...], Mapping[str, Any]]
"""A method, its arguments."""

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
_SCHEMA_OPTIONS = frozenset({"mergeschema", "overwriteschema"})
_PLAIN_LEAVES = frozenset({"LocalRelation", "LogicalRDD", "OneRowRelation", "Range", "RangeCommand"})
"""Leaves of a plan in the JVM that read no table."""
_PLAIN_FORMATS = frozenset({"csv", "json", "parquet", "orc", "text", "avro", "xml", "jdbc"})
_SUBQUERIES = ("subquery#", "exists#", "list#", "IN (list")


@dataclass(frozen=True)
class FrameWrite:
    """A write of a DataFrame."""

    target: str | None
    """A table's name or an absolute path; ``None`` if unknown."""
    is_path: bool = False
    mode: GuardMode = GuardMode.ANY
    may_append: bool = False
    """Whether it only appends if its source does not read the target."""


def v1_write(calls: tuple[Call, ...], default_format: str) -> FrameWrite | None:
    """What a ``DataFrameWriter`` does; the last call is the one that writes. ``None`` if it writes no Delta table."""
    name, args, given = calls[-1]
    settings = _settings(calls)
    target = args[0] if args else given.get({"insertInto": "tableName", "saveAsTable": "name"}.get(name, "path"))
    if name == "save":
        if str(settings.get("format") or default_format).lower() != "delta":
            return None
        target = target or settings.get("path")
    overwrites = settings.get("mode") == "overwrite"
    if name == "insertInto":
        said = args[1] if len(args) > 1 else given.get("overwrite")
        overwrites = overwrites if said is None else bool(said)
    appends = settings.get("mode") == "append" or name == "insertInto"
    may_append = appends and not overwrites and not _changes_schema(settings)
    mode = GuardMode.REWRITE if may_append else GuardMode.ANY
    return FrameWrite(None if target is None else str(target), name == "save", mode, may_append)


def v2_write(table: str | None, calls: tuple[Call, ...]) -> FrameWrite:
    """What a ``DataFrameWriterV2`` does."""
    may_append = calls[-1][0] == "append" and not _changes_schema(_settings(calls))
    return FrameWrite(table, mode=GuardMode.REWRITE if may_append else GuardMode.ANY, may_append=may_append)


def _settings(calls: tuple[Call, ...]) -> dict[str, Any]:
    """What was set, by lower-case key. The call that writes can set them too."""
    found: dict[str, Any] = {}
    for name, args, given in calls:
        if name in {"mode", "format"}:
            value = args[0] if args else next(iter(given.values()), None)
            found[name] = str(value).lower()
        elif name == "option":
            values = [*args, *given.values()]
            found[str(values[0]).lower()] = values[1] if len(values) > 1 else None
        elif name == "options":
            found.update({key.lower(): value for key, value in given.items()})
    name, args, given = calls[-1]
    order = {"save": ("path", "format", "mode"), "saveAsTable": ("name", "format", "mode")}.get(name, ())
    said = {**dict(zip(order, args)), **given}
    for key, value in said.items():
        if value is not None:
            found[key.lower()] = str(value).lower() if key in {"format", "mode"} else value
    return found


def _changes_schema(settings: Mapping[str, Any]) -> bool:
    return any(str(settings.get(key, "false")).lower() != "false" for key in _SCHEMA_OPTIONS)


def may_read(frame: Any, session: Any, location: str) -> bool:
    """Whether a DataFrame (classic) or a plan (Connect) may read the table at a location."""
    try:
        place = canonical_location(location)
        if hasattr(frame, "_jdf"):
            plan = _analyzed(frame)
            text = plan.toString()
            if any(each in text for each in _SUBQUERIES):
                return True
            return any(_leaf_may_read(leaf, place) for leaf in _leaves(plan))
        return any(_node_may_read(each, session, place) for each in _nodes(frame.plan(session.client)))
    except Exception:  # noqa: BLE001  # see the module docstring
        return True


def only_table(frame: Any) -> str:
    """The only table that a DataFrame reads, as SQL; ``{}`` if there are more, or it is not known."""
    try:
        if hasattr(frame, "_jdf"):
            found = {f"delta.{quote_name(path)}" for leaf in _leaves(_analyzed(frame)) for path in _paths(leaf)}
        else:
            nodes = list(_nodes(frame._plan.to_proto(frame.sparkSession.client)))  # noqa: SLF001  # only there
            found = {each.unparsed_identifier for each in nodes if each.DESCRIPTOR.name == "NamedTable"}
            found |= {f"delta.{quote_name(path)}" for each in nodes for path in getattr(each, "paths", ())}
        (table,) = found
    except Exception:  # noqa: BLE001  # see the module docstring
        return "{}"
    return table


def _analyzed(frame: Any) -> Any:
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001  # only there


def _leaves(plan: Any) -> list[Any]:
    leaves = plan.collectLeaves()
    return [leaves.apply(number) for number in range(leaves.size())]


def _paths(leaf: Any) -> list[str]:
    paths: str = leaf.relation().location().rootPaths().mkString("\n")
    return paths.split("\n")


def _leaf_may_read(leaf: Any, place: str) -> bool:
    kind = leaf.nodeName()
    if kind.split()[0] in _PLAIN_LEAVES or leaf.getClass().getSimpleName() in _PLAIN_LEAVES:
        return False
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return True
    return any(_overlap(canonical_location(path), place) for path in _paths(leaf))


def _overlap(one: str, other: str) -> bool:
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)


def _nodes(message: Any) -> Iterator[Any]:
    """Every message inside of a protobuf message."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            values = [each for each in value.values() if hasattr(each, "ListFields")]
        else:
            values = list(value) if hasattr(value, "__len__") and not hasattr(value, "ListFields") else [value]
        for each in values:
            yield from _nodes(each)


def _node_may_read(node: Any, session: Any, place: str) -> bool:
    kind = node.DESCRIPTOR.name
    if kind in {"SQL", "CachedRemoteRelation", "SubqueryExpression", "Any"}:
        return True
    if kind == "NamedTable":
        return reads_name(node.unparsed_identifier, session, place)
    if kind == "DataSource":
        return node.format.lower() not in _PLAIN_FORMATS
    return False


def reads_name(name: str, session: Any, place: str) -> bool:
    """Whether a name in a query may lead to the table at a place. A view may lead to anything."""
    try:
        return _overlap(canonical_location(locate(session, name)), place)
    except TablectlError:
        return True


def merges_schemas(session: Any) -> bool:
    """Whether the session lets every write add columns."""
    return str(session.conf.get(AUTO_MERGE, "false")).lower() == "true"
