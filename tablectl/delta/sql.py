"""The one place that turns names and text into SQL. Every statement is built from these."""

from __future__ import annotations

import re


def quote_name(part: str) -> str:
    """One part of an identifier, in backticks: the only character that ends it is the backtick, which is doubled."""
    return "`" + part.replace("`", "``") + "`"


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r"[\\'\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]")
"""What ends a literal or a line, and what readers of a plan would not see: a fixed list, whatever Python's Unicode."""


def quote_text(text: str) -> str:
    r"""A string literal as Spark's parser reads it with ``escapedStringLiterals`` off, on one line.

    Spark treats a backslash as an escape and expands ``${…}`` before it parses; the engine turns the latter off in
    its own session (delta-0), so the text arrives as it stands here. NUL is no ``\0``: with two digits
    behind it Spark would read an octal number.
    """
    return "'" + _ESCAPED.sub(_escape, text) + "'"


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _ESCAPES.get(char) or f"\\u{ord(char):04x}"
