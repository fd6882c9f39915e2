"""What a YAML file says, as texts that know where they stand. Nothing here knows what the texts mean."""

from __future__ import annotations

from dataclasses import dataclass

from tablectl.delta.credentials import scrub
from tablectl.model.errors import Problem


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """Where something was written. Lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def problem(self, message: str, hint: str = "") -> Problem:
        """What is wrong at this place, without the credentials of locations that the message repeats."""
        return Problem(self.file, self.line, self.column, scrub(message), scrub(hint))


@dataclass(frozen=True, slots=True)
class Scalar:
    """One text. ``text`` is what the file holds, not what YAML makes of it: ``010`` stays ``010``."""

    text: str
    tag: str
    """What YAML takes it for: ``str``, ``null``, ``bool``, ``int``, ``float``, ``timestamp``, or a type of its own."""
    source: SourceFile

    @property
    def is_null(self) -> bool:
        """Nothing, ``null`` or ``~``."""
        return self.tag == "null"

    @property
    def is_text(self) -> bool:
        """Whether it can stand for its text: text itself, ``true``, ``false``, and whole numbers written plainly.

        What YAML reads in a way of its own (``no``, ``12:30``, ``0x1F``, ``1.50``) cannot: two readers of the same
        file would see two texts.
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


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list."""

    items: tuple[Node, ...]
    source: SourceFile


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a map and its value; ``source`` is the key's place."""

    key: str
    source: SourceFile
    value: Node


@dataclass(frozen=True, slots=True)
class MapNode:
    """A map, its keys in the order of the file and each there once."""

    entries: tuple[Entry, ...]
    source: SourceFile

    def find(self, key: str) -> Entry | None:
        """The entry of a key."""
        return next((entry for entry in self.entries if entry.key == key), None)


Node = Scalar | ListNode | MapNode


def kind_of(node: Node) -> str:
    """What a node is, for messages."""
    match node:
        case Scalar():
            return "nothing" if node.is_null else "text"
        case ListNode():
            return "a list"
        case MapNode():
            return "a map"
