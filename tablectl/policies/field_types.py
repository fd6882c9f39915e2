"""What an option of a command takes, for the commands whose options are the fields of a record."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from tablectl.model.calendar import parse_duration
from tablectl.policies.value_kinds import TEXT, number_text

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?")
_FLAG = ("true", "false")


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlField:
    """What one option takes."""

    description: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(YamlField):
    """A single value that ``parse`` converts."""

    parse: Callable[[str], object] = str
    """Raises ``ValueError``, whose text says what is needed. It can be empty if ``noun`` is given."""
    noun: str = ""
    """The value, for messages: ``a size``."""
    values: Mapping[str, Any] = field(default_factory=lambda: dict(TEXT))
    """The values as JSON Schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word(YamlField):
    """One of several words."""

    words: tuple[str, ...]
    meaning: Mapping[str, object] = field(default_factory=dict)
    """The values that words stand for, if not themselves."""

    @property
    def is_flag(self) -> bool:
        """Whether it is true or false."""
        return self.words == _FLAG

    @property
    def takes(self) -> str:
        """The words, for messages."""
        return f"one of {', '.join(self.words)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf(YamlField):
    """Several values."""

    of: YamlField


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf(YamlField):
    """Values by name."""

    of: YamlField
    why_not: Callable[[str], str] = lambda _key: ""
    """The error in a key; empty if the key is valid."""


def flag(description: str = "") -> Word:
    """``true`` or ``false``, read as a boolean."""
    return Word(words=_FLAG, meaning={"true": True, "false": False}, description=description)


def whole(least: int, most: int, description: str = "") -> Text:
    """A whole number within inclusive bounds."""

    def parse(given: str) -> int:
        if _WHOLE.fullmatch(given) is None:
            raise ValueError("needs a whole number")
        number = int(given[:20])  # more digits exceed every bound
        if number < least:
            raise ValueError(f"needs at least {least}")
        if number > most:
            raise ValueError(f"needs at most {most}")
        return number

    return Text(parse=parse, values={"type": "integer", "minimum": least, "maximum": most}, description=description)


def number(least: float, most: float, description: str = "") -> Text:
    """A number within inclusive bounds, with or without decimals."""

    def parse(given: str) -> float:
        if _NUMBER.fullmatch(given) is None:
            raise ValueError("needs a number")
        found = float(given)
        if not least <= found <= most:
            raise ValueError(f"needs a number from {number_text(least)} to {number_text(most)}")
        return found

    return Text(parse=parse, values={"type": "number", "minimum": least, "maximum": most}, description=description)


def duration(most: timedelta, description: str = "") -> Text:
    """A duration in days, hours and minutes: ``2h30m``."""
    return Text(parse=partial(parse_duration, most=most), description=description)
