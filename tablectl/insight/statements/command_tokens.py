"""The tokens of the statements that sqlglot does not read, and a reader of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from tablectl.delta.sql_tokens import SqlToken, any_tokens
from tablectl.insight.statements.command_actions import StatementError, shown_start
from tablectl.model.safe_text import printable

_MOST_PARTS = 3
"""Parts of a table name."""
_OPENS, _CLOSES = frozenset("([{<"), frozenset(")]}>")


def first_word(sql: str) -> str:
    """The first word of a text in upper case; empty if it begins with something else."""
    first = next(any_tokens(sql), None)
    return first.word if first else ""


def tokens_of(sql: str) -> tuple[SqlToken, ...]:
    """The tokens of a text, without comments. Raises ``StatementError`` for quotes and comments without an end."""
    found: list[SqlToken] = []
    for token in any_tokens(sql):
        if token.kind == "open":
            mark = token.text[: 2 if token.text.startswith("/*") else 1]
            raise StatementError(f"the statement {shown_start(sql)} cannot be read: {mark} has no end", "close it")
        found.append(token)
    return tuple(found)


class TokenReader:
    """Reads tokens one after another; every disagreement is a ``StatementError`` with the accepted forms."""

    def __init__(self, sql: str, tokens: Sequence[SqlToken], forms: str) -> None:
        self._sql, self._tokens, self._forms, self._at = sql, tokens, forms, 0

    def fail(self, wanted: str) -> NoReturn:
        """Raises ``StatementError``: the statement has something else here."""
        found = f"'{printable(self._tokens[self._at].value)[:40]}'" if self._at < len(self._tokens) else "its end"
        raise StatementError(
            f"the statement {shown_start(self._sql)} cannot be read: {wanted} is expected, not {found}",
            f"accepted is {self._forms}",
        )

    def peek(self, ahead: int = 0) -> str:
        """The next token as it is written, but in upper case; empty at the end."""
        at = self._at + ahead
        return self._tokens[at].text.upper() if at < len(self._tokens) else ""

    def take(self, *words: str) -> bool:
        """Whether these words follow; they are consumed if so."""
        if all(self.peek(ahead) == word for ahead, word in enumerate(words)):
            self._at += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """These words follow, and are consumed."""
        for word in words:
            if not self.take(word):
                self.fail(word)

    def end(self) -> None:
        """Nothing follows."""
        if self._at < len(self._tokens):
            self.fail("its end")

    @property
    def ended(self) -> bool:
        """Whether no token remains."""
        return self._at >= len(self._tokens)

    def is_text(self) -> bool:
        """Whether a quoted text follows."""
        return not self.ended and self._tokens[self._at].kind == "text"

    def text(self) -> str:
        """A quoted text."""
        if not self.is_text():
            self.fail("a quoted text")
        return self._step().value

    def name(self) -> str:
        """A name, quoted or not."""
        if self.ended or not self._tokens[self._at].identifier:
            self.fail("a name")
        return self._step().identifier

    def number(self) -> int:
        """A whole number."""
        if self.ended or not self.peek().isdecimal() or len(self.peek()) > 9:
            self.fail("a whole number")
        return int(self._step().text)

    def path(self) -> tuple[str, ...]:
        """Names joined by dots."""
        parts = [self.name()]
        while self.take("."):
            parts.append(self.name())
        return tuple(parts)

    def table(self, *, location: bool = False) -> exp.Table:
        """A table: a name of up to three parts, or where Delta takes it, its location in quotes."""
        return _table(("delta", self.text())) if location and self.is_text() else self.named_table(self.path())

    def named_table(self, parts: tuple[str, ...]) -> exp.Table:
        """The table of a name of up to three parts."""
        if len(parts) > _MOST_PARTS:
            self.fail("a table name of at most three parts")
        return _table(parts)

    def items(self) -> list[int]:
        """The lengths of the items that commas separate, up to the end or a closing bracket of this level."""
        lengths, depth, length = [], 0, 0
        for token in self._tokens[self._at :]:
            depth += (token.text in _OPENS) - (token.text in _CLOSES)
            if depth < 0:
                break
            if depth == 0 and token.text == ",":
                lengths.append(length)
                length = 0
            else:
                length += 1
        return [*lengths, length]

    def skip(self, count: int) -> None:
        """Consume so many tokens."""
        self._at += count

    def group(self) -> None:
        """A group in round brackets, with whatever it contains, but not nothing."""
        self.expect("(")
        if self.peek() == ")":
            self.fail("an expression")
        depth = 1
        while depth:
            if self.ended:
                self.fail("')'")
            depth += (self.peek() == "(") - (self.peek() == ")")
            self._at += 1

    def until(self, *ends: tuple[str, ...]) -> tuple[int, int]:
        """Skip to one of these words outside brackets, or to the end. Returns the bounds of the skipped text."""
        if self.ended:
            self.fail("a condition")
        start, depth = self._tokens[self._at].start, 0
        stop = start
        while not self.ended:
            if depth == 0 and any(all(self.peek(i) == word for i, word in enumerate(end)) for end in ends):
                break
            depth += (self.peek() == "(") - (self.peek() == ")")
            stop = self._step().end
        if stop == start:
            self.fail("a condition")
        return start, stop

    def rest(self) -> Sequence[SqlToken]:
        """All remaining tokens, consumed."""
        found, self._at = self._tokens[self._at :], len(self._tokens)
        return found

    @property
    def left(self) -> int:
        """The number of remaining tokens."""
        return len(self._tokens) - self._at

    def at_least_one(self) -> None:
        """Something follows."""
        if self.ended:
            self.fail("more")

    def _step(self) -> SqlToken:
        self._at += 1
        return self._tokens[self._at - 1]


def _table(parts: Sequence[str]) -> exp.Table:
    this, db, catalog = (*reversed(parts), None, None)[:_MOST_PARTS]
    made = (exp.to_identifier(each) if each is not None else None for each in (this, db, catalog))
    return exp.Table(**dict(zip(("this", "db", "catalog"), made, strict=True)))
