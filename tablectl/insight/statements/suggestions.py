"""Changes with which two statements would both commit: added conditions, a partitioning, an apply.

Each is tried: the statement is parsed and compared again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType

from sqlglot import exp, maybe_parse
from sqlglot.dialects import Databricks

from tablectl.delta.names import join_parts
from tablectl.delta.sql_tokens import SqlToken
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.command_actions import Rearrange, Send, StatementError
from tablectl.insight.statements.command_tokens import tokens_of
from tablectl.insight.statements.commits_of_statement import commits_of
from tablectl.insight.statements.disjoint_partitions import EVERY_VALUE, Interval, Value, Values, either
from tablectl.insight.statements.literals import ColumnDomain, one_value, shown_values
from tablectl.insight.statements.pair_outcomes import (
    StatementPair,
    between,
    main_footprint,
    row_level_of,
)
from tablectl.insight.statements.parse_writes import ParsedStatement, parse_statement
from tablectl.insight.statements.reads_and_writes import Footprint
from tablectl.insight.statements.target import StatementTable
from tablectl.model.commit_contents import Kind
from tablectl.model.safe_text import printable

_MOST_COLUMNS = 6
_MOST_PARTS = 3
_LONGEST = 4000
"""Maximum length, in characters, of a statement to rewrite: many variants are tried, and each is parsed."""
_STEPS: Mapping[str, int] = MappingProxyType({"timestamp": 10 * 86_400_000_000, "timestamp_ntz": 86_400_000_000})
"""The distance from one value of a column to another that is certainly different; 1 for other types."""
_TIMES = ("timestamp", "timestamp_ntz")
_FEW_VALUES = ("string", "date", "boolean")
_QUOTED = ("date", *_TIMES)
_CHANGES_ROWS = (Kind.UPDATE, Kind.DELETE, Kind.MERGE)
_AFTER_WHERE = (
    "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "CLUSTER", "DISTRIBUTE", "SORT", "LIMIT", "OFFSET",
)  # fmt: skip
_UNCERTAIN = re.compile(r"/\*(?:(?!\*/).)*/\*|\\\n|\r(?!\n)|\|>", re.DOTALL)
"""What Spark's lexer and ``sql_tokens`` may cut in different places: comments within comments, and lines that a
backslash continues or a bare carriage return ends (``SqlBaseLexer.g4``). The conditions of a pipe have no place in
the text of their own.
"""


@dataclass(frozen=True, slots=True)
class RewrittenStatement:
    """One of the two statements, with an added condition."""

    statement: int
    """0 for the first, 1 for the second."""
    sql: str
    """The user's own text with the condition in it; empty if it is to be rewritten by hand."""
    only_if: str = ""
    """The condition under which it does the same as before; empty if it always does."""
    by_hand: str = ""
    """What to change by hand, where the text has no certain place for the condition."""


@dataclass(frozen=True, slots=True)
class SuggestedPartitioning:
    """Partition columns with which both statements commit unchanged."""

    columns: tuple[str, ...]
    unclustered: bool
    """Whether the table would lose its clustering."""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """All fixes; empty if none helps or none is needed."""

    rewrites: tuple[RewrittenStatement, ...] = ()
    """To be made together."""
    partitionings: tuple[SuggestedPartitioning, ...] = ()
    by_apply: tuple[int, ...] = ()
    """The statements that ``tablectl apply`` can make while guarded writers wait: 0 the first, 1 the second."""


@dataclass(frozen=True, slots=True)
class _Added:
    """A condition on a partition column for one of the statements."""

    index: int
    column: str
    domain: ColumnDomain
    values: Values
    """The values that the condition admits; an example if only the user knows them."""
    only_if: str = ""
    blank: str = ""
    """The placeholder for a value that only the user knows."""
    of_source: bool = False
    """Whether it applies only to the source of a MERGE."""


