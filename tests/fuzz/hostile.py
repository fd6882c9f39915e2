"""Hostile text: what ends a literal, a name, a line, a tag or a fence, what is obeyed by CI and terminals, noise."""

from __future__ import annotations

from random import Random

from tests.reports.hostile import EVIL

PIECES = (
    *EVIL,
    *("'", '"', "`", "``", "\\", "\\'", "\\n", "\n", "\r", "\t", "\0", "--", "/*", "*/", ";", "; DROP TABLE t", "${x}"),
    *(
        "$${",
        "{{",
        "::error::x",
        "##[error]",
        "##vso[x]",
        "\x9b31m",
        "\u202e",
        "\u2028",
        "\ud800",
        "\U0001f600",
        "~",
    ),
    *("é", "ß", "İ", "%", "_", "u0027", "\\u0027", "\\047", "\\%", "r'", "x'", " ", "", "a", "0", ".", "-", "NULL"),
)


def hostile_text(random: Random, most: int = 6) -> str:
    """Some pieces, and now and then any character."""
    return "".join(_piece(random) for _ in range(random.randint(1, most)))


def _piece(random: Random) -> str:
    return random.choice(PIECES) if random.random() < 0.8 else chr(random.randrange(0x110000))
