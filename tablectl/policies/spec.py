"""The result of parsing policies: the declarations for each table, with their positions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tablectl.attributes.policy import Policy
from tablectl.delta.names import TableName, canonical_location
from tablectl.frozen import frozen
from tablectl.json_text import json_form, write_json
from tablectl.model.errors import Problem
from tablectl.model.patterns import TablePattern
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.model.table_window import TableWindow
from tablectl.policies.declarations import Declaration, Declarations, Profile
from tablectl.policies.precedence import Declared
from tablectl.policies.suggestions import shown
from tablectl.policies.yaml_nodes import SourceFile

_NONE = Declarations()


@frozen
class TableSpec:
    """The declarations for one table, including defaults and patterns."""

    name: TableName
    policy: Policy
    location: str | None
    """The location of a catalog table, as declared or as a listing found it. ``None`` if it is not known yet, and for a
    path table, whose name is its location.
    """
    tags: tuple[str, ...]
    sources: Mapping[str, SourceFile]
    """The position of each effective attribute, each ``properties.<key>``, and ``location``."""
    declared: SourceFile
    """The position of the table's key, otherwise of the most literal pattern that matches it."""
    options: TableOptions = NO_OPTIONS
    window: TableWindow | None = None
    """The table's own window settings; ``None`` for those of the configuration alone."""
    owner: str = ""
    """Who is responsible for the table; empty if no policy says."""


@frozen
class Specs:
    """The specs of all tables in all files, sorted by ``name.key``."""

    tables: tuple[TableSpec, ...]
    """The tables named in the files; after ``expand`` also those that patterns match."""
    digest: str
    """SHA-256, in hex, of the effective declarations of tables and patterns. It does not depend on comments, the layout
    of files, or the live tables that patterns match.
    """
    declarations: Declarations = _NONE

    @property
    def patterns(self) -> tuple[TablePattern, ...]:
        """The patterns in all files."""
        return tuple(each.pattern for each in self.declarations.patterns if each.pattern)

    @staticmethod
    def of(specs: Iterable[TableSpec], declarations: Declarations = _NONE) -> Specs:
        """Sorts the specs and computes their digest."""
        tables = in_order(specs)
        effective = [
            *map(_effective, tables),
            *sorted(map(_pattern, declarations.patterns), key=str),
            *map(_profile, declarations.profiles_of_patterns()),
        ]
        return Specs(tables, _digest(effective), declarations)


def in_order(specs: Iterable[TableSpec]) -> tuple[TableSpec, ...]:
    """The specs in the order of plans."""
    return tuple(sorted(specs, key=lambda spec: spec.name.key))


def digest_of_tables(specs: Iterable[TableSpec]) -> str:
    """SHA-256, in hex, of the effective declarations of some tables, without the locations that listings found."""
    return _digest([effect_of(spec, located="location" in spec.sources) for spec in in_order(specs)])


def _digest(effective: Sequence[Mapping[str, object]]) -> str:
    canonical = write_json(effective, sort=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def effect_of(spec: TableSpec, *, located: bool = True) -> dict[str, object]:
    """What the declarations for a table amount to, in plain values, with its location if ``located``."""
    found = _effective(spec)
    return found if located else {key: value for key, value in found.items() if key != "location"}


def _effective(spec: TableSpec) -> dict[str, object]:
    return {
        "table": spec.name.key,
        "policy": spec.policy.declared(),
        "options": json_form(spec.options),
        "location": spec.location,
        "tags": spec.tags,
        **({"window": json_form(spec.window)} if spec.window else {}),
        **({"owner": spec.owner} if spec.owner else {}),
    }


def _profile(profile: Profile) -> dict[str, object]:
    block = profile.block
    return {"profile": profile.name, "declared": _values(block.declared), "unmanaged": sorted(block.unmanaged)}


def _pattern(declaration: Declaration) -> dict[str, object]:
    block = declaration.block
    return {
        "pattern": declaration.target.key,
        "declared": _values(block.declared),
        "unmanaged": sorted(block.unmanaged),
        "defaults": _values(declaration.defaults.declared),
    }


def _values(declared: Declared) -> dict[str, object]:
    return {key: given.value for key, given in declared.items()}


def find_repeated_patterns(patterns: Iterable[Declaration]) -> Iterator[Problem]:
    """Patterns that are declared twice. Each problem names both positions."""
    seen: dict[str, Declaration] = {}
    for each in sorted(patterns, key=lambda each: each.source):
        first = seen.setdefault(each.target.key, each)
        if first is not each:
            message = f"the pattern {shown(each.target.text)} is declared twice: first at {first.source}"
            yield each.source.problem(message, "make one entry of the two")


def find_repeats(specs: Sequence[TableSpec]) -> Iterator[Problem]:
    """Tables that are declared twice, by identifier or by location. Each problem names both positions."""
    tables: dict[str, TableSpec] = {}
    places: dict[str, TableSpec] = {}
    for spec in sorted(specs, key=lambda spec: spec.declared):
        first = tables.setdefault(spec.name.key, spec)
        if first is not spec:
            message = f"the table {shown(spec.name.text)} is declared twice: first at {first.declared}"
            yield spec.declared.problem(message, "make one entry of the two")
            continue
        location = spec.name.parts[0] if spec.name.is_path else spec.location
        other = places.setdefault(canonical_location(location), spec) if location else spec
        if other is not spec:
            message = f"{shown(spec.name.text)} lies where {shown(other.name.text)} does, declared at {other.declared}"
            yield spec.sources.get("location", spec.declared).problem(message, "declare each table under one name")