def suggest(
    first: ParsedStatement, second: ParsedStatement, subject: StatementTable, setting: ConflictContext
) -> Suggestions:
    """The changes with which both statements would commit, whichever commits first."""
    both = (first, second)
    found = between(first, second, subject, setting)
    by_apply = (
        ()
        if found.separate
        else tuple(
            index
            for index, each in enumerate(each.action for each in both)
            if isinstance(each, Send) or (isinstance(each, Rearrange) and each.kind is Kind.REORG)
        )
    )
    if found.separate or any(len(each.sql) > _LONGEST for each in both):
        return Suggestions(by_apply=by_apply)
    working = (rewrites for added in _conditions(found, subject) if (rewrites := _tried(added, both, subject, setting)))
    return Suggestions(next(working, ()), tuple(_partitionings(both, subject, setting)), by_apply)


def _conditions(found: StatementPair, subject: StatementTable) -> Iterator[tuple[_Added, ...]]:
    """The conditions that could be added, the most certain first."""
    columns = [(name, domain) for name in subject.partitions[:_MOST_COLUMNS] if (domain := subject.domain(name))]
    for sure in (_follows, _of_source):
        yield from _alone_and_both([list(sure(found, column, domain)) for column, domain in columns])
    for column, domain in columns:
        nullable = any(field.nullable for field in subject.schema.fields if field.name.casefold() == column)
        for index in (0, 1):
            yield from _beside_the_other(found, index, column, domain, nullable=nullable)
    for column, domain in columns:
        only_if = f"all its rows have one {column}, and those of the other another"
        yield tuple(_blank(index, column, domain, each, only_if) for index, each in enumerate(_examples(domain)))


def _alone_and_both(known: Sequence[Sequence[_Added]]) -> Iterator[tuple[_Added, ...]]:
    yield from chain.from_iterable([(each,) for each in of_column] for of_column in known)
    yield from (tuple(of_column) for of_column in known if len(of_column) == 2)


def _footprint(found: StatementPair, index: int) -> Footprint:
    return main_footprint((found.first, found.second)[index])


def _follows(found: StatementPair, column: str, domain: ColumnDomain) -> Iterator[_Added]:
    """A condition that follows from the statement, but that Delta does not derive from it."""
    for index in (0, 1):
        each = _footprint(found, index)
        if each.kind not in _CHANGES_ROWS:
            continue  # in the query of an INSERT, the condition would drop rows that REPLACE WHERE refuses
        values = each.rewrites.column(column)
        hidden = each.reads is not None and each.reads.column(column) == EVERY_VALUE
        if hidden and each.rewrites.boxes and values != EVERY_VALUE:
            yield _Added(index, column, domain, values)


def _of_source(found: StatementPair, column: str, domain: ColumnDomain) -> Iterator[_Added]:
    """A MERGE may insert rows into any partition, although it reads only some."""
    for index in (0, 1):
        each = _footprint(found, index)
        values = EVERY_VALUE if each.reads is None else each.reads.column(column)
        if each.kind is Kind.MERGE and values != EVERY_VALUE and each.adds.column(column) == EVERY_VALUE:
            only_if = "its source has no other rows to insert"
            yield _Added(index, column, domain, values, only_if, of_source=True)


def _beside_the_other(
    found: StatementPair, index: int, column: str, domain: ColumnDomain, *, nullable: bool
) -> Iterator[tuple[_Added, ...]]:
    """A condition for one statement that keeps it out of the partitions that the other reads and writes.

    ``<>`` and comparisons also exclude the rows of null, which the other leaves alone: they are let in where Delta
    then still tells the two apart.
    """
    other = _footprint(found, 1 - index)
    taken = either([other.adds, other.rewrites, *([other.reads] if other.reads else [])]).column(column)
    free = taken.complement()
    if taken == EVERY_VALUE or free.empty:
        return
    only_if = "the rows that it is for lie there"
    if nullable and not taken.null:
        yield (_Added(index, column, domain, replace(free, null=True), only_if),)
        only_if += f", and none of them has a {column} of null"
    yield (_Added(index, column, domain, free, only_if),)
    example = next((each for each in _near(taken, domain) if free.meet(one_value(each)) == one_value(each)), None)
    if example is not None:
        only_if = f"all its rows have one {column}, and never {shown_values(column, taken, domain)}"
        yield (_blank(index, column, domain, example, only_if),)


