"""Parses the values of attributes from YAML nodes into the types of ``Policy``. Reports problems with their
position.
"""

from __future__ import annotations

from functools import partial

from tablectl.attributes.value_types import ValueType
from tablectl.delta.names import column_text, fold_column, parse_column
from tablectl.policies.attribute_types import LATER_WORDS, SHAPES
from tablectl.policies.identifiers import read_column
from tablectl.policies.property_values import read_properties
from tablectl.policies.suggestions import did_you_mean, shown
from tablectl.policies.value_reader import GivenValue, ValueReader
from tablectl.policies.yaml_nodes import Entry, ListNode, MapNode, Node, Scalar, SourceFile, kind_of


def read_attribute(entry: Entry, reading: ValueReader) -> dict[str, GivenValue]:
    """The values that one attribute's entry declares, by attribute name or, for a map, ``<name>.<key>``."""
    shape = SHAPES[entry.key]
    if not shape.keyed:  # each property has a reader of its own
        reading = reading.of_value(entry.key, "", entry.value)
    match entry.value:
        case Scalar(is_null=True):
            hint = f"leave it out: absent means not managed; `unmanaged: [{entry.key}]` cancels an inherited value"
            reading.report(entry.source, f"`{entry.key}` has no value", hint)
            return {}
        case MapNode() if shape.keyed:
            return {f"{entry.key}.{key}": given for key, given in read_properties(entry.value, reading).items()}
        case MapNode() if shape.fields:
            return _read_fields(entry.value, shape, reading)
        case ListNode() if shape.columns:
            value: str | tuple[str, ...] | None = _read_columns(entry.value, shape, reading)
        case Scalar() if shape.words:
            value = _read_word(entry.value, shape, reading)
        case _:
            message = f"`{entry.key}` {shape.takes}, not {kind_of(entry.value)}"
            reading.report(entry.value.source, message, f"for example {shape.example}")
            return {}
    return {} if value is None else {entry.key: reading.given(value, entry.source)}


def _read_fields(node: MapNode, shape: ValueType, reading: ValueReader) -> dict[str, GivenValue]:
    fields = {each.name: each for each in shape.fields}
    given: dict[str, GivenValue] = {}
    for entry in node.entries:
        field, what = fields.get(entry.key), f"`{shape.name}.{entry.key}`"
        if field is None:
            reading.report(
                entry.source, f"{shown(entry.key)} is no key of `{shape.name}`", did_you_mean(entry.key, fields)
            )
            continue
        text = reading.text(entry.value, what, f"`{field.name}: {field.example}`")
        why = "" if text is None else field.why_not(text)
        if text is not None and why:
            reading.report(entry.value.source, f"{shown(text)} is not a value of {what}: it {why}")
        elif text is not None:
            given[f"{shape.name}.{field.name}"] = reading.given(text, entry.source)
    return given


def _read_word(scalar: Scalar, shape: ValueType, reading: ValueReader) -> str | None:
    word = reading.expand(scalar)
    if word is None or word in shape.words:
        return word
    if (shape.name, word) in LATER_WORDS:
        hint = f"for now `{shape.name}` {shape.takes}"
        reading.report(scalar.source, f"`{shape.name}: {word}` is not supported yet", hint)
    elif shape.columns and scalar.tag == "str" and word.casefold() not in shape.words:
        short = len(word) <= 60 and word.isprintable()
        hint = f"did you mean [{word}]?" if short else f"for example {shape.example}"
        reading.report(scalar.source, f"`{shape.name}` {shape.takes}, and {shown(word)} is neither", hint)
    else:
        hint = did_you_mean(word, shape.words)
        reading.report(scalar.source, f"{shown(word)} is not a value of `{shape.name}`", hint)
    return None


def _read_columns(node: ListNode, shape: ValueType, reading: ValueReader) -> tuple[str, ...] | None:
    columns = [_read_item(item, shape, reading) for item in node.items]
    known = tuple((text, item.source) for text, item in zip(columns, node.items, strict=True) if text is not None)
    most = shape.most_columns or len(columns)
    if not columns:
        hint = f"`{shape.name}: {shape.words[0]}` declares that there are none" if shape.words else "name a column"
        reading.report(node.source, f"`{shape.name}` lists no column", hint)
        return None
    if len(columns) > most:
        reading.report(node.source, f"`{shape.name}` takes at most {most} columns, and here are {len(columns)}")
        return None
    fine = _check_columns(known, shape, reading) and len(known) == len(columns)
    return tuple(text for text, _ in known) if fine else None


def _read_item(item: Node, shape: ValueType, reading: ValueReader) -> str | None:
    scalar = reading.scalar(item, f"a column of `{shape.name}`", shape.example)
    if scalar is None:
        return None
    return reading.name(scalar.text, scalar.source, partial(read_column, variables=reading.variables))


def _check_columns(columns: tuple[tuple[str, SourceFile], ...], shape: ValueType, reading: ValueReader) -> bool:
    fine, seen = True, set()
    for text, source in columns:
        path = parse_column(text)
        if fold_column(path) in seen:
            reading.report(source, f"the column {column_text(path)} occurs twice in `{shape.name}`")
            fine = False
        seen.add(fold_column(path))
        if len(path) > 1 and shape.top_level:
            hint = 'a column with a dot in its name goes in backticks: "`a.b`"'
            reading.report(source, f"`{shape.name}` takes top-level columns, and {shown(text)} is a field in one", hint)
            fine = False
    return fine
