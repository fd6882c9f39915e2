"""Builds a tree with positions from the parser's events, without recursion, with limits on depth and on alias
expansion.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml  # noqa: TID251 - the parser's events; yaml_document.py runs the parser
from yaml import resolver as yaml_resolver  # noqa: TID251 - as above

from tablectl.frozen import frozen
from tablectl.model.errors import Problem
from tablectl.policies.suggestions import shown
from tablectl.policies.yaml_nodes import Entry, ListNode, MapNode, Node, Scalar, SourceFile

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


@frozen
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
        entries: dict[str, Entry] = {}
        for key, value in zip(done.children[::2], done.children[1::2], strict=True):
            text = self._key(key)
            if text is None:
                continue
            if text in entries:
                message = f"the key {shown(text)} occurs twice: first on line {entries[text].source.line}"
                self._problems.append(key.source.problem(message, "keep one of them"))
                continue
            entries[text] = Entry(text, key.source, value)
        return MapNode(tuple(entries.values()), done.source)

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
    tag = _RESOLVER.resolve(yaml.ScalarNode, plain, (True, False))  # type: ignore[no-untyped-call]  # the stubs lack it
    return str(tag).removeprefix(_TAG)


def _tag_problem(tag: str, source: SourceFile) -> Problem:
    short = "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
    return source.problem(f"the tag {shown(short)} is not supported", "remove it; quotes make text of a value")
