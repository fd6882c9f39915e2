"""Which table a statement of Spark SQL writes, and what it may do there. Pure text; needs no parser of all of SQL.

Only the head of a statement is read: the verb and the name of its target. What follows decides whether an INSERT may
read its target; if that is not certain, it counts as reading it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from tablectl.leases.guards import GuardMode

_TOKEN = re.compile(
    r"""(?P<comment>/\*)
    |(?P<space>\s+|--(?:\\\n|[^\r\n])*)
    |(?P<text>'(?:[^'\\]|\\.)*(?:'|\\?\Z)|"(?:[^"\\]|\\.)*(?:"|\\?\Z))
    |(?P<quoted>`(?:[^`]|``)*(?:`|\Z))
    |(?P<word>\w+)
    |(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
"""Where a comment inside of a comment begins, and where one ends; ``/*+`` begins a hint."""
_LONGEST = 1_000_000
"""Characters of a statement that are read. What follows may be anything."""


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


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def word(self) -> str:
        """The keyword; empty for everything else."""
        return self.text.upper() if self.kind == "word" else ""


def sql_write(statement: str) -> SqlWrite | None:
    """What a statement writes; ``None`` if it writes no table that a guard protects. Each token is read once."""
    tokens = _tokens(statement)
    first = next(tokens, None)
    if first is not None and first.word == "WITH":
        first = _after_ctes(tokens)
        if first is None:
            return _UNREADABLE
    if first is None or first.word not in _VERBS:
        return None
    if first.word in _UNREADABLE_HEADS:
        return _UNREADABLE
    is_cut = len(statement) > _LONGEST
    if first.word == "FROM":
        return _from_insert(list(tokens), is_cut=is_cut)
    found = _write([first, *tokens])
    return replace(found, may_append=found.may_append and not is_cut) if found else None


def _after_ctes(tokens: Iterator[_Token]) -> _Token | None:
    """The first word of the statement after a WITH: it follows the parentheses of the last CTE."""
    depth, closed = 0, False
    for token in tokens:
        if closed and depth == 0 and token.text != "," and token.word not in {"AS", "MAX"}:  # MAX RECURSION LEVEL
            return token
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        closed = token.text == ")"
    return None


def _from_insert(tokens: list[_Token], *, is_cut: bool) -> SqlWrite | None:
    """What ``FROM source INSERT …`` writes. It may insert into several tables."""
    after = {"INTO", "OVERWRITE", "WITH"}
    starts = [
        at for at, pair in enumerate(zip(tokens, tokens[1:])) if pair[0].word == "INSERT" and pair[1].word in after
    ]
    found = [_insert(tokens[at:end]) for at, end in zip(starts, [*starts[1:], len(tokens)])]
    writes = [each for each in found if each is not None]
    if is_cut or len({each.table for each in writes}) > 1:
        return _UNREADABLE
    replaces = any(each.mode is GuardMode.ANY for each in writes)
    return SqlWrite(writes[0].table, GuardMode.ANY if replaces else GuardMode.REWRITE) if writes else None


_UNREADABLE = SqlWrite(None, GuardMode.ANY)
_UNREADABLE_HEADS = frozenset({"BEGIN", "EXECUTE"})
"""A script, and a statement in a value."""
_SCHEMA_EVOLUTION = ("WITH", "SCHEMA", "EVOLUTION")
_REWRITES = ("MERGE INTO", "UPDATE", "DELETE FROM", "OPTIMIZE")
_OTHERS = (
    *("ALTER TABLE", "REPLACE TABLE", "CREATE OR REPLACE TABLE", "CREATE TABLE IF NOT EXISTS", "CREATE TABLE"),
    *("CREATE EXTERNAL TABLE", "TRUNCATE TABLE", "RESTORE TABLE", "RESTORE", "REORG TABLE", "COPY INTO"),
    *("COMMENT ON TABLE", "CONVERT TO DELTA", "MSCK REPAIR TABLE"),
)
_HEADS = tuple(
    (tuple(head.split()), mode)
    for heads, mode in ((_REWRITES, GuardMode.REWRITE), (_OTHERS, GuardMode.ANY))
    for head in heads
)
"""Longer heads first. DROP is not here: it commits nothing, and a guard would put records into a folder that it
deletes."""
_VERBS = frozenset({"INSERT", "FROM", *_UNREADABLE_HEADS, *(head[0] for head, _ in _HEADS)})


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


def _tokens(statement: str) -> Iterator[_Token]:
    text = statement[:_LONGEST]
    match = _TOKEN.match(text)
    while match is not None:
        end = match.end()
        if match.lastgroup == "comment":
            end = _end_of_comment(text, end)
        elif match.lastgroup != "space":
            yield _Token(str(match.lastgroup), match[0])
        match = _TOKEN.match(text, end)


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
