"""What pydantic does not have by itself for the values of policies and ``tablectl.yaml``: they are texts of a file.

A text is ``str``; ``null`` is ``None``; a text that YAML takes for something else is a ``Scalar``. What a validator
raises here, ``wrong_values`` turns into a message with the position.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from tablectl.model.calendar import TIME as _TIME
from tablectl.model.calendar import seconds_of
from tablectl.policies.yaml_nodes import Scalar

TEXT: JsonSchemaValue = {"type": ["string", "integer", "boolean"]}
"""The types that count as text. YAML reads a plain 60 or true as these types."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?")
_AS_WRITTEN: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class FileSection:
    """A record that is a map with fixed keys in a file. Its fields are the keys, with what they take."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


def wrong(why: str, hint: str = "") -> PydanticCustomError:
    """An error about a value as a whole. ``why`` is a clause about it: ``has both a and b``."""
    return PydanticCustomError("whole", "{why}", {"why": why, "hint": hint})


def said(message: str, hint: str = "", *, hidden: bool = True) -> PydanticCustomError:
    """An error with its whole message. ``hidden``: whether it can contain a value that must not be shown."""
    return PydanticCustomError("said", "{message}", {"message": message, "hint": hint, "hidden": hidden})


def no_text(kind: str) -> PydanticCustomError:
    """The error that a value is not a single text. ``kind`` says what is taken: ``a whole number``."""
    return PydanticCustomError("text", "takes {kind}", {"kind": kind})


def _whole(given: object) -> int:
    if not isinstance(given, str):
        raise no_text("a whole number")
    if _WHOLE.fullmatch(given) is None:
        raise ValueError("needs a whole number")
    return int(given[:20])  # more digits exceed every bound


def _number(given: object) -> float:
    text = given.text if isinstance(given, Scalar) and given.tag == "float" else given
    if not isinstance(text, str):
        raise no_text("a number")
    if _NUMBER.fullmatch(text) is None:
        raise ValueError("needs a number")
    return float(text)


WHOLE, NUMBER = BeforeValidator(_whole), BeforeValidator(_number)
"""How an ``int`` and a ``float`` are read, before their bounds."""


@dataclass(frozen=True, eq=False)  # an ``Annotated`` type is hashed
class Time:
    """A length of time: a number of ``unit`` seconds, or a text such as ``5m``, ``1h30m`` or ``90s``."""

    unit: int
    number: Callable[[object], float]
    """Reads a number."""

    def read(self, given: object) -> object:
        """The number of units. Raises ``ValueError``."""
        seconds = seconds_of(given) if isinstance(given, str) else None
        if seconds is not None:
            return seconds / self.unit
        try:
            return self.number(given)
        except ValueError as error:
            if isinstance(error, PydanticCustomError):
                raise
            unit = "seconds" if self.unit == 1 else "minutes"
            raise ValueError(f"needs a length of time, such as 5m, or a number of {unit}") from None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """As pydantic asks for it."""
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """As pydantic asks for it: its bounds are about numbers, the pattern about texts."""
        found = handler(schema)
        return {**found, "type": [found["type"], "string"], "pattern": f"^{_TIME.pattern}$"}


SECONDS, MINUTES = Time(1, _whole), Time(60, _number)
"""How settings that count seconds or minutes are read, before their bounds."""


def number_text(value: float) -> str:
    """A number in full, as the reader takes it: Python's own text can be ``1e-05``."""
    return format(Decimal(repr(float(value))), "f").removesuffix(".0")


