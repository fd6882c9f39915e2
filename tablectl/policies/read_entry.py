"""Reads what one map of a policy file declares: pydantic reads its values, and each keeps the position of its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import ValidationError

from tablectl.attributes.policy import VALUE_TYPES
from tablectl.delta.properties import canonical_key
from tablectl.model.errors import Problem
from tablectl.policies.policy_fields import ATTRIBUTES, ENTRY, DeclaredProperty
from tablectl.policies.value_kinds import FileSchema, inlined
from tablectl.policies.value_reader import GivenValue, UnreadableError, ValueReader
from tablectl.policies.wrong_values import MOST_PROBLEMS, FileFacts, Keys, Schema, problems_of
from tablectl.policies.yaml_nodes import ListNode, MapNode, Node, Scalar, SourceFile, plain

_PROPERTIES = next(name for name, each in VALUE_TYPES.items() if each.keyed)
_OPEN = frozenset({*(name for name, each in VALUE_TYPES.items() if each.mapped), "clients"})
"""Maps without required keys: what is wrong with one of their keys leaves the others."""


def read_entry(node: MapNode, keys: Iterable[str], reading: ValueReader) -> dict[str, GivenValue]:
    """The values under some keys of a map, by the key or, for a map, ``<key>.<key in the map>``. Problems are reported,
    and wrong values left out.
    """
    values: dict[str, Any] = {}
    for key in keys:
        source, inner = node.entries[key]
        if key in ATTRIBUTES and isinstance(inner, Scalar) and inner.is_null:
            hint = f"leave it out: absent means not managed; `unmanaged: [{key}]` cancels an inherited value"
            _reader((key,), inner, reading).report(source, f"`{key}` has no value", hint)
            continue
        try:
            values[key] = _value(key, inner, reading)
        except UnreadableError:
            continue
    made = _validated(values, node, reading)
    given: dict[str, GivenValue] = {}
    for key in values:
        if key not in made.model_fields_set:
            continue
        source, inner = node.entries[key]
        value = getattr(made, key)
        if key == _PROPERTIES:
            given |= _properties(value, inner, reading)
            continue
        # Only an attribute can be masked. Names hide their variables themselves.
        about = _reader((key,), inner, reading)
        tell = about.given if key in ATTRIBUTES else GivenValue
        if isinstance(inner, MapNode) and not isinstance(value, str):
            parts = value if isinstance(value, Mapping) else vars(value)
            given |= {f"{key}.{name}": tell(parts[name], place) for name, (place, _) in inner.entries.items()}
        else:
            given[key] = tell(value, source)
    return given


def _properties(found: Mapping[str, DeclaredProperty], node: Node, reading: ValueReader) -> dict[str, GivenValue]:
    given: dict[str, GivenValue] = {}
    for key, each in found.items():
        assert isinstance(node, MapNode)  # otherwise there is a problem
        source, inner = node.entries[each.name]
        value = _reader((_PROPERTIES, each.name), inner, reading).given(each.value, source)
        given[f"{_PROPERTIES}.{key}"] = replace(value, engine=each.engine) if each.engine else value
    return given


def _reader(keys: Keys, node: Node, reading: ValueReader) -> ValueReader:
    """The reader for a value, which knows whether its errors may contain it."""
    key = keys[0]
    if key == _PROPERTIES:
        name = canonical_key(keys[1], reading.dialect) if len(keys) > 1 else ""
        return reading.of_value(key, name, node) if name else reading
    if key in ATTRIBUTES:
        return reading.of_value(key, "", node)
    return reading if key == "location" else reading.about(key, node)


def _value(key: str, node: Node, reading: ValueReader) -> Any:
    """The plain value under a key with its variables expanded. Raises ``UnreadableError``."""
    if key in {"location", "streams", "unmanaged"}:
        return plain(node)
    if key in VALUE_TYPES and VALUE_TYPES[key].columns and isinstance(node, ListNode):
        return plain(node)
    if reading.simple:
        return plain(node)
    if not isinstance(node, MapNode) or key not in _OPEN:
        return _reader((key,), node, reading).expanded(node)
    values, unreadable = {}, False
    for name, (_, inner) in node.entries.items():
        try:
            values[name] = _reader((key, name), inner, reading).expanded(inner)
        except UnreadableError:
            unreadable = True
    if unreadable and not values:
        raise UnreadableError
    return values


def _validated(values: dict[str, Any], node: MapNode, reading: ValueReader) -> Any:
    """The values as the model reads them, without wrong ones, which are reported. A wrong item is left out of its list,
    so that the others are checked, too.
    """
    numbers: dict[str, list[int]] = {}
    while True:
        try:
            return ENTRY.model_validate(values, context=reading)
        except ValidationError as error:
            reading.problems.extend(problems_of(error, _facts(node, reading, numbers)))
            wrong: dict[str, set[int]] = {}
            for each in error.errors(include_url=False, include_context=False, include_input=False):
                key, *inner = each["loc"]
                of_list = inner and isinstance(inner[0], int) and isinstance(values[str(key)], list)
                wrong.setdefault(str(key), set()).add(int(inner[0]) if of_list else -1)
            values = {
                key: [item for at, item in enumerate(each) if at not in wrong[key]] if key in wrong else each
                for key, each in values.items()
                if not _spoiled(each, wrong.get(key, set()))
            }
            for key in wrong.keys() & values.keys():
                before = numbers.get(key, [*range(len(values[key]) + len(wrong[key]))])
                numbers[key] = [number for at, number in enumerate(before) if at not in wrong[key]]


def _spoiled(value: object, wrong: set[int]) -> bool:
    """Whether nothing is left to check of a value without its wrong items; -1 stands for the whole of it."""
    return -1 in wrong or len(wrong) >= MOST_PROBLEMS or (isinstance(value, list) and 0 < len(value) == len(wrong))


def _facts(node: MapNode, reading: ValueReader, numbers: Mapping[str, list[int]]) -> FileFacts:
    """What messages about an entry need. ``numbers`` are those of the items that are left of a list."""

    def found(keys: Keys) -> tuple[SourceFile, Node]:
        if len(keys) > 1 and keys[0] in numbers and keys[1].isdigit():
            keys = (keys[0], str(numbers[keys[0]][int(keys[1]) - 1] + 1), *keys[2:])
        return _found(node, keys)

    def tell(keys: Keys, place: SourceFile, message: str, hint: str) -> Problem:
        depth = 2 if keys[0] == _PROPERTIES and len(keys) > 1 else 1
        return _reader(keys, _found(node, keys[:depth])[1], reading).problem(place, message, hint)

    return FileFacts(
        schema=entry_schema,
        hints=reading.hints,
        key_place=lambda keys: found(keys)[0],
        place=lambda keys: found(keys)[1].source,
        tell=tell,
    )


def _found(node: Node, keys: Keys) -> tuple[SourceFile, Node]:
    """The position of a key and the node of its value, or those of the innermost key above that the file has."""
    place = node.source
    for key in keys:
        if isinstance(node, MapNode) and key in node.entries:
            place, node = node.entries[key]
        elif isinstance(node, ListNode) and key.isdigit() and 0 < int(key) <= len(node.items):
            node = node.items[int(key) - 1]
            place = node.source
    return place, node


@cache
def entry_schema() -> Schema:
    """Every key that an entry can have as JSON Schema."""
    return inlined(ENTRY.model_json_schema(schema_generator=FileSchema))
