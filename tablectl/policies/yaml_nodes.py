"""The contents of a YAML file as texts with positions. This module does not know the meaning of the texts."""

from __future__ import annotations

from dataclasses import dataclass

from tablectl.delta.credentials import scrub
from tablectl.model.errors import Problem
from tablectl.support.frozen import frozen


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


@frozen
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

    @property
    def is_text(self) -> bool:
        """Whether it counts as text: text itself, ``true``, ``false``, and plain whole numbers.

        Texts that YAML reinterprets (``no``, ``12:30``, ``0x1F``, ``1.50``) do not: two readers of the same file would
        see two different texts.
        """
        match self.tag:
            case "str":
                return True
            case "bool":
                return self.text in {"true", "false"}
            case "int":
                digits = self.text.removeprefix("-")
                return digits.isascii() and digits.isdigit() and (digits == "0" or not digits.startswith("0"))
            case _:
                return False


@frozen
class ListNode:
    """A list."""

    items: tuple[Node, ...]
    source: SourceFile


@frozen
class Entry:
    """One key of a map and its value. ``source`` is the key's position."""

    key: str
    source: SourceFile
    value: Node


@frozen
class MapNode:
    """A map with unique keys in the order of the file."""

    entries: tuple[Entry, ...]
    source: SourceFile

    def find(self, key: str) -> Entry | None:
        """The entry of a key; ``None`` if there is none."""
        return next((entry for entry in self.entries if entry.key == key), None)


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
