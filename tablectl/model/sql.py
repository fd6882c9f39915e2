"""The one place that turns names and text into SQL. Every statement is built from these."""

from __future__ import annotations


def quote_name(part: str) -> str:
    """One part of an identifier, in backticks: the only character that ends it is the backtick, which is doubled."""
    return "`" + part.replace("`", "``") + "`"


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\x1a": "\\Z"}


def quote_text(text: str) -> str:
    """A string literal as Spark's parser reads it with ``escapedStringLiterals`` off, on one line.

    Spark treats a backslash as an escape and expands ``${…}`` before it parses; the engine turns the latter off in
    its own session (delta.md 0, "SQL text"), so the text arrives as it stands here.
    """
    return "'" + "".join(_ESCAPES.get(char, char) for char in text) + "'"
