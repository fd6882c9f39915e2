"""The contents of a YAML file as texts with positions. This module does not know the meaning of the texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
