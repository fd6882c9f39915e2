"""The options of a policy: keys other than attributes. Parses and describes each, and builds ``TableOptions``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tablectl.model.table_options import CONSENTS, TableOptions, parse_size
from tablectl.policies.suggestions import did_you_mean, shown
from tablectl.policies.value_reader import GivenValue, ValueReader
from tablectl.policies.variables import VARIABLE
from tablectl.policies.yaml_nodes import Entry, ListNode, MapNode, Scalar, kind_of

_FEATURE = re.compile(r"[A-Za-z][A-Za-z0-9-]*\Z")
_CLIENT = re.compile(r"[a-z][a-z0-9_-]*\Z")
_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One key: how to parse its value, and its description for editors."""

    name: str
    description: str
    read: Callable[[Entry, ValueReader], Mapping[str, GivenValue]]
    """Returns the value by the key's name, or by ``name.<key>`` for each key of a map."""
    schema: Mapping[str, Any]


def _read_word(entry: Entry, words: tuple[str, ...], reading: ValueReader) -> Mapping[str, GivenValue]:
    if not isinstance(entry.value, Scalar) or entry.value.is_null:
        message = f"`{entry.key}` takes one of {', '.join(words)}, not {kind_of(entry.value)}"
        reading.report(entry.value.source, message, f"for example `{entry.key}: {words[0]}`")
        return {}
    word = reading.expand(entry.value)
    if word is None or word in words:
        return {} if word is None else {entry.key: GivenValue(word, entry.source)}
    reading.report(entry.value.source, f"{shown(word)} is not a value of `{entry.key}`", did_you_mean(word, words))
    return {}


def _word(name: str, words: tuple[str, ...], description: str) -> Option:
    enum: list[Any] = [*words] if words != _SWITCH else [True, False]
    return Option(
        name=name,
        description=description,
        read=lambda entry, reading: _read_word(entry, words, reading),
        schema={"anyOf": [{"enum": enum}, {"type": "string", "pattern": VARIABLE}]},
    )


_SWITCH = ("true", "false")


def _read_size(entry: Entry, reading: ValueReader) -> Mapping[str, GivenValue]:
    text = reading.text(entry.value, f"`{entry.key}`", f"`{entry.key}: 500 GB`")
    if text is None:
        return {}
    try:
        return {entry.key: GivenValue(str(parse_size(text)), entry.source)}
    except ValueError:
        reading.report(entry.value.source, f"{shown(text)} is not a size", f"for example `{entry.key}: 500 GB`")
        return {}


def _read_features(entry: Entry, reading: ValueReader) -> Mapping[str, GivenValue]:
    example = f"`{entry.key}: [appendOnly, invariants, deletionVectors]`"
    if not isinstance(entry.value, ListNode):
        message = f"`{entry.key}` takes a list of table features, not {kind_of(entry.value)}"
        reading.report(entry.value.source, message, f"for example {example}")
        return {}
    features: dict[str, None] = {}
    for item in entry.value.items:
        text = reading.text(item, f"a feature of `{entry.key}`", example)
        if text is not None and _FEATURE.match(text) is None:
            reading.report(item.source, f"{shown(text)} is not a table feature", f"for example {example}")
        elif text is not None:
            features[text] = None
    return {entry.key: GivenValue(tuple(features), entry.source)}


def _read_consents(entry: Entry, reading: ValueReader) -> Mapping[str, GivenValue]:
    example = f"`{entry.key}: [{CONSENTS[0]}]`"
    if not isinstance(entry.value, ListNode):
        message = f"`{entry.key}` takes a list of consents, not {kind_of(entry.value)}"
        reading.report(entry.value.source, message, f"for example {example}")
        return {}
    words: set[str] = set()
    for item in entry.value.items:
        text = reading.text(item, f"a consent of `{entry.key}`", example)
        if text is not None and text not in CONSENTS:
            reading.report(
                item.source, f"{shown(text)} is not a consent of `{entry.key}`", did_you_mean(text, CONSENTS)
            )
        elif text is not None:
            words.add(text)
    return {entry.key: GivenValue(tuple(sorted(words)), entry.source)}


