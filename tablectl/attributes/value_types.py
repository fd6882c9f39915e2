"""The types of attribute values: one of several words, a list of columns, or a map of keys to texts. For lists of
columns also their spelling, comparison, the facts about them that a plan keeps, and whether Delta collects statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import TypeVar

from tablectl.delta import keys
from tablectl.delta.dialects import EVERY_DIALECT
from tablectl.delta.names import ColumnPath, NameSyntaxError, column_text, fold_column, parse_column
from tablectl.delta.properties import parse_columns, written_text
from tablectl.delta.schema import Field, Schema
from tablectl.model.plan import ColumnFact, Reason, Value

_Value = TypeVar("_Value")
Declared = str | tuple[str, ...] | Mapping[str, str | None]
"""The value of an attribute in a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldType:
    """One value of an attribute that is a map with fixed keys."""

    name: str
    key: str
    """The table property that stores it."""
    description: str
    parse: Callable[[str], object]
    """Raises ``ValueError`` for a text that is not a value."""
    words: tuple[str, ...]
    """Values besides those that ``parse`` takes."""
    example: str

    def why_not(self, text: str) -> str:
        """Why a text is not a value, as a clause; empty if it is one."""
        try:
            if text not in self.words:
                self.parse(text)
        except ValueError as error:
            return str(error)
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedValues:
    """A map whose keys are names, such as those of features or constraints."""

    takes: str
    """Its keys and values, for messages: ``features to `supported` or `dropped```."""
    example: str
    why_not: Callable[[str, str], tuple[str, str]]
    """Why a policy cannot declare a value under a name, and what to do instead; both empty if it can."""
    names: tuple[str, ...] = ()
    """The known names; empty if users choose them."""
    words: tuple[str, ...] = ()
    """Values besides texts that users choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    """The values that a policy may declare for one attribute."""

    name: str
    description: str
    words: tuple[str, ...] = ()
    columns: bool = False
    keyed: bool = False
    """Whether the value is a map whose keys are properties."""
    fields: tuple[FieldType, ...] = ()
    """The keys of a map with fixed keys."""
    named: NamedValues | None = None
    """Set if the value is a map whose keys are names."""
    most_columns: int | None = None
    """The maximum number of columns, if Delta limits it."""
    top_level: bool = False
    """Whether columns cannot be fields of a struct."""
    dialects: frozenset[str] = EVERY_DIALECT
    """The dialects that have the attribute."""

    @property
    def mapped(self) -> bool:
        """Whether the value is a map, of which each key is a value of its own."""
        return self.keyed or bool(self.fields) or self.named is not None

    def written(self, key: str, value: _Value) -> _Value | str:
        """A value of a key, with the text that every client reads."""
        stored = next((each.key for each in self.fields if each.name == key), key)
        return written_text(stored, value) if key and isinstance(value, str) and not self.named else value

    @property
    def example(self) -> str:
        """A valid line, for hints."""
        if self.keyed:
            return f"`{self.name}: {{owner.team: payments}}`"
        if self.named:
            return f"`{self.name}: {self.named.example}`"
        if self.fields:
            return f"`{self.name}: {{{self.fields[0].name}: {self.fields[0].example}}}`"
        return f"`{self.name}: {'[customer_id, order_date]' if self.columns else self.words[0]}`"

    def admits(self, value: object) -> bool:
        """Whether a policy may declare this value. Checks only the value's form, not its meaning."""
        match value:
            case str():
                return value in self.words
            case tuple():
                few = len(value) <= (self.most_columns or len(value))
                return self.columns and bool(value) and few and all(isinstance(each, str) and each for each in value)
            case Mapping() if self.named:
                return bool(value) and all(
                    isinstance(each, str) and not self.named.why_not(key, each)[0] for key, each in value.items()
                )
            case Mapping() if self.fields:
                fields = {each.name: each for each in self.fields}
                return bool(value) and all(
                    key in fields and isinstance(each, str) and not fields[key].why_not(each)
                    for key, each in value.items()
                )
            case Mapping():
                texts = all(each is None or isinstance(each, str) for each in value.values())
                return self.keyed and texts and all(isinstance(key, str) for key in value)
            case _:
                return False


def folded(value: Value) -> Value:
    """A form in which lists that Delta does not distinguish are equal: it ignores the case of column names. Texts stay
    as they are.
    """
    if not isinstance(value, tuple):
        return value
    try:
        return tuple(column_text(fold_column(parse_column(text))) for text in value)
    except NameSyntaxError:
        return value


def resolved(declared: Value, schema: Schema) -> tuple[Value, tuple[ColumnFact, ...]]:
    """The declared columns in the table's spelling, with the facts about those that the table has. Any other value is
    returned as it is.
    """
    if not isinstance(declared, tuple):
        return declared, ()
    spelled, facts = [], []
    for text in declared:
        found = schema.find(parse_column(text))
        spelled.append(column_text(found[0]) if found else text)
        if found:
            facts.append(ColumnFact(column=spelled[-1], type=found[1].type))
    return tuple(spelled), tuple(facts)


_COMPARED = 200
"""How many names of a schema are compared with a misspelt one."""
_SHOWN = 8


def no_column(text: str, schema: Schema) -> Reason:
    """Why a name that the table does not have is refused, with the name that is probably meant."""
    every = {column_text(path).casefold(): column_text(path) for path, _ in islice(schema.every_field(), _COMPARED)}
    near = get_close_matches(text.casefold()[:_COMPARED], every, n=1)
    names = [field.name for field in islice(schema.fields, _SHOWN)]
    listed = f"name a column of the table ({', '.join(names)}{', …' if len(schema.fields) > _SHOWN else ''})"
    fix = f"did you mean {every[near[0]]}?" if near else listed
    return Reason(f"the table has no column {text}", fix, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA")


STATS_KEYS = (keys.INDEXED_COLUMNS, keys.STATISTICS_COLUMNS)
_DEFAULT_INDEXED = 32
_NO_COLUMNS: frozenset[ColumnPath] = frozenset()
_Parsed = TypeVar("_Parsed")
_TYPES = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz", "string"}
)


def has_order(field: Field) -> bool:
    """Whether a column is of a type with a minimum and a maximum, by which scans can skip files."""
    return field.type in _TYPES or field.type.startswith(("decimal", "string", "char", "varchar"))


def has_statistics(path: ColumnPath, schema: Schema, property_of: Callable[[str], str | None]) -> bool:
    """Whether Delta collects statistics for a leaf column, given the table's properties.

    ``delta.dataSkippingStatsColumns`` names columns or structs and takes precedence over
    ``delta.dataSkippingNumIndexedCols``, which counts leaves in schema order. Partition columns do not count
    (delta-1.4).
    """
    named = property_of(STATS_KEYS[1])
    if named is not None:
        return names_statistics(path, named)
    limit = _parsed(int, property_of(STATS_KEYS[0]) or "", _DEFAULT_INDEXED)
    if limit < 0:
        return True
    leaves = (leaf for leaf, _ in schema.leaves())
    return fold_column(path) in {fold_column(leaf) for leaf in islice(leaves, limit)}


def names_statistics(path: ColumnPath, named: str) -> bool:
    """Whether a list such as ``delta.dataSkippingStatsColumns`` names a leaf column, or a struct that contains it."""
    folded = fold_column(path)
    return any(folded[: len(column)] == column for column in _parsed(parse_columns, named, _NO_COLUMNS))


def _parsed(parse: Callable[[str], _Parsed], text: str, otherwise: _Parsed) -> _Parsed:
    try:
        return parse(text)
    except ValueError:
        return otherwise
