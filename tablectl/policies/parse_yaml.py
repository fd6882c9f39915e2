"""Parses the bytes of one YAML file into a tree with positions. No input causes a traceback, a hang, or exhausted
memory.

PyYAML only produces events. The tree is built here, without recursion and with limits on depth and on alias expansion.
No object of the user's choice is ever created.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

import yaml  # noqa: TID251 - policies are YAML, and only this package reads it
from yaml import resolver as yaml_resolver  # noqa: TID251 - as above

from tablectl.model.errors import Problem
from tablectl.policies.spelling_hints import shown
from tablectl.policies.yaml_nodes import ListNode, MapNode, Node, Scalar, SourceFile

MAX_DEPTH = 32
MAX_ALIASED = 100_000
"""The maximum number of nodes that all aliases of one file may stand for."""

_RESOLVER = yaml_resolver.Resolver()
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({"!", _TAG + "str"})
_COLLECTION_TAGS = frozenset({"!", _TAG + "map", _TAG + "seq"})


class StopError(Exception):
    """Nothing after this position can be parsed meaningfully."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(slots=True)
class _Open:
    """A list or map that is still open, or the document around them."""

    source: SourceFile
    is_map: bool = False
    anchor: str | None = None
    children: list[Node] = field(default_factory=list)
    size: int = 1
    """The number of nodes in it, with nodes behind aliases counted each time."""
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    node: Node
    size: int
    height: int


