"""The footprint of a statement: the partitions that it registers as read, rewrites files in, and adds files to.

Each region contains at least what the statement may touch (delta-3; based on the sources of Delta 3.0 to 4.4, in which
UPDATE, DELETE and MERGE register the same).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from sqlglot import exp
from sqlglot.dialects import Databricks

from tablectl.insight.statements.command_actions import StatementError
from tablectl.insight.statements.disjoint_partitions import (
    ANYWHERE,
    EVERY_VALUE,
    NOWHERE,
    UNKNOWN,
    Interval,
    Region,
    Values,
    both,
    either,
)
from tablectl.insight.statements.disjoint_partitions import where as holding
from tablectl.insight.statements.literals import Kind as LiteralKind
from tablectl.insight.statements.literals import KnownValue, literal_of, passed_on, stored
from tablectl.insight.statements.parse_writes import ParsedStatement, partition_of
from tablectl.insight.statements.predicates import (
    ConditionPlace,
    RegisteredRead,
    Scope,
    admits,
    conjuncts,
    has_subquery,
    registered_by_rewrite,
    registered_by_scan,
)
from tablectl.insight.statements.queries import Queries, QueryLimits
from tablectl.insight.statements.target import StatementTable
from tablectl.model.commit_contents import Kind, MetadataChange, ProtocolChange

_PLAIN = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.In, exp.Between, exp.Like, exp.Is, exp.Column, exp.Identifier, exp.Literal, exp.Null,
    exp.Boolean, exp.Neg, exp.Cast, exp.DataType, exp.TsOrDsToDate,
)  # fmt: skip
_EXACT = 2**53
_KINDS: Mapping[str, LiteralKind] = MappingProxyType(
    {
        "string": "text", "date": "date", "byte": "integer", "short": "integer", "integer": "integer",
        "long": "integer",
    }
)  # fmt: skip
_EMPTY_TEXT = Values((Interval("", ""),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Where a statement reads and writes."""

    kind: Kind
    reads: Region | None
    """The partitions that it registers as read; ``None`` if it reads nothing of the table."""
    rewrites: Region
    """Where it may remove or rewrite files."""
    adds: Region
    """Where it may add files."""
    surely_adds: bool
    """Whether it adds a file if it changes a row."""
    draws: bool = False
    """Whether it may generate identity values, and commits metadata for them."""
    surely_reads: bool = True
    """Whether it registers ``reads`` whatever the optimizer does: not for a query that may be left out or emptied."""
    evolves: bool = False
    """Whether it may change the table's schema."""
    plain: bool | None = True
    """Whether its conditions are free of what row-level concurrency does not support (D44); ``None`` is unknown."""
    filtered: bool | None = None
    """Whether a MERGE filters the target explicitly (D45)."""
    passed_over: tuple[tuple[str, str], ...] = ()
    """Parts of its conditions that do not narrow what it reads, and why."""
    assumed: tuple[str, ...] = ()
    """Tables that it reads and that are assumed to be other tables, not views of this one."""
    metadata: MetadataChange | None = None
    """The metadata that it commits in any case; ``None`` if it may commit none."""
    protocol: ProtocolChange | None = None
    domains: tuple[str, ...] = ()
    data_change: bool = True
    """Whether its files have other rows than those that it removes."""
    zorder: bool = False
    repartitions: bool = False
    """Whether it changes the partition columns."""
    sure: bool = True
    """Whether the statement makes this commit in any case."""
    momentary: bool = False
    """Whether the transaction commits as soon as it begins, so that hardly anything commits in between."""
    automatic: str = ""
    """Why Delta makes this commit by itself, after that of the statement; empty for the statement's own."""

    @property
    def most_metadata(self) -> MetadataChange | None:
        """The metadata that it may commit."""
        if self.evolves:
            return replace(self.metadata or MetadataChange(), schema="other")
        return self.metadata or (MetadataChange(schema="other", tag="identity") if self.draws else None)


