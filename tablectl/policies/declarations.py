"""What the files declare, key by key, and which of it speaks for one table, in which order."""

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
"""Patterns that may match one table. Each is a layer that every value of the table is looked up in."""
_EMPTY = PatternIndex({}, {})


@dataclass(frozen=True, slots=True)
class Declaration:
    """One key of ``tables``, and what stands under it."""

    target: TableName | TablePattern
    block: AttributeEntries
    defaults: AttributeEntries
    """Those of its file."""
    source: SourceFile
    """The place of the key."""

    @property
    def name(self) -> TableName | None:
        """The table whose own entry it is."""
        return self.target if isinstance(self.target, TableName) else None

    @property
    def pattern(self) -> TablePattern | None:
        """The pattern, where it is none."""
        return None if isinstance(self.target, TableName) else self.target

    @property
    def literals(self) -> int | None:
        """How literal the pattern is."""
        return self.pattern.literals if self.pattern else None

    def layer(self) -> Layer:
        """What it says itself."""
        unmanaged = {name: each.source for name, each in self.block.unmanaged.items()}
        return Layer(self.pattern.text if self.pattern else "", self.block.declared, unmanaged)


@dataclass(frozen=True, slots=True)
class Declarations:
    """All that the files declare, before anybody asks which tables there are."""

    named: tuple[Declaration, ...] = ()
    patterns: tuple[Declaration, ...] = ()
    """The most literal first."""
    index: PatternIndex = field(default=_EMPTY, repr=False, compare=False)

    @staticmethod
    def of(declarations: Iterable[Declaration]) -> Declarations:
        """Tables and patterns told apart."""
        every = tuple(declarations)
        patterns = sorted(
            (each for each in every if each.pattern), key=lambda each: (-(each.literals or 0), each.source)
        )
        index = index_patterns([each.pattern for each in patterns if each.pattern])
        return Declarations(tuple(each for each in every if each.name), tuple(patterns), index)

    def matching(self, name: TableName) -> tuple[Declaration, ...]:
        """The patterns that match a table, the most literal first; no more than ``MOST_MATCHING`` and one."""
        near = (self.patterns[place] for place in self.index.candidates(name))
        return tuple(islice((each for each in near if each.pattern and each.pattern.matches(name)), MOST_MATCHING + 1))


def rank(declarations: Sequence[Declaration]) -> Ranks:
    """The layers of what speaks for one table: its own entry, the patterns that match it, the most literal first, and
    below them all, in the same order, the defaults of the files that these stand in.
    """
    ranked = [tuple(group) for _, group in groupby(declarations, key=lambda each: each.literals)]
    files: set[str] = set()
    defaults: list[Sequence[Layer]] = []
    for group in ranked:
        fresh = {each.source.file: each.defaults for each in group if each.source.file not in files}
        files |= fresh.keys()
        defaults.append([Layer(DEFAULTS, block.declared) for block in fresh.values()])
    return [*([each.layer() for each in group] for group in ranked), *defaults]
