"""The types of configuration keys: single values, commands, lists, sections of known keys, maps of user keys.

A tree of these types describes a file. ``read_section`` turns plain values into the dataclasses that the tree names. It
reports all errors at once, each with its position.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from tablectl.model.errors import Problem
from tablectl.policies.config_file import Keys, Places, key_text
from tablectl.policies.suggestions import did_you_mean, nearest, shown
from tablectl.policies.yaml_nodes import SourceFile

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_PASSWORD = re.compile(r"//[^/@]*:[^/@]*@")
_DURATION = re.compile(r"(?:(?P<days>[0-9]{1,4})d)? ?(?:(?P<hours>[0-9]{1,4})h)? ?(?:(?P<minutes>[0-9]{1,5})m)?")


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A single value."""

    needs: str
    """The type, for messages: ``text``, ``a whole number``."""
    parse: Callable[[str], object]
    """Converts the file's text to the value of the dataclass. Raises ``ValueError`` whose text says what is needed."""
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    """The values as JSON Schema. It may allow more than ``parse``."""


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map with user-defined keys."""

    of: Takes
    why_not: Callable[[str], str] = lambda _key: ""
    """The error in a key; empty if the key is valid."""
    names: Mapping[str, Any] = field(default_factory=dict)
    """The keys as JSON Schema. It may allow more than ``why_not``."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list, read as a tuple."""

    of: Takes


@dataclass(frozen=True, slots=True)
class Command:
    """A command: a list of arguments, or a text that is split as a shell would split it. No shell runs it."""


@dataclass(frozen=True, slots=True)
class ConfigOptions:
    """A map of single values with the keys of another library. Only the names of the keys are checked."""

    of: ConfigValue
    known: frozenset[str]
    secrets: Mapping[str, str]
    """Names that are not allowed → the environment variable to use instead. A secret in Git is leaked."""


@dataclass(frozen=True, slots=True)
class ConfigSection:
    """A map of known keys, each a field of a dataclass. ``make`` creates the dataclass with its defaults."""

    make: Callable[[], Any]
    keys: Mapping[str, Takes]
    about: Mapping[str, str] = field(default_factory=dict)
    """What each key is for, in one sentence."""
    required: Sequence[str] = ()
    later: Sequence[str] = ()
    """Keys that are planned but not implemented."""
    only_at_the_top: Sequence[str] = ()
    """Keys that exist at the top level of the file only."""
    short: str = ""
    """The key whose value can replace the whole section if it is the only key."""
    check: Callable[[Any], str] = lambda _made: ""
    """The error in the section as a whole, checked after its keys; empty if there is none."""


Takes = ConfigValue | MapOf | ListOf | ConfigOptions | Command | ConfigSection


def text(parse: Callable[[str], object] = str, **schema: Any) -> ConfigValue:
    """A text that ``parse`` accepts. ``schema`` adds to its JSON Schema."""
    return ConfigValue("text", parse, {"type": "string", **schema})


def word(*words: str) -> ConfigValue:
    """One of several words."""
    needs = " or ".join(f"'{each}'" for each in words)

    def parse(given: str) -> str:
        if given not in words:
            raise ValueError(f"needs {needs}")
        return given

    return ConfigValue(needs, parse, {"enum": [*words]})


def flag() -> ConfigValue:
    """``true`` or ``false``."""

    def parse(given: str) -> bool:
        if given not in {"true", "false"}:
            raise ValueError("needs true or false")
        return given == "true"

    return ConfigValue("true or false", parse, {"type": "boolean"})


def whole(least: int, most: int) -> ConfigValue:
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

    return ConfigValue("a whole number", parse, {"type": "integer", "minimum": least, "maximum": most})


def number(least: float, most: float) -> ConfigValue:
    """A number within inclusive bounds, with or without decimals."""

    def parse(given: str) -> float:
        if _NUMBER.fullmatch(given) is None:
            raise ValueError("needs a number")
        found = float(given)
        if not least <= found <= most:
            raise ValueError(f"needs a number from {least:g} to {most:g}")
        return found

    return ConfigValue("a number", parse, {"type": "number", "minimum": least, "maximum": most})


def duration(most: timedelta) -> ConfigValue:
    """A duration in days, hours and minutes: ``2h30m``."""

    def parse(given: str) -> timedelta:
        found = _DURATION.fullmatch(given)
        if found is None or not given:
            raise ValueError("needs a duration, such as 2h30m or 1d")
        length = timedelta(**{unit: int(number) for unit, number in found.groupdict().items() if number})
        if not length:
            raise ValueError("needs a duration longer than nothing")
        if length > most:
            raise ValueError(f"needs a duration of at most {most.days}d")
        return length

    return ConfigValue("a duration", parse, {"type": "string", "examples": ["2h30m", "1d"]})


def variables_of(section: ConfigSection, keys: Keys = ()) -> Iterator[tuple[str, Keys]]:
    """The environment variables that set single values, with the keys that each sets."""
    for key, takes in section.keys.items():
        match takes:
            case ConfigSection():
                yield from variables_of(takes, (*keys, key))
            case ConfigValue():
                yield "_".join(("TABLECTL", *keys, key)).upper(), (*keys, key)


