"""Writes names and values for a policy file: bare if YAML reads them unchanged, otherwise in double quotes."""

from __future__ import annotations

import re

from tablectl.delta.names import NameSyntaxError, TableName, join_parts
from tablectl.policies.table_keys import read_table_key
from tablectl.policies.variables import Variables, escape_variables
from tablectl.policies.yaml_builder import implicit_tag
from tablectl.policies.yaml_nodes import Scalar, SourceFile

_BARE = re.compile(r"[A-Za-z0-9_/.$(+-](?:[^\x00-\x1f#:]|:(?! |\Z)|(?<! )#)*\Z")
_IN_FLOW = re.compile(r"[,\[\]{}]")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_NOWHERE = SourceFile("", 0, 0)


def write_key(text: str, *, flow: bool = False) -> str:
    """A key, which YAML must read as text. ``flow`` means inside braces."""
    return text if _is_bare(text, flow=flow) and implicit_tag(text) == "str" else _quoted(text)


def write_text(text: str, *, flow: bool = False) -> str:
    """A value that policies read as this text, with variables escaped. ``true`` and ``60`` need no quotes."""
    escaped = escape_variables(text)
    bare = _is_bare(escaped, flow=flow) and Scalar(escaped, implicit_tag(escaped), _NOWHERE).is_text
    return escaped if bare else _quoted(escaped)


def write_value(value: str | tuple[str, ...] | None, *, flow: bool = False) -> str:
    """The value of an attribute or property."""
    match value:
        case None:
            return "null"
        case tuple():
            return f"[{', '.join(write_text(item, flow=True) for item in value)}]"
        case str():
            return write_text(value, flow=flow)


def table_key(name: TableName, catalog: str) -> str:
    """The key of ``tables`` for a table, where two parts mean schema and table in ``catalog``. Not yet quoted for YAML.

    Raises ``NameSyntaxError`` for a table that no key can name, such as a path that reads as a pattern.
    """
    texts = (name.text,) if name.is_path else (name.text, join_parts((name.catalog, *name.parts)))
    for text in map(escape_variables, texts):
        if read_table_key(text, Variables(), catalog) == name:
            return text
    raise NameSyntaxError(f"no key of `tables` names {name.text}")


def _is_bare(text: str, *, flow: bool) -> bool:
    """Whether YAML reads the text without quotes unchanged, regardless of the type that it assigns."""
    if not _BARE.match(text) or not text.isprintable() or text != text.strip():
        return False
    return not (text == "-" or text.startswith(("- ", "---", "...")) or (flow and _IN_FLOW.search(text)))


def _quoted(text: str) -> str:
    return f'"{"".join(_escaped(char) for char in text)}"'


def _escaped(char: str) -> str:
    """A character inside double quotes. Invisible characters are escaped by number."""
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable() and char != "\ufeff":
        return char
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
