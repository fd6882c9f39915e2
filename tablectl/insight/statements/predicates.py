"""The partitions that a condition admits, and the predicates that Delta registers as read for it (delta-3).

For each condition two regions are computed together: where it may be true and where it may be false. So NOT is sound in
three-valued logic. Whatever is not a comparison of a partition column with a literal may be both, everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType

from sqlglot import exp
from sqlglot.dialects import Databricks

from tablectl.insight.statements.disjoint_partitions import (
    ANYWHERE,
    NOT_NULL,
    NOWHERE,
    NULL,
    UNKNOWN,
    Interval,
    Region,
    Values,
    both,
    either,
    values_of,
    where,
)
from tablectl.insight.statements.literals import ColumnDomain, certain_text, compared, interval_of, literal_of, near

_OPERATORS: Mapping[type[exp.Expr], str] = MappingProxyType(
    {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
)
_TURNED = MappingProxyType({"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="})
_NEGATED = MappingProxyType({"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"})
_CONNECTED = (exp.And, exp.Or, exp.Not)
_LAST = chr(0x10FFFF)


class ConditionPlace(Enum):
    """What a column name in a statement refers to."""

    PARTITION = auto()
    DATA = auto()
    """A column of the table that is not a partition column, or a field of one."""
    FOREIGN = auto()
    """A column of another relation, such as a source."""
    UNCERTAIN = auto()


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a condition may use."""

    qualifiers: tuple[tuple[str, ...], ...]
    """Possible qualifiers of the table's columns, folded: its alias, or its name in full or in part."""
    columns: Mapping[str, ColumnDomain | None]
    """The columns of the table by folded name. A domain of ``None`` is unknown."""
    partitions: tuple[str, ...]
    """The folded names of the partition columns."""
    alone: bool = True
    """True if the table is the only relation in scope. A name that is not a column of it then cannot be resolved."""

    def place(self, column: exp.Column) -> ConditionPlace:
        """What a name refers to here. As in Spark, a qualifier takes precedence over a column with fields."""
        name, *before = [part.name.casefold() for part in reversed(column.parts)]
        qualifier = tuple(reversed(before))
        if isinstance(column.this, exp.Star):
            return ConditionPlace.UNCERTAIN
        if not qualifier or qualifier in self.qualifiers:
            if name in self.partitions:
                return ConditionPlace.PARTITION
            return ConditionPlace.DATA if name in self.columns else ConditionPlace.UNCERTAIN
        if any(qualifier[: len(each)] == each for each in self.qualifiers) or qualifier[0] in self.columns:
            return ConditionPlace.DATA
        return ConditionPlace.UNCERTAIN if self.alone else ConditionPlace.FOREIGN

    def places(self, condition: exp.Expr) -> set[ConditionPlace]:
        """What the names of a condition refer to. A subquery adds ``UNCERTAIN``."""
        found = {self.place(column) for column in condition.find_all(exp.Column)}
        return found | ({ConditionPlace.UNCERTAIN} if has_subquery(condition) else set())


@dataclass(frozen=True, slots=True)
class RegisteredRead:
    """What Delta registers for a condition."""

    region: Region
    passed_over: tuple[tuple[str, str], ...] = ()
    """Parts of the condition that narrow nothing, and why, for people."""


def has_subquery(condition: exp.Expr) -> bool:
    """Whether a condition contains a query."""
    return condition.find(exp.Query, exp.Exists) is not None


def conjuncts(condition: exp.Expr | None) -> tuple[exp.Expr, ...]:
    """The parts of a condition that AND connects."""
    if condition is None:
        return ()
    condition = condition.unnest()
    if not isinstance(condition, exp.And):
        return (condition,)
    return tuple(part for side in condition.flatten() for part in conjuncts(side))


def admits(condition: exp.Expr | None, scope: Scope) -> Region:
    """The partitions of rows for which a condition may be true; no condition is true for all rows."""
    return ANYWHERE if condition is None else _region(condition, scope, wanted=True)


def _region(node: exp.Expr, scope: Scope, *, wanted: bool) -> Region:
    """Where an expression may be true, or false if ``wanted`` is false."""
    node = node.unnest()
    match node:
        case exp.And() | exp.Or():
            sides = [_region(side, scope, wanted=wanted) for side in node.flatten()]
            return _all(sides) if isinstance(node, exp.And) is wanted else either(sides)
        case exp.Not():
            return _region(node.this, scope, wanted=not wanted)
        case exp.Boolean():
            return ANYWHERE if bool(node.this) is wanted else NOWHERE
        case exp.Null():
            return NOWHERE
    return _leaf(node, scope, wanted=wanted) or UNKNOWN


def _all(regions: Sequence[Region]) -> Region:
    met = ANYWHERE
    for region in regions:
        met = both(met, region)
    return met