class Builder:
    """Consumes events and builds the tree."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self._file = file
        self._problems = problems
        self._open = [_Open(SourceFile(file, 1, 1))]
        self._anchors: dict[str, _Anchored | None] = {}
        self._aliased = 0

    @property
    def root(self) -> Node | None:
        """The tree of the document; ``None`` if it is empty."""
        children = self._open[0].children
        return children[0] if children else None

    def take(self, event: yaml.Event) -> None:
        """Consumes one event. Raises ``StopError`` if a limit is exceeded."""
        assert event.start_mark is not None  # every event of a parser has one
        source = SourceFile(self._file, event.start_mark.line + 1, event.start_mark.column + 1)
        match event:
            case yaml.ScalarEvent():
                self._add(self._scalar(event, source), event.anchor)
            case yaml.AliasEvent():
                self._add_alias(str(event.anchor), source)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._start(event, source)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end()
            case yaml.DocumentStartEvent() if self.root is not None:
                raise StopError(source.problem("a second document starts here", "keep one document in a file"))

    def _add(self, node: Node, anchor: str | None, size: int = 1, height: int = 1) -> None:
        parent = self._open[-1]
        parent.children.append(node)
        parent.size += size
        parent.height = max(parent.height, height + 1)
        if anchor:
            self._anchors[anchor] = _Anchored(node, size, height)

    def _add_alias(self, name: str, source: SourceFile) -> None:
        if name not in self._anchors:
            hint = f'text that starts with * needs quotes: "*{name}"'
            raise StopError(source.problem(f"the alias *{name} has no anchor &{name} before it", hint))
        found = self._anchors[name]
        if found is None:
            raise StopError(source.problem(f"the alias *{name} is inside its own anchor", "write it out"))
        self._aliased += found.size
        if self._aliased > MAX_ALIASED:
            raise StopError(source.problem(f"aliases stand for more than {MAX_ALIASED:,} nodes", "write them out"))
        self._check_depth(len(self._open) - 1 + found.height, source)
        self._add(found.node, None, found.size, found.height)

    def _check_depth(self, depth: int, source: SourceFile) -> None:
        if depth > MAX_DEPTH:
            raise StopError(source.problem(f"nested more than {MAX_DEPTH} levels deep", "a policy needs five"))

    def _start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent, source: SourceFile) -> None:
        if event.tag is not None and event.tag not in _COLLECTION_TAGS:
            self._problems.append(_tag_problem(event.tag, source))
        self._check_depth(len(self._open), source)
        self._open.append(_Open(source, isinstance(event, yaml.MappingStartEvent), event.anchor))
        if event.anchor:
            self._anchors[event.anchor] = None

    def _end(self) -> None:
        done = self._open.pop()
        node = self._map(done) if done.is_map else ListNode(tuple(done.children), done.source)
        self._add(node, done.anchor, done.size, done.height)

    def _scalar(self, event: yaml.ScalarEvent, source: SourceFile) -> Scalar:
        if event.tag is not None and event.tag not in _TEXT_TAGS:
            self._problems.append(_tag_problem(event.tag, source))
        plain = event.tag is None and event.implicit[0]
        return Scalar(event.value, implicit_tag(event.value) if plain else "str", source)

    def _map(self, done: _Open) -> MapNode:
        entries: dict[str, tuple[SourceFile, Node]] = {}
        for key, value in zip(done.children[::2], done.children[1::2], strict=True):
            text = self._key(key)
            if text is None:
                continue
            if text in entries:
                message = f"the key {shown(text)} occurs twice: first on line {entries[text][0].line}"
                self._problems.append(key.source.problem(message, "keep one of them"))
                continue
            entries[text] = (key.source, value)
        return MapNode(entries, done.source)

    def _key(self, node: Node) -> str | None:
        match node:
            case Scalar(tag="str"):
                return node.text
            case Scalar(tag="merge"):
                message, hint = "merge keys (<<) are not supported", "write the keys out, or put them under `defaults`"
            case Scalar():
                quoted = f'"{node.text}"' if node.text else '""'
                message, hint = f"a key must be text, and {shown(node.text)} is not to YAML", f"quote it: {quoted}"
            case _:
                message, hint = "a key must be text", 'quote a key that starts with [, {, * or &: "[…"'
        self._problems.append(node.source.problem(message, hint))
        return None


def implicit_tag(plain: str) -> str:
    """The type that YAML gives to a text without quotes (see ``Scalar.tag``)."""
    if plain and plain[0] not in _RESOLVER.yaml_implicit_resolvers:
        return "str"
    tag = _RESOLVER.resolve(yaml.ScalarNode, plain, (True, False))  # type: ignore[no-untyped-call]  # the stubs lack it
    return str(tag).removeprefix(_TAG)


def _tag_problem(tag: str, source: SourceFile) -> Problem:
    short = "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
    return source.problem(f"the tag {shown(short)} is not supported", "remove it; quotes make text of a value")


MAX_BYTES = 1_000_000

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_document(data: bytes, file: str, problems: list[Problem]) -> Node | None:
    """The tree of a file's bytes; ``None`` for an empty file and for invalid YAML.

    Errors are added to ``problems``. A tree returned together with problems lacks the nodes with errors.
    """
    text = _decode(data, file, problems)
    if text is None:
        return None
    builder = Builder(file, problems)
    try:
        for event in yaml.parse(text, Loader=_Loader):
            builder.take(event)
    except StopError as stop:
        problems.append(stop.problem)
        return None
    except yaml.YAMLError as error:
        problems.append(explain_syntax(error, text, file))
        return None
    return builder.root


def _decode(data: bytes, file: str, problems: list[Problem]) -> str | None:
    if len(data) > MAX_BYTES:
        problems.append(too_large(file))
        return None
    body = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        before = body[: error.start].decode()
        problems.append(_place(before, file).problem("the file is not UTF-8 text", "save it as UTF-8"))
        return None
    bad = _UNPRINTABLE.search(text)
    if bad is not None:
        place = _place(text[: bad.start()], file)
        hint = 'inside double quotes, "\\xNN" writes it'
        problems.append(place.problem(f"the control character U+{ord(bad[0]):04X} is not allowed in YAML", hint))
        return None
    return text


def too_large(file: str) -> Problem:
    """The problem for a file over the size limit, which is not parsed at all."""
    return Problem(
        file,
        0,
        0,
        f"the file is larger than {MAX_BYTES // 1_000_000} MB",
        "split it, if it is a policy file",
    )


def _place(before: str, file: str) -> SourceFile:
    return SourceFile(file, before.count("\n") + 1, len(before) - before.rfind("\n"))


_ALIGN = "check the indentation: the keys of one map start in one column, and nothing follows a closing quote"
_HINTS = (
    ("mapping values are not allowed", 'text that holds ": " needs quotes; else check the indentation'),
    ("found unexpected end of stream", "a quote is opened and never closed"),
    ("alphabetic or numeric character", "text that starts with * or & needs quotes"),
    ("expected ',' or ']'", 'close the list with ]; inside it, text with {, }, [ or ] needs quotes: ["${NAME}"]'),
    ("expected ',' or '}'", "close the map with }; inside it, text with {, }, [ or ] needs quotes"),
    ("expected key", _ALIGN),
    ("expected <block end>", _ALIGN),
    ("could not find expected ':'", "a key needs a colon and a space after it"),
    ("invalid Unicode character", "write the character itself, or its whole code with eight digits: \\U0001F600"),
    ("escape c", "inside double quotes a backslash starts an escape: double it, or use single quotes"),
    ("decimal number", "inside double quotes a backslash starts an escape: double it, or use single quotes"),
)


def explain_syntax(error: yaml.YAMLError, text: str, file: str) -> Problem:
    """The parser's error with its position and the likely fix."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or "it cannot be read"
    if mark is None:
        return Problem(file, 0, 0, f"this is not valid YAML: {said}")
    start = getattr(error, "context_mark", None)
    since = f" (it began on line {start.line + 1})" if start is not None and start.line < mark.line else ""
    source = SourceFile(file, mark.line + 1, mark.column + 1)
    at = text[mark.index : mark.index + 1]
    if at == "\t" or "\t" in _indentation(text, mark.index):
        return source.problem("a tab indents this line", "YAML wants spaces: replace the tab")
    if "cannot start any token" in said:
        hint = f"text that starts with {at} needs quotes around the whole of it"
        return source.problem(f"unquoted text cannot start with {at}", hint)
    hint = next((hint for words, hint in _HINTS if words in said), "")
    return source.problem(f"this is not valid YAML: {said}{since}", hint)


def _indentation(text: str, index: int) -> str:
    line = text[text.rfind("\n", 0, index) + 1 :].split("\n", 1)[0]
    return line[: len(line) - len(line.lstrip())]
