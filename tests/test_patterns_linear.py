"""No regular expression of the product takes more than linear time on any text, because texts come from strangers.

Every pattern of every module runs on texts made of its own parts. A linear pattern takes a few milliseconds for the
longest of them, a quadratic one more than a second of processor time: no clock and no load can confuse the two.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from time import thread_time
from typing import Any

import pytest

import tablectl
import tablectl_guard
from tablectl.delta.credentials import find_credentials, scrub, without_credentials

_SIZES = (30, 1_000, 5_000, 20_000)
_MOST_SECONDS = 0.5
_SEARCHES = r"\.(search|sub|subn|finditer|findall|split)\b"
_MOST_WORDS = 60


def _named() -> Iterator[tuple[str, str, re.Pattern[Any]]]:
    for package in (tablectl, tablectl_guard):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.rpartition(".")[2] in {"__main__", "sitecustomize"}:
                continue
            try:
                module = importlib.import_module(found.name)
            except ImportError:  # of an extra that is not installed
                continue
            source = Path(str(module.__file__)).read_text("utf-8")
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern):
                    yield f"{found.name}.{name}", source, value


_PATTERNS = {
    name: (value, bool(re.search(rf"\b{name.rpartition('.')[2]}{_SEARCHES}", source)))
    for name, source, value in _named()
}


def _sample(tree: Any) -> str:
    """A short text that a parsed pattern matches, apart from conditions."""
    return "".join(
        next(iter(_atoms([each])), "") if each[0] in {sre.IN, sre.NOT_LITERAL} else _text(each) for each in tree
    )


def _text(node: tuple[Any, Any]) -> str:
    kind, value = node
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.ANY:
        return "a"
    if kind in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
        return _sample(value[2]) * int(max(1, min(value[0], 30)))
    if kind is sre.SUBPATTERN:
        return _sample(value[3])
    if kind is sre.ATOMIC_GROUP:
        return _sample(value)
    return _sample(value[1][0]) if kind is sre.BRANCH else ""


_CATEGORIES = {sre.CATEGORY_DIGIT: "0", sre.CATEGORY_SPACE: " ", sre.CATEGORY_WORD: "a", sre.CATEGORY_NOT_SPACE: "a"}


def _atoms(tree: Any) -> Iterator[str]:  # one branch for each kind of node
    """The parts of a parsed pattern: characters, and samples of its groups."""
    for kind, value in tree:
        if kind is sre.LITERAL:
            yield chr(value)
        elif kind is sre.NOT_LITERAL or kind is sre.ANY:
            yield "a"
        elif kind is sre.IN:
            negated = value[0][0] is sre.NEGATE
            if negated:
                yield from "a:/0"
            for what, part in value:
                if what is sre.LITERAL and not negated:
                    yield chr(part)
                elif what is sre.RANGE and not negated:
                    yield chr(part[0])
                elif what is sre.CATEGORY and not negated:
                    yield _CATEGORIES.get(part, "-")
        elif kind in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
            yield _sample(value[2])
            yield from _atoms(value[2])
        elif kind is sre.SUBPATTERN:
            yield _sample(value[3])
            yield from _atoms(value[3])
        elif kind is sre.ATOMIC_GROUP:
            yield from _atoms(value)
        elif kind is sre.BRANCH:
            for branch in value[1]:
                yield _sample(branch)
                yield from _atoms(branch)


def _attacks(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """A beginning, what is repeated, and an end."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = list(
        parser.parse(text, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    )
    parts = list(dict.fromkeys(each for each in _atoms(tree) if each))[:8]
    words = [*parts, *("".join(pair) for pair in product(parts, parts) if pair[0] != pair[1])]
    starts = list(dict.fromkeys(_sample(tree[:count]) for count in range(len(tree))))
    for start, word in product(islice(starts, 6), islice(dict.fromkeys(words), _MOST_WORDS)):
        yield from ((start, word, end) for end in ("", "\x00"))


@pytest.mark.parametrize("name", sorted(_PATTERNS))
def test_a_pattern_is_linear_in_its_text(name: str) -> None:
    pattern, searches = _PATTERNS[name]
    run = pattern.search if searches else pattern.fullmatch
    also = pattern.match
    for start, word, end in _attacks(pattern):
        for size in _SIZES:
            text: Any = start + word * (size // len(word)) + end
            text = text.encode(errors="replace") if isinstance(pattern.pattern, bytes) else text
            began = thread_time()
            run(text)
            also(text)
            took = thread_time() - began
            assert took < _MOST_SECONDS, f"{start!r} + {word!r} * {size}: {took:.2f} s"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "s3://" + "a:" * 30_000,
            "a://b:c@" * 10_000,
            "a://" * 20_000,
            "s3://a:1/" * 10_000 + "@",
            "a" * 100_000 + "@",
        ),
        *(
            "-----BEGIN PRIVATE KEY-----" * 4_000,
            "password=" * 10_000,
            'password: "' + "\\\\" * 40_000,
            "a@b@" * 20_000,
        ),
        *(
            "eyJ" * 30_000,
            "eyJaaaaaaaaa." * 8_000,
            "token=>" * 10_000,
            "secret.key" + ".a" * 40_000,
            "jdbc:oracle:thin:" * 5_000,
        ),
        *(
            "Bearer " * 10_000 + "@",
            "--secret-" * 10_000 + "-u",
            "login a password " * 5_000,
            "a:b@tcp" * 10_000,
            "aB3/" * 20_000,
        ),
    ],
)
def test_the_search_for_credentials_is_linear(text: str) -> None:
    began = thread_time()
    scrub(text)
    find_credentials(text)
    without_credentials(text)
    assert thread_time() - began < _MOST_SECONDS


def test_the_patterns_are_found() -> None:
    assert len(_PATTERNS) > 120
    assert "tablectl.delta.credentials._USER" in _PATTERNS
