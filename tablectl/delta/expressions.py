"""The SQL expressions of CHECK constraints: which texts are taken, and when two of them are equal.

A text is split into the tokens of Spark's lexer. Whatever could end the clause around it, start a comment, name another
table or run code is refused: a policy holds an expression over the columns of one row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 4_000
"""The maximum number of characters of an expression."""
DEEPEST = 50
"""The maximum depth of parentheses."""
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>[rR]?'(?:[^'\\]|\\.)*'|[rR]?"(?:[^"\\]|\\.)*")
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[A-Za-z]{0,2})
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<mark><=>|<=|>=|<>|!=|==|\|\||->|[-+*/%<>=!&|^~.,()\[\]:])
    )""",
    re.VERBOSE | re.DOTALL,
)
_QUERIES = frozenset({"select", "with", "values", "table", "exists", "over"})
_CODE = frozenset({"reflect", "java_method", "try_reflect"})
_CHANGING = frozenset(
    {"rand", "randn", "random", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id", "now", "user"}
    | {"input_file_name", "current_date", "current_timestamp", "localtimestamp", "curdate", "unix_timestamp"}
    | {"current_user", "session_user"}
)
"""Functions with another result for the same row."""


def why_refused(text: str) -> str:
    """Why a policy does not take a text as an expression, as a clause; empty if it does."""
    if not text.strip():
        return "needs an expression"
    if len(text) > LONGEST:
        return f"has more than {LONGEST:,} characters"
    if not all(char.isprintable() or char in "\n\t" for char in text):
        return "has control characters"
    if "--" in text or "/*" in text:
        return "has a comment, or text that reads as one"
    if "${" in text:
        return "has ${, which Spark replaces before it reads the statement"
    try:
        tokens = tuple(_tokens(text))
    except ValueError as error:
        return str(error)
    return _unbalanced(tokens) or _forbidden(tokens)


def equal(one: str, other: str) -> bool:
    """Whether two texts are the same expression but for white space, the letter case of words, and parentheses around
    the whole. False for a text that is not taken: nothing is known about it.
    """
    return one == other or (not why_refused(one) and not why_refused(other) and _canonical(one) == _canonical(other))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"has {text[at : at + 10].strip()!r}, which is not part of an expression")
        yield match.lastgroup, match[match.lastgroup]
        at = match.end()


def _unbalanced(tokens: tuple[tuple[str, str], ...]) -> str:
    open_marks: list[str] = []
    for kind, text in tokens:
        if kind == "mark" and text in "([":
            open_marks.append(text)
            if len(open_marks) > DEEPEST:
                return f"has parentheses within parentheses more than {DEEPEST} deep"
        elif kind == "mark" and text in ")]" and (not open_marks or open_marks.pop() + text not in {"()", "[]"}):
            return f"has a {text} that closes nothing"
    return f"has a {open_marks[-1]} that is not closed" if open_marks else ""


def _forbidden(tokens: tuple[tuple[str, str], ...]) -> str:
    for (kind, text), following in zip(tokens, (*tokens[1:], ("", "")), strict=True):
        word = text.strip("`").lower() if kind in {"word", "name"} else ""
        called = following == ("mark", "(")
        if kind == "word" and word in _QUERIES:
            return f"has {text}: a constraint is about one row, and takes no query"
        if called and word in _CODE:
            return f"calls {text}, which runs code of the engine"
        if word in _CHANGING and (called or (kind == "word" and word.startswith("current_"))):
            return f"has {text}, whose result changes from one reading of a row to the next"
    return ""


def _canonical(text: str) -> tuple[str, ...]:
    tokens = [text.lower() if kind == "word" else text for kind, text in _tokens(text)]
    while len(tokens) > 2 and tokens[0] == "(" and _closes(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tuple("=" if each == "==" else "<>" if each == "!=" else each for each in tokens)


def _closes(tokens: list[str]) -> int:
    """Where the first parenthesis closes."""
    depth = 0
    for index, each in enumerate(tokens):
        depth += (each == "(") - (each == ")")
        if depth == 0:
            return index
    return -1