class FileValue(ABC):
    """Metadata of an ``Annotated`` type: what a file says instead of the type."""

    @abstractmethod
    def read(self, given: object) -> object:
        """The value of what stands in a file. Raises ``ValueError``."""

    @abstractmethod
    def form(self) -> JsonSchemaValue:
        """What stands in a file as JSON Schema."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """As pydantic asks for it."""
        del source, handler
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """As pydantic asks for it."""
        del schema, handler
        return self.form()


@dataclass(frozen=True, eq=False)  # an ``Annotated`` type is hashed
class Parsed(FileValue):
    """A value that ``parse`` makes of a text."""

    parse: Callable[[str], object]
    """Raises ``ValueError``, whose text says what is needed. It can be empty if ``noun`` is given."""
    noun: str = ""
    """The value, for messages: ``a size``."""
    kind: str = "text"
    schema: Mapping[str, Any] = field(default_factory=lambda: TEXT)
    """The texts as JSON Schema."""

    def read(self, given: object) -> object:  # noqa: D102
        if not isinstance(given, str):
            raise no_text(self.kind)
        try:
            return self.parse(given)
        except PydanticCustomError:
            raise
        except ValueError as error:
            raise PydanticCustomError("parse", "{needs}", {"needs": str(error), "noun": self.noun}) from None

    def form(self) -> JsonSchemaValue:  # noqa: D102
        return dict(self.schema)


@dataclass(frozen=True, eq=False)  # an ``Annotated`` type is hashed
class Words(FileValue):
    """One of several words."""

    words: Sequence[str]
    meaning: Mapping[str, object] = field(default_factory=lambda: _AS_WRITTEN)
    """The values that words stand for, if not themselves."""
    others: str = ""
    """What to do about a word that resembles none of these."""

    def read(self, given: object) -> object:  # noqa: D102
        text = given.text if isinstance(given, Scalar) else given
        if text not in self.words:
            raise PydanticCustomError("word", "a word", {"words": tuple(self.words), "others": self.others})
        return self.meaning.get(str(text), text)

    def form(self) -> JsonSchemaValue:  # noqa: D102
        return {"type": "boolean"} if self is FLAG else {"enum": [*self.words]}


FLAG = Words(("true", "false"), {"true": True, "false": False})
"""How a ``bool`` is read."""


@dataclass(frozen=True, eq=False)  # an ``Annotated`` type is hashed
class Key(FileValue):
    """The key of a map."""

    why_not: Callable[[str], str]
    """What is wrong with a key; an empty text if nothing is."""
    hint: Callable[[str], str] = lambda _key: ""
    """What to do about a wrong one."""
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})

    def read(self, given: object) -> object:  # noqa: D102
        key = str(given)
        why = self.why_not(key)
        if why:
            raise PydanticCustomError("key", "{why}", {"why": why, "hint": partial(self.hint, key)})
        return key

    def form(self) -> JsonSchemaValue:  # noqa: D102
        return dict(self.schema)


@dataclass(frozen=True, eq=False)  # an ``Annotated`` type is hashed
class ReadAs:
    """A record of another package, read as the fields of a section."""

    section: type[FileSection]
    make: Callable[..., object]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """As pydantic asks for it."""
        del source
        section = handler.generate_schema(self.section)
        return core_schema.no_info_after_validator_function(lambda made: self.make(**vars(made)), section)


@dataclass(frozen=True, eq=False)  # an ``Annotated`` type is hashed
class ShortFor:
    """A text in place of a map stands for the map with this key alone."""

    key: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """As pydantic asks for it."""
        return core_schema.no_info_before_validator_function(
            lambda given: {self.key: given} if isinstance(given, str | Scalar) else given, handler(source)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """As pydantic asks for it."""
        whole = handler(schema)
        short = handler.resolve_ref_schema(whole)["properties"][self.key]
        return {"anyOf": [{key: each for key, each in short.items() if key not in {"description", "default"}}, whole]}


def whole_value(why_not: Callable[[Any], str]) -> Callable[[Any], Any]:
    """A validator of a record by a function that says what is wrong with it; nothing if the text is empty."""

    def read(made: Any) -> Any:
        why = why_not(made)
        if why:
            raise wrong(why)
        return made

    return read


def matching(form: re.Pattern[str], why: str = "") -> Callable[[str], str]:
    """A ``parse`` of the texts of one form. ``why`` says what is needed; a value with a ``noun`` needs none."""

    def parse(given: str) -> str:
        if form.fullmatch(given) is None:
            raise ValueError(why)
        return given

    return parse


class FileSchema(GenerateJsonSchema):
    """JSON Schema as editors of a file need it: without ``null`` and titles, with the defaults that say something."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """The value alone: to leave a key out is plainer than ``null``."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """The value with its default; without one that is empty or a map."""
        made, default = self.generate_inner(schema["schema"]), schema.get("default")
        if isinstance(default, tuple) and all(isinstance(each, str) for each in default):
            default = list(default)
        says = isinstance(default, bool | int | float) or (isinstance(default, str | list) and default)
        return {**made, "default": default} if says else made

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        """In the order of declaration."""
        del parent_key
        return value

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never: a title would repeat the key."""
        del schema
        return False


def inlined(schema: JsonSchemaValue) -> JsonSchemaValue:
    """A schema with each definition where it is used, and without titles."""
    known = schema.get("$defs", {})

    def walk(part: Any) -> Any:
        if isinstance(part, list):
            return [walk(each) for each in part]
        if not isinstance(part, dict):
            return part
        name = str(part.get("$ref", "")).rpartition("/")[2]
        whole = {**known[name], **{key: each for key, each in part.items() if key != "$ref"}} if name in known else part
        return {key: walk(each) for key, each in whole.items() if key != "title" or not isinstance(each, str)}

    made: JsonSchemaValue = walk({key: each for key, each in schema.items() if key != "$defs"})
    return made
