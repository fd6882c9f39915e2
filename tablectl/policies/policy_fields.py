"""The fields of a policy: its attributes, its options, tags and location, in the language of ``fields``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from tablectl.attributes.policy import VALUE_TYPES
from tablectl.attributes.value_types import FieldType, NamedValues, ValueType
from tablectl.delta.clients import meant_client
from tablectl.delta.names import column_text, fold_column, parse_column
from tablectl.model.calendar import LONGEST, Rule, TableWindow, check_cron, check_zone
from tablectl.model.table_options import CONSENTS, TableLock, TableOptions, parse_day, parse_size
from tablectl.policies.fields import (
    TEXT,
    WITH_VARIABLE,
    FieldName,
    ListOf,
    MapOf,
    Schema,
    Section,
    Text,
    Word,
    YamlField,
    duration,
    flag,
    whole,
)
from tablectl.policies.identifiers import read_column, read_location
from tablectl.policies.property_values import PropertiesField
from tablectl.policies.suggestions import cut, did_you_mean, nearest, shown
from tablectl.policies.upkeep_fields import UPKEEP
from tablectl.policies.value_reader import GivenValue, ValueReader
from tablectl.policies.variables import VARIABLE
from tablectl.policies.yaml_nodes import ListNode, MapNode, Node, Scalar, SourceFile
from tablectl.support.frozen import frozen

DRAIN = whole(0, 86_400, "Seconds that writers have to finish each time the gate becomes stricter.")
RULE_KEYS: Mapping[str, YamlField] = MappingProxyType(
    {
        "cron": Text(parse=check_cron, description="When the period begins: the five fields of cron."),
        "duration": duration(LONGEST, "How long it lasts."),
        "timezone": Text(parse=check_zone, description="The time zone of the fields; default: UTC."),
    }
)
"""The keys of a rule that is about every table."""
RULE_REQUIRED = ("cron", "duration")


def always() -> Rule:
    """The rule that a section starts from: its required keys replace these values."""
    return Rule(cron="* * * * *", duration=LONGEST)


def _rules(description: str) -> ListOf:
    rule = Section(make=always, keys=RULE_KEYS, required=RULE_REQUIRED)
    return ListOf(of=rule, make=lambda rules: tuple(each.text for each in rules), description=description)


TABLE_WINDOW = Section(
    named=True,
    keys={
        "drain": replace(DRAIN, parse=lambda text: str(DRAIN.parse(text))),
        "allow": _rules("Periods in which the table's window may open, instead of those of tablectl.yaml."),
        "deny": _rules("Periods in which the table's window may not open, besides those of tablectl.yaml."),
    },
    description="The table's own window settings, over those of tablectl.yaml.",
    example='{allow: [{cron: "0 22 * * 6", duration: 8h}]}',
)
"""``window:`` of a policy. It has no commands: only tablectl.yaml can name what tablectl runs."""


_FEATURE = re.compile(r"[A-Za-z][A-Za-z0-9-]*\Z")
_CLIENT = re.compile(r"[a-z][a-z0-9_-]*\Z")
_STREAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")
_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}\Z")
_PROFILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
LONGEST_OWNER = 200
_TAG = r"[A-Za-z0-9_./-]+"


@frozen(kw_only=True)
class ColumnsField(YamlField):
    """A list of columns, or one of several words. Read as a tuple of column names in their shortest spelling."""

    name: str
    words: Word | None
    most: int | None
    top_level: bool
    """Whether columns cannot be fields of a struct."""

    @property
    def takes(self) -> str:  # noqa: D102
        words = self.words.words if self.words else ()
        return " or ".join(("a list of columns", *(f"`{word}`" for word in words)))

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        name = name.of(self)
        match node:
            case ListNode():
                return self._columns(node, name, reading)
            case Scalar() if self.words:
                return self._word(node, self.words, name, reading)
            case _:
                self.refuse(node, name, reading)
                return None

    def _word(self, scalar: Scalar, words: Word, name: FieldName, reading: ValueReader) -> str | None:
        text = reading.expand(scalar)
        if text is None or text in words.words:
            return text
        if scalar.tag == "str" and text.casefold() not in words.words:
            short = len(text) <= 60 and text.isprintable()
            hint = f"did you mean [{text}]?" if short else name.hint
            reading.report(scalar.source, f"{name} takes {self.takes}, and {shown(text)} is neither", hint)
        else:
            words.refuse_word(text, scalar, name, reading)
        return None

    def _columns(self, node: ListNode, name: FieldName, reading: ValueReader) -> tuple[str, ...] | None:
        columns = [self._column(item, name, reading) for item in node.items]
        known = tuple((text, item.source) for text, item in zip(columns, node.items, strict=True) if text is not None)
        if not columns:
            none = f"`{self.name}: {self.words.words[0]}` declares that there are none" if self.words else ""
            reading.report(node.source, f"{name} lists no column", none or "name a column")
            return None
        if len(columns) > (self.most or len(columns)):
            reading.report(node.source, f"{name} takes at most {self.most} columns, and here are {len(columns)}")
            return None
        fine = self._check(known, name, reading) and len(known) == len(columns)
        return tuple(text for text, _ in known) if fine else None

    def _column(self, item: Node, name: FieldName, reading: ValueReader) -> str | None:
        scalar = reading.scalar(item, f"a column of {name}", f"`{name.example}`")
        if scalar is None:
            return None
        return reading.name(scalar.text, scalar.source, partial(read_column, variables=reading.variables))

    def _check(self, columns: tuple[tuple[str, SourceFile], ...], name: FieldName, reading: ValueReader) -> bool:
        fine, seen = True, set()
        for text, source in columns:
            path = parse_column(text)
            if fold_column(path) in seen:
                reading.report(source, f"the column {column_text(path)} occurs twice in {name}")
                fine = False
            seen.add(fold_column(path))
            if len(path) > 1 and self.top_level:
                hint = 'a column with a dot in its name goes in backticks: "`a.b`"'
                reading.report(source, f"{name} takes top-level columns, and {shown(text)} is a field in one", hint)
                fine = False
        return fine

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        most = {"maxItems": self.most} if self.most else {}
        listed: Schema = {
            "type": "array",
            "items": {**TEXT, "minLength": 1},
            "minItems": 1,
            **most,
            "uniqueItems": True,
            "examples": [["customer_id", "order_date"]],
        }
        words = [{"enum": [*self.words.words]}] if self.words else []
        return {"anyOf": [listed, *words, *([dict(WITH_VARIABLE)] if variables else [])]}


@frozen(kw_only=True)
class LocationField(YamlField):
    """The location of a table."""

    @property
    def takes(self) -> str:  # noqa: D102
        return "text"

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        name = name.of(self)
        scalar = reading.scalar(node, str(name), f"`{name.example}`")
        if scalar is None:
            return None
        return reading.name(scalar.text, scalar.source, partial(read_location, variables=reading.variables))

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        del variables
        return {"type": "string", "pattern": rf"^(/|[A-Za-z][A-Za-z0-9+.-]*:/|.*{VARIABLE})"}


@frozen(kw_only=True)
class NamedValuesField(YamlField):
    """A map of names to texts, each checked with its name."""

    name: str
    named: NamedValues

    @property
    def takes(self) -> str:  # noqa: D102
        return f"a map of {self.named.takes}"

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        name = name.of(self)
        if not isinstance(node, MapNode) or not node.entries:
            self.refuse(node, name, reading, f"put them under {name}")
            return None
        read: dict[str, str] = {}
        folded: dict[str, SourceFile] = {}
        for key, (source, inner) in node.entries.items():
            text = self._text(key, source, inner, name.key(key), reading)
            first = folded.setdefault(key.lower(), source)
            if first is not source:
                message = f"{name.key(key)} is declared twice: first on line {first.line}"
                reading.report(source, message, "keep one of them")
            elif text is not None:
                read[key] = text
        return read

    def _text(self, key: str, source: SourceFile, node: Node, name: FieldName, reading: ValueReader) -> str | None:
        if isinstance(node, Scalar) and node.is_null:
            words = " or ".join(f"`{each}`" for each in self.named.words)
            reading.report(source, f"{name} has no value", f"write {words}" if words else "")
            return None
        text = reading.text(node, str(name), "")
        if text is None:
            return None
        reason, hint = self.named.why_not(key, text)
        if not reason:
            return text
        if self.named.names and key not in self.named.names and (near := nearest(key, self.named.names)):
            hint = f"did you mean `{near}`?"
        reading.report(source, cut(reason) if reason.isprintable() else shown(reason), hint)
        return None

    def form(self, *, variables: bool) -> Schema:  # noqa: D102
        del variables
        of: Schema = {"enum": [*self.named.words]} if self.named.names else dict(TEXT)
        known = dict.fromkeys(self.named.names, of)
        rest = {"properties": known, "additionalProperties": False} if known else {"additionalProperties": of}
        return {"type": "object", "minProperties": 1, **rest}


@frozen(kw_only=True)
class DayField(Text):
    """A day. YAML reads a plain 2027-01-31 as a date, and it may stay plain here."""

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        if isinstance(node, Scalar) and not node.is_null:
            node = replace(node, tag="str")
        return Text.read(self, node, name, reading)


def field_of(value_type: ValueType) -> YamlField:
    """The field of an attribute."""
    name, about = value_type.name, value_type.description
    example = value_type.example.strip("`").removeprefix(f"{name}: ")
    word = Word(words=value_type.words, description=about, example=example)
    if value_type.keyed:
        return PropertiesField(description=about, example=example)
    if value_type.named:
        return NamedValuesField(name=name, named=value_type.named, description=about, example=example)
    if value_type.fields:
        keys = {each.name: _text_of(each) for each in value_type.fields}
        return Section(keys=keys, named=True, description=about, example=example)
    if value_type.columns:
        return ColumnsField(
            name=name,
            words=word if value_type.words else None,
            most=value_type.most_columns,
            top_level=value_type.top_level,
            description=about,
            example=example,
        )
    return word


def _text_of(inner: FieldType) -> Text:
    def parse(text: str) -> str:
        why = inner.why_not(text)
        if why:
            raise ValueError(why)
        return text

    return Text(
        parse=parse,
        description=inner.description,
        example=inner.example,
        editor={"examples": [*inner.words, inner.example]},
    )


def _is(pattern: re.Pattern[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if pattern.match(text) is None:
            raise ValueError
        return text

    return parse


def _consent(text: str) -> str:
    if text not in CONSENTS:
        raise ValueError(did_you_mean(text, CONSENTS))
    return text


def _tag(text: str) -> str:
    if re.fullmatch(_TAG, text) is None:
        raise ValueError("a tag is made of letters, digits, _ . / and -")
    return text


def is_profile_name(text: str) -> bool:
    """Whether a profile can have this name."""
    return _PROFILE.fullmatch(text) is not None


def _profile(text: str) -> str:
    if not is_profile_name(text):
        raise ValueError("a name is made of letters, digits, _ . and -")
    return text


def _owner(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_OWNER or not text.isprintable():
        raise ValueError(f"needs one line of at most {LONGEST_OWNER} characters")
    return text.strip()


def _once(items: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(items))


def _why_no_client(key: str) -> str:
    meant = "" if _CLIENT.match(key) else meant_client(key.lower())
    hint = f"; did you mean `{meant}`?" if meant else ""
    return "" if _CLIENT.match(key) else f"is not a client{hint}"


ATTRIBUTE_FIELDS: Mapping[str, YamlField] = MappingProxyType(
    {name: field_of(value_type) for name, value_type in VALUE_TYPES.items()}
)
"""The fields of the attributes, in the order of plans."""


@frozen(kw_only=True)
class _Rewrite(Word):
    """A word, or ``{copy: beside}``, which is read as the word ``copy``."""

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:
        if not isinstance(node, MapNode):
            return Word.read(self, node, name, reading)
        found = _COPY.read(node, name, reading)
        return "copy" if found else None

    def form(self, *, variables: bool) -> Schema:
        return {"anyOf": [Word.form(self, variables=variables), _COPY.form(variables=variables)]}


_COPY = Section(keys={"copy": Word(words=("beside",))}, required=("copy",), named=True)

OPTIONS: Mapping[str, YamlField] = MappingProxyType(
    {
        "rewrite": _Rewrite(
            words=("allowed", "refused"),
            description="Whether all data of the table may be rewritten: by another partitioning, `column_mapping: "
            "none`, `uniform: iceberg_v2` and `optimize: full`. `{copy: beside}` allows it, and rewrites another "
            "partitioning beside the live table: the gate shuts for seconds.",
        ),
        "max_bytes": Text(
            parse=lambda text: str(parse_size(text)),
            noun="a size",
            values={"type": ["string", "integer"], "examples": ["500 GB"]},
            description="A table with more data than this is not rewritten.",
            example="500 GB",
        ),
        "optimize": Word(
            words=("never", "incremental", "full"),
            description="What is clustered when the clustering columns change: nothing, new data (OPTIMIZE), or all "
            "(OPTIMIZE FULL, which needs `rewrite: allowed`).",
        ),
        "truncate_history": Word(
            words=("true", "false"),
            description="Whether `deletion_vectors: dropped` gives up history so that nothing of the feature stays "
            "behind: two applies, at least 24 hours apart.",
        ),
        "allowed_features": ListOf(
            of=Text(parse=_is(_FEATURE), noun="a table feature", values={"type": "string"}),
            what="table features",
            item="a feature",
            make=_once,
            description="The protocol features that a change may add; one that adds another is refused.",
            example="[appendOnly, invariants, deletionVectors]",
            editor={"examples": [["deletionVectors", "clustering"]]},
        ),
        "allow": ListOf(
            of=Text(parse=_consent, noun="a consent of `allow`", values={"enum": [*CONSENTS]}),
            what="consents",
            item="a consent",
            make=lambda items: tuple(sorted(set(items))),
            description="What may happen for good: `lockout`, a change locks out every writer of the table; "
            "`masked_rewrite`, a rewrite on Databricks stores what its user sees; "
            "`partition_writers`, writers that name the partition columns fail after a change of them.",
            example=f"[{CONSENTS[0]}]",
            editor={"examples": [["lockout"]]},
        ),
        "clients": MapOf(
            of=Text(parse=_is(_VERSION), noun="a version", values={"type": "string"}),
            what="clients to versions",
            item="the version",
            why_not=_why_no_client,
            description="Clients that must be able to go on, with their versions; a change that locks one out is "
            "refused.",
            example='{spark: "4.0"}',
            editor={"examples": [{"spark": "4.0", "deltalake": "1.6", "trino": "450"}]},
        ),
        "streams": MapOf(
            of=LocationField(),
            what="streams to checkpoints",
            item="the checkpoint",
            why_not=lambda key: "" if _STREAM.match(key) else "is not a name: letters, digits, '_', '.' and '-'",
            description="Structured Streaming queries that read or write the table, with their checkpoints: plans say "
            "how far they are, and an apply waits for those that it stops.",
            example="{fraud: /checkpoints/fraud}",
            editor={"examples": [{"fraud": "s3://lake/checkpoints/fraud"}]},
        ),
    }
)
"""The options: keys other than attributes, in the order of explanations."""

TAGS = ListOf(
    of=Text(
        parse=_tag,
        noun="a tag",
        values={"type": ["string", "integer", "boolean"], "pattern": rf"^({_TAG}|.*{VARIABLE}.*)$"},
    ),
    item="a tag",
    unique="the tag",
    description="Words that `--tag` selects tables by.",
    example="[streaming]",
    editor={"uniqueItems": True, "examples": [["streaming"]]},
)
OWNER = Text(
    parse=_owner,
    noun="an owner",
    values={"type": "string"},
    description="Who is responsible for the table: a team, @org/team or an address. Reports and notifications name it.",
    example="payments",
    editor={"examples": ["@example/payments", "payments@example.com"]},
)
PROFILES = ListOf(
    of=Text(parse=_profile, noun="the name of a profile", values={"type": "string"}),
    item="a profile",
    unique="the profile",
    description="The profiles that apply to the table, below patterns and above defaults.",
    example="[gold]",
    editor={"uniqueItems": True, "examples": [["gold"]]},
)
LOCK = Section(
    named=True,
    keys={
        "until": DayField(
            parse=parse_day, noun="a day", description="The last day of the lock, in UTC.", example="2027-01-31"
        ),
        "reason": Text(parse=_owner, noun="a reason", description="Why nothing may change."),
        "owner": Text(parse=_owner, noun="an owner", description="Who can lift the lock."),
    },
    required=("until", "reason", "owner"),
    description="Refuses every change of the table, in plan and apply, until a day.",
    example="{until: 2027-01-31, reason: audit, owner: finance}",
)
LOCATION = LocationField(
    description="Where a catalog table lies, so that it can be read without the catalog.",
    example="s3://lake/sales/orders",
    editor={"examples": ["s3://lake/sales/orders"]},
)
INHERITED: Mapping[str, YamlField] = MappingProxyType(
    {
        **ATTRIBUTE_FIELDS,
        **OPTIONS,
        "upkeep": UPKEEP,
        "window": TABLE_WINDOW,
        "owner": OWNER,
        "locked": LOCK,
        "tags": TAGS,
        "profiles": PROFILES,
    }
)
"""The fields of ``defaults``."""
OF_A_PATTERN: Mapping[str, YamlField] = MappingProxyType(
    {
        "may_be_empty": flag("Whether the pattern may match no table; otherwise that is an error."),
        "min_tables": whole(1, 1_000_000, "The fewest tables that the pattern matches; fewer are an error."),
    }
)
"""What a pattern alone has: how many tables it matches. A catalog lists only what the login may see."""
OF_A_TABLE: Mapping[str, YamlField] = MappingProxyType({**INHERITED, **OF_A_PATTERN, "location": LOCATION})
"""The fields of a table and of a pattern. ``entries`` refuses what only the other one has."""


def read_field(key: str, source: SourceFile, node: Node, reading: ValueReader) -> dict[str, GivenValue]:
    """The values under one key of a policy, by the key or, for a map, ``<key>.<key in the map>``."""
    field = OF_A_TABLE[key]
    given: Callable[[Any, SourceFile], GivenValue] = GivenValue
    if key in ATTRIBUTE_FIELDS:
        if not isinstance(field, PropertiesField):  # each property has a reader of its own
            reading = reading.of_value(key, "", node)
        if isinstance(node, Scalar) and node.is_null:
            hint = f"leave it out: absent means not managed; `unmanaged: [{key}]` cancels an inherited value"
            reading.report(source, f"`{key}` has no value", hint)
            return {}
        given = reading.given
    elif key != "location":  # names hide variables themselves
        reading = reading.about(key, node)
    value = field.read(node, FieldName((key,)), reading)
    if value is None:
        return {}
    if not isinstance(value, dict):
        return {key: given(value, source)}
    assert isinstance(node, MapNode)
    return {
        f"{key}.{name}": each if isinstance(each, GivenValue) else given(each, node.entries[name][0])
        for name, each in value.items()
    }


def options_of(effective: Mapping[str, GivenValue]) -> TableOptions:
    """Builds the options from the effective declarations."""
    given: dict[str, Any] = {name: effective[name].value for name in OPTIONS if name in effective}
    if "max_bytes" in given:
        given["max_bytes"] = int(given["max_bytes"])
    if "truncate_history" in given:
        given["truncate_history"] = given["truncate_history"] == "true"
    given["engine_properties"] = tuple(
        sorted((key.partition(".")[2], each.engine) for key, each in effective.items() if each.engine)
    )
    given["locked"] = _lock_of(effective)
    return TableOptions(**given, clients=_pairs(effective, "clients"), streams=_pairs(effective, "streams"))


def _lock_of(effective: Mapping[str, GivenValue]) -> TableLock | None:
    """The lock of the effective declarations. A layer that declares a part of it takes the rest from those below."""
    found = {each: effective.get(f"locked.{each}") for each in ("until", "reason", "owner")}
    given = {name: str(each.value) for name, each in found.items() if each}
    return TableLock(**given) if len(given) == len(found) else None


def _pairs(effective: Mapping[str, GivenValue], option: str) -> tuple[tuple[str, str], ...]:
    """The keys and values of a map, sorted."""
    found = {key.partition(".")[2]: str(effective[key].value) for key in effective if key.startswith(f"{option}.")}
    return tuple(sorted(found.items()))


def window_of(effective: Mapping[str, GivenValue]) -> TableWindow | None:
    """The window settings of the effective declarations; ``None`` without any."""
    given: dict[str, Any] = {
        key.removeprefix("window."): effective[key].value for key in effective if key.startswith("window.")
    }
    if "drain" in given:
        given["drain"] = int(given["drain"])
    return TableWindow(**given) if given else None
