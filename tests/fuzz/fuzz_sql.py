"""Statements with hostile names and values, parsed by Spark's own parser with Delta's on top of it.

Every operation of ``OPERATIONS`` is tried, and the queries that apply and the catalog send. The one write that is shown
as Python is parsed by Python, and the list of ``delta.dataSkippingStatsColumns`` by Delta's own reader of it.

``make test`` runs it on the shared session (``test_sql.py``); ``python -m tests.fuzz sql`` starts a Spark of its own.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

from tablectl.applying.row_sums import checksums, lost_rows
from tablectl.attributes.policy import attribute
from tablectl.delta.names import ColumnPath, TableName, column_text, parse_column
from tablectl.delta.properties import columns_text
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import parse_schema
from tablectl.engine.spark import SparkEngine
from tablectl.model.operations import (
    AddConstraint,
    ClusterBy,
    DropConstraint,
    DropFeature,
    DropNotNull,
    Operation,
    OptimizeData,
    Purge,
    RemoveMapping,
    Repartition,
    ReplacePartitions,
    SetManaged,
    SetNotNull,
    SetOptimization,
    SetProperties,
    UnsetManaged,
    UnsetProperties,
    UpgradeUniform,
    VacuumFiles,
)
from tablectl.model.table import LiveTable
from tests.fuzz.hostile import hostile_text
from tests.fuzz.subject import Subject

KINDS = {
    SetProperties: "SetTableProperties",
    RemoveMapping: "SetTableProperties",
    UnsetProperties: "UnsetTableProperties",
    ClusterBy: "AlterTableClusterBy",
    Purge: "DeltaReorgTable",
    UpgradeUniform: "DeltaReorgTable",
    OptimizeData: "OptimizeTableCommand",
    DropFeature: "AlterTableDropFeature",
    AddConstraint: "AlterTableAddConstraint",
    DropConstraint: "AlterTableDropConstraint",
    SetNotNull: "AlterColumns",
    DropNotNull: "AlterColumns",
    VacuumFiles: "VacuumTableCommand",
}
"""The plan that Spark's parser makes of each operation."""
ONLY_ON_DATABRICKS = frozenset({ReplacePartitions, SetManaged, SetOptimization, UnsetManaged})
"""Operations whose SQL open-source Spark has no parser for: tests/model/test_statement_forms.py tries their forms."""
PYTHON = "a write in Python"
SKIPPING = "a list of columns for data_skipping"
QUERIES = ("DescribeRelation", "ShowTablesExtended", "ShowTables", "ShowNamespacesCommand", "Project")
"""The plans of the queries: of one table, of the tables and the schemas of a catalog, of the checksums of a rewrite."""
EVERY = frozenset({*KINDS.values(), *QUERIES, PYTHON, SKIPPING})


def text(random: Random) -> str:
    """Text that a policy takes: no NUL, no half characters."""
    made = "".join(char for char in hostile_text(random) if char != "\0" and not "\ud800" <= char <= "\udfff")
    return made or "x"


def operation(random: Random) -> Operation:
    keys = sorted({text(random) for _ in range(random.randint(1, 4))})
    columns = tuple(tuple(text(random) for _ in range(random.randint(1, 3))) for _ in range(random.randrange(4)))
    made: tuple[Operation, ...] = (
        SetProperties(tuple((key, text(random)) for key in keys)),
        UnsetProperties(tuple(keys)),
        ClusterBy(tuple(map(column_text, columns))),
        DropFeature(text(random), random.random() < 0.5),
        random.choice((Purge(), RemoveMapping(), UpgradeUniform(2), OptimizeData(), OptimizeData(full=True))),
        Repartition(tuple(text(random) for _ in range(random.randrange(4)))),
        random.choice((AddConstraint(text(random), "id > 0"), DropConstraint(text(random)))),
        random.choice(
            (SetNotNull(column_text((text(random),))), DropNotNull(column_text((text(random),))), VacuumFiles())
        ),
    )
    return random.choice(made)


def table(random: Random) -> TableName:
    if random.random() < 0.5:
        return TableName("", ("/" + text(random),))
    return TableName(text(random), (text(random), text(random)))


def parses(random: Random, session: Any) -> str:
    """One statement or query: parsed, and each name and literal of it compared."""
    kind = random.random()
    if kind < 0.2:
        return _query(random, parser_of(session))
    if kind < 0.3:
        return _skipping(random, session)
    asked, name = operation(random), table(random)
    if isinstance(asked, Repartition):
        return _python(asked, name)
    return _statement(asked, name, parser_of(session))


