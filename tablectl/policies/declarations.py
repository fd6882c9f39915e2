"""The declarations in the files, by key, and which of them apply to a table, in order of precedence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import groupby, islice

from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.pattern_index import PatternIndex, index_patterns
from tablectl.model.patterns import TablePattern
from tablectl.policies.entries import AttributeEntries
from tablectl.policies.precedence import Layer, LayerKind, Ranks, resolve_key
from tablectl.policies.yaml_nodes import SourceFile

MOST_MATCHING = 64
"""The maximum number of patterns that may match one table. Each is a layer in which every value is looked up."""
_EMPTY = PatternIndex({}, {})


@frozen
class Declaration:
    """One key of ``tables`` and the map below it."""

    target: TableName | TablePattern
    block: AttributeEntries
    defaults: AttributeEntries
    """The defaults of its file."""
    source: SourceFile
    """The position of the key."""

    @property
    def name(self) -> TableName | None:
        """The table of an own entry; ``None`` for a pattern."""
        return self.target if isinstance(self.target, TableName) else None

    @property
    def pattern(self) -> TablePattern | None:
        """The pattern; ``None`` for a table's own entry."""
        return None if isinstance(self.target, TableName) else self.target

    @property
    def literals(self) -> int | None:
        """The number of literal characters of the pattern; ``None`` for a table's own entry."""
        return self.pattern.literals if self.pattern else None

    def layer(self) -> Layer:
        """The layer of this declaration, without the defaults."""
        if self.pattern:
            return _layer(LayerKind.PATTERN, self.block, self.pattern.text)
        return _layer(LayerKind.TABLE, self.block)


@frozen
class Profile:
    """A named bundle of settings, which tables and patterns attach by its name."""

    name: str
    block: AttributeEntries
    source: SourceFile
    """The position of its name."""


def _layer(kind: LayerKind, block: AttributeEntries, name: str = "") -> Layer:
    return Layer(kind, name, block.declared, {name: each.source for name, each in block.unmanaged.items()})


@frozen
class Declarations:
    """All declarations in the files, before live tables are listed."""

    named: tuple[Declaration, ...] = ()
    patterns: tuple[Declaration, ...] = ()
    """The patterns, with the most literal first."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """By name."""
    index: PatternIndex = field(default=_EMPTY, repr=False, compare=False)

    @staticmethod
    def of(declarations: Iterable[Declaration], profiles: Iterable[Profile] = ()) -> Declarations:
        """Separates tables from patterns."""
        every = tuple(declarations)
        patterns = sorted(
            (each for each in every if each.pattern), key=lambda each: (-(each.literals or 0), each.source)
        )
        index = index_patterns([each.pattern for each in patterns if each.pattern])
        named = tuple(each for each in every if each.name)
        return Declarations(named, tuple(patterns), {each.name: each for each in profiles}, index)

    @property
    def secret_variables(self) -> frozenset[str]:
        """The variables of the command line and the environment that masked values take."""
        blocks = [block for each in (*self.named, *self.patterns) for block in (each.block, each.defaults)]
        blocks += [each.block for each in self.profiles.values()]
        return frozenset(name for block in blocks for given in block.declared.values() for name in given.taken)

    def profiles_of_patterns(self) -> tuple[Profile, ...]:
        """The profiles that patterns and their defaults attach, by name."""
        names = {name for each in self.patterns for block in (each.block, each.defaults) for name in attached(block)}
        return tuple(self.profiles[name] for name in sorted(names & self.profiles.keys()))

    def matching(self, name: TableName) -> tuple[Declaration, ...]:
        """The patterns that match a table, the most literal first. Returns at most ``MOST_MATCHING`` + 1."""
        near = (self.patterns[place] for place in self.index.candidates(name))
        return tuple(islice((each for each in near if each.pattern and each.pattern.matches(name)), MOST_MATCHING + 1))


def attached(block: AttributeEntries) -> tuple[str, ...]:
    """The profiles that an entry or the defaults name."""
    given = block.declared.get("profiles")
    return tuple(given.value or ()) if given else ()


def rank(declarations: Sequence[Declaration], profiles: Mapping[str, Profile]) -> Ranks:
    """The layers that apply to one table: its own entry, the patterns that match it with the most literal first, below
    these the profiles that the strongest of all layers attaches, and at last the defaults of the files of the
    declarations, in the same order as these.
    """
    ranked = [tuple(group) for _, group in groupby(declarations, key=lambda each: each.literals)]
    files: set[str] = set()
    defaults: list[Sequence[Layer]] = []
    for group in ranked:
        fresh = {each.source.file: each.defaults for each in group if each.source.file not in files}
        files |= fresh.keys()
        defaults.append([_layer(LayerKind.DEFAULTS, block) for block in fresh.values()])
    entries = [[each.layer() for each in group] for group in ranked]
    names = resolve_key("profiles", [*entries, *defaults])
    given = names.won.given.value if names and names.won.given else ()
    known = [profiles[name] for name in given or () if name in profiles]
    return [*entries, [_layer(LayerKind.PROFILE, each.block, each.name) for each in known], *defaults]
