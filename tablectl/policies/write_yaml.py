"""Writes policy files. Names and values are bare if YAML reads them unchanged, otherwise in double quotes.

One value is written into the text of a file so that everything else stays: comments, quotes, spacing. Texts are cut at
the positions that YAML's parser reports. Callers must parse and check the result, because this module does not know the
meaning of policies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import yaml  # noqa: TID251 - the positions that the parser reports

from tablectl.attributes.policy import VALUE_TYPES
from tablectl.delta.names import NameSyntaxError, TableName, join_parts, quote_name
from tablectl.model.patterns import escape_glob
from tablectl.model.safe_text import marked_places, printable
from tablectl.policies.parse_yaml import implicit_tag
from tablectl.policies.variables import Variables, escape_variables, read_table_key, variables_of
from tablectl.policies.yaml_nodes import Scalar, SourceFile, is_text

_BARE = re.compile(r"[A-Za-z0-9_/.$(+-](?:[^\x00-\x1f#:]|:(?! |\Z)|(?<! )#)*\Z")
_IN_FLOW = re.compile(r"[,\[\]{}]")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_NOWHERE = SourceFile("", 0, 0)


def write_key(text: str, *, flow: bool = False) -> str:
    """A key, which YAML must read as text. ``flow`` means inside braces."""
    return text if _is_bare(text, flow=flow) and implicit_tag(text) == "str" else quoted(text)


def write_text(text: str, *, flow: bool = False) -> str:
    """A value that policies read as this text, with variables escaped. ``true`` and ``60`` need no quotes."""
    escaped = escape_variables(text)
    bare = _is_bare(escaped, flow=flow) and is_text(Scalar(escaped, implicit_tag(escaped), _NOWHERE))
    return escaped if bare else quoted(escaped)


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

    Raises ``NameSyntaxError`` for a table that no key can name.
    """
    if name.is_path:  # a folder such as `a[x]` reads as a pattern, unless its characters are escaped
        texts = (name.text, f"delta.{quote_name(escape_glob(name.parts[0]))}")
    else:
        texts = (name.text, join_parts((name.catalog, *name.parts)))
    for text in map(escape_variables, texts):
        with suppress(NameSyntaxError):
            if read_table_key(text, Variables(), catalog) == name:
                return text
    raise NameSyntaxError(f"no key of `tables` names {name.text}")


def _is_bare(text: str, *, flow: bool) -> bool:
    """Whether YAML reads the text without quotes unchanged, regardless of the type that it assigns."""
    if not _BARE.match(text) or printable(text) != text or text != text.strip():
        return False
    return not (text == "-" or text.startswith(("- ", "---", "...")) or (flow and _IN_FLOW.search(text)))


def quoted(text: str) -> str:
    """A text in double quotes on one line, which YAML and Python read as this text."""
    marked = marked_places(text)
    return f'"{"".join(_escaped(char, hidden=place in marked) for place, char in enumerate(text))}"'


def _escaped(char: str, *, hidden: bool) -> str:
    """A character inside double quotes. Invisible characters and look-alikes are escaped by number."""
    if char in _ESCAPES:
        return _ESCAPES[char]
    if not hidden:
        return char
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


Declared = tuple[str, str, str | tuple[str, ...]]
"""An attribute, the key (for ``properties``, otherwise empty), and the value."""

