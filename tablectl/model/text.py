"""Text of others in text for people: policies, logs and plan files may hold anything."""

from __future__ import annotations

from datetime import UTC, datetime


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
