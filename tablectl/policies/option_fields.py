"""The fields of a policy other than its attributes: options, tags, location, owner, window, lock and upkeep.

In ``upkeep``, ``optimize`` and ``vacuum`` are values of their own, which a stronger layer replaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from tablectl.delta.clients import meant_client
from tablectl.model.calendar import LONGEST, Rule, TableWindow, check_cron, check_zone
from tablectl.model.table_options import CONSENTS, TableLock, TableOptions, parse_day, parse_size
from tablectl.model.upkeep import (
    NEVER,
    OptimizePolicy,
    UpkeepPolicy,
    VacuumPolicy,
    parse_every,
    parse_share,
    parse_target,
    read_optimize,
    read_vacuum,
)
from tablectl.policies.field_types import (
    FieldName,
    ListOf,
    MapOf,
    Schema,
    Section,
    Text,
    Word,
    YamlField,
    duration,
    matching,
    whole,
)
from tablectl.policies.spelling_hints import did_you_mean
from tablectl.policies.value_reader import GivenValue, ValueReader
from tablectl.policies.variables import VARIABLE, read_location
from tablectl.policies.yaml_nodes import MapNode, Node, Scalar

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
_FEATURE = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_CLIENT = re.compile(r"[a-z][a-z0-9_-]*\Z")
_STREAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")
_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}")
_PROFILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_TAG = re.compile(r"[A-Za-z0-9_./-]+")
LONGEST_OWNER = 200


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DayField(Text):
    """A day. YAML reads a plain 2027-01-31 as a date, and it may stay plain here."""

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:  # noqa: D102
        if isinstance(node, Scalar) and not node.is_null:
            node = replace(node, tag="str")
        return Text.read(self, node, name, reading)


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


def _once(items: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(items))


def _why_no_client(key: str) -> str:
    meant = "" if _CLIENT.match(key) else meant_client(key.lower())
    hint = f"; did you mean `{meant}`?" if meant else ""
    return "" if _CLIENT.match(key) else f"is not a client{hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
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
            of=Text(parse=matching(_FEATURE), noun="a table feature", values={"type": "string"}),
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
            description="What may happen for good: `functions`, constraints call other functions than Spark's "
            "built-in ones; `lockout`, a change locks out every writer of the table; "
            "`masked_rewrite`, a rewrite on Databricks stores what its user sees; "
            "`partition_writers`, writers that name the partition columns fail after a change of them.",
            example="[lockout]",
            editor={"examples": [["lockout"]]},
        ),
        "clients": MapOf(
            of=Text(parse=matching(_VERSION), noun="a version", values={"type": "string"}),
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
        parse=matching(_TAG, "a tag is made of letters, digits, _ . / and -"),
        noun="a tag",
        values={"type": ["string", "integer", "boolean"], "pattern": rf"^({_TAG.pattern}|.*{VARIABLE}.*)$"},
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
    of=Text(
        parse=matching(_PROFILE, "a name is made of letters, digits, _ . and -"),
        noun="the name of a profile",
        values={"type": "string"},
    ),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _AsText(Section):
    """A section whose record is kept as the text that people read."""

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:
        found = Section.read(self, node, name, reading)  # ``slots`` makes a new class, which ``super`` misses
        return None if found is None else found.text


def _every(description: str) -> Text:
    return Text(
        parse=parse_every,
        noun="an interval",
        values={"type": "string", "examples": ["7 days", NEVER]},
        description=description,
        example="7 days",
    )


def _why_not(made: OptimizePolicy) -> str:
    return made.why_not


UPKEEP = Section(
    named=True,
    keys={
        "optimize": _AsText(
            make=OptimizePolicy,
            keys={
                "small_files": Text(
                    parse=parse_share,
                    noun="a percentage",
                    values={"type": "string", "examples": ["30%"]},
                    description="The share of the table's bytes in files below half of `target` from which on they are "
                    "merged.",
                    example="30%",
                ),
                "target": Text(
                    parse=parse_target,
                    noun="a size",
                    values={"type": ["string", "integer"], "examples": ["128 MB"]},
                    description="The size of the merged files; default: 128 MB.",
                    example="128 MB",
                ),
                "every": _every(f"How long after the last OPTIMIZE the next one is due; `{NEVER}` cancels it."),
            },
            short="every",
            check=_why_not,
            description="When the files of the table are merged (OPTIMIZE).",
        ),
        "vacuum": _AsText(
            make=VacuumPolicy,
            keys={"every": _every(f"How long after the last VACUUM the next one is due; `{NEVER}` cancels it.")},
            required=("every",),
            short="every",
            description="When files are deleted that no version needs any more (VACUUM). `retention.deleted_files` "
            "says how long they are kept.",
        ),
    },
    description="What `tablectl upkeep --apply` does regularly. It never changes a plan.",
    example="{optimize: {small_files: 30%, every: 7 days}, vacuum: {every: 7 days}}",
)


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


def upkeep_of(effective: Mapping[str, GivenValue]) -> UpkeepPolicy | None:
    """The upkeep that the effective declarations ask for; ``None`` if they ask for none."""
    optimize = _read(effective, "upkeep.optimize", read_optimize)
    vacuum = _read(effective, "upkeep.vacuum", read_vacuum)
    if optimize and optimize.every == NEVER:
        optimize = replace(optimize, every="") if optimize.small_files else None
    if vacuum and vacuum.every == NEVER:
        vacuum = None
    clusters: Any = effective["optimize"].value if "optimize" in effective else "never"
    return UpkeepPolicy(optimize=optimize, vacuum=vacuum, clusters=clusters) if optimize or vacuum else None


def _read(effective: Mapping[str, GivenValue], key: str, read: Callable[[str], Any]) -> Any:
    return read(str(effective[key].value)) if key in effective else None
