"""What the entry of a table, a pattern, a profile or ``defaults`` can declare, as pydantic reads it.

The attributes come first, in the order of plans: each says in its own file what its value is. Texts are read with their
variables expanded, except for names of columns and locations, whose parts are expanded one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, ValidationError, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from tablectl.attributes.policy import VALUE_TYPES, declarable_keys, is_foreign, why_refused
from tablectl.attributes.value_types import FieldType, NamedValues, ValueType
from tablectl.delta.clients import meant_client
from tablectl.delta.dialects import DIALECTS
from tablectl.delta.names import column_text, fold_column, parse_column
from tablectl.delta.properties import canonical_key, find_anywhere, find_known, how_to_declare
from tablectl.model.calendar import Rule
from tablectl.model.table_options import CONSENTS, parse_day, parse_size
from tablectl.model.upkeep import NEVER, OptimizePolicy, VacuumPolicy, parse_every, parse_share, parse_target
from tablectl.policies.config import RuleSection
from tablectl.policies.parse_yaml import parse_document
from tablectl.policies.spelling_hints import cut, did_you_mean, nearest, shown
from tablectl.policies.value_kinds import (
    FLAG,
    TEXT,
    WHOLE,
    FileSection,
    FileValue,
    Key,
    Parsed,
    ReadAs,
    ShortFor,
    Words,
    matching,
    no_text,
    said,
    whole_value,
)
from tablectl.policies.value_reader import ValueReader, WrongNameError, named
from tablectl.policies.variables import VARIABLE, read_column, read_location, why_no_name
from tablectl.policies.wrong_values import MOST_HINTS, MOST_PROBLEMS, kind_of
from tablectl.policies.yaml_nodes import Scalar, plain

_FEATURE = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_CLIENT = re.compile(r"[a-z][a-z0-9_-]*\Z")
_STREAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")
_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}")
_PROFILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_TAG = re.compile(r"[A-Za-z0-9_./-]+")
_ENGINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")
_NO_NAME = re.compile(r"true|false|-?[0-9]+")
"""Texts that are hardly meant as the name of a column."""
_MEANT = "`delta.parquet.vorder.enabled: {value: true, engine: fabric}`"
EXTRA = "another engine"
"""Stands for the engine of a property that a pattern of ``engine.extra_properties`` admits."""
LONGEST_OWNER = 200
WITH_VARIABLE: JsonSchemaValue = {"type": "string", "pattern": VARIABLE}


class _Wrong(list[InitErrorDetails]):
    """The errors of one value that has several parts, the first ``MOST_PROBLEMS``."""

    def add(self, given: object, error: PydanticCustomError, *loc: str | int) -> None:
        """An error about a part of it. ``loc`` ends with ``[key]`` if it stands at the key."""
        if len(self) < MOST_PROBLEMS:
            self.append(InitErrorDetails(type=error, loc=loc, input=given))

    def check(self) -> None:
        """Raises them."""
        if self:
            raise ValidationError.from_exception_data("policy", self)


class _InPolicy(FileValue):
    """A kind of value that depends on the variables, the dialect or the masks of the policies."""

    def read(self, given: object) -> object:
        """Not without them."""
        raise NotImplementedError

    def read_in(self, given: object, reading: ValueReader) -> object:
        """The value of what stands in a file. Raises ``ValueError``."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """As pydantic asks for it."""
        del source, handler
        return core_schema.with_info_plain_validator_function(lambda given, info: self.read_in(given, info.context))


def _name(given: object, read: Callable[..., str], reading: ValueReader) -> str:
    """A column or a location. Raises ``PydanticCustomError``."""
    if not isinstance(given, str):
        raise no_text("text")
    try:
        return named(given, lambda text: read(text, variables=reading.variables), reading)
    except WrongNameError as error:
        raise said(error.message, error.hint, hidden=error.hidden) from None


@dataclass(frozen=True, eq=False)
class _Location(_InPolicy):
    """The location of a table or a checkpoint."""

    def read_in(self, given: object, reading: ValueReader) -> object:
        return _name(given, read_location, reading)

    def form(self) -> JsonSchemaValue:
        return {"type": "string", "pattern": rf"^(/|[A-Za-z][A-Za-z0-9+.-]*:/|.*{VARIABLE})"}


@dataclass(frozen=True, eq=False)
class _Word(Words):
    """One of several words, or a variable."""

    def form(self) -> JsonSchemaValue:
        enum = [True, False] if tuple(self.words) == FLAG.words else [*self.words]
        return {"anyOf": [{"enum": enum}, dict(WITH_VARIABLE)]}


@dataclass(frozen=True, eq=False)
class _Columns(_InPolicy):
    """A list of columns, or one of several words. Columns are read in their shortest spelling."""

    about: ValueType

    @property
    def _takes(self) -> str:
        return " or ".join(("a list of columns", *(f"`{word}`" for word in self.about.words)))

    def read_in(self, given: object, reading: ValueReader) -> object:
        name = f"`{self.about.name}`"
        if isinstance(given, list):
            return self._columns(given, name, reading)
        text = given.text if isinstance(given, Scalar) else given
        if text in self.about.words:
            return text
        if not isinstance(text, str) or not self.about.words:
            raise said(f"{name} takes {self._takes}, not {kind_of(given)}", f"for example {self.about.example}")
        if isinstance(given, str) and text.casefold() not in self.about.words and not _NO_NAME.fullmatch(text):
            short = len(text) <= 60 and text.isprintable()
            hint = f"did you mean [{text}]?" if short else f"for example {self.about.example}"
            raise said(f"{name} takes {self._takes}, and {shown(text)} is neither", hint)
        return Words(self.about.words).read(given)

    def _columns(self, given: list[object], name: str, reading: ValueReader) -> tuple[str, ...]:
        wrong, columns, seen = _Wrong(), list[str](), set[object]()
        for number, item in enumerate(given):
            try:
                text = _name(item, read_column, reading)
            except PydanticCustomError as error:
                wrong.add(item, error, number)
                continue
            columns.append(text)
            path = parse_column(text)
            if fold_column(path) in seen:
                wrong.add(item, said(f"the column {column_text(path)} occurs twice in {name}"), number)
            seen.add(fold_column(path))
            if len(path) > 1 and self.about.top_level:
                hint = 'a column with a dot in its name goes in backticks: "`a.b`"'
                wrong.add(
                    item, said(f"{name} takes top-level columns, and {shown(text)} is a field in one", hint), number
                )
        if not given:
            word = next(iter(self.about.words), "")
            raise said(
                f"{name} lists no column",
                f"`{self.about.name}: {word}` declares that there are none" if word else "name a column",
            )
        most = self.about.most_columns or len(given)
        if len(given) > most:
            wrong.add(given, said(f"{name} takes at most {most} columns, and here are {len(given)}"))
        wrong.check()
        return tuple(columns)

    def form(self) -> JsonSchemaValue:
        most = {"maxItems": self.about.most_columns} if self.about.most_columns else {}
        listed = {"type": "array", "items": {**TEXT, "minLength": 1}, "minItems": 1, **most, "uniqueItems": True}
        enum = [{"enum": [*self.about.words]}] if self.about.words else []
        return {"anyOf": [listed, *enum, dict(WITH_VARIABLE)]}


@dataclass(frozen=True, eq=False)
class _Named(_InPolicy):
    """A map of names to texts, each checked with its name."""

    about: ValueType
    named: NamedValues

    def read_in(self, given: object, reading: ValueReader) -> object:
        if not isinstance(given, dict) or not given:
            shows = shown(given) if isinstance(given, str) and given else kind_of(given)
            raise said(
                f"`{self.about.name}` takes a map of {self.named.takes}, not {shows}",
                f"for example {self.about.example}",
            )
        wrong, first = _Wrong(), dict[str, str]()
        for key, value in given.items():
            if value is None:
                words = " or ".join(f"`{each}`" for each in self.named.words)
                message = (
                    f"`{self.about.name}.{key}` has no value" if key.isprintable() else f"{shown(key)} has no value"
                )
                wrong.add(value, said(message, f"write {words}" if words else ""), key, "[key]")
            elif not isinstance(value, str):
                wrong.add(value, no_text("text"), key)
            else:
                reason, hint = self.named.why_not(key, value)
                if (
                    reason
                    and self.named.names
                    and key not in self.named.names
                    and (near := nearest(key, self.named.names))
                ):
                    hint = f"did you mean `{near}`?"
                if reason:
                    wrong.add(value, said(cut(reason) if reason.isprintable() else shown(reason), hint), key, "[key]")
            before = first.setdefault(key.lower(), key)
            if before != key:
                wrong.add(value, PydanticCustomError("twice", "twice", {"first": before}), key, "[key]")
        wrong.check()
        return dict(given)

    def form(self) -> JsonSchemaValue:
        of: JsonSchemaValue = {"enum": [*self.named.words]} if self.named.names else dict(TEXT)
        known = dict.fromkeys(self.named.names, of)
        rest = {"properties": known, "additionalProperties": False} if known else {"additionalProperties": of}
        return {"type": "object", "minProperties": 1, **rest}


_WHERE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"at_value": (), "key": ("[key]",), "engine": ("engine", "[key]")}
)
"""Where the kinds of errors about a property stand below its key."""


@dataclass(frozen=True, slots=True)
class DeclaredProperty:
    """One property."""

    name: str
    """Its key as in the file."""
    value: str | None
    """``None`` unsets it."""
    engine: str
    """The engine that reads a property that no dialect knows."""


@dataclass(frozen=True, eq=False)
class _Properties(_InPolicy):
    """Table properties by their canonical keys. Keys and values are not changed, except for variables in values."""

    about: ValueType

    def read_in(self, given: object, reading: ValueReader) -> object:
        if not isinstance(given, dict):
            shows = shown(given) if isinstance(given, str) and given else kind_of(given)
            raise said(
                f"`{self.about.name}` takes a map of keys to texts, not {shows}", f"for example {self.about.example}"
            )
        wrong, found = _Wrong(), dict[str, DeclaredProperty]()
        for name, value in given.items():
            try:
                engine = _engine_of(name, value, reading)
                _check_key(name, engine, reading, hints=reading.hints and len(wrong) < MOST_HINTS)
            except PydanticCustomError as error:
                wrong.add(value, said(**error.context or {}), name, *_WHERE[error.type])
                continue
            key = canonical_key(name, reading.dialect)
            if key in found:
                wrong.add(
                    value,
                    PydanticCustomError("twice", "twice", {"first": found[key].name, "folds": True}),
                    name,
                    "[key]",
                )
                continue
            inner = value.get("value", value) if engine and isinstance(value, dict) and "engine" in value else value
            try:
                text = _property_text(name, inner, key, reading.dialect)
                found[key] = DeclaredProperty(name, text, engine if engine and is_foreign(key, reading.dialect) else "")
            except PydanticCustomError as error:
                loc = (name, "value") if inner is not value else (name,)
                wrong.add(inner, error, *loc)
        wrong.check()
        return found

    def form(self) -> JsonSchemaValue:
        text = {"type": [*TEXT["type"], "null"]}
        of_an_engine = {
            "type": "object",
            "additionalProperties": False,
            "required": ["value", "engine"],
            "properties": {"value": dict(text), "engine": {"type": "string"}},
        }
        declarable = sorted({key for dialect in DIALECTS for key in declarable_keys(dialect.name)})
        known = {key: {**text, "description": _about_key(key)} for key in declarable}
        return {"type": "object", "properties": known, "additionalProperties": {"anyOf": [dict(text), of_an_engine]}}


def _about_key(key: str) -> str:
    dialects = [each.name for each in DIALECTS if find_known(key, each.name)]
    only = f" Only in the {dialects[0]} dialect." if len(dialects) == 1 else ""
    known = find_anywhere(key)
    return f"{known.description if known else ''}{only}"


def _engine_of(name: str, given: object, reading: ValueReader) -> str:
    """The engine that reads a property, as the entry or a pattern of `engine.extra_properties` says; empty if neither
    does.
    """
    if not isinstance(given, dict) or "engine" not in given:
        extra = any(fnmatchcase(name.lower(), each.lower()) for each in reading.extra_properties)
        return EXTRA if extra and is_foreign(name, reading.dialect) else ""
    if given.keys() != {"value", "engine"}:
        context = {"message": f"{shown(name)} takes a map with `value` and `engine`", "hint": f"for example {_MEANT}"}
        raise PydanticCustomError("at_value", "", context)
    engine = given["engine"]
    if not isinstance(engine, str) or _ENGINE.fullmatch(engine) is None:
        found = shown(engine) if isinstance(engine, str) else kind_of(engine)
        context = {"message": f"{found} is not the name of an engine", "hint": f"for example {_MEANT}"}
        raise PydanticCustomError("engine", "", context)
    return engine


def refused_hint(key: str, hint: str, dialect: str) -> str:
    """The hint for a refused key: the catalogue's own hint, otherwise the most similar known key."""
    if hint or not key.lower().startswith("delta."):
        return hint
    near = nearest(key, declarable_keys(dialect))
    return f"did you mean `{near}`?" if near else f"check its spelling; {how_to_declare(key)}"


