"""Merges declarations into effective values, attribute by attribute: defaults < profiles < patterns < the table's own
entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any

from tablectl.attributes.policy import CONTRADICTIONS, EXCLUSIVE, VALUE_TYPES, Policy, attribute
from tablectl.frozen import frozen
from tablectl.model.errors import Problem
from tablectl.policies.policy_fields import OF_A_TABLE
from tablectl.policies.value_reader import GivenValue
from tablectl.policies.yaml_nodes import SourceFile

Declared = Mapping[str, GivenValue]
"""The declarations of a map, flattened: ``isolation``, ``properties.owner.team``, ``tags``, ``location``."""


class LayerKind(StrEnum):
    """The maps of a file that can apply to a table, with the highest precedence first."""

    TABLE = "table"
    PATTERN = "pattern"
    PROFILE = "profile"
    DEFAULTS = "defaults"


@frozen
class Layer:
    """One map of a file that applies to a table."""

    kind: LayerKind
    name: str
    """The pattern or the name of the profile; empty for the other kinds."""
    declared: Declared
    unmanaged: Mapping[str, SourceFile] = field(default_factory=dict)
    """The attributes and ``properties.<key>`` that it cancels in the layers below."""

    def declared_value(self, key: str) -> DeclaredValue | None:
        """The layer's declaration for a key; ``None`` if it has none."""
        if key in self.declared:
            return DeclaredValue(self.kind, self.name, self.declared[key], self.declared[key].source)
        for name in (key, key.partition(".")[0]):
            if name in self.unmanaged:
                return DeclaredValue(self.kind, self.name, None, self.unmanaged[name])
        return None


Ranks = Sequence[Sequence[Layer]]
"""The highest precedence first. Layers of the same rank must not contradict each other."""


@frozen
class DeclaredValue:
    """One layer's declaration for one key: a value, or ``None`` for unmanaged."""

    kind: LayerKind
    name: str
    """As in ``Layer``."""
    given: GivenValue | None
    source: SourceFile

    @property
    def title(self) -> str:
        """The layer, for messages: the pattern, ``profile gold``, ``defaults``; empty for the table's own entry."""
        match self.kind:
            case LayerKind.TABLE | LayerKind.PATTERN:
                return self.name
            case LayerKind.PROFILE | LayerKind.DEFAULTS:
                return f"{self.kind} {self.name}".rstrip()


@frozen
class ResolvedValue:
    """The declarations of all layers for one key."""

    key: str
    rank: int
    won: DeclaredValue
    over: tuple[DeclaredValue, ...]
    """The overridden declarations, highest precedence first."""
    tie: DeclaredValue | None = None
    """A different declaration of the same rank; ``None`` if there is none."""


def merge(ranks: Ranks) -> tuple[ResolvedValue, ...]:
    """Merges the layers by key, with the attributes in the order of plans. A list replaces a list. Properties merge by
    key, because each is a separate key here. ``unmanaged`` cancels the values of the layers below; ``properties``
    cancels all.
    """
    layers = [layer for rank in ranks for layer in rank]
    keys = {key for layer in layers for key in (*layer.declared, *layer.unmanaged)}
    order = {name: index for index, name in enumerate(OF_A_TABLE)}
    found = (resolve_key(key, ranks) for key in sorted(keys, key=lambda key: (order[key.partition(".")[0]], key)))
    return tuple(each for each in found if each)


def resolve_key(key: str, ranks: Ranks) -> ResolvedValue | None:
    """The declarations of all layers for one key; ``None`` if there are none."""
    all_declared = [
        (rank, declared_value) for rank, layers in enumerate(ranks) for declared_value in _all_declared(key, layers)
    ]
    if not all_declared:
        return None
    (best, won), *rest = all_declared
    tie = next(
        (declared_value for rank, declared_value in rest if rank == best and not _same(key, won, declared_value)), None
    )
    return ResolvedValue(key, best, won, tuple(declared_value for _, declared_value in rest), tie)


def _all_declared(key: str, layers: Sequence[Layer]) -> list[DeclaredValue]:
    found = (layer.declared_value(key) for layer in layers)
    return sorted(
        (declared_value for declared_value in found if declared_value), key=lambda declared_value: declared_value.source
    )


def _same(key: str, one: DeclaredValue, other: DeclaredValue) -> bool:
    """Whether two declarations mean the same, as in the comparison with live tables: two spellings of an interval are
    equal.
    """
    if one.given is None or other.given is None:
        return one.given is other.given
    name, _, inner = key.partition(".")
    first, second = one.given.value, other.given.value
    if first is None or second is None or name not in VALUE_TYPES:
        return first == second
    entry = attribute(name)
    first, second = (entry.value_type.written(inner, each) for each in (first, second))
    return entry.agrees(first, second, inner) and entry.agrees(second, first, inner)


def effective(resolved: Sequence[ResolvedValue]) -> Declared:
    """The effective values by key."""
    return {each.key: each.won.given for each in resolved if each.won.given}


def check_exclusive(resolved: Sequence[ResolvedValue]) -> Problem | None:
    """Reports the first of ``exclusive_pairs``, at the declaration with the higher precedence."""
    found = next(exclusive_pairs(resolved), None)
    if found is None:
        return None
    one, other = sorted(found, key=lambda each: each.rank)
    if not _lists(one) or not _lists(other):
        return _contradiction(one, other)
    message = f"`{one.key}` and `{other.key}` exclude each other, and `{other.key}` stands at {other.won.source}"
    hint = f"remove one, or declare it `none`; `unmanaged: [{other.key}]` cancels an inherited one"
    return one.won.source.problem(message, hint)


def exclusive_pairs(resolved: Sequence[ResolvedValue]) -> Iterator[tuple[ResolvedValue, ...]]:
    """The pairs of values that no policy can declare together: contradictions, and two exclusive attributes that list
    columns.
    """
    said = {(each.key, _folded(each)): each for each in resolved if each.won.given}
    for pair in (*CONTRADICTIONS, *_within(resolved)):
        if all(each in said for each in pair):
            yield tuple(said[each] for each in pair)
    listing = {each.key: each for each in resolved if _lists(each)}
    yield from (tuple(listing[name] for name in pair) for pair in EXCLUSIVE if all(name in listing for name in pair))


def _folded(resolved: ResolvedValue) -> Any:
    """The value, with ``true`` in one spelling: Delta ignores its letter case."""
    value = resolved.won.given.value if resolved.won.given else None
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
    first, second = (f"`{each.key}: {each.won.given and each.won.given.shown()}`" for each in (one, other))
    message = f"{first} and {second} exclude each other, and {second} stands at {other.won.source}"
    return one.won.source.problem(message, f"change one; `unmanaged: [{other.key}]` cancels an inherited one")


def _lists(resolved: ResolvedValue) -> bool:
    return resolved.won.given is not None and isinstance(resolved.won.given.value, tuple)


def policy_of(effective: Declared) -> Policy:
    """Builds the policy from the effective declarations."""
    values: dict[str, Any] = {}
    for name, value_type in VALUE_TYPES.items():
        if value_type.mapped:
            values[name] = _under(effective, name) or None
        elif name in effective:
            values[name] = effective[name].value
    return Policy(**values)


def _under(effective: Declared, name: str) -> dict[str, str | tuple[str, ...] | None]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): effective[key].value for key in sorted(effective) if key.startswith(prefix)}
