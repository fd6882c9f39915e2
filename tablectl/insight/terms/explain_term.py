"""Explains a term of conflicts on a table: what causes such conflicts there, with an example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tablectl.conflicts.rules.databricks import NEWEST_DOCUMENTED
from tablectl.conflicts.rules.delta_spark import RELEASES
from tablectl.conflicts.transactions import Level
from tablectl.delta.client_families import UNKNOWN
from tablectl.delta.dialects import dialect_for
from tablectl.delta.protocol import Client
from tablectl.frozen import frozen
from tablectl.insight.matrix.conflict_report import conflict_report
from tablectl.insight.matrix.context import ConflictContext
from tablectl.insight.matrix.matrix import CellVerdict, MatrixCell, matrix
from tablectl.insight.matrix.operations import OperationGroup
from tablectl.insight.terms.anomaly_example import EXAMPLE, AnomalyExample, anomaly_example
from tablectl.insight.terms.glossary import Term
from tablectl.model.table import LiveTable


@frozen
class TermContext:
    """A kind of table, or one of its clients, and the pairs of operations that fail there in the way the term
    describes.
    """

    title: str
    setting: ConflictContext
    cells: tuple[MatrixCell, ...]


@frozen
class TermExplanation:
    """A term with the places where it applies."""

    term: Term
    live: LiveTable | None
    """The given table; ``None`` if none was given."""
    places: tuple[TermContext, ...]
    example: AnomalyExample | None = None
    """Only for the isolation levels that a table can have."""


def explain_term(term: Term, live: LiveTable | None, dialect: str) -> TermExplanation:
    """The term on the given table, otherwise on the kinds of tables that differ in it."""
    settings = _settings_of(live, dialect) if live else _kinds(dialect)
    places = tuple(TermContext(title, setting, _cells(term, setting)) for title, setting in settings if term.conflict)
    example = None
    if term.level and term.level is not Level.SNAPSHOT:
        example = anomaly_example(live or EXAMPLE, _of_spark(settings))
    return TermExplanation(term, live, places, example)


def _of_spark(settings: Sequence[tuple[str, ConflictContext]]) -> ConflictContext:
    """The context of the example. Other clients have no level at which a DELETE and an INSERT do not conflict."""
    found = next((setting for _, setting in settings if _known_sql(setting.client)), None)
    return found or replace(settings[0][1], client=RELEASES[-1], blind=True)


def _settings_of(live: LiveTable, dialect: str) -> Sequence[tuple[str, ConflictContext]]:
    views = conflict_report(live, None, dialect).views
    return [(" and ".join(client.text() for client in view.clients), view.live.setting) for view in views]


def _known_sql(client: Client) -> bool:
    return client.family.runs_sql and client.family is not UNKNOWN


def _kinds(dialect: str) -> Sequence[tuple[str, ConflictContext]]:
    newest, documented = RELEASES[-1], NEWEST_DOCUMENTED
    kinds = [
        (f"{newest.text()}, without partitions", ConflictContext(client=newest)),
        (f"{newest.text()}, partitioned", ConflictContext(client=newest, partitioned=True)),
        (f"{documented.text()}, without partitions", ConflictContext(client=documented)),
    ]
    return sorted(kinds, key=lambda kind: dialect_for(kind[1].client.family).name != dialect)


def _cells(term: Term, setting: ConflictContext) -> tuple[MatrixCell, ...]:
    """The row and file operations that fail in this way. Changes of settings are excluded: they nearly always fail each
    other.
    """
    return tuple(
        cell
        for cell in matrix(setting).cells
        if cell.overlapping.conflict is term.conflict
        and cell.verdict is not CellVerdict.COMMITS
        and cell.current.group in {OperationGroup.ROWS, OperationGroup.FILES}
    )