def _near(taken: Values, domain: ColumnDomain) -> Iterator[Value]:
    """Values just outside a set's bounds."""
    for each in taken.intervals:
        if domain.type == "string":
            yield from (f"{bound}~" for bound in (each.high, each.low) if bound is not None)
        else:
            step = _STEPS.get(domain.type, 1)
            yield from (
                bound
                for bound in (each.high, each.low)
                if bound is not None and not each.within(Interval(bound, bound))
            )
            yield from (bound + sign * step for bound, sign in ((each.high, 1), (each.low, -1)) if bound is not None)
    yield from _examples(domain)


def _examples(domain: ColumnDomain) -> tuple[Value, Value]:
    return ("a", "b") if domain.type == "string" else (0, _STEPS.get(domain.type, 1))


def _blank(index: int, column: str, domain: ColumnDomain, example: Value, only_if: str) -> _Added:
    blank = f"'<its {column}>'" if domain.type in ("string", *_QUOTED) else f"<its {column}>"
    blank = f"{domain.type.upper()} {blank}" if domain.type in _QUOTED else blank
    return _Added(index, column, domain, one_value(example), only_if, blank)


def _tried(
    added: Sequence[_Added],
    both: tuple[ParsedStatement, ParsedStatement],
    subject: StatementTable,
    setting: ConflictContext,
) -> tuple[RewrittenStatement, ...]:
    """The rewritten statements, if they no longer conflict; else nothing."""
    analysed, rewrites = list(both), []
    for each in added:
        found = _rewritten(both[each.index], each, subject)
        if found is None:
            return ()
        analysed[each.index], rewrite = found
        rewrites.append(rewrite)
    pair = between(analysed[0], analysed[1], subject, setting)
    if not pair.separate:
        return ()
    before = (main_footprint(commits_of(each, subject, setting)) for each in both)
    after = (main_footprint(each) for each in (pair.first, pair.second))
    # A condition that contradicts the others would make everything disjoint.
    empty = any(_emptied(old, new) for old, new in zip(before, after, strict=True))
    return () if empty else tuple(rewrites)


def _rewritten(
    statement: ParsedStatement, added: _Added, subject: StatementTable
) -> tuple[ParsedStatement, RewrittenStatement] | None:
    """A statement with one more condition, to be analysed, and what to tell its user; ``None`` if it cannot have one.

    The condition goes into the text as it was written: a parser's own print of a statement may mean something else
    (``'O''Brien'`` was printed as two texts). The new text counts only if it parses as the statement with the
    condition, and with nothing else changed.
    """
    tree = _with_condition(statement, added, subject)
    if tree is None:
        return None
    try:
        parsed = parse_statement(_in_text(statement, added, subject, example=True))
        text = _in_text(statement, added, subject, example=False)
    except StatementError:
        parsed, text = None, ""
    if parsed is not None and len(text) <= _LONGEST and _without_brackets(parsed.node) == _without_brackets(tree):
        return parsed, RewrittenStatement(added.index, text, added.only_if)
    if isinstance(statement.action, Rearrange):
        return None
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    by_hand = (
        f"add {_condition(added, subject, _qualifier(statement, added), example=False)} to {_place(statement, added)}"
    )
    return replace(statement, node=tree, table=table), RewrittenStatement(added.index, "", added.only_if, by_hand)


def _without_brackets(node: exp.Expr) -> exp.Expr:
    whole = exp.Paren(this=node.copy())
    for each in [each for each in whole.find_all(exp.Paren) if each is not whole]:
        each.replace(each.this)
    made = whole.this
    assert isinstance(made, exp.Expr)
    return made


def _emptied(before: Footprint, after: Footprint) -> bool:
    """Whether a statement lost one of its effects, because the region of that effect became empty."""
    regions = ((before.rewrites, after.rewrites), (before.adds, after.adds))
    nothing = any(old.boxes and not new.boxes for old, new in regions)
    return nothing or (after.reads is not None and not after.reads.boxes)


