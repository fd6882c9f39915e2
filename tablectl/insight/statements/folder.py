"""The statements of a folder of SQL files that write one table: each pair that conflicts, and what changes metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from tablectl.attributes.policy import basis_of
from tablectl.conflicts.transactions import ConflictResult
from tablectl.delta.sql_tokens import any_tokens
from tablectl.documents.document import Block, Card, Document, Facts, Heading, Paragraph
from tablectl.documents.style import plural
from tablectl.insight.conflict_context import Assumption, ConflictContext
from tablectl.insight.statements.command_actions import StatementError
from tablectl.insight.statements.commits_of_statement import commits_of
from tablectl.insight.statements.compare import TONES, expected_clients
from tablectl.insight.statements.pair_outcomes import between
from tablectl.insight.statements.parse_writes import ParsedStatement, parse_statement
from tablectl.insight.statements.target import StatementTable
from tablectl.model.safe_text import printable
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

SqlFile = tuple[str, str, str]
"""Its name, its text, and why it is not looked at; empty if it is."""
_MOST_STATEMENTS = 100
"""4,950 pairs."""
_BLOCKS = frozenset({"BEGIN", "ATOMIC", "TRANSACTION", "END", "COMMIT", "ROLLBACK"})
_RANKS = (ConflictResult.FAILS, ConflictResult.UNKNOWN, ConflictResult.MAY_FAIL, ConflictResult.COMMITS)
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class PlacedStatement:
    """A statement of a file: ``jobs/daily.sql:12``, and how it begins."""

    place: str
    sql: str


@dataclass(frozen=True, slots=True)
class ConflictingPair:
    """Two statements at once: one in flight, the other commits. The worse order, for the worst client."""

    failing: PlacedStatement
    committing: PlacedStatement
    result: ConflictResult
    exceptions: tuple[str, ...]
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class FolderComparison:
    """The statements that write the table; the pairs that conflict, the worst first; what changes metadata, or may; and
    what was not looked at: place and reason.
    """

    table: str
    statements: tuple[PlacedStatement, ...]
    pairs: tuple[ConflictingPair, ...]
    metadata: tuple[PlacedStatement, ...]
    skipped: tuple[tuple[str, str], ...]


def compare_folder(
    live: LiveTable, files: Iterable[SqlFile], dialect: str, assumption: Assumption, options: TableOptions
) -> FolderComparison:
    """Compare all statements of SQL files that write a table, for the clients of ``compare_statements``.

    Raises ``StatementError`` if a named client runs no SQL.
    """
    subject = StatementTable.of(live)
    clients, _ = expected_clients(basis_of(live, options), dialect, assumption.clients)
    settings = [
        ConflictContext.of(live, client, photon=photon, auto_compact=assumption.auto_compact)
        for client, photon in clients
    ]
    found: list[tuple[PlacedStatement, ParsedStatement]] = []
    metadata: list[PlacedStatement] = []
    skipped: list[tuple[str, str]] = []
    for place, sql, why in _statements(files):
        try:
            if why or len(found) == _MOST_STATEMENTS:
                raise StatementError(why or f"at most {_MOST_STATEMENTS} statements are compared")
            parsed = parse_statement(sql)
            commits = [each for setting in settings for each in commits_of(parsed, subject, setting)]
        except StatementError as error:
            skipped.append((place, error.message[: 3 * _SHOWN]))
            continue
        found.append((PlacedStatement(place, " ".join(printable(sql).split())[:_SHOWN]), parsed))
        if any(each.most_metadata or each.protocol for each in commits if not each.automatic):
            metadata.append(found[-1][0])
    pairs = []
    for (one, first), (other, second) in combinations(found, 2):
        orders = [
            ConflictingPair(*order, outcome.result, outcome.exceptions, outcome.reason, outcome.source)
            for setting in settings
            for order, outcome in zip(
                ((one, other), (other, one)), between(first, second, subject, setting).outcomes, strict=True
            )
        ]
        pairs.append(min(orders, key=lambda each: _RANKS.index(each.result)))
    pairs = [each for each in pairs if each.result is not ConflictResult.COMMITS]
    pairs.sort(key=lambda each: (_RANKS.index(each.result), each.failing.place, each.committing.place))
    written = tuple(each for each, _ in found)
    return FolderComparison(live.name.text, written, tuple(pairs), tuple(metadata), tuple(skipped))


def _statements(files: Iterable[SqlFile]) -> Iterator[SqlFile]:
    """The statements of the files, each with its place: they end with a semicolon outside of quotes and comments. Those
    of a block, BEGIN ATOMIC … END, count one by one (D77).
    """
    for name, text, why in files:
        if why:
            yield name, "", why
        start: int | None = None
        tokens = list(any_tokens(text))
        around = {token.start for token in tokens if token.word in _BLOCKS}
        ends = [(token.start, token.text == ";") for token in tokens]
        for at, ended in (*ends, (len(text), True)):
            if ended and start is not None:
                yield f"{name}:{text.count(chr(10), 0, start) + 1}", text[start:at], ""
            start = None if ended else start if start is not None or at in around else at


def document_of_folder(found: FolderComparison) -> Document:
    """The pairs, the worst first; then what changes metadata, and what was not looked at."""
    blocks: list[Block] = []
    for each in found.pairs:
        how = f" with {' or '.join(each.exceptions)}" if each.exceptions else ""
        title = f"{each.failing.place} {each.result}{how}, if {each.committing.place} commits"
        sql = (("in flight", each.failing.sql), ("commits", each.committing.sql))
        blocks += [Paragraph(title, TONES[each.result]), Facts((*sql, ("why", f"{each.reason} ({each.source})")))]
    if found.metadata:
        blocks.append(Heading("Change metadata, and fail every write in flight"))
        blocks.append(Facts(tuple((each.place, each.sql) for each in found.metadata)))
    if found.skipped:
        blocks += [Heading("Not looked at"), Facts(found.skipped)]
    state = f"{plural(len(found.statements), 'statement')}, {plural(len(found.pairs), 'pair')} in conflict"
    card = Card((found.table,), state, "bad" if found.pairs else "good", "", brief=tuple(blocks))
    return Document(subject=found.table, verdict=None, cards=(card,), record=found)
