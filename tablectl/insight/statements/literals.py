"""SQL literals as values of a column's domain, as Spark compares and stores them.

Everything uncertain is ``None``: values that depend on a session's settings (except the time zone, for which there is a
margin), on rounding, or on how leniently Spark parses a string. Sources: Spark's type coercion with and without ANSI
mode.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from sqlglot import exp

from tablectl.delta.names import quote_text
from tablectl.delta.schema import Field
from tablectl.insight.statements.disjoint_partitions import NOT_NULL, Interval, Value, Values

Kind = Literal["text", "integer", "decimal", "double", "boolean", "date", "timestamp", "timestamp_ntz", "null"]

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})\Z")
_DECIMAL = re.compile(r"[0-9]{1,18}\.[0-9]{1,18}\Z")
_DOUBLE = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?[eE][+-]?[0-9]{1,2}\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?Z?\Z")
_WORD = re.compile(r"[A-Za-z][A-Za-z _-]*[A-Za-z]\Z")
_NUMBERS = frozenset({"byte", "short", "integer", "long"})
_EXACT_IN_DOUBLE = 2**53
_EXACT_IN_FLOAT = 2**24
_MOST_DIGITS = 38
_ZONES_APART = timedelta(hours=36) // timedelta(microseconds=1)
"""How far two session time zones may be apart, in microseconds: that of the literal and that of the partition value,
which is a string without a time zone. Each is read in its session's zone."""
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CASTS: Mapping[exp.DType, Kind] = MappingProxyType(
    {
        exp.DType.DATE: "date",
        exp.DType.TIMESTAMP: "timestamp",
        exp.DType.TIMESTAMPTZ: "timestamp",
        exp.DType.TIMESTAMPLTZ: "timestamp",
        exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
        exp.DType.TINYINT: "integer",
        exp.DType.SMALLINT: "integer",
        exp.DType.INT: "integer",
        exp.DType.BIGINT: "integer",
        exp.DType.DOUBLE: "double",
    }
)
_SIZES: Mapping[exp.DType, int] = MappingProxyType(
    {
        exp.DType.TINYINT: 7,
        exp.DType.SMALLINT: 15,
        exp.DType.INT: 31,
    }
)


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A literal: its kind and its value (string, ``int``, ``Decimal``, ``float``, ``bool``, days or microseconds)."""

    kind: Kind
    value: Value


@dataclass(frozen=True, slots=True)
class ColumnDomain:
    """The values of a column. Days and microseconds count from 1970; booleans are numbers."""

    type: str
    """Delta's type name: ``string``, ``long``, ``decimal(10,2)``."""

    @property
    def discrete(self) -> bool:
        """Whether there are no values between a value and the next one."""
        return self.type in _NUMBERS or self.type in {"date", "boolean"}

    @property
    def margin(self) -> int:
        """By how much a comparison may be off. With a margin, equality is imprecise, and inequality carries no
        information.
        """
        return _ZONES_APART if self.type == "timestamp" else 0


def domain_of(field: Field) -> ColumnDomain | None:
    """The domain of a column; ``None`` if its order is not known here (CHAR, collations, binary, nested types)."""
    simple = {"string", "boolean", "date", "timestamp", "timestamp_ntz", "float", "double", *_NUMBERS}
    known = field.type in simple or field.type.startswith("decimal(")
    return ColumnDomain(field.type) if known and field.bytewise else None


def literal_of(node: exp.Expr) -> KnownValue | None:
    """The literal that an expression consists of; ``None`` if it is not a literal, or if its value is uncertain."""
    node = node.unnest()
    match node:
        case exp.Null():
            return KnownValue("null", None)
        case exp.Boolean():
            return KnownValue("boolean", bool(node.this))
        case exp.Literal():
            return KnownValue("text", node.this) if node.is_string else _number(node.this)
        case exp.Neg():
            inner = literal_of(node.this)
            signed = inner is not None and inner.kind in {"integer", "decimal", "double"}
            return KnownValue(inner.kind, -inner.value) if inner and signed else None
        case exp.TsOrDsToDate():
            only_text = not any(value for key, value in node.args.items() if key != "this")
            inner = literal_of(node.this) if only_text else None
            return _read("date", inner.value) if inner and inner.kind == "text" else None
        case exp.Cast():
            return _cast(node)
    return None


def _number(text: str) -> KnownValue | None:
    if _INTEGER.match(text):
        return KnownValue("integer", int(text))
    if _DECIMAL.match(text):
        return KnownValue("decimal", Decimal(text))
    return KnownValue("double", float(text)) if _DOUBLE.match(text) else None


