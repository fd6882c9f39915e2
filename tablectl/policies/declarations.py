"""The declarations in the files, by key, and which of them apply to a table, in order of precedence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from tablectl.delta.names import TableName
from tablectl.model.pattern_index import PatternIndex, index_patterns
from tablectl.model.patterns import TablePattern
from tablectl.policies.entries import AttributeEntries
from tablectl.policies.precedence import DEFAULTS, Layer, Ranks
from tablectl.policies.yaml_nodes import SourceFile

MOST_MATCHING = 64
"""The maximum number of patterns that may match one table. Each is a layer in which every value is looked up."""
_EMPTY = PatternIndex({}, {})


@dataclass(frozen=True, slots=True)
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
        unmanaged = {name: each.source for name, each in self.block.unmanaged.items()}
        return Layer(self.pattern.text if self.pattern else "", self.block.declared, unmanaged)


@dataclass(frozen=True, slots=True)
class Declarations:
    """All declarations in the files, before live tables are listed."""

    named: tuple[Declaration, ...] = ()
    patterns: tuple[Declaration, ...] = ()
    """The patterns, with the most literal first."""
    index: PatternIndex = field(default=_EMPTY, repr=False, compare=False)

    @staticmethod
    def of(declarations: Iterable[Declaration]) -> Declarations:
        """Separates tables from patterns."""
        every = tuple(declarations)
        patterns = sorted(
            (each for each in every if each.pattern), key=lambda each: (-(each.literals or 0), each.source)
        )
        index = index_patterns([each.pattern for each in patterns if each.pattern])
        return Declarations(tuple(each for each in every if each.name), tuple(patterns), index)

    def matching(self, name: TableName) -> tuple[Declaration, ...]:
        """The patterns that match a table, the most literal first. Returns at most ``MOST_MATCHING`` + 1."""
        near = (self.patterns[place] for place in self.index.candidates(name))
        return tuple(islice((each for each in near if each.pattern and each.pattern.matches(name)), MOST_MATCHING + 1))


def rank(declarations: Sequence[Declaration]) -> Ranks:
    """The layers that apply to one table: its own entry, the patterns that match it with the most literal first, and
    below these, in the same order, the defaults of their files.
    """
    ranked = [tuple(group) for _, group in groupby(declarations, key=lambda each: each.literals)]
    files: set[str] = set()
    defaults: list[Sequence[Layer]] = []
    for group in ranked:
        fresh = {each.source.file: each.defaults for each in group if each.source.file not in files}
        files |= fresh.keys()
        defaults.append([Layer(DEFAULTS, block.declared) for block in fresh.values()])
    return [*([each.layer() for each in group] for group in ranked), *defaults]
