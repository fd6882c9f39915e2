r"""Prints the ranges of ``INVISIBLE`` in ``tablectl/delta/names.py``: ``python -m tools.invisible_characters``.

Python's ``unicodedata`` has no derived properties. Perl has: its ``\p{Default_Ignorable_Code_Point}`` is that of
DerivedCoreProperties.txt of the Unicode Character Database. Besides there are the category ``Zs`` (spaces), the three
controls of annotations, and the two symbols whose glyph is blank. Their names are those of UnicodeData.txt.
"""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Iterator

_PERL = r'for my $c (0..0xd7ff, 0xe000..0x10ffff) { print "$c\n" if chr($c) =~ /\p{Default_Ignorable_Code_Point}/ }'
_NAMED = (
    "BRAILLE PATTERN BLANK",
    "MUSICAL SYMBOL NULL NOTEHEAD",
    *(f"INTERLINEAR ANNOTATION {each}" for each in ("ANCHOR", "SEPARATOR", "TERMINATOR")),
)


def invisible() -> frozenset[int]:
    """The code points that leave no mark."""
    done = subprocess.run(["perl", "-e", _PERL], capture_output=True, check=True, text=True)  # noqa: S607
    spaces = {each for each in range(0x80, sys.maxunicode + 1) if unicodedata.category(chr(each)) == "Zs"}
    return frozenset(map(int, done.stdout.split())) | spaces | {ord(unicodedata.lookup(name)) for name in _NAMED}


def ranges(points: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each run of code points."""
    found: list[list[int]] = []
    for point in sorted(points):
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    yield from ((first, last) for first, last in found)


def _escaped(point: int) -> str:
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


if __name__ == "__main__":
    for first, last in ranges(invisible()):
        print(_escaped(first) + ("" if first == last else ("-" if last > first + 1 else "") + _escaped(last)), end="")
    print()
