"""Text for messages about input: quotes and shortens the user's text, and suggests what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from heapq import nlargest
from itertools import pairwise

from tablectl.delta.credentials import scrub
from tablectl.model.safe_text import printable

_LONGEST = 60
_MOST = 12
_SHORTEST_SLIP = 4
_ALIKE = 0.6
"""From this ratio of ``difflib`` on, two words are alike."""
_COMPARED = 200
"""The maximum number of choices that are compared letter by letter."""


def shown(text: str) -> str:
    """The user's text for a message: quoted, on one line, printable, shortened if it is long."""
    text = scrub(text)  # scrub before cutting: half a password is a secret too
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return f'"{cut}"' if printable(cut) == cut and '"' not in cut and "\\" not in cut else printable(repr(cut))


def cut(message: str) -> str:
    """Shortens a message of another library that quotes long input."""
    return message if len(message) <= 5 * _LONGEST else message[: 5 * _LONGEST - 1] + "…"


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that a mistyped word most likely means, without regard to letter case; ``None`` if none is similar."""
    if len(word) > _LONGEST:
        return None
    folded = {choice.casefold(): choice for choice in choices if len(choice) <= 2 * _LONGEST}
    near: Iterable[str] = folded
    if len(folded) > _COMPARED:
        # Comparing two words costs the product of their lengths. Counting shared pairs of letters is cheaper.
        wanted = _pairs(word.casefold())
        near = nlargest(_COMPARED, folded, key=lambda choice: len(wanted & _pairs(choice)))
    found = difflib.get_close_matches(word.casefold(), near, n=_MOST, cutoff=_ALIKE)
    return next((folded[each] for each in found if _means(word.casefold(), each)), None)


def _means(word: str, choice: str) -> bool:
    """Whether two dotted names are alike in what is not the same in both: ``delta.autoVacuum.enabled`` and
    ``delta.parquet.vorder.enabled`` share only their first and last word.
    """
    one, two = word.split("."), choice.split(".")
    while one and two and one[0] == two[0]:
        one, two = one[1:], two[1:]
    while one and two and one[-1] == two[-1]:
        one, two = one[:-1], two[:-1]
    rest = ".".join(one), ".".join(two)
    return not all(rest) or difflib.SequenceMatcher(None, *rest).ratio() >= _ALIKE


def is_slip(word: str, meant: str) -> bool:
    """Whether a word of four letters or more is another one with a letter too many or too few, or with two letters
    swapped. Names that people choose differ by more, by digits, or by another letter.
    """
    one, two = sorted((word.casefold(), meant.casefold()), key=len)
    pairs = (at for at in range(len(one) - 1) if one[at : at + 2].isalpha() and one[at] != one[at + 1])
    swapped = (one[:at] + one[at + 1] + one[at] + one[at + 2 :] for at in pairs)
    shorter = (two[:at] + two[at + 1 :] for at in range(len(two)) if two[at].isalpha())
    return len(one) >= _SHORTEST_SLIP and (two in swapped or one in shorter)


def _pairs(word: str) -> frozenset[str]:
    return frozenset(map("".join, pairwise(f" {word} ")))


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A hint: the most similar choice, or all choices if none is similar or several begin with the word."""
    listed = tuple(choices)
    found = nearest(word, listed) if sum(each.startswith(word) for each in listed) < 2 else None
    if found:
        return f"did you mean `{found}`?"
    return f"known here: {', '.join(listed[:_MOST])}{', …' if len(listed) > _MOST else ''}"
