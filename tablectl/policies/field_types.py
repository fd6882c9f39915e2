"""The field language of policy files and ``tablectl.yaml``: what a key takes, how it is read, and its JSON Schema.

A tree of these fields describes each file: ``policy_fields`` and ``config``. ``YamlField.read`` reads a YAML node and
reports all errors at once, each with its position. ``YamlField.schema`` describes the same field to editors. It may
accept more than ``read`` in cases that JSON Schema cannot express.
"""

from __future__ import annotations

import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from tablectl.delta.credentials import find_credentials
from tablectl.model.calendar import parse_duration
from tablectl.policies.spelling_hints import did_you_mean, nearest, shown
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import VARIABLE
from tablectl.policies.yaml_nodes import ListNode, MapNode, Node, Scalar, SourceFile, kind_of

Schema = dict[str, Any]

Keys = tuple[str, ...]
"""The keys that lead to a value."""

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?")
_FLAG = ("true", "false")
_ON, _OFF = ("enabled", "allowed"), ("disabled", "none", "refused")
_SWITCHES = {"true": _ON, "on": _ON, "yes": _ON, "false": _OFF, "off": _OFF, "no": _OFF}
"""Words that people write for a switch, each with the words that may stand for it."""

TEXT: Schema = {"type": ["string", "integer", "boolean"]}
"""The types that count as text. YAML reads a plain 60 or true as these types."""
WITH_VARIABLE: Schema = {"type": "string", "pattern": VARIABLE}


def key_text(keys: Keys) -> str:
    """The name of a key in messages: ```engine.dialect```."""
    name = ".".join(keys)
    return f"`{name}`" if name.isprintable() else shown(name)


@dataclass(frozen=True, slots=True)
class FieldName:
    """How messages name a field."""

    keys: Keys
    """The keys that lead to it."""
    text: str = ""
    """Its name if it is not the keys: ``a column of `clustering```."""
    example: str = ""
    """A valid entry, for hints; empty if the field has none."""

    def __str__(self) -> str:
        return self.text or key_text(self.keys)

    @property
    def hint(self) -> str:
        """The example as a hint."""
        return f"for example `{self.example}`" if self.example else ""

    def of(self, one: YamlField) -> FieldName:
        """The same name with the example of a field, if it has one."""
        return replace(self, example=f"{self.keys[-1]}: {one.example}") if one.example and self.keys else self

    def key(self, key: str) -> FieldName:
        """The name of a key below this one."""
        return FieldName((*self.keys, key))

    def item(self, key: str, what: str = "") -> FieldName:
        """The name of an item of a list or a map: its number or key, or ``what`` it is: ``a column``."""
        return FieldName((*self.keys, key), f"{what} of {self}" if what else "", self.example)


_SECRETS: tuple[Keys, ...] = (
    ("notify",),
    ("engine", "conf"),
    ("engine", "remote"),
    ("window", "before"),
    ("window", "after"),
)
"""Settings whose values can hold secrets: addresses of servers, commands, settings of Spark."""


def own_keys(keys: Keys) -> Keys:
    """The keys of a setting without those of its environment."""
    return keys[2:] if keys[:1] == ("env",) else keys


def is_secret(keys: Keys) -> bool:
    """Whether no message shows the value of a key in ``tablectl.yaml``."""
    return any(own_keys(keys)[: len(each)] == each for each in _SECRETS)


