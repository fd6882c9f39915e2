"""The contents of a YAML file as texts with positions. This module does not know the meaning of the texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tablectl.delta.credentials import scrub
from tablectl.model.errors import Problem


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """The position of a text. Lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def problem(self, message: str, hint: str = "") -> Problem:
        """A problem at this position, scrubbed of the credentials in locations."""
        return Problem(self.file, self.line, self.column, scrub(message), scrub(hint))


@dataclass(frozen=True, slots=True)
class Scalar:
    """One text. ``text`` is the file's text, not YAML's interpretation: ``010`` stays ``010``."""

    text: str
    tag: str
    """YAML's type: ``str``, ``null``, ``bool``, ``int``, ``float``, ``timestamp``, or a custom type."""
    source: SourceFile

    @property
    def is_null(self) -> bool:
        """Whether it is empty, ``null`` or ``~``."""
        return self.tag == "null"


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list."""

    items: tuple[Node, ...]
    source: SourceFile


@dataclass(frozen=True, slots=True)
class MapNode:
    """A map with unique keys in the order of the file."""

    entries: Mapping[str, tuple[SourceFile, Node]]
    """Key → its position and its value."""
    source: SourceFile


Node = Scalar | ListNode | MapNode


def kind_of(node: Node) -> str:
    """The kind of a node, for messages."""
    match node:
        case Scalar():
            return "nothing" if node.is_null else "text"
        case ListNode():
            return "a list"
        case MapNode():
            return "a map"


def is_text(scalar: Scalar) -> bool:
    """Whether a scalar counts as text: text itself, ``true``, ``false``, and plain whole numbers.

    Texts that YAML reinterprets (``no``, ``12:30``, ``0x1F``, ``1.50``) do not: two readers of the same file would see
    two different texts.
    """
    match scalar.tag:
        case "str":
            return True
        case "bool":
            return scalar.text in {"true", "false"}
        case "int":
            digits = scalar.text.removeprefix("-")
            return digits.isascii() and digits.isdigit() and (digits == "0" or not digits.startswith("0"))
        case _:
            return False


def plain(node: Node) -> Any:
    """The value of a node: a text, a map, a list, ``None`` for null, and the ``Scalar`` itself if it does not count as
    text.
    """
    if isinstance(node, MapNode):
        return {key: plain(inner) for key, (_, inner) in node.entries.items()}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    if node.is_null:
        return None
    return node.text if is_text(node) else node


def places_in(node: Node, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], SourceFile]]:
    """The position of each key and of each item of a list, by the keys that lead to it. Items are numbered from 1."""
    if isinstance(node, MapNode):
        for key, (source, inner) in node.entries.items():
            yield (*above, key), source
            yield from places_in(inner, (*above, key))
    elif isinstance(node, ListNode):
        for number, item in enumerate(node.items, 1):
            yield (*above, str(number)), item.source
            yield from places_in(item, (*above, str(number)))
