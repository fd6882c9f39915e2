"""What the queries of a statement read of the table, and the limits of the columns that they return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.dialects import Databricks

from tablectl.insight.statements.disjoint_partitions import EVERY_VALUE, UNKNOWN, Interval, Region, Values
from tablectl.insight.statements.literals import ColumnDomain, literal_of, passed_on, stored
from tablectl.insight.statements.predicates import Scope, admits, registered_by_scan
from tablectl.insight.statements.target import StatementTable

_TRANSPARENT = (exp.From, exp.Join, exp.Select, exp.Subquery, exp.CTE, exp.With, exp.SetOperation)
_TABLE = frozenset({"this", "db", "catalog", "alias"})
_TIME_TRAVEL = ("version", "when")
_ROWS = frozenset({"expressions", "from_", "where", "distinct", "limit", "order", "hint", "with_", "sort", "cluster"})


@dataclass(frozen=True, slots=True)
class OwnRead:
    """What one query on the written table registers."""

    region: Region
    certain: bool
    """Whether it registers anything whatever the optimizer does."""


@dataclass(frozen=True, slots=True)
class Queries:
    """The queries within one statement."""

    root: exp.Expr
    written: exp.Table
    """The table that the statement writes."""
    subject: StatementTable

    def own_reads(self) -> tuple[OwnRead, ...]:
        """What queries on the written table itself register. A query of an earlier version registers nothing."""
        own = (table for table in self._tables() if self._own(table))
        return tuple(self._scan(table) for table in own if not any(table.args.get(each) for each in _TIME_TRAVEL))

    def others(self) -> tuple[str, ...]:
        """The other tables that it reads, as named in the statement."""
        names = (table for table in self._tables() if not self._own(table))
        return tuple(dict.fromkeys(".".join(part.sql(Databricks) for part in table.parts) for table in names))

    def query_of(self, source: exp.Expr | None) -> exp.Select | None:
        """The query of a source: the source itself, a subquery, or a common table expression by name."""
        if isinstance(source, exp.Table):
            source = self._named_queries().get(source.name.casefold()) if self._is_query(source) else None
        if isinstance(source, exp.Subquery):
            source = None if _renamed(source) else source.this
        return source if isinstance(source, exp.Select) else None

    def scope_of(self, source: exp.Expr | None) -> Scope | None:
        """The scope of a query's FROM, if that is certainly the written table itself, and not a common table
        expression of its name, whose columns may have another order and other types.
        """
        if not isinstance(source, exp.Table) or not self._own(source) or not _as_it_is(source):
            return None
        if len(source.parts) == 1 and source.name.casefold() in self._named_queries():
            return None
        return self.subject.scope([part.name for part in source.parts], source.alias)

    def _named_queries(self) -> Mapping[str, exp.Expr]:
        """Common table expressions by name. Those with a duplicate name, or with new column names, are left out as
        unknown.
        """
        found: dict[str, exp.Expr] = {}
        for cte in self.root.find_all(exp.CTE):
            name = cte.alias.casefold()
            found[name] = exp.Null() if _renamed(cte) or name in found else cte.this
        return found

    def _tables(self) -> Iterator[exp.Table]:
        return (each for each in self.root.find_all(exp.Table) if each is not self.written and not self._is_query(each))

    def _own(self, table: exp.Table) -> bool:
        parts = [part.name for part in table.parts]
        again = [part.name for part in self.written.parts]
        named = self.subject.named(parts) or [each.casefold() for each in parts] == [each.casefold() for each in again]
        return not self._is_query(table) and named

    def _is_query(self, table: exp.Table) -> bool:
        """Whether a name refers to a query. If it may also be the table's own name, which of the two it means depends
        on the place, so it counts as the table.
        """
        name = table.name.casefold()
        inside = any(isinstance(each, exp.CTE) and each.alias.casefold() == name for each in _between(table, self.root))
        query = len(table.parts) == 1 and name in self._named_queries() and not inside
        return query and not self.subject.named([table.name])

    def _scan(self, table: exp.Table) -> OwnRead:
        """What a query registers: its WHERE, and the ON of inner joins if it has no other joins.

        Only for the outermost query is that all: the optimizer narrows an inner one by the conditions around it, and
        leaves out a common table expression that is not used. It also derives conditions from joins and HAVING, and
        Delta from columns of which a partition column is computed.
        """
        above = list(_between(table, self.root))
        certain = not any(isinstance(each, exp.CTE) or each.args.get("limit") for each in above)
        select = table.parent.parent if isinstance(table.parent, exp.From | exp.Join) else None
        if not isinstance(select, exp.Select) or not _as_it_is(table) or not _inner(select):
            return OwnRead(UNKNOWN, certain=False)
        if not all(_in_from(each) for each in above):
            return OwnRead(UNKNOWN, certain=False)
        parts = [part.name for part in table.parts]
        scope = self.subject.scope(parts, table.alias, alone=not select.args.get("joins"))
        where, joins = select.args.get("where"), select.args.get("joins") or []
        conditions = [where.this if where else None, *(join.args.get("on") for join in joins)]
        region = registered_by_scan(conditions, scope).region
        outermost = all(isinstance(each, exp.From | exp.Join | exp.SetOperation) or each is select for each in above)
        columns = (column.name for each in conditions if each is not None for column in each.find_all(exp.Column))
        derived = bool(joins) or bool(select.args.get("having")) or bool(self.subject.generated_from(columns))
        return OwnRead(region if outermost and not derived else replace(region, exact=False), certain=certain)


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The possible values of a source's columns, according to its WHERE and the condition of a MERGE clause."""

    queries: Queries
    source: exp.Expr | None
    condition: exp.Expr | None = None
    compared: bool = False
    """Whether the values are compared with those of the table, and not stored in it."""

    def named(self, column: str, target: str) -> Values:
        """The values that a source column, given by folded name, may give to a target column."""
        domain = self.queries.subject.domain(target)
        if domain is None:
            return EVERY_VALUE
        query = self._query()
        found = self._of_query(query, column, target, domain) if query is not None else EVERY_VALUE
        return found.meet(self._of_clause(column, domain))

    def at(self, index: int, count: int, target: str) -> Values:
        """The values that column ``index`` of the query's ``count`` columns may give to a target column."""
        query, domain = self._query(), self.queries.subject.domain(target)
        if domain is None or query is None or not _simple(query):
            return EVERY_VALUE
        projections = query.expressions
        if len(projections) == 1 and isinstance(projections[0], exp.Star):
            # Only of the table itself is the order of the columns known. The statement may list its own in another.
            columns = [field.name.casefold() for field in self.queries.subject.schema.fields]
            own = self.queries.scope_of(_from(query)) is not None and len(columns) == count
            return self._of_query(query, columns[index], target, domain) if own else EVERY_VALUE
        if len(projections) != count or _starred(projections):
            return EVERY_VALUE
        return self._of_expression(query, projections[index], target, domain)

    def _query(self) -> exp.Select | None:
        return self.source if isinstance(self.source, exp.Select) else self.queries.query_of(self.source)

    def _of_query(self, query: exp.Select, column: str, target: str, domain: ColumnDomain) -> Values:
        if not _simple(query):
            return EVERY_VALUE
        only = query.expressions[0] if len(query.expressions) == 1 else None
        if isinstance(only, exp.Star) and not any(only.args.values()):
            return self._of_column(query, column, target, domain)
        named = [each for each in query.expressions if each.alias_or_name.casefold() == column]
        if len(named) != 1 or _starred(query.expressions):
            return EVERY_VALUE
        return self._of_expression(query, named[0], target, domain)

    def _of_expression(self, query: exp.Select, node: exp.Expr, target: str, domain: ColumnDomain) -> Values:
        node = node.unalias().unnest()
        known = literal_of(node)
        if known is not None:
            # A number equals many texts: 1 equals '1' and '01'.
            uncertain = self.compared and domain.type == "string" and known.kind != "text"
            return EVERY_VALUE if uncertain else stored(known, domain) or EVERY_VALUE
        if _is_column(node, node.name.casefold(), _relation(query)):
            return self._of_column(query, node.name.casefold(), target, domain)
        return EVERY_VALUE

    def _of_column(self, query: exp.Select, column: str, target: str, domain: ColumnDomain) -> Values:
        clause, source = query.args.get("where"), _from(query)
        condition = clause.this if clause else None
        scope = self.queries.scope_of(source)
        if scope is not None and column == target and column in scope.partitions:
            return admits(condition, scope).column(column)
        found = EVERY_VALUE if condition is None else _loosely(condition, column, domain, _relation(query))
        inner = self.queries.query_of(source)
        return found if inner is None else found.meet(self._of_query(inner, column, target, domain))

    def _of_clause(self, column: str, domain: ColumnDomain) -> Values:
        if self.condition is None or not isinstance(self.source, exp.Table | exp.Subquery):
            return EVERY_VALUE
        relation = _Relation(self.source.alias_or_name.casefold(), alone=False)
        return _loosely(self.condition, column, domain, relation)


