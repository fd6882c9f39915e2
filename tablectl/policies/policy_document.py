"""Parses policy files into ``Specs``: one ``TableSpec`` per table. Reports all errors in all files at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

from tablectl.attributes.policy import OWNED, VALUE_TYPES
from tablectl.delta.names import TableName
from tablectl.delta.properties import canonical_key, find_known
from tablectl.model.errors import InputError
from tablectl.policies.declared_tables import Specs, check_patterns, find_repeated_patterns, find_repeats, resolve
from tablectl.policies.merge_layers import Cancelled, Declarations, Layer, LayerKind
from tablectl.policies.parse_yaml import parse_document
from tablectl.policies.policy_fields import INHERITED, OF_A_PATTERN, OF_A_TABLE, is_profile_name, refused_hint
from tablectl.policies.read_entry import read_entry
from tablectl.policies.spelling_hints import did_you_mean, shown
from tablectl.policies.value_reader import GivenValue, ValueReader
from tablectl.policies.variables import read_table_key
from tablectl.policies.yaml_nodes import ListNode, MapNode, Node, Scalar, SourceFile, is_text, kind_of

VERSION = "1"
KEYS = ("version", "defaults", "profiles", "tables")
_NO_PROFILES = "declare it under `profiles:` in one of the files of this command"
_ELSEWHERE = {"env": "environments stand in tablectl.yaml, and give values for `${NAME}` here"}
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
_PATTERN_ONLY: Mapping[str, str] = MappingProxyType({"location": "a location belongs to one table, not to a pattern"})
_OF_A_PROFILE: Mapping[str, str] = MappingProxyType(
    {
        **_NOT_A_PATTERN,
        "location": "a location belongs to one table",
        "profiles": "a profile attaches no other: a table attaches both",
    }
)


def read_specs(files: Iterable[tuple[str, bytes]], reading: ValueReader) -> Specs:
    """The policies in the bytes of named files. Raises ``InputError`` with all errors in all files."""
    documents = [_read_file(file, data, reading) for file, data in files]
    profiles = _unique_profiles(chain.from_iterable(each.profiles for each in documents), reading)
    declarations = Declarations.of(chain.from_iterable(each.declarations for each in documents), profiles)
    _check_profiles(documents, declarations, reading)
    _check_all_unmanaged(declarations, reading)
    with_layers = ((name, (each, *declarations.matching(name))) for each in declarations.named if (name := each.table))
    specs = resolve(with_layers, declarations.profiles, reading.problems)
    reading.problems.extend((*find_repeats(specs), *find_repeated_patterns(declarations.patterns)))
    reading.problems.extend(check_patterns(declarations))
    if reading.problems:
        # A problem behind an alias is reported once per table that uses it.
        raise InputError(tuple(dict.fromkeys(reading.problems)))
    return Specs.of(specs, declarations)


def _check_all_unmanaged(declarations: Declarations, reading: ValueReader) -> None:
    """Runs after all files are parsed: a table can inherit from patterns in any file."""
    every = (*declarations.named, *declarations.patterns)
    of_defaults = frozenset[str]().union(*(each.defaults.named for each in every if each.defaults))
    of_patterns = (layer.named for each in declarations.patterns for layer in each.with_defaults())
    inherited = frozenset[str]().union(*(each.named for each in declarations.profiles.values()), *of_patterns)
    for each in every:
        if each.unmanaged:
            _check_unmanaged(each, inherited | (each.defaults.named if each.defaults else frozenset()), reading)
    for profile in declarations.profiles.values():
        _check_unmanaged(profile, of_defaults, reading)


def _unique_profiles(profiles: Iterable[Layer], reading: ValueReader) -> tuple[Layer, ...]:
    known: dict[str, Layer] = {}
    for each in profiles:
        first = known.setdefault(each.name, each)
        if first is not each:
            message = f"the profile {shown(each.name)} is declared twice: first at {first.source}"
            reading.report(each.source, message, "give one of them another name")
    return tuple(known.values())


def _check_profiles(documents: Iterable[_Document], declarations: Declarations, reading: ValueReader) -> None:
    """Runs after all files are parsed: a profile of any file can be attached in all of them."""
    for document in documents:
        for layer in (*([document.defaults] if document.defaults else []), *document.declarations):
            given = layer.declared.get("profiles")
            for name in given.value or () if given else ():
                if name not in declarations.profiles:
                    hint = did_you_mean(name, tuple(declarations.profiles)) if declarations.profiles else _NO_PROFILES
                    reading.report(layer.declared["profiles"].source, f"no profile is called {shown(name)}", hint)


@dataclass(frozen=True, slots=True)
class _Document:
    """The contents of one file."""

    declarations: tuple[Layer, ...] = ()
    profiles: tuple[Layer, ...] = ()
    defaults: Layer | None = None


def _read_file(file: str, data: bytes, reading: ValueReader) -> _Document:
    found = len(reading.problems)
    reading = replace(reading, simple=b"${" not in data and b"\\" not in data)
    root = parse_document(data, file, reading.problems)
    if not isinstance(root, MapNode):
        if len(reading.problems) == found:
            what = f"a policy file is a map, and here is {kind_of(root)}" if root else "the file is empty"
            source = root.source if root else SourceFile(file, 1, 1)
            reading.report(source, what, "start it with `version: 1`, and declare `tables:`")
        return _Document()
    if not _check_version(root, reading):
        return _Document()
    for key, (source, _) in root.entries.items():
        if key not in KEYS:
            reading.refuse(key, source, KEYS, _ELSEWHERE)
    defaults = _read_defaults(*root.entries["defaults"], reading) if "defaults" in root.entries else None
    entries = _map_of(root, "tables", "lake.sales.orders", reading).entries
    tables = [_read_table(key, source, node, defaults, reading) for key, (source, node) in entries.items()]
    profiles = _map_of(root, "profiles", "gold", reading).entries
    return _Document(
        tuple(each for each in tables if each is not None),
        tuple(_read_profile(name, source, node, reading) for name, (source, node) in profiles.items()),
        defaults,
    )


def _map_of(root: MapNode, key: str, example: str, reading: ValueReader) -> MapNode:
    """The tables or the profiles of a file; none if it has none, or if they are not a map."""
    nothing = MapNode({}, root.source)
    _, node = root.entries.get(key, (root.source, nothing))
    if isinstance(node, MapNode):
        return node
    hint = f"for example `{key}: {{{example}: {{isolation: Serializable}}}}`"
    reading.report(node.source, f"`{key}` takes a map of {key}, not {kind_of(node)}", hint)
    return nothing


def _check_version(root: MapNode, reading: ValueReader) -> bool:
    """Whether the rest of the file can be checked. A file of another version can have any meaning."""
    if "version" not in root.entries:
        reading.report(root.source, "`version` is missing", "start the file with `version: 1`")
        return True
    _, node = root.entries["version"]
    match node:
        case Scalar(tag="int", text=text) if text == VERSION:
            return True
        case Scalar(tag="str", text=text) if text == VERSION:
            reading.report(node.source, "`version` takes a number", "write `version: 1`, without quotes")
            return True
        case Scalar(text=text):
            reading.report(node.source, f"version {shown(text)} is not supported", "this tablectl reads version 1")
        case _:
            reading.report(node.source, "`version` takes a number", "write `version: 1`")
    return False


def _read_table(key: str, source: SourceFile, node: Node, defaults: Layer | None, reading: ValueReader) -> Layer | None:
    read = partial(read_table_key, variables=reading.variables, catalog=reading.catalog)
    target = reading.name(key, source, read)
    pattern = target is not None and not isinstance(target, TableName)
    kind = LayerKind.PATTERN if pattern else LayerKind.TABLE
    layer = Layer(kind=kind, source=source, target=target, defaults=defaults)
    known = (*INHERITED, "unmanaged", *(OF_A_PATTERN if pattern else ("location",)))
    layer = _read_map(layer, node, reading, known, _PATTERN_ONLY if pattern else _NOT_A_PATTERN)
    if target is None:
        return None
    location = layer.declared.get("location")
    if location and isinstance(target, TableName) and target.is_path:
        reading.report(location.source, "a table known by its path takes no `location`", "remove it")
    return layer


def _read_defaults(source: SourceFile, node: Node, reading: ValueReader) -> Layer:
    if not isinstance(node, MapNode):
        hint = "for example `defaults: {isolation: Serializable}`"
        reading.report(node.source, f"`defaults` takes a map of attributes, not {kind_of(node)}", hint)
        return Layer(kind=LayerKind.DEFAULTS, source=source)
    declared = _read_entries(node, reading, tuple(INHERITED), _TABLE_ONLY)
    return Layer(kind=LayerKind.DEFAULTS, source=source, declared=declared, named=_names(node, reading))


def _read_profile(name: str, source: SourceFile, node: Node, reading: ValueReader) -> Layer:
    """Parses one profile. An empty one is valid."""
    if not is_profile_name(name):
        message = f"{shown(name)} is not the name of a profile"
        reading.report(source, message, "a name is made of letters, digits, _ . and -")
    layer = Layer(kind=LayerKind.PROFILE, name=name, source=source)
    known = (*(key for key in INHERITED if key != "profiles"), "unmanaged")
    return _read_map(layer, node, reading, known, _OF_A_PROFILE)


def _read_map(
    layer: Layer, node: Node, reading: ValueReader, known: tuple[str, ...], elsewhere: Mapping[str, str]
) -> Layer:
    """The layer with the contents of its map. An empty one is valid: the inherited values apply."""
    if isinstance(node, Scalar) and node.is_null:
        return layer
    if not isinstance(node, MapNode):
        what = "profile" if layer.kind is LayerKind.PROFILE else "table"
        hint = f"for example {next(iter(VALUE_TYPES.values())).example}"
        reading.report(node.source, f"a {what} takes a map of attributes, not {kind_of(node)}", hint)
        return layer
    declared = _read_entries(node, reading, known, elsewhere)
    named = _names(node, reading)
    unmanaged = _read_unmanaged(node, named, reading) if "unmanaged" in node.entries else {}
    # They say nothing about a table, so no table inherits them.
    counts: dict[str, Any] = {key: declared.pop(key).value for key in OF_A_PATTERN if key in declared}
    return replace(layer, declared=declared, named=named, unmanaged=unmanaged, **counts)


def _read_entries(
    node: MapNode, reading: ValueReader, known: tuple[str, ...], elsewhere: Mapping[str, str]
) -> dict[str, GivenValue]:
    for key, (source, _) in node.entries.items():
        if key not in known:
            reading.refuse(key, source, known, {**_misplaced(key, reading), **elsewhere})
    # `unmanaged` is read with all names of the entry.
    return read_entry(node, [key for key in node.entries if key in known and key in OF_A_TABLE], reading)


def _misplaced(key: str, reading: ValueReader) -> dict[str, str]:
    if key.lower() in OWNED:
        return {key: f"declare `{OWNED[key.lower()]}:` instead"}
    if find_known(key, reading.dialect) or key.lower().startswith("delta."):
        return {key: "table properties go under `properties:`"}
    return {}


def _names(node: MapNode, reading: ValueReader) -> frozenset[str]:
    maps = {
        key: inner.entries
        for key, (_, inner) in node.entries.items()
        if isinstance(inner, MapNode) and key in VALUE_TYPES and VALUE_TYPES[key].mapped
    }
    names = {
        f"{key}.{canonical_key(name, reading.dialect) if VALUE_TYPES[key].keyed else name}"
        for key, entries in maps.items()
        for name in entries
    }
    return frozenset(names | node.entries.keys())


def _read_unmanaged(node: MapNode, named: frozenset[str], reading: ValueReader) -> dict[str, Cancelled]:
    given = read_entry(node, ["unmanaged"], reading).get("unmanaged")
    _, listed = node.entries["unmanaged"]
    items = (
        [each for each in listed.items if isinstance(each, Scalar) and is_text(each)]
        if isinstance(listed, ListNode)
        else []
    )
    cancelled: dict[str, Cancelled] = {}
    for text, source in zip(given.value or () if given else (), (each.source for each in items), strict=False):
        name = text if text in _INHERITED else f"properties.{canonical_key(text, reading.dialect)}"
        if name in named:
            hint = "remove it from `unmanaged`, or remove its declaration"
            reading.report(source, f"{shown(text)} is declared by this table and cannot be unmanaged as well", hint)
        cancelled.setdefault(name, Cancelled(text, source))
    return cancelled


def _check_unmanaged(layer: Layer, inherited: frozenset[str], reading: ValueReader) -> None:
    """Reports names in ``unmanaged`` that are neither an attribute nor a property that Delta knows or the table can
    inherit.
    """
    for name, cancelled in layer.unmanaged.items():
        known = cancelled.text.lower().startswith("delta.") and find_known(cancelled.text, reading.dialect)
        if name not in _INHERITED and name not in inherited and name not in layer.named and not known:
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
    return f"{shown(text)} is neither an attribute nor an inherited property", hint
