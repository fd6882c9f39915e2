"""Turns the errors of pydantic into problems of a file: position, value, what is taken, a hint. All at once.

Pydantic says where (``loc``), what (``type``) and with which words (``ctx``). The JSON Schema of the file says which
keys are known and gives examples. A union would report each of its branches: the types of policies have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from tablectl.model.errors import Problem
from tablectl.policies.parse_yaml import implicit_tag
from tablectl.policies.spelling_hints import did_you_mean, nearest, shown
from tablectl.policies.value_kinds import number_text
from tablectl.policies.yaml_nodes import Scalar, SourceFile, is_text
from tablectl.support.json_text import write_json

Keys = tuple[str, ...]
"""The keys that lead to a value. The items of a list are numbered from 1."""
Schema = dict[str, Any]

_ON, _OFF = ("enabled", "allowed", "true"), ("disabled", "none", "refused", "false")
_SWITCHES = {"true": _ON, "on": _ON, "yes": _ON, "false": _OFF, "off": _OFF, "no": _OFF}
"""Words that people write for a switch, each with the words that may stand for it."""
_READS = {"bool": "as true or false", "int": "as a number", "float": "as a number", "timestamp": "as a date"}
_MAPS = frozenset({"dict_type", "mapping_type", "dataclass_type", "model_type"})
_LISTS = frozenset({"list_type", "tuple_type"})
_UNKNOWN = frozenset({"unexpected_keyword_argument", "extra_forbidden"})
_MISSING = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})
_BOUNDS = {"greater_than_equal": ("least", "ge"), "less_than_equal": ("most", "le")}
_WHAT = {
    "clients": "a map of clients to versions",
    "streams": "a map of streams to checkpoints",
    "allow": "a list of consents",
    "allowed_features": "a list of table features",
}
"""What some maps and lists hold."""
_BARE = re.compile(r"[\w./-](?:[\w ./%-]|:(?! ))*")
_NOWHERE = SourceFile("", 0, 0)
_FEW = 3
"""So many keys of a map are named in a message about the map."""
MOST_PROBLEMS = 1000
"""The number of problems of one file that are computed; fewer are shown."""
MOST_HINTS = 200
"""The number of problems after which no more suggestions are computed."""


def key_text(keys: Keys) -> str:
    """The name of a key in messages: ```engine.dialect```."""
    name = ".".join(keys)
    return f"`{name}`" if name.isprintable() else shown(name)


def flow(value: object) -> str:
    """A value as YAML on one line."""
    match value:
        case dict():
            return f"{{{', '.join(f'{key}: {flow(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(flow, value))}]"
        case str():
            bare = _BARE.fullmatch(value) and is_text(Scalar(value, implicit_tag(value), _NOWHERE))
            return value if bare else write_json(value)
        case _:
            return write_json(value)


def inside(schema: Schema, keys: Keys) -> Schema:
    """The part of a JSON Schema that describes the value behind some keys; empty if it says nothing about it."""
    for key in keys:
        parts = [schema, *(each for each in schema.get("anyOf", ()) if isinstance(each, dict))]
        found = (
            each.get("properties", {}).get(key) or each.get("items" if key.isdigit() else "additionalProperties")
            for each in parts
        )
        schema = next((each for each in found if isinstance(each, dict)), {})
    return schema


def _known(schema: Schema) -> tuple[str, ...]:
    parts = [schema, *schema.get("anyOf", ())]
    return next((tuple(each["properties"]) for each in parts if "properties" in each), ())


def kind_of(value: object) -> str:
    """The kind of a value, for messages."""
    match value:
        case None:
            return "nothing"
        case Mapping():
            return "a map"
        case list() | tuple():
            return "a list"
        case _:
            return "text"


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """What messages about one file need besides the errors."""

    schema: Callable[[], Schema]
    key_place: Callable[[Keys], SourceFile]
    """The position of a key."""
    place: Callable[[Keys], SourceFile]
    """The position of a value."""
    hints: bool = True
    """Whether to compute suggestions."""
    secret: Callable[[Keys], bool] = lambda _keys: False
    """Whether no message shows the value of a key."""
    tell: Callable[[Keys, SourceFile, str, str], Problem] = lambda _keys, place, *texts: place.problem(*texts)
    """The problem about a value that must not be shown in some files."""
    instead: Callable[[Keys], str] = lambda _keys: ""
    """The hint for an unknown key, if it is another than the spelling."""


def problems_of(error: ValidationError, facts: FileFacts) -> Iterator[Problem]:
    """One problem for each wrong value, for the first ``MOST_PROBLEMS`` of them."""
    missing: dict[Keys, list[str]] = {}
    wrong_keys: set[Keys] = set()
    for number, each in enumerate(error.errors(include_url=False)[:MOST_PROBLEMS]):
        keys, hints = (
            tuple(str(step + 1) if isinstance(step, int) else step for step in each["loc"]),
            facts.hints and number < MOST_HINTS,
        )
        if each["type"] in {"said", "twice"}:
            yield _said(each, keys, facts)
        elif keys[-1:] == ("[key]",):
            keys, about = keys[:-1], each["ctx"]
            wrong_keys.add(keys)
            hint = (about["hint"]() if hints else "") or _example(keys, facts.schema())
            yield facts.tell(keys, facts.key_place(keys), f"{key_text(keys)} {about['why']}", hint)
        elif each["type"] in _MISSING:
            missing.setdefault(keys[:-1], []).append(keys[-1])
        elif not any(keys[:end] in wrong_keys for end in range(len(keys))):  # a value comes after its key
            yield facts.tell(keys, *_told(each, keys, facts, hints=hints))
    for keys, names in missing.items():
        if not any(keys[:end] in wrong_keys for end in range(len(keys) + 1)):
            needs = " and ".join(f"`{name}`" for name in names)
            yield facts.tell(keys, facts.place(keys), f"{key_text(keys)} needs {needs}", "")


def _said(error: Any, keys: Keys, facts: FileFacts) -> Problem:
    """An error with its own message; or a key that occurs twice without regard to letter case."""
    at_key, about = keys[-1] == "[key]", error["ctx"]
    keys = keys[:-1] if at_key else keys
    given = error["input"]
    place = facts.key_place(keys) if at_key else given.source if isinstance(given, Scalar) else facts.place(keys)
    if error["type"] == "said":
        tell = facts.tell if about["hidden"] else FileFacts.tell
        return tell(keys, place, about["message"], about["hint"])
    first = facts.key_place((*keys[:-1], about["first"])).line
    message, hint = f"{key_text(keys)} is declared twice: first on line {first}", "keep one of them"
    if about.get("folds"):
        message, hint = (
            message.replace(key_text(keys), shown(keys[-1])),
            "Delta folds the case of its own keys: keep one",
        )
    return facts.tell(keys, place, message, hint)


Told = tuple[SourceFile, str, str]


def _told(error: Any, keys: Keys, facts: FileFacts, *, hints: bool) -> Told:
    kind, given, about = error["type"], error["input"], error.get("ctx", {})
    if kind in _UNKNOWN:
        return _unknown(keys, facts, hints=hints)
    place = given.source if isinstance(given, Scalar) else facts.place(keys)
    name, secret = key_text(keys), facts.secret(keys)
    text = given.text if isinstance(given, Scalar) else number_text(given) if isinstance(given, float) else str(given)
    told = "this" if secret else shown(text)
    shows = f"{kind_of(given)}" if secret or not isinstance(given, str | Scalar) or not text else shown(text)
    example = _example(keys, facts.schema())
    if kind == "whole":
        return place, f"{name} {about['why']}", about.get("hint", "")
    if kind in _MAPS:
        known = _known(inside(facts.schema(), keys))
        which = f" with {' and '.join(f'`{each}`' for each in known)}" if 0 < len(known) <= _FEW else ""
        what = f"a map{which}" if which else _WHAT.get(".".join(keys), "a map")
        # A text in place of a map can be the secret that belongs into it.
        return place, f"{name} takes {what}, not {kind_of(given)}", example or f"put its keys under {name}"
    if kind in _LISTS:
        what = _WHAT.get(".".join(keys), "a list")
        return place, f"{name} takes {what}, not {shows}", example or "put each of its items behind a dash"
    if kind == "word":
        words = about["words"]
        if not isinstance(given, str | Scalar):
            message = f"{name} takes one of {', '.join(words)}, not {kind_of(given)}"
            return place, message, example or f"for example `{keys[-1]}: {words[0]}`"
        switch = next((each for each in _SWITCHES.get(text.casefold(), ()) if each in words), "")
        hint = f"did you mean `{switch}`?" if switch else "" if nearest(text, words) else about["others"]
        return place, f"{told} is not a value of {name}", hint or (did_you_mean(text, words) if hints else "")
    if kind in {"string_type", "text"} and isinstance(given, Scalar):
        if secret and given.tag != "bool":
            return place, f"YAML does not read {name} as text", "quote it"
        reads = _READS.get(given.tag, "as something else")
        return place, f"YAML reads {text} {reads}, not as text", f'quote it: "{text}"'
    if kind in {"string_type", "text"}:
        message = "has no value" if given is None else f"takes {about.get('kind', 'text')}, not {kind_of(given)}"
        return place, f"{name} {message}", example
    if kind in _BOUNDS:
        word, key = _BOUNDS[kind]
        return place, f"{name} needs at {word} {number_text(about[key])}, not {told}", ""
    needs = str(about.get("needs") or about.get("error") or "")
    if about.get("noun"):
        return place, f"{told} is not {about['noun']}", needs or example
    return place, f"{name} {needs or error['msg']}, not {told}", ""


def _unknown(keys: Keys, facts: FileFacts, *, hints: bool) -> Told:
    *above, key = keys
    known = _known(inside(facts.schema(), tuple(above)))
    instead = facts.instead(keys)
    hide = facts.secret(tuple(above)) and not instead
    hint = instead or (did_you_mean(key, known) if hints else "")
    return facts.key_place(keys), f"unknown key {shown('.'.join((*above, '…' if hide else key)))}", hint


def _example(keys: Keys, schema: Schema) -> str:
    """A valid entry for the key, else for the innermost key above that has an example, as a hint."""
    for length in range(len(keys), 0, -1):
        examples = inside(schema, keys[:length]).get("examples")
        if examples:
            name = next(key for key in reversed(keys[:length]) if not key.isdigit())
            return f"for example `{name}: {flow(examples[0])}`"
    return ""
