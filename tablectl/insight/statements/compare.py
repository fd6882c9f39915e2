"""Compare two statements on a live table for each client that writes it: both outcomes, and possible fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tablectl.attributes.plan_basis import basis_of
from tablectl.conflicts.expected_writers import ExpectedWriters
from tablectl.conflicts.rules.delta_spark import RELEASES
from tablectl.delta.client_families import FAMILIES, UNKNOWN
from tablectl.delta.protocol import Client
from tablectl.frozen import frozen
from tablectl.insight.matrix.context import NO_ASSUMPTION, Assumption, ConflictContext
from tablectl.insight.statements.errors import StatementError
from tablectl.insight.statements.pair import StatementPair, between
from tablectl.insight.statements.parse import ParsedStatement, parse_statement
from tablectl.insight.statements.suggestions import Suggestions, suggest
from tablectl.insight.statements.target import StatementTable
from tablectl.model.plan import Basis
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions


@frozen
class ClientComparison:
    """The result of one client, or of several clients with the same result."""

    clients: tuple[Client, ...]
    pair: StatementPair
    ways: Suggestions


@frozen
class Comparison:
    """The comparison of two statements for all clients."""

    live: LiveTable
    subject: StatementTable
    statements: tuple[ParsedStatement, ParsedStatement]
    views: tuple[ClientComparison, ...]
    assumed: bool
    """Whether no client that runs SQL is known, so that the newest open-source Delta stands for all."""

    @property
    def separate(self) -> bool:
        """Whether both commit, whichever commits first and whichever client runs them."""
        return all(view.pair.separate for view in self.views)


def compare_statements(
    live: LiveTable,
    first: str,
    second: str,
    dialect: str,
    assumption: Assumption = NO_ASSUMPTION,
    options: TableOptions = NO_OPTIONS,
) -> Comparison:
    """Compare two SQL statements on a live table, for the clients of the ``assumption``, else for those expected from
    its history and declared in its policy's ``options``.

    Raises ``StatementError`` if a text is not one statement that writes this table, or if a named client does not run
    SQL.
    """
    subject = StatementTable.of(live)
    statements = (_parsed(first, "first"), _parsed(second, "second"))
    expected, assumed = _expected(basis_of(live, options), dialect, assumption.clients)
    views: list[ClientComparison] = []
    for client, photon in expected:
        setting = ConflictContext.of(live, client, photon=photon, auto_compact=assumption.auto_compact)
        pair = between(*statements, subject, setting)
        view = ClientComparison((client,), pair, suggest(*statements, subject, setting))
        same = next((each for each in views if _alike(each, view)), None)
        if same is None:
            views.append(view)
        else:
            views[views.index(same)] = replace(same, clients=(*same.clients, client))
    return Comparison(live, subject, statements, tuple(views), assumed)


def _parsed(sql: str, which: str) -> ParsedStatement:
    try:
        return parse_statement(sql)
    except StatementError as error:
        raise StatementError(f"the {which} statement: {error.message}", error.hint) from None


def _expected(
    basis: Basis, dialect: str, asked: Sequence[tuple[Client, bool | None]]
) -> tuple[list[tuple[Client, bool | None]], bool]:
    for client, _ in asked:
        if not client.family.runs_sql:
            raise StatementError(
                f"{client.text()} runs no SQL statements",
                f"name {' or '.join(each.name for each in FAMILIES if each.runs_sql)}",
            )
    seen = [(client, None) for client in ExpectedWriters.of(basis, dialect).clients if client.family.runs_sql]
    known = [each for each in (asked or seen) if each[0].family is not UNKNOWN]
    return (known, False) if known else ([(RELEASES[-1], None)], True)


def _alike(one: ClientComparison, other: ClientComparison) -> bool:
    mine, theirs = ((each.pair.outcomes, each.pair.first, each.pair.second, each.ways) for each in (one, other))
    same_level = one.pair.setting.level is other.pair.setting.level
    return mine == theirs and same_level