def _statement(asked: Operation, name: TableName, parser: Any) -> str:
    plan = parser.parsePlan(asked.sql(name))
    kind = str(plan.getClass().getSimpleName())
    assert kind == KINDS[type(asked)], (kind, asked)
    expected = ("delta", *name.parts) if name.is_path else (name.catalog, *name.parts)
    assert _table(plan) == expected, (_table(plan), expected)
    _check(asked, plan)
    return kind


def _check(asked: Operation, plan: Any) -> None:
    match asked:
        case SetProperties() | RemoveMapping():
            assert _pairs(plan.properties()) == dict(asked.properties)
        case UnsetProperties(keys):
            assert _sequence(plan.propertyKeys()) == keys
        case ClusterBy(columns):
            spec = plan.clusterBySpec()
            found = _items(spec.get().columnNames()) if spec.isDefined() else []
            assert [tuple(_sequence(each.fieldNames())) for each in found] == list(map(parse_column, columns))
        case DropFeature(feature, truncate):
            assert (plan.featureName(), plan.truncateHistory()) == (feature, truncate)
        case OptimizeData(full):
            assert plan.optimizeContext().isFull() is full
        case _:
            pass


def _python(asked: Repartition, name: TableName) -> str:
    """The write that is shown: one expression, in which each literal is a name."""
    (shown,) = ast.parse(asked.sql(name)).body
    assert isinstance(shown, ast.Expr)
    found = [each.value for each in ast.walk(shown) if isinstance(each, ast.Constant)]
    words = ["delta", "overwrite", "overwriteSchema", True]
    named = name.parts[0] if name.is_path else name.sql
    expected = [*words, named, named, *asked.columns, *(["delta"] if name.is_path else [])]
    assert sorted(map(repr, found)) == sorted(map(repr, expected)), (found, expected)
    return PYTHON


def _skipping(random: Random, session: Any) -> str:
    """The value of ``delta.dataSkippingStatsColumns``: Delta finds these columns in it and no others, and so do we."""
    roots = {each.lower(): each for each in (text(random) for _ in range(random.randint(1, 4)))}
    paths = [(name, *(text(random) for _ in range(random.randrange(2)))) for name in roots.values()]
    value = columns_text(paths)
    stored: Any = SimpleNamespace(property=lambda _key: value)
    assert attribute("data_skipping").read(stored, "") == tuple(map(column_text, paths))
    assert _delta_takes(session, paths, value), value
    for path in paths:
        without = [each for each in paths if each != path]
        assert not _delta_takes(session, without, value), (path, value)
    return SKIPPING


def _delta_takes(session: Any, paths: Sequence[ColumnPath], value: str) -> bool:
    """Whether Delta takes a list for a table with these columns."""
    loader = session._jvm.Thread.currentThread().getContextClassLoader()
    companion = loader.loadClass("org.apache.spark.sql.delta.stats.StatisticsCollection$").getField("MODULE$").get(None)
    fields = [_field(path) for path in paths]
    schema = session._jsparkSession.parseDataType(json.dumps({"type": "struct", "fields": fields}))
    nothing = getattr(getattr(session._jvm.scala.collection.immutable, "Nil$"), "MODULE$")
    try:
        companion.validateDeltaStatsColumns(schema, nothing, value)
    except Exception as error:
        if "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA" not in str(error):
            raise
        return False
    return True


def _field(path: ColumnPath) -> dict[str, Any]:
    inner = {"type": "struct", "fields": [_field(path[1:])]} if len(path) > 1 else "long"
    return {"name": path[0], "type": inner, "nullable": True, "metadata": {}}


def _query(random: Random, parser: Any) -> str:
    """One of the queries, as the engine sends it."""
    sent: list[str] = []

    def rows(sql: str) -> list[Any]:
        sent.append(sql)
        return []

    catalog, schema, like = text(random), text(random), text(random)
    engine: Any = SimpleNamespace(rows=rows)
    name = table(random)
    match random.randrange(4):
        case 0:
            SparkEngine.tables(engine, catalog, schema, like)
            plan = parser.parsePlan(
                sent[0] if random.random() < 0.5 else sent[0].replace("TABLE EXTENDED", "TABLES", 1)
            )
            assert _table(plan) == (catalog, schema)
            pattern = plan.pattern()
            assert (pattern if isinstance(pattern, str) else pattern.get()) == like
        case 1:
            SparkEngine.schemas(engine, catalog)
            plan = parser.parsePlan(sent[0])
            assert _table(plan) == (catalog,)
        case 2:
            plan = parser.parsePlan(f"DESCRIBE TABLE EXTENDED {name.sql}")
            assert _table(plan) == (("delta", *name.parts) if name.is_path else (name.catalog, *name.parts))
        case _:
            plan = _checksums(random, name, parser)
    return str(plan.getClass().getSimpleName())


