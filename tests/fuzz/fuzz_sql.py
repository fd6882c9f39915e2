"""Statements with hostile names and values, parsed by Spark's own parser with Delta's on top of it.

``make test`` runs it on the shared session (``test_sql.py``); ``python -m tests.fuzz sql`` starts a Spark of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from tablectl.delta.names import TableName
from tablectl.model.operations import (
    ClusterBy,
    DropFeature,
    Operation,
    OptimizeData,
    Purge,
    RemoveMapping,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
    render,
)
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
}
"""The plan that Spark's parser makes of each operation."""


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
        ClusterBy(columns),
        DropFeature(text(random), random.random() < 0.5),
        random.choice((Purge(), RemoveMapping(), UpgradeUniform(2), OptimizeData(), OptimizeData(full=True))),
    )
    return random.choice(made)


def table(random: Random) -> TableName:
    if random.random() < 0.5:
        return TableName("", ("/" + text(random),))
    return TableName(text(random), (text(random), text(random)))


def parses(random: Random, parser: Any) -> str:
    """One statement: parsed, and each name and literal of it compared."""
    asked, name = operation(random), table(random)
    plan = parser.parsePlan(render(asked, name))
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
            assert [tuple(_sequence(each.fieldNames())) for each in found] == list(columns)
        case DropFeature(feature, truncate):
            assert (plan.featureName(), plan.truncateHistory()) == (feature, truncate)
        case OptimizeData(full):
            assert plan.optimizeContext().isFull() is full
        case _:
            pass


def _table(plan: Any) -> tuple[str, ...]:
    child = next(iter(_items(plan.children())))
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
def _own_parser() -> Any:
    from pyspark.sql import SparkSession

    from tablectl.engine.spark import SparkOptions, open_spark

    open_spark(SparkOptions(conf={"spark.master": "local[1]", "spark.ui.enabled": "false"}))
    return parser_of(SparkSession.getActiveSession())


def parser_of(session: Any) -> Any:
    """The parser of a session that expands no variables, as that of ``tablectl`` does not."""
    session.conf.set("spark.sql.variable.substitute", "false")
    return session._jsparkSession.sessionState().sqlParser()


def _attempt() -> Callable[[Random], str]:
    return lambda random: parses(random, _own_parser())


SUBJECTS = (Subject("sql", "each text is one statement of its kind, with the exact names and values", _attempt(), 0),)