def _condition(added: _Added, subject: StatementTable, qualifier: str, *, example: bool) -> str:
    """The condition, with the column spelled as in the table, and with the example or the placeholder."""
    name = next(each for each in subject.partition_columns if each.casefold() == added.column)
    column = join_parts((qualifier, name) if qualifier else (name,))
    if added.blank and not example:
        return f"{column} = {added.blank}"
    made = shown_values(column, added.values, added.domain)
    return f"({made})" if " AND " in made and not made.startswith("(") else made


def _qualifier(statement: ParsedStatement, added: _Added) -> str:
    """What the column belongs to in the place where the condition goes."""
    if isinstance(statement.node, exp.Merge):
        return "" if added.of_source else statement.alias or statement.parts[-1]
    return statement.alias if isinstance(statement.node, exp.Update | exp.Delete) else ""


def _place(statement: ParsedStatement, added: _Added) -> str:
    match statement.node:
        case exp.Merge() if added.of_source:
            return "a WHERE around its source"
        case exp.Merge() if _limits_source(statement.node, added):
            return "its ON, and the same of the source to a WHERE around its source"
        case exp.Merge():
            return "its ON"
        case exp.Insert():
            return "the WHERE of its query"
    return "its WHERE"


def _limits_source(node: exp.Merge, added: _Added) -> bool:
    """Whether rows that do not match would be inserted elsewhere, unless the source has none."""
    return bool(added.only_if) and any(not when.args.get("matched") for when in node.args["whens"].expressions)


def _with_condition(statement: ParsedStatement, added: _Added, subject: StatementTable) -> exp.Expr | None:
    """The tree of a statement with the condition, or with its example; ``None`` if it cannot have one."""
    made = _parsed_condition(added, subject, _qualifier(statement, added))
    if isinstance(statement.action, Rearrange):
        return made if isinstance(statement.node, exp.Null) and len(statement.parts) <= _MOST_PARTS else None
    node = statement.node.copy()
    match node:
        case exp.Update() | exp.Delete():
            old = node.args.get("where")
            node.set("where", exp.Where(this=exp.and_(old.this, made) if old else made))
        case exp.Merge():
            if not added.of_source:
                node.set("on", exp.and_(node.args["on"], made))
            if _limits_source(node, added):
                source = node.args["using"]
                named = source.alias_or_name if isinstance(source, exp.Table | exp.Subquery) else ""
                # Without its alias, a source in a subquery loses the longer names of its columns.
                if not named or (
                    not source.alias and any(column.args.get("db") for column in node.find_all(exp.Column))
                ):
                    return None
                limited = exp.select("*").from_(source.copy()).where(_parsed_condition(added, subject, ""))
                node.set("using", limited.subquery(named))
        case exp.Insert() if isinstance(node.expression, exp.Select):
            node.set("expression", node.expression.where(made))
        case _:
            return None
    return node


def _parsed_condition(added: _Added, subject: StatementTable, qualifier: str) -> exp.Expr:
    return maybe_parse(_condition(added, subject, qualifier, example=True), dialect=Databricks)