@dataclass(frozen=True, slots=True)
class _Relation:
    """The one relation that a column may belong to. Another qualifier is a struct, whose field has any value."""

    name: str
    """Its alias or name, folded; empty if it has none."""
    alone: bool = True
    """Whether a name without a qualifier is a column of it."""


def _relation(query: exp.Select) -> _Relation:
    source = _from(query)
    return _Relation(source.alias_or_name.casefold() if source is not None else "")


def _loosely(node: exp.Expr, column: str, domain: ColumnDomain, qualifier: _Relation) -> Values:
    """The limits that a condition puts on a column of unknown type, once its value is stored in the target's column.

    The types between which Spark compares and casts differ in precision, so every bound counts as inclusive.
    """
    node = node.unnest()
    match node:
        case exp.And():
            met = EVERY_VALUE
            for side in node.flatten():
                met = met.meet(_loosely(side, column, domain, qualifier))
            return met
        case exp.Or():
            return _joined(_loosely(side, column, domain, qualifier) for side in node.flatten())
        case exp.In() if _is_column(node.this, column, qualifier) and _only(node, "this", "expressions"):
            return _joined(_points(each, domain) for each in node.expressions)
        case exp.Between() if _is_column(node.this, column, qualifier) and _only(node, "this", "low", "high"):
            return _upwards(node.args["low"], domain).meet(_downwards(node.args["high"], domain))
        case exp.EQ() | exp.NullSafeEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
            turned = not _is_column(node.this, column, qualifier)
            if turned and not _is_column(node.expression, column, qualifier):
                return EVERY_VALUE
            value = node.this if turned else node.expression
            if isinstance(node, exp.EQ | exp.NullSafeEQ):
                return _points(value, domain)
            upwards = isinstance(node, exp.GT | exp.GTE) is not turned
            return _upwards(value, domain) if upwards else _downwards(value, domain)
    return EVERY_VALUE