def footprint(statement: ParsedStatement, subject: StatementTable, *, documented: bool = False) -> Footprint:
    """The footprint of a statement on this table.

    With ``documented``, only what Databricks documents counts as registered. Raises ``StatementError`` if the statement
    writes another table, or is none that changes rows.
    """
    check_table(statement, subject)
    if statement.action is not None:
        raise StatementError(f"{statement.verb} is not a statement that changes rows")
    try:
        return _footprint(statement, subject, documented=documented)
    except RecursionError:
        raise StatementError("the conditions of the statement are nested too deeply to be read") from None


def check_table(statement: ParsedStatement, subject: StatementTable) -> None:
    """Raises ``StatementError`` if a statement writes another table."""
    # COMMENT ON COLUMN names the table and a column of any depth together.
    most = len(statement.parts) if statement.of_column else 1
    names = [statement.parts[: len(statement.parts) - cut] for cut in range(int(statement.of_column), most)]
    if not any(subject.written_as(name) for name in names):
        written = ".".join(part.sql(Databricks) for part in statement.table.parts)
        fix = f"both statements name the table as {subject.name.text}"
        raise StatementError(f"the statement writes {written}, not {subject.name.text}", fix)


def _footprint(statement: ParsedStatement, subject: StatementTable, *, documented: bool) -> Footprint:
    node, queries = statement.node, Queries(statement.node, statement.table, subject)
    scope = subject.scope(statement.parts, statement.alias, alone=not isinstance(node, exp.Merge))
    match node:
        case exp.Merge():
            found = _Merge(node, scope, queries).footprint(documented=documented)
        case exp.Insert():
            found = _Insert(node, scope, queries).footprint(Kind.APPEND if statement.matches else statement.kind)
            if statement.matches:
                # Which rows it replaces depends on those of its query.
                found = replace(found, kind=Kind.REPLACE_WHERE, reads=UNKNOWN, rewrites=UNKNOWN, surely_reads=False)
        case _:
            found = _rewrite(statement, scope, subject)
    own = queries.own_reads()
    regions = [each.region for each in own]
    reads = either([*regions, *([found.reads] if found.reads else [])]) if own else found.reads
    sure = (found.reads is not None and found.surely_reads) or any(each.certain for each in own)
    if own and found.kind is Kind.APPEND:
        found = replace(found, kind=Kind.READING_INSERT, plain=None)
    return replace(found, reads=reads, surely_reads=sure, evolves=statement.evolves, assumed=queries.others())


def _rewrite(statement: ParsedStatement, scope: Scope, subject: StatementTable) -> Footprint:
    """The footprint of UPDATE, DELETE and TRUNCATE."""
    node = statement.node
    condition = _condition(node)
    reading, rows = registered_by_rewrite(condition, scope), admits(condition, scope)
    adds = rows
    if isinstance(node, exp.Update):
        assigned = _assigned(node.expressions, scope, subject, {})
        adds = either([rows, _moved(rows, assigned)]) if assigned else rows
    elif all(scope.places(part) <= {ConditionPlace.PARTITION} for part in conjuncts(condition)):
        adds = NOWHERE  # a DELETE on partition columns only removes whole files
    return Footprint(
        kind=statement.kind,
        reads=reading.region,
        rewrites=rows,
        adds=adds,
        surely_adds=isinstance(node, exp.Update),
        plain=_plain([condition], scope),
        passed_over=reading.passed_over,
    )


def _condition(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.TruncateTable):
        static = partition_of(node)
        return exp.and_(*static, copy=True) if static else None
    found = node.args.get("where")
    return found.this if found else None