def _checksums(random: Random, name: TableName, parser: Any) -> Any:
    """The queries of a rewrite: one compares two versions by a sum of each column, one counts what cannot be kept."""
    columns = sorted({text(random) for _ in range(random.randint(1, 4))})
    inner = text(random)
    kinds: list[Any] = ["long", "double", {"type": "array", "elementType": "long"}]
    kinds.append({"type": "struct", "fields": [{"name": inner, "type": "long"}]})
    kinds.append({"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": kinds[-1]}})
    fields = [{"name": each, "type": random.choice(kinds), "nullable": True, "metadata": {}} for each in columns]
    plan = parser.parsePlan(checksums(_live(name, fields), name.sql))
    hashed = [
        _items(_items(each.child().arguments())[0].child().arguments()) for each in _items(plan.projectList())[2:]
    ]
    assert [_sequence(each[0].child().nameParts()) for each in hashed] == [(each,) for each in columns]
    for field, each in zip(fields, hashed, strict=True):
        if field["type"] == kinds[3]:
            assert _sequence(each[-1].nameParts()) == (field["name"], inner)
    _counted(random, name, parser)
    return plan


def _counted(random: Random, name: TableName, parser: Any) -> None:
    """No expression of a table's log ends the query, or reads another table."""
    parts = (
        "(",
        ")",
        "a",
        "1",
        ",",
        " ",
        "--",
        "/*",
        "*/",
        "'",
        '"',
        "`",
        ";",
        "SELECT",
        "FROM b",
        "\\",
        "+",
        "r'",
        "CASE",
    )
    column, expression = text(random), "".join(random.choice(parts) for _ in range(random.randint(1, 8)))
    fields = [
        {"name": column, "type": "string", "nullable": True, "metadata": {}},
        {
            "name": f"{column}2",
            "type": "long",
            "nullable": True,
            "metadata": {"delta.generationExpression": expression},
        },
    ]
    live = _live(name, fields)
    rows = lost_rows(live, (column,))
    query = f"SELECT {', '.join(each.sql for each in rows)}\nFROM {name.sql} VERSION AS OF 7"
    try:
        plan = parser.parsePlan(query)
    except Exception:  # noqa: BLE001  # of py4j
        assert len(rows) == 4, query  # only an expression of the log may fail
        return
    made = _items(plan.projectList())
    assert len(made) == len(rows), query
    assert plan.getClass().getSimpleName() == "Project", query
    condition = _items(made[0].child().arguments())[0]
    assert _sequence(condition.left().nameParts()) == (column,), query
    assert all(str(each.child().nameParts().mkString(".")) == "count_if" for each in made), query


def _live(name: TableName, fields: list[dict[str, Any]]) -> LiveTable:
    schema = parse_schema(json.dumps({"type": "struct", "fields": fields}))
    return LiveTable(name=name, location="/t", version=7, table_id="x", protocol=Protocol(1, 2), schema=schema)


def _table(plan: Any) -> tuple[str, ...]:
    children = _items(plan.children())
    child = children[0] if children else plan.child()
    kind = child.getClass().getSimpleName()
    if kind == "UnresolvedPathBasedDeltaTable":
        return ("delta", child.path())
    return _sequence(child.multipartIdentifier())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.length())]


def _sequence(sequence: Any) -> tuple[str, ...]:
    return tuple(map(str, sequence if type(sequence).__name__ == "JavaArray" else _items(sequence)))


def _pairs(found: Any) -> dict[str, str]:
    return {str(each._1()): str(each._2()) for each in _items(found.toSeq())}


@cache
def _own_session() -> Any:
    from pyspark.sql import SparkSession

    from tablectl.engine.interface import EngineOptions
    from tablectl.engine.spark import open_spark

    open_spark(EngineOptions(conf={"spark.master": "local[1]", "spark.ui.enabled": "false"}))
    return SparkSession.getActiveSession()


def parser_of(session: Any) -> Any:
    """The parser of a session that expands no variables, as that of ``tablectl`` does not."""
    session.conf.set("spark.sql.variable.substitute", "false")
    return session._jsparkSession.sessionState().sqlParser()


def _attempt() -> Callable[[Random], str]:
    return lambda random: parses(random, _own_session())


SUBJECTS = (
    Subject(
        "sql", "each text is one statement of its kind, with the exact names and values", _attempt(), 0, _own_session
    ),
)
