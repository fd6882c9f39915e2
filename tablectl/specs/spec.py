"""The result of reading policies: what is declared of each table, and where."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tablectl.attributes.policy import Policy
from tablectl.model.errors import Problem
from tablectl.model.names import TableName, canonical_location
from tablectl.specs.tree import Source
from tablectl.specs.wording import shown


@dataclass(frozen=True, slots=True)
class TableSpec:
    """What is declared of one table, defaults and all."""

    name: TableName
    policy: Policy
    location: str | None
    """Where the log of a catalog table lies, as declared; ``None`` for a path table, whose name says it."""
    tags: tuple[str, ...]
    sources: Mapping[str, Source]
    """Where each effective attribute was given, and each ``properties.<key>``, and ``location``."""
    declared: Source
    """The place of the identifier."""


@dataclass(frozen=True, slots=True)
class Specs:
    """All tables of all files, in the order of ``name.key``."""

    tables: tuple[TableSpec, ...]
    digest: str
    """SHA-256 over what holds for the tables, in hex: the layout of files and their comments do not change it."""

    @staticmethod
    def of(specs: Iterable[TableSpec]) -> Specs:
        """The specs in order and their digest."""
        tables = tuple(sorted(specs, key=lambda spec: spec.name.key))
        effective = [_effective(spec) for spec in tables]
        canonical = json.dumps(effective, sort_keys=True, separators=(",", ":"))
        return Specs(tables, hashlib.sha256(canonical.encode()).hexdigest())


def _effective(spec: TableSpec) -> dict[str, object]:
    return {"table": spec.name.key, "policy": spec.policy.declared(), "location": spec.location, "tags": spec.tags}


def find_repeats(specs: Sequence[TableSpec]) -> Iterator[Problem]:
    """Tables declared twice, under one identifier or as one location; each problem names both places."""
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