@dataclass(frozen=True, slots=True)
class _Merge:
    node: exp.Merge
    scope: Scope
    queries: Queries

    def footprint(self, *, documented: bool) -> Footprint:
        on, whens = self.node.args.get("on"), list(self.node.args["whens"].expressions)
        by_source = any(when.args.get("source") for when in whens)
        matched = [when for when in whens if when.args.get("matched")]
        inserts = [when for when in whens if not when.args.get("matched") and not when.args.get("source")]
        only_matched = bool(matched) and not inserts and not by_source
        reading = RegisteredRead(ANYWHERE) if by_source else registered_by_scan([on], self.scope)
        rows = self._matching(on)
        if only_matched:
            clauses = ANYWHERE if documented else self._of_clauses(matched)
            reading = replace(reading, region=both(reading.region, clauses))
            rows = both(rows, either([admits(when.args.get("condition"), self.scope) for when in matched]))
        rewrites = UNKNOWN if by_source else rows if matched else NOWHERE
        added = [rewrites, *(self._updated(when, rows) for when in matched), *map(self._inserted, inserts)]
        return Footprint(
            kind=Kind.MERGE,
            reads=reading.region,
            rewrites=rewrites,
            adds=either(added),
            surely_adds=not any(isinstance(when.args["then"], exp.Var) for when in whens),
            draws=bool(inserts) and self.queries.subject.identity,
            plain=_plain([on, *(when.args.get("condition") for when in whens)], self.scope),
            filtered=any(
                self.scope.places(part) <= {ConditionPlace.PARTITION, ConditionPlace.DATA} for part in conjuncts(on)
            ),
            passed_over=reading.passed_over,
        )

    def _of_clauses(self, matched: Sequence[exp.Expr]) -> Region:
        """What a MERGE with only WHEN MATCHED clauses registers of their conditions: a single predicate, so all of it
        or nothing.
        """
        alternatives = []
        for when in matched:
            parts = conjuncts(when.args.get("condition"))
            own = [part for part in parts if ConditionPlace.FOREIGN not in self.scope.places(part)]
            if not all(self.scope.places(part) <= {ConditionPlace.PARTITION} for part in own):
                return ANYWHERE
            alternatives.append(admits(exp.and_(*own, copy=True) if own else None, self.scope))
        return either(alternatives)

    def _matching(self, on: exp.Expr | None) -> Region:
        """The target rows that may match. A column that ON sets equal to a source column has the limits of that
        column.
        """
        region, limits = admits(on, self.scope), replace(self._limits(), compared=True)
        for name, source in self._equal():
            region = both(region, holding(name, limits.named(source, name), exact=False))
        return region

    def _equal(self) -> Iterator[tuple[str, str]]:
        """The partition columns that ON sets equal to a source column, each with that column."""
        for part in conjuncts(self.node.args.get("on")):
            if isinstance(part, exp.EQ):
                for mine, theirs in ((part.this, part.expression), (part.expression, part.this)):
                    if _foreign(theirs, self.scope, self._source()) and _own_partition(mine, self.scope):
                        yield mine.name.casefold(), theirs.name.casefold()

    def _source(self) -> str:
        return str(self.node.args["using"].alias_or_name.casefold())

    def _limits(self, condition: exp.Expr | None = None) -> QueryLimits:
        return QueryLimits(self.queries, self.node.args.get("using"), condition)

    def _updated(self, when: exp.Expr, rows: Region) -> Region:
        """Where rows move if a clause sets their partition columns. A column that keeps its value, because ON equates
        it with the source column, moves no row.
        """
        then, limits = when.args["then"], self._limits(when.args.get("condition"))
        if not isinstance(then, exp.Update):
            return NOWHERE
        known = {(name, name): limits.named(name, name) for name in self.scope.partitions}
        assigned = _assigned(then.expressions, self.scope, self.queries.subject, known, self._source())
        starred = any(isinstance(each, exp.Star) for each in then.expressions)
        equal = {mine for mine, theirs in self._equal() if mine == theirs and starred}
        stay = {name: kept for name in equal if (kept := self._kept(name, rows)) is not None}
        moved = {name: values.meet(stay.get(name, EVERY_VALUE)) for name, values in assigned.items()}
        return _moved(rows, moved) if moved else NOWHERE

    def _kept(self, name: str, rows: Region) -> Values | None:
        """The values of a source column, of unknown type, that equals a partition column of some rows, once it is
        stored in that column; ``None`` if they may be any. Equal is not identical: 1 equals '01', and is stored as '1'.
        """
        domain, values = self.queries.subject.domain(name), rows.column(name)
        kind = _KINDS.get(domain.type) if domain else None
        if domain is None or kind is None or values.null or values == EVERY_VALUE:
            return None
        kept = Values()
        for each in values.intervals:
            single = each.low is not None and each.low == each.high
            found = passed_on(KnownValue(kind, each.low), domain) if single else None
            if found is None or (kind == "integer" and abs(each.low or 0) > _EXACT):
                return None
            kept = kept.join(Values((Interval(*found),)))
        return kept

    def _inserted(self, when: exp.Expr) -> Region:
        then, limits = when.args["then"], self._limits(when.args.get("condition"))
        partitions = self.scope.partitions
        if isinstance(then.this, exp.Star):
            return _box({name: limits.named(name, name) for name in partitions})
        columns, given = [each.name.casefold() for each in then.this.expressions], then.expression.expressions
        if len(columns) != len(given):
            return UNKNOWN
        of_source = [each.name.casefold() for each in given if isinstance(each, exp.Column)]
        known = {(name, source): limits.named(source, name) for name in partitions for source in of_source}
        values = dict(zip(columns, given, strict=True))
        return _box(
            {
                name: _value(name, values[name], self.scope, known, self._source())
                for name in partitions
                if name in values
            }
        )


