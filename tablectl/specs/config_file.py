"""The configuration file as plain values: texts, nested as the file nests them, beside the place of each key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tablectl.model.errors import Problem
from tablectl.specs.document import parse_document
from tablectl.specs.files import read_bytes, shown_path
from tablectl.specs.reading import Reading
from tablectl.specs.tree import ListNode, MapNode, Scalar, Source, kind_of
from tablectl.specs.variables import Variables
from tablectl.specs.wording import shown

Keys = tuple[str, ...]
"""The keys that lead to a value."""

Places = dict[Keys, Source]


def read_values(path: Path, problems: list[Problem]) -> tuple[dict[str, Any], Places]:
    """What the file sets, and where; nothing where there is no file or it is empty. No type is checked yet."""
    data, file = read_bytes(path, problems, missing=b""), shown_path(path)
    root = parse_document(data, file, problems) if data is not None else None
    places: Places = {}
    if root is None or (isinstance(root, Scalar) and root.is_null):
        return {}, places
    if not isinstance(root, MapNode):
        hint = "for example `engine: {dialect: oss}`"
        problems.append(root.source.problem(f"the configuration is a map, not {kind_of(root)}", hint))
        return {}, places
    return _plain_map(root, (), places, Reading(Variables(), "", "", problems)), places


def key_text(keys: Keys) -> str:
    """A setting's name in messages."""
    name = ".".join(keys)
    return f"`{name}`" if name.isprintable() else shown(name)


def _plain_map(node: MapNode, keys: Keys, places: Places, reading: Reading) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for entry in node.entries:
        path = (*keys, entry.key)
        places[path] = entry.source
        match entry.value:
            case MapNode():
                values[entry.key] = _plain_map(entry.value, path, places, reading)
            case Scalar(is_null=True):
                values[entry.key] = None
            case ListNode():
                reading.report(entry.value.source, f"{key_text(path)} takes no list")
            case Scalar():
                scalar = reading.scalar(entry.value, key_text(path), "")
                if scalar is not None:
                    values[entry.key] = scalar.text
    return values
