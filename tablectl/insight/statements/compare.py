"""Compares two statements on a live table for each client that writes it: both outcomes, and possible fixes. As a
record and as a document: where each reads and writes, and which one fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from tablectl.attributes.policy import basis_of
from tablectl.conflicts.delta_spark_rules import RELEASES
from tablectl.conflicts.expected_writers import ExpectedWriters
from tablectl.conflicts.transactions import ConflictResult, Level
from tablectl.delta.client_families import FAMILIES, UNKNOWN
from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.documents.document import Block, Card, Document, Facts, Heading, Listing, Paragraph, Tone
from tablectl.insight.conflict_context import NO_ASSUMPTION, Assumption, ConflictContext
from tablectl.insight.matrix import BY_APPLY, IN_TURN
from tablectl.insight.statements.command_actions import StatementError
from tablectl.insight.statements.disjoint_partitions import Region
from tablectl.insight.statements.pair_outcomes import (
    EVERYWHERE,
    NO_REGION,
    PairOutcome,
    StatementPair,
    between,
    main_footprint,
    region_text,
)
from tablectl.insight.statements.parse_writes import ParsedStatement, parse_statement
from tablectl.insight.statements.reads_and_writes import Footprint
from tablectl.insight.statements.suggestions import RewrittenStatement, SuggestedPartitioning, Suggestions, suggest
from tablectl.insight.statements.target import StatementTable
from tablectl.model.commit_contents import Kind
from tablectl.model.plan import Basis
from tablectl.model.safe_text import Code
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions

TONES: dict[ConflictResult, Tone] = {
    ConflictResult.COMMITS: "good",
    ConflictResult.MAY_FAIL: "pending",
    ConflictResult.UNKNOWN: "pending",
    ConflictResult.FAILS: "bad",
}
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class RegionText:
    """A region as a condition on partition columns."""

    where: str
    exact: bool
    """Whether it holds no other partitions than those that the statement touches."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A part of a statement's conditions that does not narrow what it reads."""

    condition: str
    reason: str


@dataclass(frozen=True, slots=True)
class StatementCommit:
    """One commit of a statement, for people and as JSON."""

    kind: Kind
    reads: RegionText | None
    """The partitions that it registers as read; ``None`` if it reads nothing of the table."""
    rewrites: RegionText
    adds: RegionText
    data_change: bool
    """Whether its files have other rows than those that it removes."""
    metadata: bool
    """Whether it may commit metadata."""
    protocol: bool
    automatic: str
    """Why Delta makes this commit by itself; empty for the statement's own."""
    sure: bool
    """Whether the statement makes this commit in any case."""
    passed_over: tuple[PassedOver, ...]
    taken_for_other_tables: tuple[str, ...]
    """Tables that it reads, which are assumed to be other tables, not views of this one."""

    @classmethod
    def of(cls, made: Footprint, subject: StatementTable) -> StatementCommit:
        """A commit on this table."""

        def text(region: Region) -> RegionText:
            return RegionText(region_text(region, subject), region.exact)

        return cls(
            kind=made.kind,
            reads=None if made.reads is None else text(made.reads),
            rewrites=text(made.rewrites),
            adds=text(made.adds),
            data_change=made.data_change,
            metadata=made.most_metadata is not None,
            protocol=made.protocol is not None,
            automatic=made.automatic,
            sure=made.sure,
            passed_over=tuple(PassedOver(part, why) for part, why in made.passed_over),
            taken_for_other_tables=made.assumed,
        )


@dataclass(frozen=True, slots=True)
class ClientComparison:
    """The result of one client, or of several clients with the same result."""

    clients: tuple[Client, ...]
    isolation: Level
    """The level at which these clients commit."""
    isolation_pinned: bool
    """Whether the table sets the level."""
    apart: bool
    """Whether both certainly commit, whichever commits first."""
    footprints: tuple[StatementCommit, ...]
    """The commit of each statement that says where it reads and writes."""
    commits: tuple[tuple[StatementCommit, ...], ...]
    """All commits of each statement."""
    fates: tuple[PairOutcome, PairOutcome]
    """The outcome of the first statement after the second, and of the second after the first."""
    ways: Suggestions

    @classmethod
    def of(cls, client: Client, pair: StatementPair, subject: StatementTable, ways: Suggestions) -> ClientComparison:
        """What one client makes of two statements."""
        both = (pair.first, pair.second)
        return cls(
            clients=(client,),
            isolation=pair.setting.level,
            isolation_pinned=pair.setting.stored_level is not None,
            apart=pair.separate,
            footprints=tuple(StatementCommit.of(main_footprint(each), subject) for each in both),
            commits=tuple(tuple(StatementCommit.of(commit, subject) for commit in each) for each in both),
            fates=pair.outcomes,
            ways=ways,
        )