def _check_key(name: str, engine: str, reading: ValueReader, *, hints: bool) -> None:
    refused = why_refused(name, reading.dialect)
    if refused is not None and not (engine and is_foreign(name, reading.dialect)):
        reason, hint = refused
        message = shown(name) + reason.removeprefix(name) if reason.startswith(f"{name} ") else reason
        hint = refused_hint(name, hint, reading.dialect) if hints else hint
        raise PydanticCustomError("key", "", {"message": message, "hint": hint})
    unusable = why_no_name(name)
    if unusable:
        raise PydanticCustomError("key", "", {"message": f"{shown(name)} cannot be a property key: {unusable}"})


def _property_text(name: str, given: object, key: str, dialect: str) -> str | None:
    if isinstance(given, dict):
        whole = shown(f"{name}.{next(iter(given), 'team')}")
        raise said(f"the property {shown(name)} takes text or null, not a map", f"write whole keys, such as {whole}")
    if given is not None and not isinstance(given, str):
        raise no_text("text or null")
    known = find_known(key, dialect) if given is not None and key.lower().startswith("delta.") else None
    if known is not None:
        try:
            known.parse(str(given))
        except ValueError as error:
            raise said(f"{shown(str(given))} is not a value of {key}: it {cut(str(error))}") from None
    return given


