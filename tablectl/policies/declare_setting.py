"""A setting is declared once, as the field of a record: its type, its default and what it takes.

The declaration gives the key of ``tablectl.yaml`` with its JSON Schema and its row in the documentation, the variable
``TABLECTL_…``, the flag of the command line, and the parameter of the Python function. A record of options, such as
those of ``apply``, inherits the settings that a caller may give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from inspect import get_annotations
from pathlib import Path
from typing import Any

from tablectl.model.errors import UsageError
from tablectl.policies.field_types import ListOf, MapOf, Text, Word, YamlField
from tablectl.policies.value_kinds import number_text

_SETTING = "setting"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is known about one value besides its name, its type and its default."""

    takes: YamlField
    """The values, how they are read from text, and what they are for."""
    flags: Sequence[str] = ()
    """Its options on the command line, such as ``--verbose`` and ``-v``; empty for an argument."""
    metavar: str = ""
    empty: str = ""
    """What to do about a flag with an empty text, if that is wrong."""
    values: int = 1
    """The number of values behind a flag; more than one are a list."""

    def parsed(self, name: str, text: str) -> Any:
        """The value of a text. ``name`` is that of the flag or parameter. Raises ``UsageError`` for a wrong text."""
        takes = self.takes.of if isinstance(self.takes, ListOf) else self.takes
        if not text and self.empty:
            raise UsageError(f"{name} is empty", self.empty)
        try:
            return takes.parse(text) if isinstance(takes, Text) else text
        except ValueError as error:
            example = f"for example {name} {takes.example}" if isinstance(takes, Text) and takes.example else ""
            if isinstance(takes, Text) and takes.noun:
                raise UsageError(f"{name} {text!r} is not {takes.noun}", example) from None
            raise UsageError(f"{name} {error}, not {text!r}", example) from None

    def checked(self, name: str, value: Any) -> Any:
        """The value of a parameter of a Python function. Raises ``UsageError`` for one that is not allowed."""
        takes = self.takes
        if isinstance(takes, ListOf) and isinstance(value, str | Path):
            return (value,)
        if isinstance(takes, ListOf) and isinstance(value, Iterable):
            return tuple(value)
        if isinstance(takes, ListOf) and isinstance(value, int | float):
            raise UsageError(f"{name}={value!r}: it takes a text or a list of texts")
        if isinstance(takes, MapOf) and not isinstance(value, Mapping):
            raise UsageError(f"{name}={value!r}: it takes a dictionary")
        if isinstance(takes, Word) and value not in {*takes.words, *takes.meaning.values()}:
            raise UsageError(f"{name}={value!r}: it takes {takes.takes}")
        if isinstance(takes, Text) and isinstance(value, str | int | float) and value != "":
            return self.parsed(f"`{name}`", number_text(value) if isinstance(value, float) else str(value))
        return value


REQUIRED: Any = MISSING
"""The default of a setting without one."""


def setting(default: Any, takes: YamlField, *flags: str, metavar: str = "", empty: str = "", values: int = 1) -> Any:
    """A field of a record that is a setting. ``flags`` are its options on the command line."""
    about = {_SETTING: Setting(takes=takes, flags=flags, metavar=metavar, empty=empty, values=values)}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=about)
    return field(default=default, metadata=about)


def settings_of(record: Any) -> Iterator[tuple[Field[Any], Setting]]:
    """The settings of a record: those of the class itself first, then those that it inherits."""
    declared = [name for each in record.__mro__ for name in get_annotations(each)]
    for each in sorted(fields(record), key=lambda each: declared.index(each.name)):
        if _SETTING in each.metadata:
            yield each, each.metadata[_SETTING]


def given_settings(record: Any, base: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some values that ``record`` inherits from ``base``."""
    names = {each.name for each in fields(base)} & {each.name for each in fields(record)}
    return {name: value for name, value in given.items() if name in names}
