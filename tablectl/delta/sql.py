"""The only module that turns names and text into SQL. Every statement is built with these functions."""

from __future__ import annotations

import re


def quote_name(part: str) -> str:
    """One part of an identifier in backticks. Only a backtick can end it, so backticks are doubled."""
    return "`" + part.replace("`", "``") + "`"


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r"[\\'\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]")
"""Characters that end a literal or a line, and characters that are invisible in a plan. The list is fixed, so that it
does not depend on Python's Unicode version.
"""


def quote_text(text: str) -> str:
    r"""A string literal on one line, as Spark's parser reads it with ``escapedStringLiterals`` off.

    Spark treats a backslash as an escape and expands ``${…}`` before it parses. The engine turns the expansion off in
    its own session (delta-0), so the text arrives unchanged. NUL is not written as ``\0``: Spark would read an octal
    number if two digits follow.
    """
    return "'" + _ESCAPED.sub(_escape, text) + "'"


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _ESCAPES.get(char) or f"\\u{ord(char):04x}"
