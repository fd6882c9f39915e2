"""Parses the two maps of attributes in a policy file: ``defaults`` and the entry of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from tablectl.attributes.policy import OWNED, VALUE_TYPES
from tablectl.delta.properties import canonical_key, find_known
from tablectl.frozen import frozen
from tablectl.policies.policy_fields import INHERITED, OF_A_PATTERN, OF_A_TABLE, read_field
from tablectl.policies.precedence import Declared
from tablectl.policies.property_values import refused_hint
from tablectl.policies.suggestions import did_you_mean, shown
from tablectl.policies.value_reader import GivenValue, ValueReader
from tablectl.policies.yaml_nodes import Entry, ListNode, MapNode, Node, Scalar, SourceFile, kind_of

_INHERITED = tuple(name for name in INHERITED if name not in {"tags", "profiles"})
"""The keys whose inherited value ``unmanaged`` can cancel. An empty list replaces inherited tags and profiles."""
_NOT_A_PATTERN = dict.fromkeys(OF_A_PATTERN, "it belongs to a pattern, and says how many tables it matches")
_TABLE_ONLY: Mapping[str, str] = MappingProxyType(
    {
        **_NOT_A_PATTERN,
        "location": "a location belongs to one table",
        "unmanaged": "defaults inherit nothing: leave out what is not managed",
    }
)
_OF_A_PATTERN: Mapping[str, str] = MappingProxyType({"location": "a location belongs to one table, not to a pattern"})
_OF_A_PROFILE: Mapping[str, str] = MappingProxyType(
    {
        **_NOT_A_PATTERN,
        "location": "a location belongs to one table",
        "profiles": "a profile attaches no other: a table attaches both",
    }
)


@frozen
class Cancelled:
    """One name in ``unmanaged``, as written in the file."""

    text: str
    source: SourceFile


@frozen
class AttributeEntries:
    """The declarations of ``defaults`` or of one entry of ``tables``."""

    declared: Declared = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    """The names that occur, including those with invalid values."""
    unmanaged: Mapping[str, Cancelled] = field(default_factory=dict)
    """By attribute name or ``properties.<key>``."""
    may_be_empty: bool = False
    """Whether a pattern may match no table."""
    min_tables: int = 1
    """The fewest tables that a pattern matches."""


def read_defaults(node: Node, reading: ValueReader) -> AttributeEntries:
    """Parses the attributes and tags of ``defaults``."""
    if not isinstance(node, MapNode):
        hint = "for example `defaults: {isolation: Serializable}`"
        reading.report(node.source, f"`defaults` takes a map of attributes, not {kind_of(node)}", hint)
        return AttributeEntries()
    return AttributeEntries(_read_entries(node, reading, tuple(INHERITED), _TABLE_ONLY), _names(node, reading))


def read_profile(node: Node, reading: ValueReader) -> AttributeEntries:
    """Parses one profile. An empty one is valid."""
    if isinstance(node, Scalar) and node.is_null:
        return AttributeEntries()
    if not isinstance(node, MapNode):
        hint = f"for example {next(iter(VALUE_TYPES.values())).example}"
        reading.report(node.source, f"a profile takes a map of attributes, not {kind_of(node)}", hint)
        return AttributeEntries()
    known = (*(name for name in INHERITED if name != "profiles"), "unmanaged")
    return _read_map(node, reading, known, _OF_A_PROFILE)


def read_block(node: Node, reading: ValueReader, *, pattern: bool = False) -> AttributeEntries:
    """Parses the entry of a table or pattern. An empty entry is valid: the inherited values apply."""
    match node:
        case Scalar() if node.is_null:
            return AttributeEntries()
        case MapNode():
            known = (*INHERITED, "unmanaged", *(OF_A_PATTERN if pattern else ("location",)))
            block = _read_map(node, reading, known, _OF_A_PATTERN if pattern else _NOT_A_PATTERN)
            # They say nothing about a table, so no table inherits them.
            of_tables = {key: given for key, given in block.declared.items() if key not in OF_A_PATTERN}
            counts: dict[str, Any] = {key: block.declared[key].value for key in OF_A_PATTERN if key in block.declared}
            return replace(block, declared=of_tables, **counts)
        case _:
            hint = f"for example {next(iter(VALUE_TYPES.values())).example}"
            reading.report(node.source, f"a table takes a map of attributes, not {kind_of(node)}", hint)
            return AttributeEntries()


def _read_map(
    node: MapNode, reading: ValueReader, known: tuple[str, ...], elsewhere: Mapping[str, str]
) -> AttributeEntries:
    declared = _read_entries(node, reading, known, elsewhere)
    named, entry = _names(node, reading), node.find("unmanaged")
    return AttributeEntries(declared, named, _read_unmanaged(entry, named, reading) if entry else {})


def _read_entries(
    node: MapNode, reading: ValueReader, known: tuple[str, ...], elsewhere: Mapping[str, str]
) -> dict[str, GivenValue]:
    declared: dict[str, GivenValue] = {}
    for entry in node.entries:
        if entry.key not in known:
            reading.refuse(entry, (), known, {**_misplaced(entry.key, reading), **elsewhere})
        elif entry.key in OF_A_TABLE:  # `unmanaged` is read with all names of the entry
            declared.update(read_field(entry, reading))
    return declared


def _misplaced(key: str, reading: ValueReader) -> dict[str, str]:
    if key.lower() in OWNED:
        return {key: f"declare `{OWNED[key.lower()]}:` instead"}
    if find_known(key, reading.dialect) or key.lower().startswith("delta."):
        return {key: "table properties go under `properties:`"}
    return {}


def _texts(entry: Entry, example: str, reading: ValueReader) -> list[tuple[str, SourceFile]] | None:
    if not isinstance(entry.value, ListNode):
        message = f"`{entry.key}` takes a list, not {kind_of(entry.value)}"
        reading.report(entry.value.source, message, f"for example {example}")
        return None
    scalars = [reading.scalar(item, f"`{entry.key}`", example) for item in entry.value.items]
    return [(scalar.text, scalar.source) for scalar in scalars if scalar is not None]


def _names(node: MapNode, reading: ValueReader) -> frozenset[str]:
    keyed = [entry for entry in node.entries if entry.key in VALUE_TYPES and VALUE_TYPES[entry.key].mapped]
    inner = {
        f"{entry.key}.{canonical_key(each.key, reading.dialect) if VALUE_TYPES[entry.key].keyed else each.key}"
        for entry in keyed
        if isinstance(entry.value, MapNode)
        for each in entry.value.entries
    }
    return frozenset(inner | {entry.key for entry in node.entries})


def _read_unmanaged(entry: Entry, named: frozenset[str], reading: ValueReader) -> dict[str, Cancelled]:
    cancelled: dict[str, Cancelled] = {}
    for text, source in _texts(entry, "`unmanaged: [isolation]`", reading) or ():
        name = text if text in _INHERITED else f"properties.{canonical_key(text, reading.dialect)}"
        if name in named:
            hint = "remove it from `unmanaged`, or remove its declaration"
            reading.report(source, f"{shown(text)} is declared by this table and cannot be unmanaged as well", hint)
        cancelled.setdefault(name, Cancelled(text, source))
    return cancelled


def check_unmanaged(block: AttributeEntries, inherited: frozenset[str], reading: ValueReader) -> None:
    """Reports names in ``unmanaged`` that are neither an attribute nor a property that Delta knows or the table can
    inherit.
    """
    for name, cancelled in block.unmanaged.items():
        known = cancelled.text.lower().startswith("delta.") and find_known(cancelled.text, reading.dialect)
        if name not in _INHERITED and name not in inherited and name not in block.named and not known:
            known_names = inherited if reading.hints else frozenset[str]()
            message, hint = _why_not_inherited(cancelled.text, known_names, reading.dialect)
            reading.report(cancelled.source, message, hint)


def _why_not_inherited(text: str, inherited: frozenset[str], dialect: str) -> tuple[str, str]:
    if text.lower() in OWNED:
        return f"{shown(text)} has an attribute of its own", f"write {OWNED[text.lower()]}"
    if text.lower().startswith("delta."):
        return f"{shown(text)} is not known to Delta", refused_hint(text, "", dialect)
    keys = sorted(key.removeprefix("properties.") for key in inherited if key.startswith("properties."))
    hint = did_you_mean(text, (*_INHERITED, *keys))
    return f"{shown(text)} is no attribute and no inherited property", hint
