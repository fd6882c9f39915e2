"""Merges declarations into effective values, attribute by attribute: defaults < profiles < patterns < the table's own
entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any

from tablectl.attributes.constraints import WORDS
from tablectl.attributes.policy import CONTRADICTIONS, EXCLUSIVE, VALUE_TYPES, Policy, attribute
from tablectl.delta.names import TableName
from tablectl.model.errors import Problem
from tablectl.model.patterns import PatternIndex, TablePattern, index_patterns
from tablectl.policies.policy_fields import OF_A_TABLE
from tablectl.policies.value_reader import GivenValue
from tablectl.policies.yaml_nodes import SourceFile

MOST_MATCHING = 64
"""The maximum number of patterns that may match one table. Each is a layer in which every value is looked up."""
_NO_PATTERNS = PatternIndex({}, {})
_MAINTAINED = ("predictive_optimization", "enabled")
"""Databricks maintains such a table by itself, so nothing else does."""
_UNCHECKED = ("features.checkConstraints", "dropped")
"""Such a table has no CHECK constraint."""

Declared = Mapping[str, GivenValue]
"""The declarations of a map, flattened: ``isolation``, ``properties.owner.team``, ``tags``, ``location``."""


class LayerKind(StrEnum):
    """The maps of a file that can apply to a table, with the highest precedence first."""

    TABLE = "table"
    PATTERN = "pattern"
    PROFILE = "profile"
    DEFAULTS = "defaults"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """One name in ``unmanaged``, as written in the file."""

    text: str
    source: SourceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One map of a file that applies to tables: the entry of a table or of a pattern, a profile, or ``defaults``."""

    kind: LayerKind
    source: SourceFile
    """The position of its key."""
    declared: Declared = field(default_factory=dict)
    unmanaged: Mapping[str, Cancelled] = field(default_factory=dict)
    """The attributes and ``properties.<key>`` that it cancels in the layers below."""
    named: frozenset[str] = frozenset()
    """The names that occur in it, including those with invalid values."""
    name: str = ""
    """The name of a profile."""
    by_tag: bool = False
    """Whether a tag of the table attaches the profile."""
    target: TableName | TablePattern | None = None
    """What an entry of ``tables`` is about."""
    defaults: Layer | None = None
    """The defaults of the file, for an entry of ``tables``."""
    may_be_empty: bool = False
    """Whether a pattern may match no table."""
    min_tables: int = 1
    """The fewest tables that a pattern matches."""

    @property
    def table(self) -> TableName | None:
        """The table of an own entry."""
        return self.target if isinstance(self.target, TableName) else None

    @property
    def pattern(self) -> TablePattern | None:
        """The pattern of its entry."""
        return None if isinstance(self.target, TableName) else self.target

    @property
    def key(self) -> str:
        """The key of the table or pattern, by which names are compared."""
        return self.target.key if self.target else ""

    @property
    def text(self) -> str:
        """The table or pattern in SQL's spelling."""
        return self.target.text if self.target else ""

    @property
    def title(self) -> str:
        """The layer, for messages: the pattern, ``profile gold``, ``defaults``; empty for the table's own entry."""
        if self.pattern:
            return self.pattern.text
        by = f" (tag {self.name})" if self.by_tag else ""
        return "" if self.kind is LayerKind.TABLE else f"{self.kind} {self.name}".rstrip() + by

    def place(self, key: str) -> SourceFile | None:
        """The position of the value of a key, or of its cancellation; ``None`` if the layer says nothing about it."""
        given = self.declared.get(key)
        if given is not None or not self.unmanaged:
            return given.source if given else None
        names = (name for name in (key, key.partition(".")[0]) if name in self.unmanaged)
        return next((self.unmanaged[name].source for name in names), None)

    def with_defaults(self) -> tuple[Layer, ...]:
        """It and the defaults of its file."""
        return (self, self.defaults) if self.defaults else (self,)

    def attached(self) -> tuple[str, ...]:
        """The profiles that it names, and those of its tags."""
        given = (self.declared.get(each) for each in ("profiles", "tags"))
        return tuple(name for each in given if each for name in each.value or ())


