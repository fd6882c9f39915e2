"""The types of attribute values: one of several words, a list of columns, or a map of keys to texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from tablectl.delta.dialects import EVERY_DIALECT
from tablectl.delta.properties import written_text
from tablectl.support.frozen import frozen

_Value = TypeVar("_Value")
Declared = str | tuple[str, ...] | Mapping[str, str | None]
"""The value of an attribute in a policy."""


@frozen(kw_only=True)
class FieldType:
    """One value of an attribute that is a map with fixed keys."""

    name: str
    key: str
    """The table property that stores it."""
    description: str
    parse: Callable[[str], object]
    """Raises ``ValueError`` for a text that is not a value."""
    words: tuple[str, ...]
    """Values besides those that ``parse`` takes."""
    example: str

    def why_not(self, text: str) -> str:
        """Why a text is not a value, as a clause; empty if it is one."""
        try:
            if text not in self.words:
                self.parse(text)
        except ValueError as error:
            return str(error)
        return ""


@frozen(kw_only=True)
class NamedValues:
    """A map whose keys are names, such as those of features or constraints."""

    takes: str
    """Its keys and values, for messages: ``features to `supported` or `dropped```."""
    example: str
    why_not: Callable[[str, str], tuple[str, str]]
    """Why a policy cannot declare a value under a name, and what to do instead; both empty if it can."""
    names: tuple[str, ...] = ()
    """The known names; empty if users choose them."""
    words: tuple[str, ...] = ()
    """Values besides texts that users choose."""


@frozen(kw_only=True)
class ValueType:
    """The values that a policy may declare for one attribute."""

    name: str
    description: str
    words: tuple[str, ...] = ()
    columns: bool = False
    keyed: bool = False
    """Whether the value is a map whose keys are properties."""
    fields: tuple[FieldType, ...] = ()
    """The keys of a map with fixed keys."""
    named: NamedValues | None = None
    """Set if the value is a map whose keys are names."""
    most_columns: int | None = None
    """The maximum number of columns, if Delta limits it."""
    top_level: bool = False
    """Whether columns cannot be fields of a struct."""
    dialects: frozenset[str] = EVERY_DIALECT
    """The dialects that have the attribute."""

    @property
    def mapped(self) -> bool:
        """Whether the value is a map, of which each key is a value of its own."""
        return self.keyed or bool(self.fields) or self.named is not None

    def written(self, key: str, value: _Value) -> _Value | str:
        """A value of a key, with the text that every client reads."""
        stored = next((each.key for each in self.fields if each.name == key), key)
        return written_text(stored, value) if key and isinstance(value, str) and not self.named else value

    @property
    def takes(self) -> str:
        """The permitted values, as a clause for messages."""
        if self.keyed:
            return "takes a map of keys to texts"
        if self.named:
            return f"takes a map of {self.named.takes}"
        if self.fields:
            return f"takes a map with {' and '.join(f'`{each.name}`' for each in self.fields)}"
        if self.columns:
            return " or ".join(("takes a list of columns", *(f"`{word}`" for word in self.words)))
        return f"takes one of {', '.join(self.words)}"

    @property
    def example(self) -> str:
        """A valid line, for hints."""
        if self.keyed:
            return f"`{self.name}: {{owner.team: payments}}`"
        if self.named:
            return f"`{self.name}: {self.named.example}`"
        if self.fields:
            return f"`{self.name}: {{{self.fields[0].name}: {self.fields[0].example}}}`"
        return f"`{self.name}: {'[customer_id, order_date]' if self.columns else self.words[0]}`"

    def admits(self, value: object) -> bool:
        """Whether a policy may declare this value. Checks only the value's form, not its meaning."""
        match value:
            case str():
                return value in self.words
            case tuple():
                few = len(value) <= (self.most_columns or len(value))
                return self.columns and bool(value) and few and all(isinstance(each, str) and each for each in value)
            case Mapping() if self.named:
                return bool(value) and all(
                    isinstance(each, str) and not self.named.why_not(key, each)[0] for key, each in value.items()
                )
            case Mapping() if self.fields:
                fields = {each.name: each for each in self.fields}
                return bool(value) and all(
                    key in fields and isinstance(each, str) and not fields[key].why_not(each)
                    for key, each in value.items()
                )
            case Mapping():
                texts = all(each is None or isinstance(each, str) for each in value.values())
                return self.keyed and texts and all(isinstance(key, str) for key in value)
            case _:
                return False