def _told(text: str, name: FieldName) -> str:
    """A value for messages."""
    return "this" if is_secret(name.keys) else shown(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlField(ABC):
    """What one key takes."""

    description: str = ""
    """What the key is for, in one sentence."""
    example: str = ""
    """A valid value, for hints."""
    editor: Mapping[str, Any] = field(default_factory=dict)
    """Additions to the JSON Schema, such as ``examples``."""

    @property
    @abstractmethod
    def takes(self) -> str:
        """The permitted values, for messages: ``text``, ``a list of columns``."""

    @abstractmethod
    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:
        """The value; ``None`` after a problem was reported."""

    @abstractmethod
    def form(self, *, variables: bool) -> Schema:
        """The permitted values as JSON Schema. ``variables``: whether a value may contain ``${NAME}``."""

    def schema(self, *, variables: bool = False) -> Schema:
        """The field as JSON Schema 2020-12."""
        about = {"description": self.description} if self.description else {}
        return {**about, **self.form(variables=variables), **self.editor}

    def refuse(self, node: Node, name: FieldName, reading: ValueReader, hint: str = "") -> None:
        """Report a value of another kind. In a policy, a text can be secret: it comes from variables."""
        told = reading.literal and not is_secret(name.keys)
        given = shown(node.text) if told and isinstance(node, Scalar) and node.text else kind_of(node)
        reading.report(node.source, f"{name} takes {self.takes}, not {given}", name.hint or hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(YamlField):
    """A single value that ``parse`` converts."""

    parse: Callable[[str], object] = str
    """Raises ``ValueError``, whose text says what is needed. It can be empty if ``noun`` is given."""
    noun: str = ""
    """The value, for messages: ``a size``."""
    kind: str = "text"
    values: Schema = field(default_factory=lambda: dict(TEXT))
    """The values as JSON Schema."""

    @property
    def takes(self) -> str:  # noqa: D102
        return self.kind

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        name = name.of(self)
        text = reading.text(node, str(name), f"`{name.example}`" if name.example else "", self.kind)
        if text is None:
            return None
        try:
            return self.parse(text)
        except ValueError as error:
            if self.noun:
                reading.report(node.source, f"{_told(text, name)} is not {self.noun}", str(error) or name.hint)
            else:
                reading.report(node.source, f"{name} {error}, not {_told(text, name)}")
            return None

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        del variables
        return dict(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Word(YamlField):
    """One of several words."""

    words: tuple[str, ...]
    meaning: Mapping[str, object] = field(default_factory=dict)
    """The values that words stand for, if not themselves."""
    others: str = ""
    """What to do about a word that resembles none of these, for its hint."""

    @property
    def is_flag(self) -> bool:
        """Whether it is true or false."""
        return self.words == _FLAG

    @property
    def takes(self) -> str:  # noqa: D102
        return f"one of {', '.join(self.words)}"

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        name = name.of(self if self.example else replace(self, example=self.words[0]))
        if not isinstance(node, Scalar) or node.is_null:
            self.refuse(node, name, reading)
            return None
        word = reading.expand(node)
        if word is not None and word not in self.words:
            self.refuse_word(word, node, name, reading)
            return None
        return None if word is None else self.meaning.get(word, word)

    def refuse_word(self, word: str, node: Scalar, name: FieldName, reading: ValueReader) -> None:
        """Report a word that is not one of these."""
        switch = next((each for each in _SWITCHES.get(word.casefold(), ()) if each in self.words), "")
        hint = f"did you mean `{switch}`?" if switch else "" if nearest(word, self.words) else self.others
        message = f"{_told(word, name)} is not a value of {name}"
        reading.report(node.source, message, hint or did_you_mean(word, self.words))

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        if self.is_flag and not variables:
            return {"type": "boolean"}
        enum = {"enum": [True, False] if self.is_flag else [*self.words]}
        return {"anyOf": [enum, dict(WITH_VARIABLE)]} if variables else enum


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf(YamlField):
    """A list, read as a tuple."""

    of: YamlField
    what: str = ""
    """Its items, for messages: ``consents``."""
    item: str = ""
    """One of them: ``a consent``. If empty, an item is named by its number."""
    unique: str = ""
    """The name of an item in the error that it occurs twice; empty if it may."""
    make: Callable[[Sequence[Any]], tuple[Any, ...]] = tuple

    @property
    def takes(self) -> str:  # noqa: D102
        return f"a list of {self.what}" if self.what else "a list"

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        name = name.of(self)
        if not isinstance(node, ListNode):
            self.refuse(node, name, reading, "put each of its items behind a dash")
            return None
        items = list[Any]()
        for number, item in enumerate(node.items, 1):
            value = self.of.read(item, name.item(str(number), self.item), reading)
            if self.unique and value in items:
                reading.report(item.source, f"{self.unique} {shown(str(value))} occurs twice", "keep one of them")
            elif value is not None:
                items.append(value)
        return self.make(items)

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        return {"type": "array", "items": self.of.schema(variables=variables)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf(YamlField):
    """A map with user-defined keys."""

    of: YamlField
    what: str = ""
    """Its keys and values, for messages: ``clients to versions``."""
    item: str = ""
    """One of its values: ``the version``. If empty, a value is named by its key."""
    why_not: Callable[[str], str] = lambda _key: ""
    """The error in a key; empty if the key is valid."""
    names: Schema = field(default_factory=dict)
    """The keys as JSON Schema. It may allow more than ``why_not``."""

    @property
    def takes(self) -> str:  # noqa: D102
        return f"a map of {self.what}" if self.what else "a map"

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        name = name.of(self)
        if not isinstance(node, MapNode):
            self.refuse(node, name, reading, f"put its keys under {name}")
            return None
        read: dict[str, object] = {}
        for key, (source, inner) in node.entries.items():
            reason = self.why_not(key)
            if reason:
                reading.report(source, f"{name.key(key)} {reason}", name.hint)
                continue
            what = f"{self.item} of {shown(key)}" if self.item else ""
            value = self.of.read(inner, replace(name.item(key), text=what), reading)
            if value is not None:
                read[key] = value
        return read

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        names = {"propertyNames": dict(self.names)} if self.names else {}
        return {"type": "object", **names, "additionalProperties": self.of.schema(variables=variables)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine(YamlField):
    """A command: a list of arguments, or a text that is split as a shell would split it. No shell runs it."""

    @property
    def takes(self) -> str:  # noqa: D102
        return "a command"

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        items: Sequence[Node] = node.items if isinstance(node, ListNode) else ()
        words: Sequence[str] = [each.text for each in items if isinstance(each, Scalar) and not each.is_null]
        if isinstance(node, Scalar) and not node.is_null:
            try:
                words = shlex.split(node.text)
            except ValueError as error:  # an unclosed quote
                reading.report(node.source, f"{name} is not a command: {str(error).lower()}")
                return None
        if not words or (items and len(words) < len(items)):
            reading.report(
                node.source, f"{name} needs a command, not {kind_of(node)}", "for example [./pause.sh, nightly]"
            )
            return None
        if not words[0] or any("\0" in word for word in words):
            reading.report(node.source, f"{name} needs a command with a name, and without NUL")
            return None
        return tuple(words)

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        del variables
        words = {"type": "array", "items": dict(TEXT), "minItems": 1}
        return {"anyOf": [{"type": "string"}, words], "examples": [["./pause.sh", "nightly"]]}


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOptions(YamlField):
    """A map of single values with the keys of another library. Only the names of the keys are checked."""

    of: Text
    known: frozenset[str]
    secrets: Mapping[str, str]
    """Names that are not allowed → the environment variable to use instead. A secret in Git is leaked."""

    @property
    def takes(self) -> str:  # noqa: D102
        return "a map"

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        if not isinstance(node, MapNode):
            self.refuse(node, name, reading, f"put its keys under {name}")
            return None
        read: dict[str, object] = {}
        for key, (source, inner) in node.entries.items():
            wrong = self._why_not(key, inner)
            if wrong:
                reading.report(source, f"{name.key(key)} {wrong[0]}", wrong[1])
            elif (value := self.of.read(inner, name.key(key), reading)) is not None:
                read[key] = value
        return read

    def _why_not(self, key: str, node: Node) -> tuple[str, str] | None:
        if key in self.secrets:
            return "is a secret", f"put it into the environment, as {self.secrets[key]}"
        found = find_credentials(node.text) if isinstance(node, Scalar) else ""
        if found:
            return f"holds {found}", "put it into the environment"  # the message must not contain it
        if key not in self.known:
            hint = f"known are {', '.join(sorted(self.known))}"
            meant = nearest(key, self.known)
            return "is not an option", f"did you mean `{meant}`? {hint}" if meant else hint
        return None

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        known = {key: self.of.schema(variables=variables) for key in sorted(self.known - set(self.secrets))}
        return {"type": "object", "additionalProperties": False, "properties": known}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section(YamlField):
    """A map of known keys. ``make`` creates the record that holds them, with its defaults."""

    keys: Mapping[str, YamlField]
    make: Callable[[], Any] = dict
    """Creates a dataclass with a field per key, or a map."""
    required: Sequence[str] = ()
    only_at_the_top: Sequence[str] = ()
    """Keys that exist at the top level of the file only."""
    gone: Mapping[str, str] = field(default_factory=dict)
    """Keys of earlier versions, each with what to do instead."""
    short: str = ""
    """The key whose value can replace the whole section if it is the only key."""
    check: Callable[[Any], str] = lambda _made: ""
    """The error in the section as a whole, checked after its keys; empty if there is none."""
    named: bool = False
    """Whether messages about the whole section name its keys: for a section with few of them."""

    @property
    def takes(self) -> str:  # noqa: D102
        return f"a map with {' and '.join(f'`{each}`' for each in self.keys)}" if self.named else "a map"

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:
        """The record, in which wrong values have their defaults."""
        name = name.of(self)
        if self.short and isinstance(node, Scalar) and not node.is_null:
            node = MapNode({self.short: (node.source, node)}, node.source)
        if not isinstance(node, MapNode):
            self.refuse(node, name, reading, f"put its keys under {name}")
            return None
        made, values, before = self.make(), dict[str, object](), len(reading.problems)
        for key, (source, inner) in node.entries.items():
            if key not in self.keys:
                self._refuse_key(key, source, name, reading)
            elif not _is_null(inner) or getattr(made, key, "") is not None:  # null only if it is the default
                found = self.keys[key].read(inner, name.key(key), reading)
                values |= {} if found is None else {key: found}
        made = {**made, **values} if isinstance(made, dict) else replace(made, **values)
        given = {key for key, (_, inner) in node.entries.items() if not _is_null(inner)}
        absent = [key for key in self.required if key not in given]
        if absent:
            reading.report(node.source, f"{name} needs {' and '.join(f'`{key}`' for key in absent)}")
        elif len(reading.problems) == before and (wrong := self.check(made)):  # not of a default after a wrong value
            reading.report(node.source, f"{name} {wrong}")
        return made

    def _refuse_key(self, key: str, source: SourceFile, name: FieldName, reading: ValueReader) -> None:
        meant = nearest(key, (*self.keys, *self.only_at_the_top)) if self.only_at_the_top else None
        elsewhere = f"`{meant}:` goes at the top level of the file: it is one for all environments"
        hint = self.gone.get(key) or (elsewhere if meant in self.only_at_the_top else "")
        told = "…" if is_secret(name.keys) and meant is None and key not in self.gone else key
        reading.refuse(key, source, tuple(self.keys), {}, name=".".join((*name.keys, told)), hint=hint)

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        made = self.make()
        keys = {
            key: {**each.schema(variables=variables), **_default(getattr(made, key, None))}
            for key, each in self.keys.items()
        }
        required = {"required": [*self.required]} if self.required else {}
        whole: Schema = {"type": "object", "additionalProperties": False, **required, "properties": keys}
        return {"anyOf": [self.keys[self.short].form(variables=variables), whole]} if self.short else whole


def _default(value: object) -> Schema:
    """What editors show as the default of a key; nothing for a list, a map and an empty text."""
    return {"default": value} if isinstance(value, bool | int | float) or (isinstance(value, str) and value) else {}


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.is_null


def matching(form: re.Pattern[str], why: str = "") -> Callable[[str], str]:
    """A ``parse`` of the texts of one form. ``why`` says what is needed; a field with a ``noun`` needs none."""

    def parse(given: str) -> str:
        if form.fullmatch(given) is None:
            raise ValueError(why)
        return given

    return parse


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

    values: Schema = {"type": "integer", "minimum": least, "maximum": most}
    return Text(parse=parse, kind="a whole number", values=values, description=description)


def number_text(value: float) -> str:
    """A number in full, as the reader takes it: Python's own text can be ``1e-05``."""
    return format(Decimal(repr(float(value))), "f").removesuffix(".0")


def number(least: float, most: float, description: str = "") -> Text:
    """A number within inclusive bounds, with or without decimals."""

    def parse(given: str) -> float:
        if _NUMBER.fullmatch(given) is None:
            raise ValueError("needs a number")
        found = float(given)
        if not least <= found <= most:
            raise ValueError(f"needs a number from {number_text(least)} to {number_text(most)}")
        return found

    values: Schema = {"type": "number", "minimum": least, "maximum": most}
    return Text(parse=parse, kind="a number", values=values, description=description)


def duration(most: timedelta, description: str = "") -> Text:
    """A duration in days, hours and minutes: ``2h30m``."""
    values: Schema = {"type": "string", "examples": ["2h30m", "1d"]}
    return Text(parse=partial(parse_duration, most=most), kind="a duration", values=values, description=description)


def single_values(section: Section, keys: Keys = ()) -> Iterator[tuple[Keys, Text | Word]]:
    """The keys that lead to each single value of a file, and what it takes. Lists and maps have none."""
    for key, each in section.keys.items():
        match each:
            case Section():
                yield from single_values(each, (*keys, key))
            case Text() | Word():
                yield (*keys, key), each


def environment_variables(section: Section) -> Iterator[tuple[str, Keys]]:
    """The environment variables that set single values, with the keys that each sets."""
    for keys, _ in single_values(section):
        yield "_".join(("TABLECTL", *keys)).upper(), keys