@dataclass(frozen=True, slots=True)
class ComparedStatement:
    """One of the two statements."""

    sql: str
    operation: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two statements for all clients."""

    table: TableName
    version: int
    """The version of the table that the outcomes are of."""
    partition_columns: tuple[str, ...]
    clustered: bool
    apart: bool
    """Whether both commit, whichever commits first and whichever client runs them."""
    statements: tuple[ComparedStatement, ...]
    views: tuple[ClientComparison, ...]
    clients_assumed: bool
    """Whether no client that runs SQL is known, so that the newest open-source Delta stands for all."""
    assumptions: tuple[str, ...]
    """What must be true for this to hold, in sentences."""
    format: int = 2


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
    expected, assumed = expected_clients(basis_of(live, options), dialect, assumption.clients)
    views: list[ClientComparison] = []
    for client, photon in expected:
        setting = ConflictContext.of(live, client, photon=photon, auto_compact=assumption.auto_compact)
        pair = between(*statements, subject, setting)
        view = ClientComparison.of(client, pair, subject, suggest(*statements, subject, setting))
        same = next((each for each in views if replace(each, clients=view.clients) == view), None)
        if same is None:
            views.append(view)
        else:
            views[views.index(same)] = replace(same, clients=(*same.clients, client))
    return Comparison(
        table=live.name,
        version=live.version,
        partition_columns=live.partition_columns,
        clustered=live.clustering is not None,
        apart=all(view.apart for view in views),
        statements=tuple(ComparedStatement(each.sql, each.verb) for each in statements),
        views=tuple(views),
        clients_assumed=assumed,
        assumptions=tuple(_assumptions(statements, subject, views, clients_assumed=assumed)),
    )


def _assumptions(
    statements: Sequence[ParsedStatement],
    subject: StatementTable,
    views: Sequence[ClientComparison],
    *,
    clients_assumed: bool,
) -> Iterator[str]:
    changes = "rows, files or settings" if any(each.action for each in statements) else "rows"
    yield f"This holds for statements that both change {changes}; a statement that changes none conflicts with nothing."
    commits = (each for view in views for made in view.commits for each in made)
    if others := list(dict.fromkeys(name for each in commits for name in each.taken_for_other_tables)):
        verb = "is taken for another table, not a view" if len(others) == 1 else "are taken for other tables, not views"
        yield f"{', '.join(others)} {verb} of this one."
        if any(domain.type == "string" for domain in map(subject.domain, subject.partitions) if domain):
            yield "Its text columns are assumed to have no collation, by which 'ab' also finds 'AB'."
    overwrites = [each for each in statements if each.kind is Kind.OVERWRITE and not each.action]
    if overwrites and subject.partition_columns:
        yield (
            "INSERT OVERWRITE is taken in the session's mode `static`; in the mode `dynamic` "
            "(spark.sql.sources.partitionOverwriteMode) it replaces only the partitions of its rows, and may commit."
        )
    if clients_assumed:
        yield "No client in the table's history is known to run SQL: this answer assumes the newest Delta Spark."


def _parsed(sql: str, which: str) -> ParsedStatement:
    try:
        return parse_statement(sql)
    except StatementError as error:
        raise StatementError(f"the {which} statement: {error.message}", error.hint) from None


def expected_clients(
    basis: Basis, dialect: str, asked: Sequence[tuple[Client, bool | None]]
) -> tuple[list[tuple[Client, bool | None]], bool]:
    """The clients that run SQL, each with whether it has Photon, ``None`` if unknown; and whether they are assumed."""
    for client, _ in asked:
        if not client.family.runs_sql:
            raise StatementError(
                f"{client.text()} runs no SQL statements",
                f"name {' or '.join(each.name for each in FAMILIES if each.runs_sql)}",
            )
    seen = [(client, None) for client in ExpectedWriters.of(basis, dialect).clients if client.family.runs_sql]
    known = [each for each in (asked or seen) if each[0].family is not UNKNOWN]
    return (known, False) if known else ([(RELEASES[-1], None)], True)


def document_of_pair(overlapping: Comparison) -> Document:
    """The comparison, one card for each client."""
    columns = overlapping.partition_columns
    layout = f"partitioned by {', '.join(columns)}" if columns else "no partitions"
    clustered = ", clustered" if overlapping.clustered else ""
    about = Paragraph(f"version {overlapping.version}, {layout}{clustered}", "quiet")
    return Document(
        subject=overlapping.table.text,
        verdict=None,
        cards=(
            Card((overlapping.table.text,), "", "", "", brief=(about,)),
            *(_view(overlapping, each) for each in overlapping.views),
        ),
        tail=(Paragraph(" ".join(overlapping.assumptions), "quiet"),),
        record=overlapping,
    )


def _view(overlapping: Comparison, view: ClientComparison) -> Card:
    level = f"{view.isolation}{'' if view.isolation_pinned else ' (not set)'}"
    who = " and ".join(client.text() for client in view.clients)
    blocks = tuple(_blocks(overlapping, view))
    return Card((f"With {who}",), f"at {level}", "quiet", "", "client", brief=blocks)


def _blocks(overlapping: Comparison, view: ClientComparison) -> Iterator[Block]:
    partitioned = bool(overlapping.partition_columns)
    made = zip("12", overlapping.statements, view.commits, view.footprints, strict=True)
    for number, statement, commits, main in made:
        text = " ".join(statement.sql.split())
        sql = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        yield Facts(((number, sql), *_commits(commits, main, partitioned=partitioned)))
    for number, other, outcome in zip("12", "21", view.fates, strict=True):
        what = outcome.result.value
        if outcome.exceptions:
            what += f" with {' or '.join(outcome.exceptions)}"
        yield Paragraph(f"{number} in flight, {other} commits first: {what}", TONES[outcome.result])
        yield Facts((("why", f"{outcome.reason} ({outcome.source})"),))
        if outcome.afterwards:
            yield Facts((("then", outcome.afterwards),))
    if not view.apart:
        yield from _ways(view.ways)


def _commits(
    commits: Sequence[StatementCommit], main: StatementCommit, *, partitioned: bool
) -> Iterator[tuple[str, str]]:
    """Where a statement reads and writes, and its commits if that is not exactly one."""
    if not commits:
        yield "commits", "nothing"
        return
    if len(commits) > 1:
        yield "commits", "; ".join(_numbered(commits))
    reads = main.reads.where if main.reads else "nothing of the table"
    yield "reads", "the whole table" if reads == EVERYWHERE else reads
    yield "writes", _writes(main)
    for each in main.passed_over if partitioned else ():
        cut = each.condition if len(each.condition) <= 60 else f"{each.condition[:59]}…"
        yield "not used", f"{cut}: {each.reason}"


def _numbered(commits: Sequence[StatementCommit]) -> Iterator[str]:
    """The commits with their places; equal ones that follow each other together."""
    first = 1
    for text, same in groupby(each.kind.value + _kind_of(each) for each in commits):
        last = first + len(list(same)) - 1
        yield f"{first} {text}" if first == last else f"{first}-{last} {text}"
        first = last + 1


def _kind_of(commit: StatementCommit) -> str:
    if commit.automatic:
        return f" ({commit.automatic}, if there are enough small files)"
    return "" if commit.sure else " (if there are files to rewrite)"


def _writes(commit: StatementCommit) -> str:
    """Where rows are changed, and where new or moved rows may be written."""
    rewrites, adds = commit.rewrites.where, commit.adds.where
    if rewrites == adds == NO_REGION:
        return "no files"
    if commit.data_change and NO_REGION not in (rewrites, adds) and rewrites != adds:
        return f"{rewrites}; new rows {adds}"
    return adds if rewrites == NO_REGION else rewrites


def _ways(ways: Suggestions) -> Iterator[Block]:
    yield Heading("How to avoid the conflict", style="sql")
    for each in ways.rewrites:
        yield from _rewrite(each)
    for index, partitioning in enumerate(ways.partitionings):
        yield Paragraph(_partitioning(partitioning, first=index == 0 and not ways.rewrites))
    yield from (Paragraph(f"{index + 1}: {BY_APPLY}") for index in ways.by_apply)
    if not ways.rewrites and not ways.partitionings and not ways.by_apply:
        yield Paragraph(f"no rewrite was found: {IN_TURN}")


def _rewrite(each: RewrittenStatement) -> Iterator[Block]:
    condition = f"only if {each.only_if}" if each.only_if else "with the same result"
    if each.by_hand:
        yield Paragraph(f"{each.statement + 1}: rewrite it by hand, {condition}: {each.by_hand}")
        return
    yield Paragraph(f"{each.statement + 1} rewritten, {condition}:")
    yield Listing((Code("sql", tuple(each.sql.split("\n"))),))


def _partitioning(each: SuggestedPartitioning, *, first: bool) -> str:
    instead = " instead of clustering" if each.unclustered else ""
    opening = "" if first else "or "
    return (
        f"{opening}PARTITIONED BY ({', '.join(each.columns)}){instead}: both would commit unchanged; "
        "only if it has few values, because each is a directory (D60)"
    )
