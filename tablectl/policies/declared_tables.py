"""The declarations for each table, with their positions: of tables named in the files, and of live tables that patterns
match.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tablectl.attributes.policy import VALUE_TYPES, Policy
from tablectl.delta.locations import canonical_location
from tablectl.delta.names import TableName
from tablectl.model.calendar import TableWindow
from tablectl.model.errors import InputError, Problem
from tablectl.model.patterns import TablePattern
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.model.upkeep import UpkeepPolicy
from tablectl.policies.effective_options import options_of, upkeep_of, window_of
from tablectl.policies.merge_layers import (
    MOST_MATCHING,
    Declarations,
    Declared,
    Layer,
    LayerKind,
    ResolvedValue,
    check_exclusive,
    effective,
    merge,
    policy_of,
    rank,
)
from tablectl.policies.spelling_hints import shown
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.support.json_text import write_json
from tablectl.support.typed_json import json_form

_NONE = Declarations()


@dataclass(frozen=True, slots=True)
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
    upkeep: UpkeepPolicy | None = None
    """What ``tablectl upkeep`` does with the table; ``None`` for nothing."""


@dataclass(frozen=True, slots=True)
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
    canonical = write_json(json_form(effective), sort=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def effect_of(spec: TableSpec, *, located: bool = True) -> dict[str, object]:
    """What the declarations for a table amount to, in plain values, with its location if ``located``."""
    found = _effective(spec)
    return found if located else {key: value for key, value in found.items() if key != "location"}


def _effective(spec: TableSpec) -> dict[str, object]:
    return {
        "table": spec.name.key,
        "policy": spec.policy.declared,
        "options": spec.options,
        "location": spec.location,
        "tags": spec.tags,
        **({"window": spec.window} if spec.window else {}),
        **({"owner": spec.owner} if spec.owner else {}),
        **({"upkeep": spec.upkeep} if spec.upkeep else {}),
    }


def _profile(profile: Layer) -> dict[str, object]:
    return {"profile": profile.name, **_said(profile)}


def _pattern(pattern: Layer) -> dict[str, object]:
    defaults = _values(pattern.defaults.declared) if pattern.defaults else {}
    return {"pattern": pattern.key, **_said(pattern), "defaults": defaults}


def _said(layer: Layer) -> dict[str, object]:
    return {"declared": _values(layer.declared), "unmanaged": sorted(layer.unmanaged)}


def _values(declared: Declared) -> dict[str, object]:
    return {key: given.value for key, given in declared.items()}


def find_repeated_patterns(patterns: Iterable[Layer]) -> Iterator[Problem]:
    """Patterns that are declared twice. Each problem names both positions."""
    seen: dict[str, Layer] = {}
    for each in sorted(patterns, key=lambda each: each.source):
        if each.pattern:
            first = seen.setdefault(each.pattern.key, each)
            if first is not each:
                message = f"the pattern {shown(each.pattern.text)} is declared twice: first at {first.source}"
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


def expand(specs: Specs, found: Mapping[TableName, str]) -> Specs:
    """The specs, with those of live tables that patterns match. ``found`` maps each table to its location.

    A table named in the files keeps its spec, and gets its location from ``found`` if the files do not declare one.
    Raises ``InputError`` if patterns contradict each other about a table, or give it both clustering and partitioning.
    """
    named = {spec.name.key: spec for spec in specs.tables}
    fresh: dict[str, TableName] = {}
    for name in sorted(found, key=lambda name: (name.key, name.text)):
        spec = named.get(name.key)
        if spec is None:
            fresh.setdefault(name.key, name)
        elif spec.location is None and not spec.name.is_path:
            named[name.key] = replace(spec, location=found[name])
    problems: list[Problem] = []
    matched = ((name, specs.declarations.matching(name)) for name in fresh.values())
    applying = ((name, patterns) for name, patterns in matched if patterns)
    added = resolve(applying, specs.declarations.profiles, problems)
    if problems:
        raise InputError(tuple(dict.fromkeys(problems)))
    placed = (spec if spec.name.is_path else replace(spec, location=found[spec.name]) for spec in added)
    return replace(specs, tables=in_order((*named.values(), *placed)))


def resolve(
    tables: Iterable[tuple[TableName, Sequence[Layer]]], profiles: Mapping[str, Layer], problems: list[Problem]
) -> list[TableSpec]:
    """The spec of each table from the declarations that apply to it, which are sorted with the highest precedence
    first.
    """
    ties: dict[tuple[str, SourceFile, SourceFile], _Tie] = {}
    crowded = False
    specs: list[TableSpec] = []
    for name, declarations in tables:
        if sum(each.pattern is not None for each in declarations) > MOST_MATCHING:
            if not crowded:
                problems.append(_crowded(name, declarations[-1]))
            crowded = True
            continue
        resolved = merge(rank(declarations, profiles))
        exclusive = check_exclusive(resolved)
        if exclusive:
            problems.append(exclusive)
        for each in resolved:
            if each.tie:
                place = (each.key, each.source, each.tie.place(each.key) or each.tie.source)
                ties.setdefault(place, _Tie(each, each.tie, [])).tables.append(name)
        specs.append(_spec(name, resolved, declarations[0].source))
    problems.extend(tie.problem() for tie in ties.values())
    return specs


def _crowded(name: TableName, last: Layer) -> Problem:
    message = f"{shown(name.text)} is matched by more than {MOST_MATCHING} patterns, of which this is one"
    return last.source.problem(message, "write fewer patterns that overlap")


def _spec(name: TableName, resolved: Sequence[ResolvedValue], declared: SourceFile) -> TableSpec:
    values = effective(resolved)
    # The options also name the properties that an engine alone reads.
    besides = {key: each for key, each in values.items() if key.partition(".")[0] not in VALUE_TYPES or each.engine}
    location, tags = values.get("location"), values.get("tags")
    return TableSpec(
        name=name,
        policy=policy_of(values),
        options=options_of(besides),
        window=window_of(besides),
        upkeep=upkeep_of(besides),
        owner=str(values["owner"].value) if "owner" in values else "",
        location=str(location.value) if location else None,
        tags=tuple(tags.value or ()) if tags else (),
        sources={key: given.source for key, given in values.items() if key not in {"tags", "profiles"}},
        declared=declared,
    )


def check_patterns(declarations: Declarations) -> Iterator[Problem]:
    """Problems of patterns that do not depend on the tables they match."""
    for each in declarations.patterns:
        exclusive = check_exclusive(merge(rank((each,), declarations.profiles)))
        if exclusive:
            yield exclusive


@dataclass(frozen=True, slots=True)
class _Tie:
    """Two layers of one rank with different declarations for a key, and the affected tables."""

    resolved: ResolvedValue
    other: Layer
    tables: list[TableName]

    def problem(self) -> Problem:
        """The problem, at the later of the two positions. It names the other one."""
        key, first = self.resolved.key, self.resolved.won
        more = f" and {len(self.tables) - 1} more" if len(self.tables) > 1 else ""
        message = (
            f"`{key}` of {shown(self.tables[0].text)}{more} is {_value_text(self.other, key)} {_where(self.other)} "
            f"here and {_value_text(first, key)} {_where(first)} at {self.resolved.source}, and neither outweighs the "
            "other"
        )
        place = self.other.place(key) or self.other.source
        return place.problem(message, _OUTWEIGHS.get(self.other.kind, ""))


def _value_text(layer: Layer, key: str) -> str:
    given = layer.declared.get(key)
    match given and given.shown():
        case str() as text:
            return shown(text)
        case tuple() as items:
            return f"[{', '.join(items)}]"
        case _:
            return "null" if given else "unmanaged"


def _where(layer: Layer) -> str:
    if layer.kind is LayerKind.DEFAULTS:
        return "in the defaults"
    return f"by the {layer.kind} {shown(layer.pattern.text if layer.pattern else layer.name)}"


_OUTWEIGHS = {
    LayerKind.PATTERN: "of patterns the one with more literal characters wins, and a table's own entry wins over all "
    "of them",
    LayerKind.PROFILE: "attach one of the two profiles, or declare the value at the table or its pattern",
    LayerKind.DEFAULTS: "declare the value at the table, at its pattern or in a profile",
}
"""What to do about two layers of one rank that contradict each other."""
