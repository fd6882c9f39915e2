"""Writes policy files: names and values bare if YAML reads them unchanged, otherwise in double quotes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tablectl.attributes.policy import VALUE_TYPES
from tablectl.delta.names import NameSyntaxError, TableName, join_parts
from tablectl.model.text import printable
from tablectl.policies.value_reader import is_text
from tablectl.policies.variables import Variables, escape_variables, read_table_key
from tablectl.policies.yaml_document import implicit_tag
from tablectl.policies.yaml_nodes import Scalar, SourceFile
from tablectl.support.frozen import frozen

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
    bare = _is_bare(escaped, flow=flow) and is_text(Scalar(escaped, implicit_tag(escaped), _NOWHERE))
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


Declared = tuple[str, str, str | tuple[str, ...]]
"""An attribute, the key (for ``properties``, otherwise empty), and the value."""

_IMPORTED = "Written by `tablectl import`: what these tables are. What no line names is not managed."
_LONGEST = 200


@frozen
class TableEntry:
    """The entry of one table in the new file."""

    key: str
    """The key that ``table_key`` returns."""
    location: str | None = None
    """The location of a catalog table."""
    declared: tuple[Declared, ...] = ()
    left_out: tuple[str, ...] = ()
    """Facts about the table that no policy can declare, one sentence each."""


def write_policies(entries: Sequence[TableEntry], head: str = _IMPORTED) -> str:
    """The text of a policy file. Values that all of several tables have go into ``defaults`` if that makes the file
    shorter. The first line is the comment ``head``.
    """
    ordered = sorted(entries, key=lambda entry: entry.key)
    alone = _file(head, (), ordered)
    common = _common(ordered)
    if not common:
        return alone
    lifted = _file(head, common, [replace(each, declared=_without(each.declared, common)) for each in ordered])
    return lifted if lifted.count("\n") < alone.count("\n") else alone


def write_entry(entry: TableEntry) -> str:
    """The text of one entry, to paste below ``tables:``."""
    return "\n".join(_entry(entry)) + "\n"


def _common(entries: Sequence[TableEntry]) -> tuple[Declared, ...]:
    """The values that all tables have. Columns are excluded, because tables added later would have to have them."""
    counts = Counter(each for entry in entries for each in entry.declared if isinstance(each[2], str))
    lifted = (each for each in entries[0].declared if counts[each] == len(entries)) if len(entries) > 1 else ()
    return tuple(each for each in lifted if each[0] in VALUE_TYPES and not VALUE_TYPES[each[0]].columns)


def _without(declared: tuple[Declared, ...], common: tuple[Declared, ...]) -> tuple[Declared, ...]:
    return tuple(each for each in declared if each not in common)


def _file(head: str, defaults: tuple[Declared, ...], entries: Sequence[TableEntry]) -> str:
    lines = ["", "defaults:", *_declared(defaults, "  ")] if defaults else []
    lines += ["", "tables:" if entries else "tables: {}"]
    for index, entry in enumerate(entries):
        lines += [""] * bool(index) + _entry(entry)
    return "\n".join([f"# {head}", "version: 1", *lines]) + "\n"


def _entry(entry: TableEntry) -> list[str]:
    comments = [f"    # left out: {_comment(each)}" for each in entry.left_out]
    body = [f"    location: {write_text(entry.location)}"] if entry.location else []
    body += _declared(entry.declared, "    ")
    return [f"  {write_key(entry.key)}:{'' if body else ' {}'}", *comments, *body]


def _comment(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def _declared(declared: Sequence[Declared], indent: str) -> list[str]:
    """The single values, then the maps."""
    lines = [f"{indent}{name}: {write_value(value)}" for name, key, value in declared if not key]
    for map_name in dict.fromkeys(name for name, key, _ in declared if key):
        lines.append(f"{indent}{map_name}:")
        items = ((key, value) for name, key, value in declared if name == map_name)
        lines += [f"{indent}  {write_key(key)}: {write_value(value)}" for key, value in items]
    return lines
