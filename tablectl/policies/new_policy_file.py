"""Writes a new policy file from the values of live tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tablectl.attributes.policy import VALUE_TYPES
from tablectl.frozen import frozen
from tablectl.model.text import printable
from tablectl.policies.yaml_text import write_key, write_text, write_value

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
