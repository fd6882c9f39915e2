"""The fields of a policy, in the language of ``field_types``: those of its attributes, and the list of all.

Under ``properties``, each key is checked against Delta's list, and each value against the key's type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from types import MappingProxyType
from typing import Any

from tablectl.attributes.policy import VALUE_TYPES, declarable_keys, is_foreign, why_refused
from tablectl.attributes.value_types import FieldType, NamedValues, ValueType
from tablectl.delta.dialects import DIALECTS
from tablectl.delta.names import column_text, fold_column, parse_column
from tablectl.delta.properties import canonical_key, find_anywhere, find_known, how_to_declare
from tablectl.policies.field_types import (
    TEXT,
    WITH_VARIABLE,
    FieldName,
    Schema,
    Section,
    Text,
    Word,
    YamlField,
    flag,
    whole,
)
from tablectl.policies.option_fields import LOCATION, LOCK, OPTIONS, OWNER, PROFILES, TABLE_WINDOW, TAGS, UPKEEP
from tablectl.policies.spelling_hints import cut, nearest, shown
from tablectl.policies.value_reader import GivenValue, ValueReader
from tablectl.policies.variables import read_column, why_no_name
from tablectl.policies.yaml_nodes import ListNode, MapNode, Node, Scalar, SourceFile

_EXAMPLE = "`owner.team: payments`, or `null` to unset it"
_VALUE: Schema = {"type": [*TEXT["type"], "null"]}
EXTRA = "another engine"
"""Stands for the engine of a property that a pattern of ``engine.extra_properties`` admits."""
_ENGINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")
_MEANT = "`delta.parquet.vorder.enabled: {value: true, engine: fabric}`"
_OF_AN_ENGINE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["value", "engine"],
    "properties": {"value": dict(_VALUE), "engine": {"type": "string"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesField(YamlField):
    """A map of property keys to texts, or to null."""

    @property
    def takes(self) -> str:  # noqa: D102
        return "a map of keys to texts"

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:
        """The properties, each with its position."""
        if isinstance(node, MapNode):
            return read_properties(node, reading)
        self.refuse(node, name.of(self), reading)
        return None

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        del variables
        declarable = sorted({key for dialect in DIALECTS for key in declarable_keys(dialect.name)})
        return {
            "type": "object",
            "properties": {key: _key_schema(key) for key in declarable},
            "additionalProperties": {"anyOf": [dict(_VALUE), dict(_OF_AN_ENGINE)]},
            "examples": [{"delta.checkpointRetentionDuration": "interval 60 days", "owner.team": "payments"}],
        }


def _key_schema(key: str) -> Schema:
    dialects = [each.name for each in DIALECTS if find_known(key, each.name)]
    only = f" Only in the {dialects[0]} dialect." if len(dialects) == 1 else ""
    known = find_anywhere(key)
    return {**_VALUE, "description": f"{known.description if known else ''}{only}"}


def read_properties(node: MapNode, reading: ValueReader) -> dict[str, GivenValue]:
    """The properties by their canonical keys. ``None`` means that the key is to be unset.

    Keys and values are not changed, except for variables in values.
    """
    given: dict[str, GivenValue] = {}
    for name, (source, inner) in node.entries.items():
        engine = _engine_of(name, inner, reading)
        if engine is None or not _check_key(name, source, reading, engine):
            continue
        key = canonical_key(name, reading.dialect)
        if key in given:
            message = f"{shown(name)} is declared twice: first on line {given[key].source.line}"
            reading.report(source, message, "Delta folds the case of its own keys: keep one")
            continue
        plain = inner.entries.get("value", (source, inner))[1] if engine and isinstance(inner, MapNode) else inner
        value = _read_value(name, source, plain, key, reading.of_value("properties", key, plain))
        if value is not None:
            given[key] = replace(value, engine=engine) if is_foreign(key, reading.dialect) else value
    return given


def _engine_of(name: str, node: Node, reading: ValueReader) -> str | None:
    """The engine that reads a property, as the entry or a pattern of `engine.extra_properties` says; empty if neither
    does, ``None`` after a problem was reported.
    """
    if not isinstance(node, MapNode) or "engine" not in node.entries:
        extra = is_foreign(name, reading.dialect) and any(
            fnmatchcase(name.lower(), each.lower()) for each in reading.extra_properties
        )
        return EXTRA if extra else ""
    if node.entries.keys() != {"value", "engine"}:
        reading.report(node.source, f"{shown(name)} takes a map with `value` and `engine`", f"for example {_MEANT}")
        return None
    source, engine = node.entries["engine"]
    text = reading.text(engine, f"the engine of {shown(name)}", _MEANT)
    if text is not None and _ENGINE.fullmatch(text) is None:
        reading.report(source, f"{shown(text)} is not the name of an engine", f"for example {_MEANT}")
        return None
    return text


def refused_hint(key: str, hint: str, dialect: str) -> str:
    """The hint for a refused key: the catalogue's own hint, otherwise the most similar known key."""
    if hint or not key.lower().startswith("delta."):
        return hint
    near = nearest(key, declarable_keys(dialect))
    return f"did you mean `{near}`?" if near else f"check its spelling; {how_to_declare(key)}"