def _in_text(statement: ParsedStatement, added: _Added, subject: StatementTable, *, example: bool) -> str:
    """The statement as it was written, with the condition in it, up to its last token.

    Raises ``StatementError`` if no place for it is certain.
    """
    sql, node = statement.sql, statement.node
    tokens = tokens_of(sql)
    # Where it is shown, lines are indented, which a text over several lines would take in.
    shown = all(printable(line) == line for line in sql.split("\n")) and not any("\n" in each.text for each in tokens)
    if _UNCERTAIN.search(sql) or not shown:
        raise StatementError("Spark may cut the statement elsewhere, or it cannot be shown as it is")
    outer = _outer(tokens)
    condition = _condition(added, subject, _qualifier(statement, added), example=example)
    if isinstance(statement.action, Rearrange):
        edits = _conjoined(outer, 0, ("ZORDER", "APPLY"), condition)
    elif isinstance(node, exp.Merge):
        using = _index(outer, "USING", 0)
        on = _index(outer, "ON", using)
        edits = [] if added.of_source else _conjoined(outer, on, ("WHEN",), condition, "ON")
        if _limits_source(node, added):
            limit = _condition(added, subject, "", example=example)
            alias = join_parts((node.args["using"].alias_or_name,))
            edits += [
                (outer[using + 1].start, "(SELECT * FROM "),
                (outer[on - 1].end, f" WHERE {limit}) AS {alias}"),
            ]
    elif isinstance(node, exp.Insert):
        edits = _conjoined(outer, _index(outer, "SELECT", 0), _AFTER_WHERE, condition)
    else:
        edits = _conjoined(outer, 0, (), condition)
    text = sql[: outer[-1].end]
    for at, insertion in sorted(edits, reverse=True):
        text = text[:at] + insertion + text[at:]
    return text


def _outer(tokens: Sequence[SqlToken]) -> list[SqlToken]:
    """The tokens outside brackets and CASE, with the brackets themselves, and without semicolons at the end."""
    found, opened = list[SqlToken](), list[str]()
    for token in tokens:
        closes = {")": "(", "]": "[", "END": "CASE"}.get(token.text if token.kind == "mark" else token.word)
        if opened and closes == opened[-1]:
            opened.pop()
        if not opened:
            found.append(token)
        if token.text in ("(", "[") or token.word == "CASE":
            opened.append(token.word or token.text)
    while found and found[-1].text == ";":
        found.pop()
    return found


def _index(outer: Sequence[SqlToken], word: str, after: int) -> int:
    found = next((index for index in range(after, len(outer)) if outer[index].word == word), None)
    if found is None:
        raise StatementError(f"the statement has no {word}")
    return found


def _conjoined(
    outer: Sequence[SqlToken], after: int, stops: Sequence[str], condition: str, keyword: str = "WHERE"
) -> list[tuple[int, str]]:
    """What to insert where, so that a condition after a keyword holds too; with the keyword if there is none."""
    stop = next((i for i in range(after + 1, len(outer)) if outer[i].word in stops), len(outer))
    place = next((i for i in range(after, stop) if outer[i].word == keyword), None)
    end = outer[stop - 1].end
    if place is None:
        return [(end, f" {keyword} {condition}")]
    if any(token.word == "OR" for token in outer[place + 1 : stop]):
        return [(outer[place + 1].start, "("), (end, f") AND {condition}")]
    return [(end, f" AND {condition}")]


def _partitionings(
    both: Sequence[ParsedStatement], subject: StatementTable, setting: ConflictContext
) -> Iterator[SuggestedPartitioning]:
    """Data columns that a statement names and by which the table could be partitioned.

    Never a number or a timestamp, of which each value would be a directory (D60), nor a column that a statement
    changes, because its rows would move. Partitions end row-level concurrency (D42), so never on a table that has it.
    """
    if any(row_level_of(commits_of(each, subject, setting), setting) for each in both):
        return
    changed = {name for each in both for name in _changed(each.node)}
    named = [{column.name.casefold() for column in each.node.find_all(exp.Column)} for each in both]
    for field in subject.schema.fields:
        column, domain = field.name.casefold(), subject.domain(field.name.casefold())
        if domain is None or domain.type not in _FEW_VALUES or column in changed:
            continue
        if column in subject.partitions or not any(column in each for each in named):
            continue
        columns = (*subject.partition_columns, field.name)
        if between(both[0], both[1], replace(subject, partition_columns=columns), setting).separate:
            yield SuggestedPartitioning(columns, setting.clustered)


def _changed(node: exp.Expr) -> Iterator[str]:
    """The columns that an UPDATE or the clauses of a MERGE set."""
    for update in node.find_all(exp.Update):
        assigned = (each.this for each in update.expressions if isinstance(each, exp.EQ))
        yield from (each.name.casefold() for each in assigned if isinstance(each, exp.Column))