# Attributes


def _example(value_type: ValueType) -> object:
    """The example of an attribute as a plain value."""
    text = value_type.example.strip("`")
    node = parse_document(text.encode(), "", [])
    return plain(node)[value_type.name] if node else None


def _declared(value_type: ValueType) -> Any:
    """The type of an attribute's value in a policy."""
    if value_type.keyed:
        kind: Any = _Properties(value_type)
    elif value_type.named:
        kind = _Named(value_type, value_type.named)
    elif value_type.columns:
        kind = _Columns(value_type)
    elif value_type.fields:
        keys: dict[str, Any] = {each.name: (_part(each), None) for each in value_type.fields}
        model = create_model(value_type.name, __config__=ConfigDict(extra="forbid"), **keys)
        return Annotated[model, Field(description=value_type.description, examples=[_example(value_type)])]
    else:
        kind = _Word(value_type.words)
    return Annotated[Any, kind, Field(description=value_type.description, examples=[_example(value_type)])]


def _part(part: FieldType) -> Any:
    def parse(text: str) -> str:
        why = part.why_not(text)
        if why:
            raise ValueError(why)
        return text

    return Annotated[str, Parsed(parse), Field(description=part.description, examples=[part.example, *part.words])]


# Options and the rest


def _consent(text: str) -> str:
    if text not in CONSENTS:
        raise ValueError(did_you_mean(text, CONSENTS))
    return text