@dataclass(frozen=True, slots=True)
class Declarations:
    """All declarations in the files, before live tables are listed."""

    named: tuple[Layer, ...] = ()
    patterns: tuple[Layer, ...] = ()
    """The patterns, with the most literal first."""
    profiles: Mapping[str, Layer] = field(default_factory=dict)
    """By name."""
    index: PatternIndex = field(default=_NO_PATTERNS, repr=False, compare=False)

    @staticmethod
    def of(declarations: Iterable[Layer], profiles: Iterable[Layer] = ()) -> Declarations:
        """Separates tables from patterns."""
        every = tuple(declarations)
        patterns = sorted((each for each in every if each.pattern), key=lambda each: (-_literals(each), each.source))
        index = index_patterns([each.pattern for each in patterns if each.pattern])
        named = tuple(each for each in every if each.table)
        return Declarations(named, tuple(patterns), {each.name: each for each in profiles}, index)

    @property
    def secret_variables(self) -> frozenset[str]:
        """The variables of the command line and the environment that masked values take."""
        layers = (*self.layers(), *self.profiles.values())
        return frozenset(name for each in layers for given in each.declared.values() for name in given.taken)

    def layers(self) -> Iterator[Layer]:
        """The entries of tables and patterns, each followed by the defaults of its file."""
        for each in (*self.named, *self.patterns):
            yield from each.with_defaults()

    def profiles_of_patterns(self) -> tuple[Layer, ...]:
        """The profiles that patterns and their defaults attach, by name."""
        names = {name for each in self.patterns for layer in each.with_defaults() for name in layer.attached()}
        return tuple(self.profiles[name] for name in sorted(names & self.profiles.keys()))

    def matching(self, name: TableName) -> tuple[Layer, ...]:
        """The patterns that match a table, the most literal first. Returns at most ``MOST_MATCHING`` + 1."""
        near = (self.patterns[place] for place in self.index.candidates(name))
        return tuple(islice((each for each in near if each.pattern and each.pattern.matches(name)), MOST_MATCHING + 1))


def _literals(layer: Layer) -> int:
    return layer.pattern.literals if layer.pattern else 0


Ranks = Sequence[Sequence[Layer]]
"""The highest precedence first. Layers of the same rank must not contradict each other."""


def rank(entries: Sequence[Layer], profiles: Mapping[str, Layer]) -> Ranks:
    """The layers that apply to one table: its own entry, the patterns that match it with the most literal first, below
    these the profiles that the strongest of all layers attaches, then those that have the name of one of the table's
    tags, and at last the defaults of the files of the entries, in the same order as these.
    """
    ranked = [tuple(group) for _, group in groupby(entries, key=lambda each: each.pattern and each.pattern.literals)]
    files: set[str] = set()
    defaults: list[Sequence[Layer]] = []
    for group in ranked:
        fresh = {each.source.file: each.defaults for each in group if each.defaults and each.source.file not in files}
        files |= fresh.keys()
        defaults.append(tuple(fresh.values()))
    attached = [profiles[name] for name in _listed("profiles", [*ranked, *defaults]) if name in profiles]
    tags = _listed("tags", [*ranked, attached, *defaults])
    named = {each.name for each in attached}
    by_tag = [_by_tag(profiles[tag]) for tag in tags if tag in profiles and tag not in named]
    return [*ranked, attached, by_tag, *defaults]


def _by_tag(profile: Layer) -> Layer:
    """A profile that a tag attaches, without tags of its own: they would replace the tag that attaches it."""
    declared = {key: given for key, given in profile.declared.items() if key != "tags"}
    unmanaged = {key: each for key, each in profile.unmanaged.items() if key != "tags"}
    return replace(profile, by_tag=True, declared=declared, unmanaged=unmanaged)


def _listed(key: str, ranks: Ranks) -> tuple[str, ...]:
    """The effective list of a key."""
    found = _resolve(key, [(number, layer) for number, rank in enumerate(ranks) for layer in rank])
    return tuple(found.given.value or ()) if found and found.given else ()


@dataclass(frozen=True, slots=True)
class ResolvedValue:
    """What the layers declare for one key."""

    key: str
    rank: int
    won: Layer
    given: GivenValue | None
    """The effective value; ``None`` if it is unmanaged."""
    over: tuple[Layer, ...]
    """The layers whose declaration is overridden, highest precedence first."""
    tie: Layer | None = None
    """A layer of the same rank with a different declaration; ``None`` if there is none."""

    @property
    def source(self) -> SourceFile:
        """The position of the effective declaration."""
        return self.won.place(self.key) or self.won.source


def merge(ranks: Ranks) -> tuple[ResolvedValue, ...]:
    """Merges the layers by key, with the attributes in the order of plans. A list replaces a list. Properties merge by
    key, because each is a separate key here. ``unmanaged`` cancels the values of the layers below; ``properties``
    cancels all.
    """
    layers = [(number, layer) for number, rank in enumerate(ranks) for layer in rank]
    keys = {key for _, layer in layers for key in (*layer.declared, *layer.unmanaged)}
    found = (_resolve(key, layers) for key in sorted(keys, key=lambda key: (_ORDER[key.partition(".")[0]], key)))
    return tuple(each for each in found if each)


_ORDER: Mapping[str, int] = MappingProxyType({name: index for index, name in enumerate(OF_A_TABLE)})


