"""Text of others in text for people: policies, logs and plan files may hold anything."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

LONGEST_VALUE = 10_000
"""Characters of a property's value that changes, plans and reports hold; of a longer one they hold a digest."""
_SHOWN = 100
_CUT = re.compile(r".{100}… \([0-9,]+ characters, SHA-256 [0-9a-f]{32}\)", re.DOTALL)


def cut(value: str) -> str:
    """A value as it is, or the beginning of a long one with its length and its digest.

    Two values are the same exactly where what this makes of them is, so that long ones are still compared.
    """
    if len(value) <= LONGEST_VALUE:
        return value
    digest = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{value[:_SHOWN]}… ({len(value):,} characters, SHA-256 {digest})"


def is_cut(value: str) -> bool:
    """Whether a value is what ``cut`` makes of a long one, which cannot be made out of it again."""
    return _CUT.fullmatch(value) is not None


def printable(text: str) -> str:
    """Text that cannot move the cursor or recolour the terminal: control characters are shown, not sent."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def value_text(value: str | tuple[str, ...] | None) -> str:
    """A value for people; text that could be mistaken for something else, or that moves the cursor, is quoted."""
    if value is None:
        return "not set"
    if isinstance(value, tuple):
        return f"[{', '.join(printable(item) for item in value)}]"
    plain = printable(value)
    return repr(value) if plain != value or not value or value != value.strip() or value == "not set" else value


def time_text(milliseconds: int) -> str:
    """``2026-11-21 11:00:00 UTC``; empty where it is unknown, or no time: writers may put any number into a log."""
    if milliseconds <= 0:
        return ""
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return ""
