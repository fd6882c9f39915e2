"""One value written into the text of a policy file, everything else left as it stands: comments, quotes, spacing.

Texts are cut at the positions of YAML's own parser. What comes out is to be read again before it is believed: this
module knows YAML, and not what policies mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import yaml  # noqa: TID251 - the positions of what the parser finds

from tablectl.specs.variables import variables_of
from tablectl.specs.writing import write_key, write_value

Value = str | tuple[str, ...] | None

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STEP = 2


class SpliceError(ValueError):
    """A value that cannot be written into a file without touching more than the value."""


@dataclass(slots=True)
class Piece:
    """A node of the file and the characters that it takes. Of a map, ``children`` are keys and values by turns."""

    kind: str
    """``scalar``, ``list``, ``map`` or ``alias``."""
    start: int
    end: int
    column: int
    flow: bool = False
    shared: bool = False
    """Whether it has an anchor, by which others may stand for it, or a tag."""
    text: str = ""
    children: list[Piece] = field(default_factory=list)

    def entries(self) -> list[tuple[Piece, Piece]]:
        """Of a map: its keys with their values."""
        return list(zip(self.children[::2], self.children[1::2], strict=True))

    @property
    def is_empty(self) -> bool:
        """Whether the value was left out: ``key:``."""
        return self.kind == "scalar" and self.start == self.end


def outline(text: str) -> Piece:
    """The pieces of a file that is known to be right YAML."""
    stack = [Piece("list", 0, len(text), 0)]
    for event in yaml.parse(text, Loader=_Loader):
        match event:
            case yaml.ScalarEvent() | yaml.AliasEvent():
                stack[-1].children.append(_leaf(event, text))
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                stack.append(_opened(event))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                done = stack.pop()
                assert event.end_mark is not None
                # The end of a block is told only by what comes next, so that of its last child is taken.
                done.end = event.end_mark.index if done.flow or not done.children else done.children[-1].end
                stack[-1].children.append(done)
    return stack[0].children[0]


def _leaf(event: yaml.ScalarEvent | yaml.AliasEvent, text: str) -> Piece:
    start, end = event.start_mark, event.end_mark
    assert start is not None
    assert end is not None
    if isinstance(event, yaml.AliasEvent):
        return Piece("alias", start.index, end.index, start.column)
    # A block scalar ends where the next line with content begins.
    last = len(text[start.index : end.index].rstrip()) + start.index
    shared = bool(event.anchor or event.tag)
    return Piece("scalar", start.index, last, start.column, shared=shared, text=event.value)


def _opened(event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> Piece:
    start = event.start_mark
    assert start is not None
    kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
    shared = bool(event.anchor or event.tag)
    return Piece(kind, start.index, start.index, start.column, bool(event.flow_style), shared)


Step = tuple[str, Callable[[str], bool]]
"""A key of a path: as it is written where it is missing, and how it is known where it is there."""


def put(text: str, path: Sequence[Step], value: Value) -> str:
    """The text with ``value`` at the end of a path of keys, which is made where it is missing.

    Raises ``SpliceError`` where that would change more than the value.
    """
    root = outline(text)
    columns = [node.children[0].column for _, node in root.entries() if node.kind == "map" and not node.flow]
    return _Splice(text, min(columns, default=_STEP)).put(root, list(path), value)


@dataclass(frozen=True, slots=True)
class _Splice:
    text: str
    step: int
    """By how much the file indents."""

    def put(self, top: Piece, path: list[Step], value: Value) -> str:
        """Down the path as far as it is there."""
        if top.shared or top.kind != "map":
            raise SpliceError(_SHARED if top.shared or top.kind == "alias" else "it is no map")
        known = path[0][1]
        found = next(((key, node) for key, node in top.entries() if known(key.text)), None)
        if found is None:
            return self._add(top, path, value)
        key, node = found
        if node.shared or node.kind == "alias":
            raise SpliceError(_SHARED)
        if len(path) == 1:
            return self._replace(key, node, value, flow=top.flow)
        if node.kind == "scalar":
            return self._open(top, key, node, path[1:], value)
        return self.put(node, path[1:], value)

    def _add(self, top: Piece, path: list[Step], value: Value) -> str:
        """A key more, behind the last one."""
        if top.flow:
            inside = _braces(path, value)
            return self._cut(top.end - 1, top.end - 1, inside) if not top.children else self._behind(top, inside)
        return self._lines(top.children[-1].end, path, value, top.children[0].column)

    def _behind(self, top: Piece, inside: str) -> str:
        at = top.children[-1].end
        return self._cut(at, at, f", {inside}")

    def _open(self, top: Piece, key: Piece, node: Piece, path: list[Step], value: Value) -> str:
        """Something under a key that has nothing yet."""
        if node.is_empty and not top.flow:
            return self._lines(node.end, path, value, key.column + self.step)
        braces = f"{{{_braces(path, value)}}}"
        return self._instead(node, braces)

    def _lines(self, after: int, path: list[Step], value: Value, column: int) -> str:
        """Lines of their own, behind the line in which ``after`` lies."""
        at, newline = self._end_of_line(after), "\r\n" if "\r\n" in self.text else "\n"
        lines = _block(path, value, column, self.step)
        return self._cut(at, at, "".join(newline + line for line in lines))

    def _replace(self, key: Piece, node: Piece, value: Value, *, flow: bool) -> str:
        self._check_variables(node)
        if node.kind == "map":
            raise SpliceError("a map stands there")
        if node.children and isinstance(value, tuple):
            return self._items(node, value)
        written = write_value(value, flow=flow)
        if node.kind == "scalar" or node.flow:
            return self._instead(node, written)
        # A list on lines of its own becomes a word behind the key, and the lines go.
        colon = self.text.index(":", key.end) + 1
        first, last = self._end_of_line(colon), self._end_of_line(node.end)
        return self.text[:colon] + f" {written}" + self.text[colon:first] + self.text[last:]

    def _instead(self, node: Piece, written: str) -> str:
        """Where nothing stands yet, a space goes before it."""
        space = " " if node.is_empty and not self.text[: node.start].endswith(" ") else ""
        return self._cut(node.start, node.end, space + written)

    def _items(self, node: Piece, value: tuple[str, ...]) -> str:
        """Item by item, so that what stands beside them stays."""
        old, text = node.children, self.text
        if any(item.kind != "scalar" or item.shared for item in old):
            raise SpliceError(_SHARED)
        common = min(len(old), len(value))
        if len(value) > len(old):
            more = [write_value(item, flow=node.flow) for item in value[len(old) :]]
            at = old[-1].end if node.flow else self._end_of_line(old[-1].end)
            dash = "\n" + text[_line_start(text, old[-1].start) : old[-1].start]
            newline = "\r" + dash if "\r\n" in text else dash
            text = text[:at] + "".join((", " if node.flow else newline) + item for item in more) + text[at:]
        elif len(value) < len(old):
            first, last = old[common - 1].end, old[-1].end
            if not node.flow:
                first, last = self._end_of_line(first), self._end_of_line(last)
            text = text[:first] + text[last:]
        for item, new in reversed(list(zip(old[:common], value[:common], strict=True))):
            if item.text != new:
                text = text[: item.start] + write_value(new, flow=node.flow) + text[item.end :]
        return text

    def _check_variables(self, node: Piece) -> None:
        if any(variables_of(each.text) for each in (node, *node.children)):
            written = re.sub(r"\s+", " ", self.text[node.start : node.end])
            raise SpliceError(f"it holds a variable: {written}")

    def _end_of_line(self, at: int) -> int:
        found = re.compile(r"\r?\n|\Z").search(self.text, at)
        return found.start() if found else len(self.text)

    def _cut(self, start: int, end: int, new: str) -> str:
        return self.text[:start] + new + self.text[end:]


_SHARED = "an anchor, an alias or a tag stands there, and others may share it"


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _braces(path: Sequence[Step], value: Value) -> str:
    key = write_key(path[0][0], flow=True)
    inner = write_value(value, flow=True) if len(path) == 1 else f"{{{_braces(path[1:], value)}}}"
    return f"{key}: {inner}"


def _block(path: Sequence[Step], value: Value, column: int, step: int) -> list[str]:
    key = " " * column + write_key(path[0][0]) + ":"
    if len(path) == 1:
        return [f"{key} {write_value(value)}"]
    return [key, *_block(path[1:], value, column + step, step)]
