"""How messages about input speak: the user's own text quoted and cut to length, and what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from tablectl.model.credentials import scrub

_LONGEST = 60
_MOST = 12


def shown(text: str) -> str:
    """A user's text inside a message: quoted, on one line, printable whatever it holds, cut where it is long."""
    text = scrub(text)  # before it is cut: half of a password is one too
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return f'"{cut}"' if cut.isprintable() and '"' not in cut and "\\" not in cut else repr(cut)


def cut(message: str) -> str:
    """A message of another module that quotes input at length, cut to a readable length."""
    return message if len(message) <= 5 * _LONGEST else message[: 5 * _LONGEST - 1] + "…"


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that a mistyped word most likely means; letter case does not count."""
    folded = {choice.casefold(): choice for choice in choices}
    if len(word) > _LONGEST:
        return None
    found = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A hint: the nearest choice, or all of them where none is near."""
    listed = tuple(choices)
    found = nearest(word, listed)
    if found:
        return f"did you mean `{found}`?"
    return f"known here: {', '.join(listed[:_MOST])}{', …' if len(listed) > _MOST else ''}"