def _leaf(node: exp.Expr, scope: Scope, *, wanted: bool) -> Region | None:
    """Where a comparison may be true, or false if ``wanted`` is false; ``None`` if uncertain."""
    operator = _OPERATORS.get(type(node))
    if operator:
        return _comparison(node, operator, scope, wanted=wanted)
    match node:
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return _null_safe(node, scope, wanted=wanted is isinstance(node, exp.NullSafeEQ))
        case exp.Is():
            if not _only(node, "this", "expression"):
                return None
            if isinstance(node.expression, exp.Boolean) and wanted:
                return _region(node.this, scope, wanted=bool(node.expression.this))
            inner = node.this.unnest()
            # The domain of the column does not matter for IS NULL.
            partition = isinstance(inner, exp.Column) and scope.place(inner) is ConditionPlace.PARTITION
            if not isinstance(node.expression, exp.Null) or not partition:
                return None
            return where(inner.name.casefold(), NULL if wanted else NOT_NULL)
        case exp.In():
            return _in(node, scope, wanted=wanted)
        case exp.Between():
            if not _only(node, "this", "low", "high"):
                return None
            low = exp.GTE(this=node.this, expression=node.args["low"])
            high = exp.LTE(this=node.this, expression=node.args["high"])
            sides = [_leaf(side, scope, wanted=wanted) or UNKNOWN for side in (low, high)]
            return _all(sides) if wanted else either(sides)
        case exp.Like():
            return _like(node, scope, wanted=wanted)
        case exp.Column():
            name, domain = _partition(node, scope) or ("", None)
            return where(name, near(int(wanted), domain)) if domain and domain.type == "boolean" else None
    return None


def _only(node: exp.Expr, *expected: str) -> bool:
    """Whether a node has only the expected arguments: sqlglot represents variants of an operator by further
    arguments.
    """
    return not any(value for key, value in node.args.items() if key not in expected)


def _partition(node: exp.Expr, scope: Scope) -> tuple[str, ColumnDomain] | None:
    node = node.unnest()
    if not isinstance(node, exp.Column) or scope.place(node) is not ConditionPlace.PARTITION:
        return None
    name = node.name.casefold()
    domain = scope.columns.get(name)
    return (name, domain) if domain else None


def _comparison(node: exp.Expr, operator: str, scope: Scope, *, wanted: bool) -> Region | None:
    left, right = node.this, node.expression
    column = _partition(left, scope)
    if column is None:
        column, right, operator = _partition(right, scope), left, _TURNED[operator]
    known = literal_of(right)
    if column is None or known is None or not _only(node, "this", "expression"):
        return None
    if known.kind == "null":
        return NOWHERE
    value = compared(known, column[1])
    if value is None:
        return None
    return _where(column, interval_of(operator if wanted else _NEGATED[operator], value, column[1]))


def _where(column: tuple[str, ColumnDomain], values: Values) -> Region:
    return where(column[0], values, exact=not column[1].margin)


def _null_safe(node: exp.Expr, scope: Scope, *, wanted: bool) -> Region | None:
    column = _partition(node.this, scope)
    other = literal_of(node.expression)
    if column is None:
        column, other = _partition(node.expression, scope), literal_of(node.this)
    if column is None or other is None or not _only(node, "this", "expression"):
        return None
    if other.kind == "null":
        return where(column[0], NULL if wanted else NOT_NULL)
    value = compared(other, column[1])
    if value is None:
        return None
    values = interval_of("=" if wanted else "<>", value, column[1])
    return _where(column, values if wanted else replace(values, null=True))


def _in(node: exp.In, scope: Scope, *, wanted: bool) -> Region | None:
    column = _partition(node.this, scope)
    if column is None or not node.expressions or not _only(node, "this", "expressions"):
        return None
    known = [literal_of(each) for each in node.expressions]
    if any(each is None for each in known):
        return None
    values = [compared(each, column[1]) for each in known if each and each.kind != "null"]
    if None in values:
        return None
    if not wanted and len(values) < len(known):
        return NOWHERE  # NOT IN a list with NULL is never true
    near_each = (near(value, column[1]) for value in values)
    found = values_of(interval for each in near_each for interval in each.intervals)
    if wanted:
        return _where(column, found)
    return _where(column, NOT_NULL if column[1].margin else found.complement())