def read_section(
    section: ConfigSection, values: Mapping[str, Any], places: Places, file: SourceFile, problems: list[Problem]
) -> object:
    """Reads a whole file, including defaults. Errors are added to ``problems``, and wrong values keep their
    defaults.
    """
    return _Reading(places, file, problems).section(section, values, ())


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads values by key: texts, nested maps, ``None`` for null."""

    places: Places
    file: SourceFile
    problems: list[Problem]

    def section(self, section: ConfigSection, values: Mapping[str, Any], keys: Keys) -> object:
        made = section.make()
        for key, value in values.items():
            path = (*keys, key)
            if key not in section.keys:
                self._refuse(path, section)
            # Null is valid only if it is the default.
            elif value is not None or getattr(made, key) is not None:
                found = self._read(section.keys[key], value, path)
                made = made if found is None else replace(made, **{key: found})
        absent = [key for key in section.required if values.get(key) is None]
        if absent:
            self._report(keys, f"needs {' and '.join(f'`{key}`' for key in absent)}")
        elif wrong := section.check(made):
            self._report(keys, wrong)
        return made

    def _read(self, takes: Takes, value: Any, keys: Keys) -> object | None:
        match takes:
            case ConfigValue():
                return self._value(takes, value, keys)
            case MapOf() if isinstance(value, dict):
                return self._map(takes, value, keys)
            case ConfigOptions() if isinstance(value, dict):
                return self._options(takes, value, keys)
            case ListOf() if isinstance(value, list):
                items = [self._read(takes.of, each, (*keys, str(number))) for number, each in enumerate(value, 1)]
                return tuple(each for each in items if each is not None)
            case ListOf():
                self._report(keys, f"takes a list, not {_kind(value)}", "put each of its items behind a dash")
                return None
            case Command():
                return self._command(value, keys)
            case ConfigSection() if isinstance(value, dict):
                return self.section(takes, value, keys)
            case ConfigSection(short=short) if short and isinstance(value, str):
                return self.section(takes, {short: value}, keys)
            case _:
                self._report(keys, f"takes a map, not {_kind(value)}", f"put its keys under {key_text(keys)}")
                return None

    def _map(self, takes: MapOf, values: Mapping[str, Any], keys: Keys) -> dict[str, object]:
        read: dict[str, object] = {}
        for key, value in values.items():
            reason = takes.why_not(key)
            if reason:
                self._report((*keys, key), reason)
            elif (found := self._read(takes.of, value, (*keys, key))) is not None:
                read[key] = found
        return read

    def _options(self, takes: ConfigOptions, values: Mapping[str, Any], keys: Keys) -> dict[str, object]:
        read: dict[str, object] = {}
        for key, value in values.items():
            path = (*keys, key)
            if key in takes.secrets:
                self._report(path, "is a secret", f"put it into the environment, as {takes.secrets[key]}")
            elif isinstance(value, str) and _PASSWORD.search(value):
                self._report(path, "holds a password", "put it into the environment")  # the message must not contain it
            elif key not in takes.known:
                hint = f"known are {', '.join(sorted(takes.known))}"
                meant = nearest(key, takes.known)
                self._report(path, "is not an option", f"did you mean `{meant}`? {hint}" if meant else hint)
            elif (found := self._value(takes.of, value, path)) is not None:
                read[key] = found
        return read

    def _value(self, takes: ConfigValue, value: Any, keys: Keys) -> object | None:
        if not isinstance(value, str):
            self._report(keys, f"needs {takes.needs}, not {_kind(value)}")
            return None
        try:
            return takes.parse(value)
        except ValueError as error:
            self._report(keys, f"{error}, not {shown(value)}")
            return None

    def _command(self, value: Any, keys: Keys) -> tuple[str, ...] | None:
        try:
            words = shlex.split(value) if isinstance(value, str) else value
        except ValueError as error:  # an unclosed quote
            self._report(keys, f"is no command: {str(error).lower()}")
            return None
        if not isinstance(words, list) or not words or not all(isinstance(each, str) for each in words):
            self._report(keys, f"needs a command, not {_kind(value)}", "for example [./pause.sh, nightly]")
            return None
        if not words[0] or any("\0" in word for word in words):
            self._report(keys, "needs a command with a name, and without NUL")
            return None
        return tuple(words)

    def _refuse(self, keys: Keys, section: ConfigSection) -> None:
        if keys[-1] in section.later:
            self._report(keys, "is not supported yet", "remove it: this version would not act on it")
            return
        meant = nearest(keys[-1], (*section.keys, *section.only_at_the_top))
        hint = did_you_mean(keys[-1], tuple(section.keys))
        if meant in section.only_at_the_top:
            hint = f"`{meant}:` goes at the top level of the file: it is one for all environments"
        self.problems.append(self._place(keys).problem(f"unknown key {shown('.'.join(keys))}", hint))

    def _report(self, keys: Keys, message: str, hint: str = "") -> None:
        self.problems.append(self._place(keys).problem(f"{key_text(keys)} {message}", hint))

    def _place(self, keys: Keys) -> SourceFile:
        """The position of the innermost key that has one."""
        return next(
            (self.places[keys[:end]] for end in range(len(keys), 0, -1) if keys[:end] in self.places), self.file
        )


def _kind(value: Any) -> str:
    match value:
        case str():
            return shown(value)
        case None:
            return "nothing"
        case _:
            return "a list" if isinstance(value, list) else "a map"