def _is_column(node: exp.Expr, column: str, qualifier: _Relation) -> bool:
    node = node.unnest()
    if not isinstance(node, exp.Column) or node.name.casefold() != column or len(node.parts) > 2:
        return False
    named = len(node.parts) > 1
    return node.table.casefold() == qualifier.name if named else qualifier.alone


def _only(node: exp.Expr, *expected: str) -> bool:
    return not any(value for key, value in node.args.items() if key not in expected)


def _points(node: exp.Expr, domain: ColumnDomain) -> Values:
    known = literal_of(node)
    found = passed_on(known, domain) if known and known.kind != "null" else None
    return Values((Interval(*found),)) if found else EVERY_VALUE


def _upwards(node: exp.Expr, domain: ColumnDomain) -> Values:
    bounds = _bounds(node, domain)
    return Values((Interval(bounds.low, None),)) if bounds else EVERY_VALUE


def _downwards(node: exp.Expr, domain: ColumnDomain) -> Values:
    bounds = _bounds(node, domain)
    return Values((Interval(None, bounds.high),)) if bounds else EVERY_VALUE


def _bounds(node: exp.Expr, domain: ColumnDomain) -> Interval | None:
    """The bounds of a range. A string column is compared with a string as such, whatever type it is then stored as."""
    known, points = literal_of(node), _points(node, domain)
    return None if known is None or known.kind == "text" or points == EVERY_VALUE else points.intervals[0]


def _joined(values: Iterator[Values]) -> Values:
    joined = Values()
    for each in values:
        joined = joined.join(each)
    return joined


def _between(node: exp.Expr, root: exp.Expr) -> Iterator[exp.Expr]:
    """The ancestors of a node up to a root."""
    above = node.parent
    while above is not None and above is not root:
        yield above
        above = above.parent


def _in_from(node: exp.Expr) -> bool:
    """Whether a part of a query supplies rows: a subquery among its columns or conditions does not."""
    beside = isinstance(node, exp.Subquery) and isinstance(node.parent, exp.Select)
    return isinstance(node, _TRANSPARENT) and not beside


def _from(query: exp.Select) -> exp.Expr | None:
    found = query.args.get("from_")
    return found.this if found else None


def _starred(projections: Sequence[exp.Expr]) -> bool:
    return any(each.find(exp.Star) is not None for each in projections)


def _simple(query: exp.Select) -> bool:
    """Whether the rows of a query are a subset of the rows of the one relation in its FROM."""
    source = _from(query)
    beside = source is not None and any(source.args.get(each) for each in ("joins", "laterals", "pivots"))
    return not beside and not any(value for key, value in query.args.items() if key not in _ROWS)


def _inner(query: exp.Select) -> bool:
    """Whether WHERE is pushed down unchanged to every table in FROM."""
    joins = query.args.get("joins") or []
    plain = all(not join.side and join.kind in {"", "INNER", "CROSS"} and not join.method for join in joins)
    return plain and not query.args.get("laterals") and not query.args.get("pivots")


def _as_it_is(table: exp.Table) -> bool:
    """Whether a table is read at its current version, with its own columns."""
    return not _renamed(table) and not any(value for key, value in table.args.items() if key not in _TABLE)


def _renamed(source: exp.Expr) -> bool:
    """Whether an alias renames the columns."""
    alias = source.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.columns)
