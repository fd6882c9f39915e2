"""Changes with which two statements would both commit: added conditions, a partitioning, an apply.

Each is tried: the statement is parsed and compared again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType

from sqlglot import exp, maybe_parse
from sqlglot.dialects import Databricks

from tablectl.delta.names import join_parts
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.command_actions import Action, Rearrange, Send, StatementError
from tablectl.insight.statements.command_tokens import tokens_of
from tablectl.insight.statements.commits_of_statement import commits_of
from tablectl.insight.statements.disjoint_partitions import EVERY_VALUE, Interval, Value, Values, either
from tablectl.insight.statements.literals import ColumnDomain, literal_of, one_value, shown, shown_values
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
from tablectl.support.frozen import frozen

_MOST_COLUMNS = 6
_MOST_PARTS = 3
_LONGEST = 4000
"""Maximum length, in characters, of a statement to rewrite: many variants are tried, and each is parsed."""
_STEPS: Mapping[str, int] = MappingProxyType({"timestamp": 10 * 86_400_000_000, "timestamp_ntz": 86_400_000_000})
"""The distance from one value of a column to another that is certainly different; 1 for other types."""
_TIMES = ("timestamp", "timestamp_ntz")
_FEW_VALUES = ("string", "date", "boolean")
_QUOTED = ("date", *_TIMES)


@frozen
class RewrittenStatement:
    """One of the two statements, with an added condition."""

    statement: int
    """0 for the first, 1 for the second."""
    sql: str
    only_if: str = ""
    """The condition under which it does the same as before; empty if it always does."""


@frozen
class SuggestedPartitioning:
    """Partition columns with which both statements commit unchanged."""

    columns: tuple[str, ...]
    unclustered: bool
    """Whether the table would lose its clustering."""


@frozen
class Suggestions:
    """All fixes; empty if none helps or none is needed."""

    rewrites: tuple[RewrittenStatement, ...] = ()
    """To be made together."""
    partitionings: tuple[SuggestedPartitioning, ...] = ()
    by_apply: tuple[int, ...] = ()
    """The statements that ``tablectl apply`` can make while guarded writers wait: 0 the first, 1 the second."""


@frozen
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
    by_apply = () if found.separate else tuple(index for index, each in enumerate(both) if _can_apply(each.action))
    if found.separate or any(len(each.sql) > _LONGEST for each in both):
        return Suggestions(by_apply=by_apply)
    working = (rewrites for added in _conditions(found, subject) if (rewrites := _tried(added, both, subject, setting)))
    return Suggestions(next(working, ()), tuple(_partitionings(both, subject, setting)), by_apply)


def _can_apply(action: Action | None) -> bool:
    """Whether a policy can declare what a statement does."""
    return isinstance(action, Send) or (isinstance(action, Rearrange) and action.kind is Kind.REORG)


def _conditions(found: StatementPair, subject: StatementTable) -> Iterator[tuple[_Added, ...]]:
    """The conditions that could be added, the most certain first."""
    columns = [(name, domain) for name in subject.partitions[:_MOST_COLUMNS] if (domain := subject.domain(name))]
    for sure in (_follows, _of_source):
        yield from _alone_and_both([list(sure(found, column, domain)) for column, domain in columns])
    for column, domain in columns:
        for index in (0, 1):
            yield from _beside_the_other(found, index, column, domain)
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
    found: StatementPair, index: int, column: str, domain: ColumnDomain
) -> Iterator[tuple[_Added, ...]]:
    """A condition for one statement that keeps it out of the partitions that the other reads and writes."""
    other = _footprint(found, 1 - index)
    taken = either([other.adds, other.rewrites, *([other.reads] if other.reads else [])]).column(column)
    free = taken.complement()
    if taken == EVERY_VALUE or free.empty:
        return
    yield (_Added(index, column, domain, free, only_if="the rows that it is for lie there"),)
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
            yield from (bound for bound in (each.high, each.low) if bound is not None and not each.within(_at(bound)))
            yield from (bound + sign * step for bound, sign in ((each.high, 1), (each.low, -1)) if bound is not None)
    yield from _examples(domain)


def _at(value: Value) -> Interval:
    return Interval(value, value)


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
        example = _with_condition(both[each.index], each, _condition(each, example=True), subject)
        text = _with_condition(both[each.index], each, _condition(each, example=False), subject)
        if example is None or text is None or len(text) > _LONGEST:
            return ()
        try:
            parsed = parse_statement(example)
        except StatementError:
            return ()
        analysed[each.index] = replace(parsed, evolves=both[each.index].evolves)
        rewrites.append(RewrittenStatement(each.index, text, each.only_if))
    pair = between(analysed[0], analysed[1], subject, setting)
    if not pair.separate:
        return ()
    before = (main_footprint(commits_of(each, subject, setting)) for each in both)
    after = (main_footprint(each) for each in (pair.first, pair.second))
    # A condition that contradicts the others would make everything disjoint.
    empty = any(_emptied(old, new) for old, new in zip(before, after, strict=True))
    return () if empty else tuple(rewrites)


def _emptied(before: Footprint, after: Footprint) -> bool:
    """Whether a statement lost one of its effects, because the region of that effect became empty."""
    regions = ((before.rewrites, after.rewrites), (before.adds, after.adds))
    nothing = any(old.boxes and not new.boxes for old, new in regions)
    return nothing or (after.reads is not None and not after.reads.boxes)


def _condition(added: _Added, *, example: bool) -> exp.Expr:
    """The condition, with the example or with the placeholder."""
    column = exp.column(added.column)
    if added.blank and not example:
        return exp.EQ(this=column, expression=exp.Var(this=added.blank))
    return maybe_parse(shown_values(join_parts((added.column,)), added.values, added.domain), dialect=Databricks)


def _with_condition(
    statement: ParsedStatement, added: _Added, condition: exp.Expr, subject: StatementTable
) -> str | None:
    """A statement with one more condition; ``None`` if it cannot have one."""
    if "\\" in statement.sql:
        return None  # strings with escapes are not kept as written
    if isinstance(statement.action, Rearrange):
        return _rearranged(statement, _spelled(condition, added, subject, ""))
    node = statement.node.copy()
    match node:
        case exp.Update() | exp.Delete():
            old = node.args.get("where")
            made = _spelled(condition, added, subject, statement.alias)
            node.set("where", exp.Where(this=exp.and_(old.this, made) if old else made))
        case exp.Merge():
            qualifier = statement.alias or statement.parts[-1]
            if not added.of_source:
                node.set("on", exp.and_(node.args["on"], _spelled(condition, added, subject, qualifier)))
            if added.only_if and any(not when.args.get("matched") for when in node.args["whens"].expressions):
                source = _limited(node.args["using"], _spelled(condition, added, subject, ""))
                if source is None:
                    return None
                node.set("using", source)
        case exp.Insert() if isinstance(node.expression, exp.Select):
            node.set("expression", node.expression.where(_spelled(condition, added, subject, "")))
        case _:
            return None
    return node.transform(_as_literal).sql(Databricks)


def _rearranged(statement: ParsedStatement, condition: exp.Expr) -> str | None:
    """An OPTIMIZE or REORG of the files that also satisfy the condition."""
    if not isinstance(statement.node, exp.Null) or len(statement.parts) > _MOST_PARTS:
        return None
    condition = condition.transform(_as_literal)
    before, found, after = _split_before(statement.sql, ("ZORDER", "APPLY"))
    return f"{before.rstrip()} WHERE {condition.sql(Databricks)}{' ' if found else ''}{after}"


def _split_before(sql: str, words: Sequence[str]) -> tuple[str, bool, str]:
    """A statement before and from the first of these words."""
    place = next((token.start for token in tokens_of(sql) if token.word in words), None)
    plain = sql.rstrip("; \n\t")
    return (plain, False, "") if place is None else (plain[:place], True, plain[place:])


def _as_literal(node: exp.Expr) -> exp.Expr:
    """Write dates as people do."""
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.DATE:
        known = literal_of(node)
        return exp.Var(this=shown(known.value, ColumnDomain("date"))) if known and known.kind == "date" else node
    return node


def _spelled(condition: exp.Expr, added: _Added, subject: StatementTable, qualifier: str) -> exp.Expr:
    """The condition, with the column spelled as in the table."""
    made = condition.copy()
    name = next(each for each in subject.partition_columns if each.casefold() == added.column)
    for column in [made] if isinstance(made, exp.Column) else list(made.find_all(exp.Column)):
        column.replace(exp.column(name, table=qualifier or None))
    return made


def _limited(source: exp.Expr, condition: exp.Expr) -> exp.Expr | None:
    """A source that is limited to some of its rows."""
    alias = source.alias_or_name
    if not isinstance(source, exp.Table | exp.Subquery) or not alias:
        return None
    inner = source.copy()
    if isinstance(inner, exp.Table):
        inner.set("alias", None)
    return exp.select("*").from_(inner).where(condition).subquery(alias)


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