def _read_clients(entry: Entry, reading: ValueReader) -> Mapping[str, GivenValue]:
    example = f'`{entry.key}: {{spark: "4.0"}}`'
    if not isinstance(entry.value, MapNode):
        message = f"`{entry.key}` takes a map of clients to versions, not {kind_of(entry.value)}"
        reading.report(entry.value.source, message, f"for example {example}")
        return {}
    clients: dict[str, GivenValue] = {}
    for each in entry.value.entries:
        version = reading.text(each.value, f"the version of {shown(each.key)}", example)
        if _CLIENT.match(each.key) is None:
            reading.report(each.source, f"{shown(each.key)} is not a client", f"for example {example}")
        elif version is not None and _VERSION.match(version) is None:
            reading.report(each.value.source, f"{shown(version)} is not a version", f"for example {example}")
        elif version is not None:
            clients[f"{entry.key}.{each.key}"] = GivenValue(version, each.source)
    return clients


EVERY_OPTION = (
    _word(
        "rewrite",
        ("allowed", "refused"),
        "Whether all data of the table may be rewritten, as a change of its partitioning requires.",
    ),
    Option(
        name="max_bytes",
        description="A table with more data than this is not rewritten.",
        read=_read_size,
        schema={"type": ["string", "integer"], "examples": ["500 GB"]},
    ),
    _word(
        "optimize",
        ("never", "incremental", "full"),
        "What is clustered when the clustering columns change: nothing, new data (OPTIMIZE), or all (OPTIMIZE FULL).",
    ),
    _word(
        "truncate_history",
        _SWITCH,
        "Whether `deletion_vectors: dropped` gives up history so that nothing of the feature stays behind: two "
        "applies, at least 24 hours apart.",
    ),
    Option(
        name="allowed_features",
        description="The protocol features that a change may add; one that adds another is refused.",
        read=_read_features,
        schema={"type": "array", "items": {"type": "string"}, "examples": [["deletionVectors", "clustering"]]},
    ),
    Option(
        name="allow",
        description="What may happen to writers for good: `lockout`, a change locks out every writer of the table; "
        "`partition_writers`, writers that name the partition columns fail after a change of them.",
        read=_read_consents,
        schema={"type": "array", "items": {"enum": [*CONSENTS]}, "examples": [["lockout"]]},
    ),
    Option(
        name="clients",
        description="Clients that must be able to go on, with their versions; a change that locks one out is refused.",
        read=_read_clients,
        schema={
            "type": "object",
            "additionalProperties": {"type": "string"},
            "examples": [{"spark": "4.0", "deltalake": "1.6", "trino": "450"}],
        },
    ),
)
_BUILT = frozenset({"rewrite", "max_bytes", "optimize", "truncate_history", "allowed_features", "allow", "clients"})
LATER_OPTIONS = frozenset(option.name for option in EVERY_OPTION) - _BUILT
"""Options that are planned but not implemented. Using one is an error."""
OPTIONS: Mapping[str, Option] = MappingProxyType(
    {option.name: option for option in EVERY_OPTION if option.name not in LATER_OPTIONS}
)
"""Option by name, in the order of explanations."""


def options_of(effective: Mapping[str, GivenValue]) -> TableOptions:
    """Builds the options from the effective declarations."""
    given: dict[str, Any] = {name: effective[name].value for name in OPTIONS if name in effective}
    if "max_bytes" in given:
        given["max_bytes"] = int(given["max_bytes"])
    if "truncate_history" in given:
        given["truncate_history"] = given["truncate_history"] == "true"
    clients = {key.partition(".")[2]: str(effective[key].value) for key in effective if key.startswith("clients.")}
    return TableOptions(**given, clients=tuple(sorted(clients.items())))
