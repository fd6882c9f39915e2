"""The field ``properties``. Checks each key against Delta's list and each value against the key's type."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from tablectl.attributes.policy import declarable_keys, is_foreign, why_refused
from tablectl.delta.dialects import DIALECTS
from tablectl.delta.properties import canonical_key, find_anywhere, find_known, how_to_declare
from tablectl.policies.fields import TEXT, FieldName, Schema, YamlField
from tablectl.policies.identifiers import why_unusable
from tablectl.policies.suggestions import cut, nearest, shown
from tablectl.policies.value_reader import GivenValue, ValueReader
from tablectl.policies.yaml_nodes import MapNode, Node, Scalar, SourceFile
from tablectl.support.frozen import frozen

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


@frozen(kw_only=True)
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
    unusable = why_unusable(name)
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
