"""From what files declare to what holds for a table: defaults < patterns < the table's own, attribute by attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tablectl.attributes.policy import Policy, attribute
from tablectl.model.errors import Problem
from tablectl.policies.attribute_types import CONTRADICTIONS, EXCLUSIVE, SHAPES
from tablectl.policies.option_keys import OPTIONS
from tablectl.policies.value_reader import GivenValue
from tablectl.policies.yaml_nodes import SourceFile

Declared = Mapping[str, GivenValue]
"""What a map declares, flat: ``isolation``, ``properties.owner.team``, ``tags``, ``location``."""


DEFAULTS = "defaults"


@dataclass(frozen=True, slots=True)
class Layer:
    """One map of a file, as far as it holds for a table."""

    title: str
    """``DEFAULTS``, or the pattern; empty for the table's own entry."""
    declared: Declared
    unmanaged: Mapping[str, SourceFile] = field(default_factory=dict)
    """What it cancels of the layers below: attributes, and ``properties.<key>``."""

    def voice(self, key: str) -> DeclaredValue | None:
        """What it says about a key."""
        if key in self.declared:
            return DeclaredValue(self.title, self.declared[key], self.declared[key].source)
        for name in (key, key.partition(".")[0]):
            if name in self.unmanaged:
                return DeclaredValue(self.title, None, self.unmanaged[name])
        return None


Ranks = Sequence[Sequence[Layer]]
"""Strongest first; the layers of one rank must not contradict each other."""


@dataclass(frozen=True, slots=True)
class DeclaredValue:
    """What one layer says about one key: a value, or with ``None`` that it is not managed."""

    title: str
    given: GivenValue | None
    source: SourceFile


@dataclass(frozen=True, slots=True)
class ResolvedValue:
    """What all layers together say about one key."""

    key: str
    rank: int
    won: DeclaredValue
    over: tuple[DeclaredValue, ...]
    """What it overrides, strongest first."""
    tie: DeclaredValue | None = None
    """Another of the same rank that says something else."""


def merge(ranks: Ranks) -> tuple[ResolvedValue, ...]:
    """What holds, by key, attributes in the order of plans. A list replaces a list; properties merge by key, since each
    is a key here. ``unmanaged`` takes away what the layers below give; ``properties`` takes all of them.
    """
    layers = [layer for rank in ranks for layer in rank]
    keys = {key for layer in layers for key in (*layer.declared, *layer.unmanaged)}
    order = {name: index for index, name in enumerate((*SHAPES, *OPTIONS, "tags", "location"))}
    return tuple(_hear(key, ranks) for key in sorted(keys, key=lambda key: (order[key.partition(".")[0]], key)))


def _hear(key: str, ranks: Ranks) -> ResolvedValue:
    voices = [(rank, voice) for rank, layers in enumerate(ranks) for voice in _voices(key, layers)]
    (best, won), *rest = voices
    tie = next((voice for rank, voice in rest if rank == best and not _same(key, won, voice)), None)
    return ResolvedValue(key, best, won, tuple(voice for _, voice in rest), tie)


def _voices(key: str, layers: Sequence[Layer]) -> list[DeclaredValue]:
    found = (layer.voice(key) for layer in layers)
    return sorted((voice for voice in found if voice), key=lambda voice: voice.source)


def _same(key: str, one: DeclaredValue, other: DeclaredValue) -> bool:
    """By meaning, as a live table is compared: two spellings of an interval are no contradiction."""
    if one.given is None or other.given is None:
        return one.given is other.given
    name, _, inner = key.partition(".")
    first, second = one.given.value, other.given.value
    if first is None or second is None or name not in SHAPES:
        return first == second
    agrees = attribute(name).agrees
    return agrees(first, second, inner) and agrees(second, first, inner)


def effective(heard: Sequence[ResolvedValue]) -> Declared:
    """The values that hold."""
    return {each.key: each.won.given for each in heard if each.won.given}


def check_exclusive(heard: Sequence[ResolvedValue]) -> Problem | None:
    """Clustering and partitioning exclude each other unless one is ``none``, and some values each other.

    The problem lies where the stronger of the two is given.
    """
    said = {(each.key, each.won.given.value): each for each in heard if each.won.given}
    for pair in CONTRADICTIONS:
        found = sorted((said[each] for each in pair if each in said), key=lambda each: each.rank)
        if len(found) == len(pair):
            return _contradiction(*found)
    listed = sorted((each for each in heard if each.key in EXCLUSIVE and _lists(each)), key=lambda each: each.rank)
    if len(listed) < 2:
        return None
    (name, source), (other, elsewhere) = ((each.key, each.won.source) for each in listed)
    message = f"`{name}` and `{other}` exclude each other, and `{other}` stands at {elsewhere}"
    hint = f"remove one, or declare it `none`; `unmanaged: [{other}]` cancels an inherited one"
    return source.problem(message, hint)


def _contradiction(one: ResolvedValue, other: ResolvedValue) -> Problem:
    first, second = (f"`{each.key}: {each.won.given and each.won.given.shown()}`" for each in (one, other))
    message = f"{first} and {second} exclude each other, and {second} stands at {other.won.source}"
    return one.won.source.problem(message, f"change one; `unmanaged: [{other.key}]` cancels an inherited one")


def _lists(heard: ResolvedValue) -> bool:
    return heard.won.given is not None and isinstance(heard.won.given.value, tuple)


def policy_of(effective: Declared) -> Policy:
    """The policy that the declarations make."""
    values: dict[str, Any] = {}
    for name, shape in SHAPES.items():
        if shape.keyed:
            values[name] = _under(effective, name) or None
        elif name in effective:
            values[name] = effective[name].value
    return Policy(**values)


def _under(effective: Declared, name: str) -> dict[str, str | tuple[str, ...] | None]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): effective[key].value for key in sorted(effective) if key.startswith(prefix)}