def _check_key(name: str, source: SourceFile, reading: ValueReader, engine: str) -> bool:
    refused = why_refused(name, reading.dialect)
    if refused is not None and not (engine and is_foreign(name, reading.dialect)):
        reason, hint = refused
        hint = refused_hint(name, hint, reading.dialect) if reading.hints else hint
        named = shown(name) + reason.removeprefix(name) if reason.startswith(f"{name} ") else reason
        reading.report(source, named, hint)
        return False
    unusable = why_no_name(name)
    if unusable:
        reading.report(source, f"{shown(name)} cannot be a property key: {unusable}")
    return not unusable


def _read_value(name: str, source: SourceFile, node: Node, key: str, reading: ValueReader) -> GivenValue | None:
    if isinstance(node, Scalar) and node.is_null:
        return reading.given(None, source)
    if isinstance(node, MapNode):
        inner = next(iter(node.entries), "team")
        hint = f"write whole keys, such as {shown(f'{name}.{inner}')}"
        reading.report(node.source, f"the property {shown(name)} takes text or null, not a map", hint)
        return None
    text = reading.text(node, f"the property {shown(name)}", _EXAMPLE)
    if text is None:
        return None
    known = find_known(key, reading.dialect)
    if known is not None and key.lower().startswith("delta."):
        try:
            known.parse(text)
        except ValueError as error:
            reading.report(node.source, f"{shown(text)} is not a value of {key}: it {cut(str(error))}")
            return None
    return reading.given(text, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsField(YamlField):
    """A list of columns, or one of several words. Read as a tuple of column names in their shortest spelling."""

    name: str
    words: Word | None
    most: int | None
    top_level: bool
    """Whether columns cannot be fields of a struct."""

    @property
    def takes(self) -> str:  # noqa: D102
        words = self.words.words if self.words else ()
        return " or ".join(("a list of columns", *(f"`{word}`" for word in words)))

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        name = name.of(self)
        match node:
            case ListNode():
                return self._columns(node, name, reading)
            case Scalar() if self.words:
                return self._word(node, self.words, name, reading)
            case _:
                self.refuse(node, name, reading)
                return None

    def _word(self, scalar: Scalar, words: Word, name: FieldName, reading: ValueReader) -> str | None:
        text = reading.expand(scalar)
        if text is None or text in words.words:
            return text
        if scalar.tag == "str" and text.casefold() not in words.words:
            short = len(text) <= 60 and text.isprintable()
            hint = f"did you mean [{text}]?" if short else name.hint
            reading.report(scalar.source, f"{name} takes {self.takes}, and {shown(text)} is neither", hint)
        else:
            words.refuse_word(text, scalar, name, reading)
        return None

    def _columns(self, node: ListNode, name: FieldName, reading: ValueReader) -> tuple[str, ...] | None:
        columns = [self._column(item, name, reading) for item in node.items]
        known = tuple((text, item.source) for text, item in zip(columns, node.items, strict=True) if text is not None)
        if not columns:
            none = f"`{self.name}: {self.words.words[0]}` declares that there are none" if self.words else ""
            reading.report(node.source, f"{name} lists no column", none or "name a column")
            return None
        if len(columns) > (self.most or len(columns)):
            reading.report(node.source, f"{name} takes at most {self.most} columns, and here are {len(columns)}")
            return None
        fine = self._check(known, name, reading) and len(known) == len(columns)
        return tuple(text for text, _ in known) if fine else None

    def _column(self, item: Node, name: FieldName, reading: ValueReader) -> str | None:
        scalar = reading.scalar(item, f"a column of {name}", f"`{name.example}`")
        if scalar is None:
            return None
        return reading.name(scalar.text, scalar.source, partial(read_column, variables=reading.variables))

    def _check(self, columns: tuple[tuple[str, SourceFile], ...], name: FieldName, reading: ValueReader) -> bool:
        fine, seen = True, set()
        for text, source in columns:
            path = parse_column(text)
            if fold_column(path) in seen:
                reading.report(source, f"the column {column_text(path)} occurs twice in {name}")
                fine = False
            seen.add(fold_column(path))
            if len(path) > 1 and self.top_level:
                hint = 'a column with a dot in its name goes in backticks: "`a.b`"'
                reading.report(source, f"{name} takes top-level columns, and {shown(text)} is a field in one", hint)
                fine = False
        return fine

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        most = {"maxItems": self.most} if self.most else {}
        listed: Schema = {
            "type": "array",
            "items": {**TEXT, "minLength": 1},
            "minItems": 1,
            **most,
            "uniqueItems": True,
            "examples": [["customer_id", "order_date"]],
        }
        words = [{"enum": [*self.words.words]}] if self.words else []
        return {"anyOf": [listed, *words, *([dict(WITH_VARIABLE)] if variables else [])]}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedValuesField(YamlField):
    """A map of names to texts, each checked with its name."""

    name: str
    named: NamedValues

    @property
    def takes(self) -> str:  # noqa: D102
        return f"a map of {self.named.takes}"

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        name = name.of(self)
        if not isinstance(node, MapNode) or not node.entries:
            self.refuse(node, name, reading, f"put them under {name}")
            return None
        read: dict[str, str] = {}
        folded: dict[str, SourceFile] = {}
        for key, (source, inner) in node.entries.items():
            text = self._text(key, source, inner, name.key(key), reading)
            first = folded.setdefault(key.lower(), source)
            if first is not source:
                message = f"{name.key(key)} is declared twice: first on line {first.line}"
                reading.report(source, message, "keep one of them")
            elif text is not None:
                read[key] = text
        return read

    def _text(self, key: str, source: SourceFile, node: Node, name: FieldName, reading: ValueReader) -> str | None:
        if isinstance(node, Scalar) and node.is_null:
            words = " or ".join(f"`{each}`" for each in self.named.words)
            reading.report(source, f"{name} has no value", f"write {words}" if words else "")
            return None
        text = reading.text(node, str(name), "")
        if text is None:
            return None
        reason, hint = self.named.why_not(key, text)
        if not reason:
            return text
        if self.named.names and key not in self.named.names and (near := nearest(key, self.named.names)):
            hint = f"did you mean `{near}`?"
        reading.report(source, cut(reason) if reason.isprintable() else shown(reason), hint)
        return None

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        del variables
        of: Schema = {"enum": [*self.named.words]} if self.named.names else dict(TEXT)
        known = dict.fromkeys(self.named.names, of)
        rest = {"properties": known, "additionalProperties": False} if known else {"additionalProperties": of}
        return {"type": "object", "minProperties": 1, **rest}


def field_of(value_type: ValueType) -> YamlField:
    """The field of an attribute."""
    name, about = value_type.name, value_type.description
    example = value_type.example.strip("`").removeprefix(f"{name}: ")
    word = Word(words=value_type.words, description=about, example=example)
    if value_type.keyed:
        return PropertiesField(description=about, example=example)
    if value_type.named:
        return NamedValuesField(name=name, named=value_type.named, description=about, example=example)
    if value_type.fields:
        keys = {each.name: _text_of(each) for each in value_type.fields}
        return Section(keys=keys, named=True, description=about, example=example)
    if value_type.columns:
        return ColumnsField(
            name=name,
            words=word if value_type.words else None,
            most=value_type.most_columns,
            top_level=value_type.top_level,
            description=about,
            example=example,
        )
    return word


def _text_of(inner: FieldType) -> Text:
    def parse(text: str) -> str:
        why = inner.why_not(text)
        if why:
            raise ValueError(why)
        return text

    return Text(
        parse=parse,
        description=inner.description,
        example=inner.example,
        editor={"examples": [*inner.words, inner.example]},
    )


ATTRIBUTE_FIELDS: Mapping[str, YamlField] = MappingProxyType(
    {name: field_of(value_type) for name, value_type in VALUE_TYPES.items()}
)
"""The fields of the attributes, in the order of plans."""
INHERITED: Mapping[str, YamlField] = MappingProxyType(
    {
        **ATTRIBUTE_FIELDS,
        **OPTIONS,
        "upkeep": UPKEEP,
        "window": TABLE_WINDOW,
        "owner": OWNER,
        "locked": LOCK,
        "tags": TAGS,
        "profiles": PROFILES,
    }
)
"""The fields of ``defaults``."""
OF_A_PATTERN: Mapping[str, YamlField] = MappingProxyType(
    {
        "may_be_empty": flag("Whether the pattern may match no table; otherwise that is an error."),
        "min_tables": whole(1, 1_000_000, "The fewest tables that the pattern matches; fewer are an error."),
    }
)
"""What a pattern alone has: how many tables it matches. A catalog lists only what the login may see."""
OF_A_TABLE: Mapping[str, YamlField] = MappingProxyType({**INHERITED, **OF_A_PATTERN, "location": LOCATION})
"""The fields of a table and of a pattern. ``entries`` refuses what only the other one has."""


def read_field(key: str, source: SourceFile, node: Node, reading: ValueReader) -> dict[str, GivenValue]:
    """The values under one key of a policy, by the key or, for a map, ``<key>.<key in the map>``."""
    field = OF_A_TABLE[key]
    given: Callable[[Any, SourceFile], GivenValue] = GivenValue
    if key in ATTRIBUTE_FIELDS:
        if not isinstance(field, PropertiesField):  # each property has a reader of its own
            reading = reading.of_value(key, "", node)
        if isinstance(node, Scalar) and node.is_null:
            hint = f"leave it out: absent means not managed; `unmanaged: [{key}]` cancels an inherited value"
            reading.report(source, f"`{key}` has no value", hint)
            return {}
        given = reading.given
    elif key != "location":  # names hide variables themselves
        reading = reading.about(key, node)
    value = field.read(node, FieldName((key,)), reading)
    if value is None:
        return {}
    if not isinstance(value, dict):
        return {key: given(value, source)}
    assert isinstance(node, MapNode)
    return {
        f"{key}.{name}": each if isinstance(each, GivenValue) else given(each, node.entries[name][0])
        for name, each in value.items()
    }
