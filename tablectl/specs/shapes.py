"""The YAML shape of each attribute, read off the fields of ``Policy``: a new field needs no edit here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import Any, Literal, get_args, get_origin

from tablectl.attributes.clustering import MAX_COLUMNS
from tablectl.attributes.policy import Policy


@dataclass(frozen=True, slots=True)
class Shape:
    """What one attribute takes: one of some words, a list of columns, or a map of keys to texts."""

    name: str
    description: str
    words: tuple[str, ...] = ()
    columns: bool = False
    keyed: bool = False

    @property
    def takes(self) -> str:
        """For messages."""
        if self.keyed:
            return "takes a map of keys to texts"
        if self.columns:
            return " or ".join(("takes a list of columns", *(f"`{word}`" for word in self.words)))
        return f"takes one of {', '.join(self.words)}"

    @property
    def example(self) -> str:
        """A line that is right, for hints."""
        if self.keyed:
            return f"`{self.name}: {{owner.team: payments}}`"
        return f"`{self.name}: {'[customer_id, order_date]' if self.columns else self.words[0]}`"


def _shape(name: str, annotation: object, description: str) -> Shape:
    kinds = tuple(_flatten(annotation))
    return Shape(
        name=name,
        description=description,
        words=tuple(word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)),
        columns=any(get_origin(kind) is tuple for kind in kinds),
        keyed=any(get_origin(kind) is Mapping for kind in kinds),
    )


def _flatten(annotation: Any) -> Iterable[object]:
    if get_origin(annotation) in {Literal, tuple, Mapping}:
        yield annotation
        return
    for part in get_args(annotation):
        if part is not NoneType:
            yield from _flatten(part)


SHAPES: Mapping[str, Shape] = MappingProxyType(
    {name: _shape(name, field.annotation, field.description or "") for name, field in Policy.model_fields.items()}
)
"""By attribute, in the order of plans."""

MOST_COLUMNS: Mapping[str, int] = MappingProxyType({"clustering": MAX_COLUMNS})
"""How many columns an attribute takes at most, where Delta limits them."""

TOP_LEVEL = frozenset({"partitioning"})
"""Attributes whose columns cannot be fields of a struct."""

EXCLUSIVE = ("clustering", "partitioning")
"""At most one of these lists columns."""

LATER_ATTRIBUTES = ("row_tracking", "column_mapping", "uniform")
"""Attributes of the design that are not built yet."""

LATER_WORDS = frozenset({("deletion_vectors", "dropped"), ("clustering", "auto")})
"""Values of the design that are not built yet."""