def _like(node: exp.Like, scope: Scope, *, wanted: bool) -> Region | None:
    """The prefix before the first wildcard bounds the matches. A pattern without other wildcards is exactly that
    bound.
    """
    column, pattern = _partition(node.this, scope), literal_of(node.expression)
    if (
        column is None
        or column[1].type != "string"
        or pattern is None
        or not _only(node, "this", "expression", "negate")
    ):
        return None
    if pattern.kind != "text" or not certain_text(pattern.value):
        return NOWHERE if pattern.kind == "null" else None
    if node.args.get("negate"):
        wanted = not wanted
    prefix = pattern.value[: min(pattern.value.find(each) % (len(pattern.value) + 1) for each in "%_")]
    rest = pattern.value[len(prefix) :]
    matching = near(prefix, column[1]) if not rest else _beginning(prefix)
    if not rest or rest == "%":
        return where(column[0], matching if wanted else matching.complement())
    return where(column[0], matching if wanted else NOT_NULL, exact=False)


def _beginning(prefix: str) -> Values:
    """The strings with this prefix, ordered by their UTF-8 bytes, which is the order of code points."""
    if not prefix or _LAST in prefix:
        return NOT_NULL
    following = ord(prefix[-1]) + 1
    # No string contains the code points of surrogates.
    after = prefix[:-1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)
    return Values((Interval(prefix, after, high_open=True),))


def registered_by_rewrite(condition: exp.Expr | None, scope: Scope) -> RegisteredRead:
    """What UPDATE and DELETE register: parts on partition columns only, and those that other parts imply by AND and
    OR.
    """
    return _registered(conjuncts(condition), scope, lambda part: _extracted(part, scope))


def registered_by_scan(conditions: Sequence[exp.Expr | None], scope: Scope) -> RegisteredRead:
    """What MERGE registers for its ON, and a scan for its filters: parts on partition columns only, and nothing else.

    Spark may merge two alternatives that share a member into one part, so next to a mixed alternative nothing counts.
    And it may factor out of a mixed part what all its members share, so that it does narrow the read.
    """
    parts = [part for condition in conditions for part in conjuncts(condition)]
    alternatives = [part for part in parts if isinstance(part, _CONNECTED)]
    mixed = [part for part in alternatives if scope.places(part) != {ConditionPlace.PARTITION}]
    unclear = alternatives if mixed and len(alternatives) > 1 else mixed
    return _registered(parts, scope, lambda part: UNKNOWN if part in unclear else None)


def _registered(parts: Sequence[exp.Expr], scope: Scope, mixed: Callable[[exp.Expr], Region | None]) -> RegisteredRead:
    region, passed_over = ANYWHERE, []
    for part in parts:
        found = _of_part(part, scope, mixed)
        region = both(region, found)
        if found.everywhere and not isinstance(part, exp.Boolean):
            passed_over.append((part.sql(Databricks), why_passed_over(part, scope)))
    return RegisteredRead(region, tuple(passed_over))


def _of_part(part: exp.Expr, scope: Scope, mixed: Callable[[exp.Expr], Region | None]) -> Region:
    places = scope.places(part)
    if ConditionPlace.UNCERTAIN in places:
        return UNKNOWN
    given = mixed(part)
    if places <= {ConditionPlace.PARTITION}:
        return given if given is UNKNOWN else _region(part, scope, wanted=True)
    return given or ANYWHERE


def _extracted(part: exp.Expr, scope: Scope) -> Region:
    """Like ``DeltaTableUtils.extractMetadataPredicates``: through AND and OR, never into anything else."""
    part = part.unnest()
    places = scope.places(part)
    if places <= {ConditionPlace.PARTITION}:
        return _region(part, scope, wanted=True)
    if isinstance(part, exp.And | exp.Or):
        sides = [_extracted(side, scope) for side in part.flatten()]
        return _all(sides) if isinstance(part, exp.And) else either(sides)
    # Spark may rewrite a condition on both kinds of columns before Delta sees it.
    return ANYWHERE if ConditionPlace.PARTITION not in places and ConditionPlace.UNCERTAIN not in places else UNKNOWN


def why_passed_over(part: exp.Expr, scope: Scope) -> str:
    """Why a part of a condition narrows nothing."""
    if has_subquery(part):
        return "a subquery"
    places = scope.places(part)
    if ConditionPlace.FOREIGN in places:
        return "compares with the source"
    if ConditionPlace.DATA in places:
        names = sorted({each.name for each in part.find_all(exp.Column) if scope.place(each) is ConditionPlace.DATA})
        return (
            f"{names[0]} is not a partition column"
            if len(names) == 1
            else f"{', '.join(names)} are not partition columns"
        )
    for node in part.find_all(*_OPERATORS, exp.In):
        others = node.expressions if isinstance(node, exp.In) else [node.expression]
        column = _partition(node.this, scope)
        known = [literal_of(other) for other in others]
        if column and None not in known and None in [compared(each, column[1]) for each in known if each is not None]:
            return f"{column[0]} is a {column[1].type.upper()}: write the value as one"
    return "not a comparison with a literal"