def _resolve(key: str, layers: Sequence[tuple[int, Layer]]) -> ResolvedValue | None:
    """The declarations of all layers for one key; ``None`` if there are none. Each layer has the number of its rank."""
    declaring = [(number, place, layer) for number, layer in layers if (place := layer.place(key))]
    if not declaring:
        return None
    if len(declaring) > 1:
        declaring.sort(key=lambda each: each[:2])
    (best, _, won), *rest = declaring
    tie = next((layer for number, _, layer in rest if number == best and not _same(key, won, layer)), None)
    return ResolvedValue(key, best, won, won.declared.get(key), tuple(layer for _, _, layer in rest), tie)


def _same(key: str, one: Layer, other: Layer) -> bool:
    """Whether two declarations mean the same, as in the comparison with live tables: two spellings of an interval are
    equal.
    """
    if key not in one.declared or key not in other.declared:
        return key not in one.declared and key not in other.declared
    name, _, inner = key.partition(".")
    first, second = one.declared[key].value, other.declared[key].value
    if first is None or second is None or name not in VALUE_TYPES:
        return first == second
    entry = attribute(name)
    first, second = (entry.value_type.written(inner, each) for each in (first, second))
    return entry.agrees(first, second, inner) and entry.agrees(second, first, inner)


def effective(resolved: Sequence[ResolvedValue]) -> Declared:
    """The effective values by key."""
    return {each.key: each.given for each in resolved if each.given}


def check_exclusive(resolved: Sequence[ResolvedValue]) -> Problem | None:
    """Reports the first of ``exclusive_pairs``, at the declaration with the higher precedence."""
    found = next(exclusive_pairs(resolved), None)
    if found is None:
        return None
    one, other = sorted(found, key=lambda each: each.rank)
    if not _lists(one) or not _lists(other):
        return _contradiction(one, other)
    message = f"`{one.key}` and `{other.key}` exclude each other, and `{other.key}` stands at {other.source}"
    hint = f"remove one, or declare it `none`; `unmanaged: [{other.key}]` cancels an inherited one"
    return one.source.problem(message, hint)


_CONTRADICTED = frozenset(first for first, _ in CONTRADICTIONS)


def exclusive_pairs(resolved: Sequence[ResolvedValue]) -> Iterator[tuple[ResolvedValue, ...]]:
    """The pairs of values that no policy can declare together: contradictions, and two exclusive attributes that list
    columns.
    """
    said = {(each.key, _folded(each)): each for each in resolved if each.given}
    known = () if _CONTRADICTED.isdisjoint(said) else CONTRADICTIONS
    for pair in (*known, *_within(resolved)):
        if pair[0] in said and pair[1] in said:
            yield said[pair[0]], said[pair[1]]
    kept_up = (each for each in resolved if each.key.startswith("upkeep.") and each.given)
    yield from ((said[_MAINTAINED], each) for each in kept_up if _MAINTAINED in said)
    checks = (each for each in resolved if each.key.startswith("constraints.") and _folded(each) not in {None, *WORDS})
    yield from ((said[_UNCHECKED], each) for each in checks if _UNCHECKED in said)
    listing = {each.key: each for each in resolved if _lists(each)}
    yield from (tuple(listing[name] for name in pair) for pair in EXCLUSIVE if all(name in listing for name in pair))


def _folded(resolved: ResolvedValue) -> Any:
    """The value, with ``true`` in one spelling: Delta ignores its letter case."""
    value = resolved.given.value if resolved.given else None
    return value.lower() if isinstance(value, str) and value.lower() == "true" else value


def _within(resolved: Sequence[ResolvedValue]) -> Iterator[tuple[tuple[str, Any], ...]]:
    """The pairs of values that an attribute with several keys rejects together."""
    declared = effective(resolved)
    for name, value_type in VALUE_TYPES.items():
        values = _under(declared, name) if value_type.fields else {}
        if values:
            rejected = attribute(name).rejected_together(values)
            if rejected:
                yield tuple((f"{name}.{key}", values[key]) for key in rejected)


def _contradiction(one: ResolvedValue, other: ResolvedValue) -> Problem:
    first, second = (f"`{each.key}: {each.given and each.given.shown()}`" for each in (one, other))
    message = f"{first} and {second} exclude each other, and {second} stands at {other.source}"
    name = other.key if other.key.startswith("properties.") else other.key.partition(".")[0]
    return one.source.problem(message, f"change one; `unmanaged: [{name}]` cancels an inherited one")


def _lists(resolved: ResolvedValue) -> bool:
    return resolved.given is not None and isinstance(resolved.given.value, tuple)


def policy_of(effective: Declared) -> Policy:
    """Builds the policy from the effective declarations."""
    values: dict[str, Any] = {}
    for key, given in effective.items():
        name, _, inner = key.partition(".")
        if name in VALUE_TYPES and VALUE_TYPES[name].mapped:
            values.setdefault(name, {})[inner] = given.value
        elif key in VALUE_TYPES:
            values[key] = given.value
    return Policy.of_read(values)


def _under(effective: Declared, name: str) -> dict[str, str | tuple[str, ...] | None]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): effective[key].value for key in sorted(effective) if key.startswith(prefix)}