def _cast(node: exp.Cast) -> KnownValue | None:
    to = node.args["to"]
    inner = literal_of(node.this)
    kind = _CASTS.get(to.this) if isinstance(to, exp.DataType) and not to.expressions else None
    extra = any(value for key, value in node.args.items() if key not in {"this", "to"} and value)
    if inner is None or kind is None or extra:
        return None
    if inner.kind == "null":
        return inner
    if kind == "double":
        return KnownValue(kind, float(inner.value)) if _fits_double(inner) else None
    if kind == "integer":
        known = inner
        bits = _SIZES.get(to.this, 63)
        if known.kind == "text" and _INTEGER.match(known.value):
            known = KnownValue("integer", int(known.value))
        return known if known.kind == "integer" and abs(known.value) < 2**bits else None
    if inner.kind == "text":
        return _read(kind, inner.value)
    return inner if inner.kind == kind else None


def _fits_double(known: KnownValue) -> bool:
    if known.kind == "integer":
        return bool(abs(known.value) <= _EXACT_IN_DOUBLE)
    return known.kind in {"decimal", "double"}


def _read(kind: Kind, text: str) -> KnownValue | None:
    """Parse a string as a date or timestamp if it has the one format that all versions of Spark parse alike."""
    try:
        if kind == "date" and _DATE.match(text):
            return KnownValue(kind, (date.fromisoformat(text) - _EPOCH.date()).days)
        if kind in {"timestamp", "timestamp_ntz"} and _TIMESTAMP.match(text):
            zoned = text.endswith("Z")
            if zoned and kind == "timestamp_ntz":
                return None
            moment = datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC)
            return KnownValue(kind, (moment - _EPOCH) // timedelta(microseconds=1))
    except ValueError:
        return None
    return None


def compared(known: KnownValue, domain: ColumnDomain) -> Value | None:
    """The value with which a column of this domain is compared; ``None`` if uncertain. Not for null."""
    kind, value = known.kind, known.value
    match domain.type:
        case "string":
            return value if kind == "text" and certain_text(value) else None
        case "boolean":
            return int(value) if kind == "boolean" else None
        case "date" | "timestamp" | "timestamp_ntz":
            if known.kind == "text":
                read = _read(domain.type, known.value)
                return read.value if read else None
            if known.kind == domain.type:
                return known.value
            if known.kind == "date" and domain.type == "timestamp":
                return known.value * 86_400_000_000
            return None
        case "double" | "float":
            most = _EXACT_IN_DOUBLE if domain.type == "double" else _EXACT_IN_FLOAT
            certain = abs(value) <= most if kind == "integer" else kind in {"decimal", "double"}
            return float(value) if certain else None
        case "byte" | "short" | "integer" | "long":
            if kind == "text":
                # Spark parses the string as a number of the column's type, unless the number is too large.
                fits = _INTEGER.match(value) and abs(int(value)) < 2**31 and domain.type in {"integer", "long"}
                return int(value) if fits and value != "-0" else None
            return value if kind in {"integer", "decimal"} else None
        case _:
            # Spark compares in a common type, and rounds if that type would have more than 38 digits
            precision, scale = decimal_size(domain)
            if known.kind == "integer":
                whole, after = 20, 0
            elif known.kind == "decimal":
                whole, after = len(str(int(known.value))), -int(known.value.as_tuple().exponent)
            else:
                return None
            fits = max(whole, precision - scale) + max(after, scale) <= _MOST_DIGITS
            return Decimal(known.value) if fits else None


def decimal_size(domain: ColumnDomain) -> tuple[int, int]:
    """Precision and scale of a decimal column."""
    precision, _, scale = domain.type.removeprefix("decimal(").removesuffix(")").partition(",")
    return int(precision), int(scale or 0)


def certain_text(text: str) -> bool:
    """Whether a quoted string has the same value in all versions and settings of Spark.

    A quote inside it may end it, a backslash may or may not escape, and ``${`` starts a variable.
    """
    return not any(each in text for each in ("\\", "'", '"', "${"))


def stored(known: KnownValue, domain: ColumnDomain) -> Values | None:
    """The partition values under which a row with this literal in the column is stored; ``None`` if uncertain."""
    kind, value = known.kind, known.value
    if kind == "null":
        return Values(null=True)
    if domain.type == "string":
        if kind == "integer":
            return one_value(str(value))
        if kind != "text" or not certain_text(value):
            return None
        # Delta stores an empty string in a partition column as null, and so Hive's name for null.
        return one_value(value) if value and value != _HIVE_NULL else Values(null=True)
    if domain.type.startswith("decimal("):
        precision, scale = decimal_size(domain)
        fits = kind in {"integer", "decimal"} and -int(Decimal(value).as_tuple().exponent) <= scale
        return one_value(Decimal(value)) if fits and abs(value) < 10 ** (precision - scale) else None
    if domain.type in _NUMBERS:
        return one_value(value) if kind == "integer" else None
    if domain.type == "float":
        certain = kind in {"integer", "decimal", "double"} and abs(value) < 1e30
        return one_value(struct.unpack("f", struct.pack("f", value))[0]) if certain else None
    found = compared(known, domain)
    return None if found is None else near(found, domain)


def one_value(value: Value) -> Values:
    """The set of one value."""
    return Values((Interval(value, value),))


def near(value: Value, domain: ColumnDomain) -> Values:
    """The set of a value, widened by the domain's margin."""
    return Values((Interval(value - domain.margin, value + domain.margin),)) if domain.margin else one_value(value)


def passed_on(known: KnownValue, domain: ColumnDomain) -> tuple[Value, Value] | None:
    """The lowest and highest value that a row may store if its source column, of unknown type, equals this literal.

    The source may have any type that Spark compares with the literal and stores in the column.
    """
    if domain.type == "string":
        # Only a string or a CHAR, which is padded with blanks, equals a word that no other type parses.
        readable = {"true", "false", "yes", "no", "inf", "nan", "infinity", "now", "today", "tomorrow", "yesterday"}
        word = known.kind == "text" and _WORD.match(known.value) and known.value.casefold() not in readable | {"epoch"}
        return (known.value, f"{known.value}!") if word else None
    if known.kind in ({"date", "text"} if domain.type == "date" else {"integer"} if domain.type in _NUMBERS else ()):
        found = compared(known, domain)
        return None if found is None else (found, found)
    return None


def shown(value: Value, domain: ColumnDomain) -> str:
    """A value as SQL."""
    match domain.type:
        case "string":
            return quote_text(value)
        case "boolean":
            return "TRUE" if value else "FALSE"
        case "date":
            return f"DATE '{(_EPOCH + timedelta(days=value)).date().isoformat()}'"
        case "timestamp" | "timestamp_ntz":
            moment = (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=None)
            return f"{domain.type.upper()} '{moment.isoformat(' ')}'"
    # Spark takes digits with an exponent for a double, which is less precise than a decimal.
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def shown_values(column: str, values: Values, domain: ColumnDomain) -> str:
    """A set of values of a column, as an SQL condition on the column."""
    gaps = values.complement().intervals
    if len(values.intervals) > 1 and all(_single(each) for each in gaps):
        parts = [_listed(column, ("<>", "NOT IN"), gaps, domain)]
    else:
        parts = [_shown_interval(column, each, domain) for each in values.intervals if not _single(each)]
        singles = [each for each in values.intervals if _single(each)]
        parts += [_listed(column, ("=", "IN"), singles, domain)] if singles else []
    parts += [f"{column} IS NULL"] if values.null else []
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def _single(each: Interval) -> bool:
    return each.low is not None and each.low == each.high


def _listed(column: str, operators: tuple[str, str], singles: Sequence[Interval], domain: ColumnDomain) -> str:
    texts = [shown(each.low, domain) for each in singles]
    return f"{column} {operators[0]} {texts[0]}" if len(texts) == 1 else f"{column} {operators[1]} ({', '.join(texts)})"


def _shown_interval(column: str, each: Interval, domain: ColumnDomain) -> str:
    low = "" if each.low is None else f"{column} {'>' if each.low_open else '>='} {shown(each.low, domain)}"
    high = "" if each.high is None else f"{column} {'<' if each.high_open else '<='} {shown(each.high, domain)}"
    return " AND ".join(part for part in (low, high) if part) or f"{column} IS NOT NULL"


def interval_of(operator: str, value: Value, domain: ColumnDomain) -> Values:
    """The values of a column that may satisfy a comparison with a value. ``operator`` is one of ``= <> < <= > >=``."""
    margin = domain.margin
    if operator == "=":
        return near(value, domain)
    if operator == "<>":
        return NOT_NULL if margin else one_value(value).complement()
    upwards, opened = operator in {">", ">="}, operator in {"<", ">"} and not margin
    if margin:
        value = value - margin if upwards else value + margin
    elif opened and domain.discrete and value == int(value):
        value, opened = value + 1 if upwards else value - 1, False
    bound = Interval(value, None, low_open=opened) if upwards else Interval(None, value, high_open=opened)
    return Values((bound,))
