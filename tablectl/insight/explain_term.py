"""Explains a term of conflicts on a table, as a record and as a document: what causes such conflicts there, with an
example.

The example of an isolation level is the reordering that WriteSerializable permits (D14): a DELETE commits after an
INSERT whose rows it would have deleted, without having read them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pydantic import computed_field

from tablectl.conflicts.databricks_rules import NEWEST_DOCUMENTED
from tablectl.conflicts.delta_spark_rules import RELEASES
from tablectl.conflicts.transactions import ConflictResult, Level
from tablectl.delta.client_families import UNKNOWN
from tablectl.delta.dialects import dialect_for
from tablectl.delta.names import ColumnPath, TableName, column_sql, parse_table
from tablectl.delta.protocol import Client, Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.documents.document import Block, Document, Facts, Heading, Paragraph, page
from tablectl.insight.conflict_context import LEVEL, ConflictContext
from tablectl.insight.conflict_report import conflict_report, in_words, pairs_texts
from tablectl.insight.glossary import Term
from tablectl.insight.matrix import CellOutcome, CellVerdict, MatrixCell, decide_pair, matrix
from tablectl.insight.table_operations import OperationGroup, operation
from tablectl.model.table import LiveTable
from tablectl.support.typed_json import AsText, Unwritten

_LITERALS: Mapping[str, str] = MappingProxyType(
    {
        "date": "DATE'2026-01-31'",
        "timestamp": "TIMESTAMP'2026-01-31 12:00:00'",
        "timestamp_ntz": "TIMESTAMP_NTZ'2026-01-31 12:00:00'",
        "string": "'x'",
        "long": "42",
        "integer": "42",
        "short": "42",
        "byte": "42",
        "double": "42.0",
        "float": "42.0",
        "boolean": "true",
    }
)
_DECIMAL = re.compile(r"decimal\(\d+,\d+\)\Z")
EXAMPLE = LiveTable(
    name=parse_table("lake.sales.orders"),
    location="",
    version=12,
    table_id="",
    protocol=Protocol(1, 2),
    schema=Schema((Field("order_id", "long"), Field("order_date", "date"))),
    partition_columns=("order_date",),
)
"""The table of the example if the user names none."""


@dataclass(frozen=True, slots=True)
class AnomalyExample:
    """Two transactions, and the outcome of the one that began first at each level."""

    delete: str
    insert: str
    condition: str
    version: int
    """The version that both start from."""
    outcomes: Mapping[Level, CellOutcome]
    """The outcome of the DELETE at each level that a table can have."""
    client: Client
    """The client of both writes."""


def anomaly_example(live: LiveTable, setting: ConflictContext) -> AnomalyExample | None:
    """The example on this table; ``None`` if no column has a type for which a literal can be written.

    It uses a partition column if there is one, else a clustering column, else the first column.
    """
    column = next((each for each in _candidates(live) if _literal(live, each)), None)
    if column is None:
        return None
    literal, name, table = _literal(live, column), column_sql(column), live.name.sql
    outcomes = {
        level: decide_pair(setting.with_property(LEVEL, level), operation("insert"), operation("delete")).meeting
        for level in (Level.SERIALIZABLE, Level.WRITE_SERIALIZABLE)
    }
    return AnomalyExample(
        delete=f"DELETE FROM {table} WHERE {name} = {literal}",  # noqa: S608  # names are quoted; it is never run
        insert=f"INSERT INTO {table} ({name}) VALUES ({literal})",  # noqa: S608
        condition=f"{name} = {literal}",
        version=live.version,
        outcomes=outcomes,
        client=setting.client,
    )


def _candidates(live: LiveTable) -> tuple[ColumnPath, ...]:
    partitions = tuple((name,) for name in live.partition_columns)
    clustering = tuple(path for path in live.clustering or () if len(path) == 1)
    return (*partitions, *clustering, *((each.name,) for each in live.schema.fields if not each.identity))


def _literal(live: LiveTable, column: ColumnPath) -> str:
    found = live.schema.find(column)
    if found is None:
        return ""
    type_ = found[1].type
    return "42" if _DECIMAL.match(type_) else _LITERALS.get(type_, "")


@dataclass(frozen=True, slots=True)
class TermContext:
    """A kind of table, or one of its clients, and the pairs of operations that fail there in the way the term
    describes.
    """

    where: str
    setting: Unwritten[ConflictContext]
    pairs: tuple[MatrixCell, ...]

    @computed_field
    @property
    def isolation(self) -> Level:
        """The level of such a table."""
        return self.setting.level


@dataclass(frozen=True, slots=True)
class TermExplanation:
    """A term with the places where it applies."""

    term: Term
    table: AsText[TableName] | None
    """The given table; ``None`` if none was given."""
    causes: tuple[TermContext, ...]
    example: AnomalyExample | None = None
    """Only for the isolation levels that a table can have."""
    format: int = 2


def explain_term(term: Term, live: LiveTable | None, dialect: str) -> TermExplanation:
    """The term on the given table, otherwise on the kinds of tables that differ in it."""
    settings = _settings_of(live, dialect) if live else _kinds(dialect)
    causes = tuple(TermContext(where, setting, _cells(term, setting)) for where, setting in settings if term.conflict)
    example = None
    if term.level and term.level is not Level.SNAPSHOT:
        example = anomaly_example(live or EXAMPLE, _of_spark(settings))
    return TermExplanation(term, live.name if live else None, causes, example)


def _of_spark(settings: Sequence[tuple[str, ConflictContext]]) -> ConflictContext:
    """The context of the example. Other clients have no level at which a DELETE and an INSERT do not conflict."""
    families = [(setting.client.family, setting) for _, setting in settings]
    found = next((setting for family, setting in families if family.runs_sql and family is not UNKNOWN), None)
    return found or replace(settings[0][1], client=RELEASES[-1], blind=True)


def _settings_of(live: LiveTable, dialect: str) -> Sequence[tuple[str, ConflictContext]]:
    views = conflict_report(live, None, dialect).views
    return [(" and ".join(client.text() for client in view.clients), view.live.setting) for view in views]


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


def document_of_term(view: TermExplanation, rivals: Sequence[tuple[str, str]] = ()) -> Document:
    """What it means, what causes it, an example where it has one, and how to fix it. ``rivals`` are who causes it on
    the table, each with what stops it.
    """
    return page(view.term.title, *_blocks(view, rivals), record=view)


def _blocks(view: TermExplanation, rivals: Sequence[tuple[str, str]]) -> Iterator[Block]:
    term = view.term
    yield from (Paragraph(each) for each in (term.detail, f"{term.meaning} ({term.source})") if each)
    if view.causes:
        yield Heading(f"What causes it on {view.table.text}" if view.table else "What causes it", style="sql")
    for place in view.causes:
        yield from _place(place)
    if view.table and term.conflict:
        yield Heading(f"Your rivals on {view.table.text}", style="sql")
        none = "no series of commits of the last 30 days is expected to fail half a write a week"
        yield Facts(tuple(("-", f"{text}. To stop it: {do}") for text, do in rivals) or (("-", none),))
    if view.example:
        yield from _example(view.example)
    if term.ways:
        yield Heading("How to fix" if term.level is None else "Notes", style="sql")
        yield Facts(tuple(("-", way) for way in term.ways))


def _place(place: TermContext) -> Iterator[Block]:
    yield Paragraph(f"{place.where}, at {place.isolation}:")
    said: list[str] = []
    for verdict, what in ((CellVerdict.FAILS, ""), (CellVerdict.DEPENDS, ", on the same data")):
        pairs: dict[Any, list[Any]] = {}
        for cell in place.pairs:
            if cell.verdict is verdict:
                pairs.setdefault(cell.current, []).append(cell.committed)
        said += pairs_texts(pairs, in_words(matrix(place.setting)), what)
    yield Facts(tuple(("-", text) for text in said or ["nothing"]))


def _example(example: AnomalyExample) -> Iterator[Block]:
    now, next_ = example.version + 1, example.version + 2
    yield Heading(f"An order that the history cannot explain, with {example.client.text()}", style="sql")
    yield Facts(
        (
            ("1", f"the first statement begins and reads version {example.version}: {example.delete}"),
            ("2", f"a second statement commits version {now}: {example.insert}"),
            ("3", f"the first statement tries to commit version {next_}"),
        )
    )
    yield Facts(tuple((f"at {level}", _outcome(outcome, example, now)) for level, outcome in example.outcomes.items()))


def _outcome(outcome: CellOutcome, example: AnomalyExample, now: int) -> str:
    if outcome.result is ConflictResult.COMMITS:
        return (
            f"it commits. The history says INSERT ({now}), then DELETE ({now + 1}): no row with {example.condition} "
            "could be left. The table has one: as if the DELETE had run before the INSERT."
        )
    raised = outcome.exception or "an error"
    verb = "fails" if outcome.result is ConflictResult.FAILS else "can fail"
    return f"it {verb} with {raised}: {outcome.reason} ({outcome.source}). Run again, it deletes the row too."