def is_profile_name(text: str) -> bool:
    """Whether a profile can have this name."""
    return _PROFILE.fullmatch(text) is not None


def _owner(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_OWNER or not text.isprintable():
        raise ValueError(f"needs one line of at most {LONGEST_OWNER} characters")
    return text.strip()


def _client_hint(key: str) -> str:
    meant = meant_client(key.lower())
    return f"did you mean `{meant}`?" if meant else ""


def _unique(what: str) -> AfterValidator:
    """The items of a list, each once."""

    def check(items: tuple[str, ...]) -> tuple[str, ...]:
        wrong, seen = _Wrong(), set[str]()
        for number, each in enumerate(items):
            if each in seen:
                wrong.add(each, said(f"the {what} {shown(each)} occurs twice", "keep one of them"), number)
            seen.add(each)
        wrong.check()
        return items

    return AfterValidator(check)


_COPIES: Mapping[str, tuple[str, ...]] = MappingProxyType({"copy": ("beside",)})
"""Where a rewrite can put its copy."""


@dataclass(frozen=True, kw_only=True)
class _Copy(FileSection):
    """``{copy: beside}``."""

    copy: Annotated[str, _Word(_COPIES["copy"])]


@dataclass(frozen=True, eq=False)
class _Day(Parsed):
    """A day. YAML reads a plain 2027-01-31 as a date, and it may stay plain here."""

    def read(self, given: object) -> object:
        return Parsed.read(self, given.text if isinstance(given, Scalar) else given)


@dataclass(frozen=True, kw_only=True)
class _Lock(FileSection):
    """``locked:``."""

    until: Annotated[
        str,
        _Day(parse_day, noun="a day"),
        Field(description="The last day of the lock, in UTC.", examples=["2027-01-31"]),
    ]
    reason: Annotated[str, Parsed(_owner, noun="a reason"), Field(description="Why nothing may change.")]
    owner: Annotated[str, Parsed(_owner, noun="an owner"), Field(description="Who can lift the lock.")]


TableRules = Annotated[
    tuple[Annotated[Rule, ReadAs(RuleSection, Rule)], ...],
    AfterValidator(lambda rules: tuple(each.text for each in rules)),
]


@dataclass(frozen=True, kw_only=True)
class _Window(FileSection):
    """``window:``. It has no commands: only tablectl.yaml can name what tablectl runs."""

    drain: Annotated[
        int,
        Field(ge=0, le=86_400, description="Seconds that writers have to finish each time the gate becomes stricter."),
        WHOLE,
        AfterValidator(str),
    ] = 0
    allow: Annotated[
        TableRules,
        Field(description="Periods in which the table's window may open, instead of those of tablectl.yaml."),
    ] = ()
    deny: Annotated[
        TableRules,
        Field(description="Periods in which the table's window may not open, in addition to those of tablectl.yaml."),
    ] = ()


_EVERY = Parsed(parse_every, noun="an interval", schema={"type": "string", "examples": ["7 days", NEVER]})


@dataclass(frozen=True, kw_only=True)
class _Optimize(FileSection):
    """``upkeep.optimize``."""

    small_files: Annotated[
        str,
        Parsed(parse_share, noun="a percentage", schema={"type": "string"}),
        Field(
            description="The share of the table's bytes in files below half of `target` from which on they are merged.",
            examples=["30%"],
        ),
    ] = ""
    target: Annotated[
        str,
        Parsed(parse_target, noun="a size", schema={"type": ["string", "integer"]}),
        Field(description="The size of the merged files; default: 128 MB.", examples=["128 MB"]),
    ] = OptimizePolicy().target
    every: Annotated[
        str,
        _EVERY,
        Field(
            description=f"How long after the last OPTIMIZE the next one is due; `{NEVER}` cancels it.",
            examples=["7 days"],
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class _Vacuum(FileSection):
    """``upkeep.vacuum``."""

    every: Annotated[
        str,
        _EVERY,
        Field(
            description=f"How long after the last VACUUM the next one is due; `{NEVER}` cancels it.",
            examples=["7 days"],
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class _Upkeep(FileSection):
    """``upkeep:``. ``optimize`` and ``vacuum`` are values of their own, which a stronger layer replaces: texts."""

    optimize: Annotated[
        str,
        ReadAs(_Optimize, OptimizePolicy),
        ShortFor("every"),
        AfterValidator(whole_value(lambda made: made.why_not)),
        AfterValidator(lambda made: made.text),
        Field(description="When the files of the table are merged (OPTIMIZE)."),
    ] = ""
    vacuum: Annotated[
        str,
        ReadAs(_Vacuum, VacuumPolicy),
        ShortFor("every"),
        AfterValidator(lambda made: made.text),
        Field(
            description="When files are deleted that no version needs any more (VACUUM). `retention.deleted_files` "
            "says how long they are kept."
        ),
    ] = ""


@dataclass(frozen=True, eq=False)
class _Rewrite(_Word):
    """A word, or ``{copy: beside}``, which is read as the word ``copy``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """As pydantic asks for it."""
        del source

        def read(given: object, copied: Callable[[object], object]) -> object:
            return "copy" if isinstance(given, dict) and copied(given) else self.read(given)

        return core_schema.no_info_wrap_validator_function(read, handler.generate_schema(_Copy))

    def form(self) -> JsonSchemaValue:
        copied = {
            "type": "object",
            "additionalProperties": False,
            "required": ["copy"],
            "properties": {"copy": _Word(_COPIES["copy"]).form()},
        }
        return {"anyOf": [super().form(), copied]}


OPTIONS: Mapping[str, Any] = MappingProxyType(
    {
        "rewrite": Annotated[
            str,
            _Rewrite(("allowed", "refused")),
            Field(
                description="Whether all data of the table may be rewritten: by another partitioning, `column_mapping: "
                "none`, `uniform: iceberg_v2` and `optimize: full`. `{copy: beside}` allows it, and rewrites another "
                "partitioning beside the live table: the gate shuts for seconds."
            ),
        ],
        "max_bytes": Annotated[
            str,
            Parsed(lambda text: str(parse_size(text)), noun="a size", schema={"type": ["string", "integer"]}),
            Field(description="A table with more data than this is not rewritten.", examples=["500 GB"]),
        ],
        "optimize": Annotated[
            str,
            _Word(("never", "incremental", "full")),
            Field(
                description="What is clustered when the clustering columns change: nothing, new data (OPTIMIZE), or "
                "all (OPTIMIZE FULL, which needs `rewrite: allowed`)."
            ),
        ],
        "truncate_history": Annotated[
            str,
            _Word(("true", "false")),
            Field(
                description="Whether `deletion_vectors: dropped` gives up history so that nothing of the feature stays "
                "behind: two applies, at least 24 hours apart."
            ),
        ],
        "allowed_features": Annotated[
            tuple[Annotated[str, Parsed(matching(_FEATURE), noun="a table feature", schema={"type": "string"})], ...],
            AfterValidator(lambda items: tuple(dict.fromkeys(items))),
            Field(
                description="The protocol features that a change may add; one that adds another is refused.",
                examples=[["appendOnly", "invariants", "deletionVectors"]],
            ),
        ],
        "allow": Annotated[
            tuple[Annotated[str, Parsed(_consent, noun="a consent of `allow`", schema={"enum": [*CONSENTS]})], ...],
            AfterValidator(lambda items: tuple(sorted(set(items)))),
            Field(
                description="What may happen for good: `functions`, constraints call other functions than Spark's "
                "built-in ones; `lockout`, a change locks out every writer of the table; "
                "`masked_rewrite`, a rewrite on Databricks stores what its user sees; "
                "`partition_writers`, writers that name the partition columns fail after a change of them.",
                examples=[["lockout"]],
            ),
        ],
        "clients": Annotated[
            Mapping[
                Annotated[str, Key(lambda key: "" if _CLIENT.match(key) else "is not a client", _client_hint)],
                Annotated[str, Parsed(matching(_VERSION), noun="a version", schema={"type": "string"})],
            ],
            Field(
                description="Clients that must be able to go on, with their versions; a change that locks one out is "
                "refused.",
                examples=[{"spark": "4.0"}],
            ),
        ],
        "streams": Annotated[
            Mapping[
                Annotated[
                    str,
                    Key(lambda key: "" if _STREAM.match(key) else "is not a name: letters, digits, '_', '.' and '-'"),
                ],
                Annotated[str, _Location()],
            ],
            Field(
                description="Structured Streaming queries that read or write the table, with their checkpoints: plans "
                "say how far they are, and an apply waits for those that it stops.",
                examples=[{"fraud": "/checkpoints/fraud"}],
            ),
        ],
    }
)
"""The options: keys other than attributes, in the order of explanations."""
_TAGS = Annotated[
    tuple[
        Annotated[
            str,
            Parsed(
                matching(_TAG, "a tag is made of letters, digits, _ . / and -"),
                noun="a tag",
                schema={"type": [*TEXT["type"]], "pattern": rf"^({_TAG.pattern}|.*{VARIABLE}.*)$"},
            ),
        ],
        ...,
    ],
    _unique("tag"),
    Field(description="Words that `--tag` selects tables by.", examples=[["streaming"]]),
]
_PROFILES = Annotated[
    tuple[
        Annotated[
            str,
            Parsed(
                matching(_PROFILE, "a name is made of letters, digits, _ . and -"),
                noun="the name of a profile",
                schema={"type": "string"},
            ),
        ],
        ...,
    ],
    _unique("profile"),
    Field(description="The profiles that apply to the table, below patterns and above defaults.", examples=[["gold"]]),
]
ATTRIBUTES: Mapping[str, Any] = MappingProxyType({name: _declared(each) for name, each in VALUE_TYPES.items()})
"""The attributes, in the order of plans."""
INHERITED: Mapping[str, Any] = MappingProxyType(
    {
        **ATTRIBUTES,
        **OPTIONS,
        "upkeep": Annotated[
            _Upkeep,
            Field(
                description="What `tablectl upkeep --apply` does regularly. It never changes a plan.",
                examples=[{"optimize": {"small_files": "30%", "every": "7 days"}, "vacuum": {"every": "7 days"}}],
            ),
        ],
        "window": Annotated[
            _Window,
            Field(
                description="The table's own window settings, over those of tablectl.yaml.",
                examples=[{"allow": [{"cron": "0 22 * * 6", "duration": "8h"}]}],
            ),
        ],
        "owner": Annotated[
            str,
            Parsed(_owner, noun="an owner", schema={"type": "string"}),
            Field(
                description="Who is responsible for the table: a team, @org/team or an address. Reports and "
                "notifications name it.",
                examples=["payments"],
            ),
        ],
        "locked": Annotated[
            _Lock,
            Field(
                description="Refuses every change of the table, in plan and apply, until a day.",
                examples=[{"until": "2027-01-31", "reason": "audit", "owner": "finance"}],
            ),
        ],
        "tags": _TAGS,
        "profiles": _PROFILES,
    }
)
"""What ``defaults`` take."""
OF_A_PATTERN: Mapping[str, Any] = MappingProxyType(
    {
        "may_be_empty": Annotated[
            bool,
            _Word(FLAG.words, FLAG.meaning),
            Field(description="Whether the pattern may match no table; otherwise that is an error."),
        ],
        "min_tables": Annotated[
            int,
            Field(
                ge=1,
                le=1_000_000,
                description="The fewest tables that the pattern matches; fewer are an error.",
            ),
            WHOLE,
        ],
    }
)
"""What a pattern alone has: how many tables it matches. A catalog lists only what the login may see."""
OF_A_TABLE: Mapping[str, Any] = MappingProxyType(
    {
        **INHERITED,
        **OF_A_PATTERN,
        "location": Annotated[
            str,
            _Location(),
            Field(
                description="Where a catalog table lies, so that it can be read without the catalog.",
                examples=["s3://lake/sales/orders"],
            ),
        ],
    }
)
"""What a table and a pattern take. ``policy_document`` refuses what only the other one has."""


_UNMANAGED = Annotated[
    tuple[str, ...],
    Field(
        description="Inherited attributes and property keys that this table does not take.", examples=[["isolation"]]
    ),
]
_TAKEN: dict[str, Any] = {key: (each, None) for key, each in (*OF_A_TABLE.items(), ("unmanaged", _UNMANAGED))}
ENTRY: type[BaseModel] = create_model("Entry", __config__=ConfigDict(extra="forbid"), **_TAKEN)
"""Every entry: which of the keys it can have, depends on what it is about."""
