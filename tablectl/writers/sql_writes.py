"""Which table a statement of Spark SQL writes, and what it may do there. Pure text; needs no parser of all of SQL.

Only the head of a statement is read: the verb and the name of its target. What follows decides whether an INSERT may
read its target; if that is not certain, it counts as reading it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tablectl.leases.guards import GuardMode

_TOKEN = re.compile(
    r"""(?P<comment>/\*)
    |(?P<space>\s+|--(?:\\\n|[^\r\n])*)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<word>\w+)
    |(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
"""Where a comment inside of a comment begins, and where one ends; ``/*+`` begins a hint."""
_LONGEST = 1_000_000
"""Characters of a statement that are read; a longer one counts as one that cannot be read."""


@dataclass(frozen=True)
class SqlWrite:
    """A statement that writes a table."""

    table: str | None
    """Its target as SQL; ``None`` if it cannot be read."""
    mode: GuardMode
    """What it may do, if it reads its target."""
    may_append: bool = False
    """Whether it only appends if it does not read its target."""
    reads: bool = True
    """Whether it may read tables at all: an INSERT of plain VALUES does not."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str

    @property
    def word(self) -> str:
        """The keyword; empty for everything else."""
        return self.text.upper() if self.kind == "word" else ""


def sql_write(statement: str) -> SqlWrite | None:
    """What a statement writes; ``None`` if it writes no table that a guard protects."""
    tokens = _tokens(statement)
    head = tokens[0].word if tokens else ""
    if head in {"WITH", "FROM"}:
        found = [number for number, each in enumerate(tokens) if each.word in _AFTER_WITH and _at_top(tokens, number)]
        if not found:
            return None
        if len(found) > 1 or head == "FROM":
            return _UNREADABLE
        return _write(tokens[found[0] :])
    if head in _UNREADABLE_HEADS or len(statement) > _LONGEST:
        return _UNREADABLE
    return _write(tokens)


_UNREADABLE = SqlWrite(None, GuardMode.ANY)
_UNREADABLE_HEADS = frozenset({"BEGIN", "EXECUTE"})
"""A script, and a statement in a value."""
_AFTER_WITH = frozenset({"INSERT", "MERGE", "UPDATE", "DELETE"})
_SCHEMA_EVOLUTION = ("WITH", "SCHEMA", "EVOLUTION")
_HEADS: tuple[tuple[tuple[str, ...], GuardMode], ...] = (
    (("MERGE", "INTO"), GuardMode.REWRITE),
    (("UPDATE",), GuardMode.REWRITE),
    (("DELETE", "FROM"), GuardMode.REWRITE),
    (("OPTIMIZE",), GuardMode.REWRITE),
    (("ALTER", "TABLE"), GuardMode.ANY),
    (("REPLACE", "TABLE"), GuardMode.ANY),
    (("CREATE", "OR", "REPLACE", "TABLE"), GuardMode.ANY),
    (("CREATE", "TABLE", "IF", "NOT", "EXISTS"), GuardMode.ANY),
    (("CREATE", "TABLE"), GuardMode.ANY),
    (("CREATE", "EXTERNAL", "TABLE"), GuardMode.ANY),
    (("TRUNCATE", "TABLE"), GuardMode.ANY),
    (("RESTORE", "TABLE"), GuardMode.ANY),
    (("RESTORE",), GuardMode.ANY),
    (("REORG", "TABLE"), GuardMode.ANY),
    (("COPY", "INTO"), GuardMode.ANY),
    (("COMMENT", "ON", "TABLE"), GuardMode.ANY),
    (("CONVERT", "TO", "DELTA"), GuardMode.ANY),
    (("MSCK", "REPAIR", "TABLE"), GuardMode.ANY),
)
"""Longer heads first. DROP is not here: it commits nothing, and a guard would put records into a folder that it
deletes."""


def _write(tokens: list[_Token]) -> SqlWrite | None:
    if tokens and tokens[0].word == "INSERT":
        return _insert(tokens)
    evolves = _starts(tokens[1:], _SCHEMA_EVOLUTION)
    if evolves:
        tokens = [tokens[0], *tokens[4:]]
    for head, mode in _HEADS:
        if _starts(tokens, head):
            return SqlWrite(_name(tokens[len(head) :]), GuardMode.ANY if evolves else mode)
    return None


def _insert(tokens: list[_Token]) -> SqlWrite | None:
    rest = tokens[1:]
    evolves = _starts(rest, _SCHEMA_EVOLUTION)
    rest = rest[3:] if evolves else rest
    verb = rest[0].word if rest else ""
    rest = rest[1:]
    if rest and rest[0].word in {"DIRECTORY", "LOCAL"}:
        return None
    rest = rest[1:] if rest and rest[0].word == "TABLE" else rest
    words = {each.word for each in rest}
    if verb != "INTO" or evolves or "REPLACE" in words:
        return SqlWrite(_name(rest), GuardMode.ANY)
    return SqlWrite(_name(rest), GuardMode.REWRITE, may_append=True, reads=bool(words & {"SELECT", "FROM", "TABLE"}))


def _tokens(statement: str) -> list[_Token]:
    text, found = statement[:_LONGEST], list[_Token]()
    match = _TOKEN.match(text)
    while match is not None:
        end = match.end()
        if match.lastgroup == "comment":
            end = _end_of_comment(text, end)
        elif match.lastgroup != "space":
            found.append(_Token(str(match.lastgroup), match[0]))
        match = _TOKEN.match(text, end)
    return found


def _end_of_comment(text: str, inside: int) -> int:
    """Where the comment around a position ends. Comments nest in Spark SQL (``BRACKETED_COMMENT`` of its grammar,
    SqlBaseLexer.g4).
    """
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, inside):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def _starts(tokens: list[_Token], words: tuple[str, ...]) -> bool:
    return tuple(each.word for each in tokens[: len(words)]) == words


def _at_top(tokens: list[_Token], number: int) -> bool:
    """Whether a token is outside of parentheses."""
    return sum({"(": 1, ")": -1}.get(each.text, 0) for each in tokens[:number] if each.kind == "sign") == 0


def _name(tokens: list[_Token]) -> str | None:
    """The table name at the beginning."""
    parts: list[str] = []
    for number, token in enumerate(tokens):
        if number % 2 == 0:
            if token.kind not in {"word", "quoted"}:
                return None
            parts.append(token.text)
        elif token.text != ".":
            called = token.text == "(" and len(parts) == 1 and parts[0].upper() == "IDENTIFIER"
            return None if called else ".".join(parts)
    return ".".join(parts) or None