_IMPORTED = "Written by `tablectl import`: what these tables are. What no line names is not managed."
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The entry of one table in the new file."""

    key: str
    """The key that ``table_key`` returns."""
    location: str | None = None
    """The location of a catalog table."""
    declared: tuple[Declared, ...] = ()
    left_out: tuple[str, ...] = ()
    """Facts about the table that no policy can declare, one sentence each."""


def write_policies(entries: Sequence[TableEntry], head: str = _IMPORTED, without: Sequence[str] = ()) -> str:
    """The text of a policy file. Values that all of several tables have go into ``defaults`` if that makes the file
    shorter. The first line is the comment ``head``; the last ones are comments, too: what the file is ``without``.
    """
    ordered = sorted(entries, key=lambda entry: entry.key)
    text = _file(head, (), ordered)
    if common := _common(ordered):
        lifted = _file(head, common, [replace(each, declared=_without(each.declared, common)) for each in ordered])
        text = lifted if lifted.count("\n") < text.count("\n") else text
    return text + "".join([*(["\n"] if without else []), *(f"  # left out: {_comment(each)}\n" for each in without)])


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


Value = str | tuple[str, ...] | None

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STEP = 2


class SpliceError(ValueError):
    """A value cannot be written into a file without changing more than the value."""


@dataclass(slots=True)
class TextEdit:
    """A node of the file and its range of characters. The ``children`` of a map are alternating keys and values."""

    kind: str
    """``scalar``, ``list``, ``map`` or ``alias``."""
    start: int
    end: int
    line: int
    """Counts from 0, like ``column``."""
    column: int
    flow: bool = False
    shared: bool = False
    """Whether the node has an anchor, so that aliases can refer to it, or a tag."""
    text: str = ""
    children: list[TextEdit] = field(default_factory=list)

    def entries(self) -> list[tuple[TextEdit, TextEdit]]:
        """The keys of a map with their values."""
        return list(zip(self.children[::2], self.children[1::2], strict=True))

    @property
    def is_empty(self) -> bool:
        """Whether the value is omitted: ``key:``."""
        return self.kind == "scalar" and self.start == self.end


def outline(text: str) -> TextEdit:
    """The tree of a file. Raises ``SpliceError`` if it is not YAML, for example after a wrong edit."""
    stack = [TextEdit("list", 0, len(text), 0, 0)]
    for event in _events(text):
        match event:
            case yaml.ScalarEvent() | yaml.AliasEvent():
                stack[-1].children.append(_leaf(event, text))
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                stack.append(_opened(event))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                done = stack.pop()
                assert event.end_mark is not None
                # The end of a block is known only from the next token, so the end of its last child is used.
                done.end = event.end_mark.index if done.flow or not done.children else done.children[-1].end
                stack[-1].children.append(done)
    return stack[0].children[0]


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise SpliceError(f"the file would be no YAML: {getattr(error, 'problem', error)}") from error


def _leaf(event: yaml.ScalarEvent | yaml.AliasEvent, text: str) -> TextEdit:
    start, end = event.start_mark, event.end_mark
    assert start is not None
    assert end is not None
    if isinstance(event, yaml.AliasEvent):
        return TextEdit("alias", start.index, end.index, start.line, start.column)
    # A block scalar ends where the next line with content begins.
    last = len(text[start.index : end.index].rstrip()) + start.index
    shared = bool(event.anchor or event.tag)
    return TextEdit("scalar", start.index, last, start.line, start.column, shared=shared, text=event.value)


def _opened(event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> TextEdit:
    start = event.start_mark
    assert start is not None
    kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
    shared = bool(event.anchor or event.tag)
    return TextEdit(kind, start.index, start.index, start.line, start.column, bool(event.flow_style), shared)


Step = tuple[str, Callable[[str], bool]]
"""A key of a path: its spelling if it has to be added, and a test for the existing key."""


Cut = tuple[int, int, str]
"""A range of characters and its replacement."""


def put(text: str, path: Sequence[Step], value: Value) -> str:
    """The text with ``value`` at the end of a path of keys. Missing keys are added.

    Raises ``SpliceError`` if that would change more than the value.
    """
    return cut(text, cuts(text, outline(text), path, value))


def cuts(text: str, root: TextEdit, path: Sequence[Step], value: Value) -> list[Cut]:
    """The edits that ``put`` makes to a text whose tree is ``root``. Edits for values in different maps can be
    combined.
    """
    columns = [node.children[0].column for _, node in root.entries() if node.kind == "map" and not node.flow]
    return _Splice(text, min(columns, default=_STEP)).put(root, list(path), value)


def cut(text: str, made: Sequence[Cut]) -> str:
    """Applies the edits. Edits at the same position keep their order."""
    parts, last = list[str](), 0
    for start, end, new in sorted(made, key=lambda each: each[:2]):
        parts += [text[last:start], new]
        last = end
    return "".join([*parts, text[last:]])


@dataclass(frozen=True, slots=True)
class _Splice:
    text: str
    step: int
    """The indentation step of the file."""

    def put(self, top: TextEdit, path: list[Step], value: Value) -> list[Cut]:
        """Follows the path as far as it exists, then replaces or adds."""
        if top.shared or top.kind != "map":
            raise SpliceError(_SHARED if top.shared or top.kind == "alias" else "it is not a map")
        known = path[0][1]
        found = next(((key, node) for key, node in top.entries() if known(key.text)), None)
        for key in (*top.children[:1], *(found or ())[:1]):
            if not top.flow and self.text[_line_start(self.text, key.start) : key.start].strip():
                raise SpliceError(f"the key {key.text!r} follows a `?` or `:` on its line: write it as `key: value`")
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

    def _add(self, top: TextEdit, path: list[Step], value: Value) -> list[Cut]:
        """Adds a key after the last one."""
        if top.flow:
            inside = _braces(path, value)
            return self._cut(top.end - 1, top.end - 1, inside) if not top.children else self._behind(top, inside)
        return self._lines(top.children[-1].end, path, value, top.children[0].column)

    def _behind(self, top: TextEdit, inside: str) -> list[Cut]:
        at = top.children[-1].end
        return self._cut(at, at, f", {inside}")

    def _open(self, top: TextEdit, key: TextEdit, node: TextEdit, path: list[Step], value: Value) -> list[Cut]:
        """Adds a value under a key without one."""
        if node.is_empty and not top.flow:
            return self._lines(node.end, path, value, key.column + self.step)
        braces = f"{{{_braces(path, value)}}}"
        return self._instead(node, braces)

    def _lines(self, after: int, path: list[Step], value: Value, column: int) -> list[Cut]:
        """Adds lines after the line that contains position ``after``."""
        at, newline = self._end_of_line(after), "\r\n" if "\r\n" in self.text else "\n"
        lines = _block(path, value, column, self.step)
        return self._cut(at, at, "".join(newline + line for line in lines))

    def _replace(self, key: TextEdit, node: TextEdit, value: Value, *, flow: bool) -> list[Cut]:
        self._check_variables(node)
        if node.kind == "map":
            raise SpliceError("a map stands there")
        if node.children and isinstance(value, tuple):
            return self._items(node, value)
        written = write_value(value, flow=flow)
        if node.kind == "scalar" or node.flow:
            return self._instead(node, written)
        # A list on separate lines becomes a word after the key, and the lines are removed.
        colon = self.text.index(":", key.end) + 1
        first, last = self._end_of_line(colon), self._end_of_line(node.end)
        return [(colon, colon, f" {written}"), (first, last, "")]

    def _instead(self, node: TextEdit, written: str) -> list[Cut]:
        """Adds a space before the text if the node is empty."""
        space = " " if node.is_empty and not self.text[: node.start].endswith(" ") else ""
        return self._cut(node.start, node.end, space + written)

    def _items(self, node: TextEdit, value: tuple[str, ...]) -> list[Cut]:
        """Replaces the items one by one, so that the comments next to them stay."""
        old, text = node.children, self.text
        if any(item.kind != "scalar" or item.shared for item in old):
            raise SpliceError(_SHARED)
        pairs = zip(old, value, strict=False)
        made = [(item.start, item.end, write_value(new, flow=node.flow)) for item, new in pairs if item.text != new]
        last = old[-1].end if node.flow else self._end_of_line(old[-1].end)
        if len(value) > len(old):
            dash = "\n" + text[_line_start(text, old[-1].start) : old[-1].start]
            between = ", " if node.flow else "\r" + dash if "\r\n" in text else dash
            more = "".join(between + write_value(item, flow=node.flow) for item in value[len(old) :])
            made.append((last, last, more))
        elif len(value) < len(old):
            kept = old[len(value) - 1].end
            made.append((kept if node.flow else self._end_of_line(kept), last, ""))
        return made

    def _check_variables(self, node: TextEdit) -> None:
        if any(variables_of(each.text) for each in (node, *node.children)):
            written = re.sub(r"\s+", " ", self.text[node.start : node.end])
            raise SpliceError(f"it holds a variable: {written}")

    def _end_of_line(self, at: int) -> int:
        found = re.compile(r"\r?\n|\Z").search(self.text, at)
        return found.start() if found else len(self.text)

    def _cut(self, start: int, end: int, new: str) -> list[Cut]:
        return [(start, end, new)]


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
