"""A setting is declared once, as the field of a record: its type, its default and what it takes.

The declaration gives the key of ``tablectl.yaml`` with its JSON Schema and its row in the documentation, the variable
``TABLECTL_…``, the flag of the command line, and the parameter of the Python function. A record of options, such as
those of ``apply``, inherits the settings that a caller may give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from tablectl.model.errors import UsageError
from tablectl.policies.fields import ListOf, Section, Text, Word, YamlField

_SETTING = "setting"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is known about one value besides its name, its type and its default."""

    takes: YamlField
    """The values, how they are read from text, and what they are for."""
    flags: Sequence[str] = ()
    """Its options on the command line, such as ``--verbose`` and ``-v``; empty for an argument."""
    metavar: str = ""
    shown_default: str = ""
    """The default as the command line shows it, if it is shown."""

    def checked(self, name: str, value: Any) -> Any:
        """The value of a parameter of a Python function. Raises ``UsageError`` for one that is not allowed."""
        takes = self.takes
        if isinstance(takes, ListOf):
            return (value,) if isinstance(value, str | Path) else tuple(value)
        try:
            if isinstance(takes, Text) and not isinstance(value, Path):
                return takes.parse(f"{value:g}" if isinstance(value, float) else str(value))
        except ValueError as error:
            raise UsageError(f"{name}={value!r}: {error or f'it is not {takes.noun}'}") from None
        if isinstance(takes, Word) and value not in {*takes.words, *takes.meaning.values()}:
            raise UsageError(f"{name}={value!r}: it takes {takes.takes}")
        return value


def setting(default: Any, takes: YamlField, *flags: str, metavar: str = "", shown: str = "") -> Any:
    """A field of a record that is a setting. ``flags`` are its options on the command line."""
    about = {_SETTING: Setting(takes=takes, flags=flags, metavar=metavar, shown_default=shown)}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=about)
    return field(default=default, metadata=about)


def settings_of(record: Any) -> Iterator[tuple[Field[Any], Setting]]:
    """The settings of a record: those of the class itself first, then those that it inherits."""
    own = record.__annotations__
    for each in sorted(fields(record), key=lambda each: each.name not in own):
        if _SETTING in each.metadata:
            yield each, each.metadata[_SETTING]


def section(make: Callable[[], Any], description: str = "", **more: Any) -> Section:
    """The section of a file that a record declares."""
    keys = {each.name: about.takes for each, about in settings_of(make)}
    return Section(make=make, keys=keys, description=description, **more)


def given_settings(record: Any, base: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some values that ``record`` inherits from ``base``."""
    names = {each.name for each in fields(base)} & {each.name for each in fields(record)}
    return {name: value for name, value in given.items() if name in names}