@dataclass(frozen=True, slots=True)
class _Insert:
    node: exp.Insert
    scope: Scope
    queries: Queries

    def footprint(self, kind: Kind) -> Footprint:
        static = [each for each in partition_of(self.node) if isinstance(each, exp.EQ)]
        fixed = {each.this.name.casefold(): each.expression for each in static}
        given = _box({name: _value(name, each, self.scope, {}) for name, each in fixed.items()})
        plain = Footprint(
            kind=kind,
            reads=None,
            rewrites=NOWHERE,
            adds=both(given, self._rows(frozenset(fixed))),
            surely_adds=True,
            draws=self._draws(fixed),
        )
        condition = self.node.args.get("where")
        if condition is not None:
            reading, replaced = registered_by_rewrite(condition, self.scope), admits(condition, self.scope)
            adds = both(plain.adds, self._as_stored(replaced))
            return replace(plain, reads=reading.region, rewrites=replaced, adds=adds, passed_over=reading.passed_over)
        if kind is Kind.APPEND:
            return plain
        replaced = given if fixed else ANYWHERE
        return replace(plain, reads=replaced, rewrites=replaced)

    def _draws(self, fixed: Mapping[str, exp.Expr]) -> bool:
        """Whether it may generate identity values: not if it gives a value for each of these columns."""
        identity = {field.name.casefold() for field in self.queries.subject.schema.fields if field.identity}
        if not identity or self.node.args.get("by_name"):
            return bool(identity)
        query, listed = self.node.expression, isinstance(self.node.this, exp.Schema)
        named = set(self._columns(frozenset(fixed)) or ()) if listed or isinstance(query, exp.Values) else set()
        defaults = query is None or any(
            isinstance(each, exp.Var | exp.Column) and each.name.upper() == "DEFAULT"
            for each in query.find_all(exp.Var, exp.Column)
        )
        return defaults or not identity <= named

    def _as_stored(self, region: Region) -> Region:
        """The partitions of a region's rows as stored: Delta stores an empty string in a partition column as null."""
        return either([_box({name: self._stored(name, values) for name, values in box}) for box in region.boxes])

    def _stored(self, name: str, values: Values) -> Values:
        domain = self.queries.subject.domain(name)
        empty = domain is not None and domain.type == "string" and not values.meet(_EMPTY_TEXT).empty
        return replace(values, null=True) if empty else values

    def _rows(self, fixed: frozenset[str]) -> Region:
        """The partitions of the inserted rows, ignoring columns to which PARTITION gives a value."""
        query, names = self.node.expression, self._columns(fixed)
        if isinstance(query, exp.Values):
            return either([self._row(names, row.expressions) for row in query.expressions])
        select = self.queries.query_of(query)
        if select is None:
            return ANYWHERE
        limits, by_name = QueryLimits(self.queries, select), self.node.args.get("by_name")
        found = {name: limits.named(name, name) for name in self.scope.partitions if by_name and name not in fixed}
        if names is not None and not by_name:
            places = {name: names.index(name) for name in self.scope.partitions if name in names}
            found = {name: limits.at(place, len(names), name) for name, place in places.items()}
        return self._as_stored(_box(found))

    def _row(self, names: Sequence[str] | None, row: Sequence[exp.Expr]) -> Region:
        if names is None or len(row) != len(names):
            return ANYWHERE
        values = dict(zip(names, row, strict=True))
        return _box(
            {name: _value(name, values[name], self.scope, {}) for name in self.scope.partitions if name in values}
        )

    def _columns(self, fixed: frozenset[str]) -> list[str] | None:
        """The columns that the query fills, in order; ``None`` if that is uncertain."""
        partition = partition_of(self.node)
        listed = self.node.this.expressions if isinstance(self.node.this, exp.Schema) else []
        if partition and (listed or len(partition) > len(fixed)):
            return None
        if listed:
            return [each.name.casefold() for each in listed]
        return [name for name in self.scope.columns if name not in fixed]


Known = Mapping[tuple[str, str], Values]
"""The values that a target column gets from a source column, by both folded names."""


def _assigned(
    assignments: Sequence[exp.Expr], scope: Scope, subject: StatementTable, known: Known, source: str = ""
) -> dict[str, Values]:
    """The values that an UPDATE assigns to partition columns. Delta computes a generated column again from the
    columns that are assigned, so its value is unknown.
    """
    columns = [each.this for each in assignments if isinstance(each, exp.EQ) and isinstance(each.this, exp.Column)]
    parts = [part.name for column in columns for part in column.parts]
    given: dict[str, Values] = dict.fromkeys(subject.generated_from(parts), EVERY_VALUE)
    for each in assignments:
        column = each.this if isinstance(each, exp.EQ) else None
        if isinstance(each, exp.Star):
            given |= {name: known.get((name, name), EVERY_VALUE) for name in scope.partitions}
        elif not isinstance(column, exp.Column):
            given |= dict.fromkeys(scope.partitions, EVERY_VALUE)
        elif column.name.casefold() in scope.partitions:
            name = column.name.casefold()
            given[name] = _value(name, each.expression, scope, known, source)
    return given


def _value(target: str, node: exp.Expr, scope: Scope, known: Known, source: str = "") -> Values:
    """The partition values that an expression assigns to a column. ``source`` is the alias of a MERGE's source."""
    node = node.unalias().unnest()
    domain, literal = scope.columns.get(target), literal_of(node)
    if literal is not None:
        return (stored(literal, domain) if domain else None) or EVERY_VALUE
    return known.get((target, node.name.casefold()), EVERY_VALUE) if _foreign(node, scope, source) else EVERY_VALUE


def _foreign(node: exp.Expr, scope: Scope, source: str) -> bool:
    """Whether it is a column of the source of a MERGE. With another qualifier, it may be a field of a struct."""
    if not isinstance(node, exp.Column) or len(node.parts) != 2 or node.table.casefold() != source:
        return False
    return scope.place(node) is ConditionPlace.FOREIGN


def _own_partition(node: exp.Expr, scope: Scope) -> bool:
    return isinstance(node, exp.Column) and scope.place(node) is ConditionPlace.PARTITION


def _box(values: Mapping[str, Values]) -> Region:
    region = ANYWHERE
    for name, each in values.items():
        region = both(region, holding(name, each, exact=each != EVERY_VALUE))
    return region


def _moved(rows: Region, assigned: Mapping[str, Values]) -> Region:
    """The region of rows after new values are assigned to their partition columns."""
    kept = [tuple((name, values) for name, values in box if name not in assigned) for box in rows.boxes]
    return both(either([Region((box,), rows.exact) for box in kept]), _box(assigned))


def _plain(conditions: Sequence[exp.Expr | None], scope: Scope) -> bool | None:
    """Whether row-level concurrency supports these conditions (D44): nothing nested, no subquery, nothing random."""
    given = [condition for condition in conditions if condition is not None]
    nested = any(_is_nested(column, scope) for condition in given for column in condition.find_all(exp.Column))
    random = any(condition.find(exp.Rand, exp.Randn, exp.Uuid) for condition in given)
    if nested or random or any(has_subquery(condition) for condition in given):
        return False
    return all(isinstance(node, _PLAIN) for condition in given for node in condition.walk()) or None


def _is_nested(column: exp.Column, scope: Scope) -> bool:
    """Whether a name refers to a field of a struct: ``table.column.field``, or ``column.field``."""
    before = tuple(part.name.casefold() for part in column.parts[:-1])
    return len(before) > 1 or (bool(before) and before not in scope.qualifiers and before[0] in scope.columns)
