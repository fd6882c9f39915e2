"""The commands that CI systems and terminals find in a text, by their own rules."""

from __future__ import annotations

import unicodedata

_BIDIRECTIONAL = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
_ANYWHERE = ("##[", "##vso[", "##teamcity[")
_AT_START = ("::", "section_start:", "section_end:", "travis_fold:")


def obeyed(text: str) -> list[str]:
    """The lines that a CI system takes for a command, and the characters that a terminal obeys."""
    lines = [
        line
        for line in text.split("\n")
        if any(each in line.lower() for each in _ANYWHERE) or line.strip().lower().startswith(_AT_START)
    ]
    return lines + [f"U+{ord(char):04X}" for char in text if _is_sent(char)]


def _is_sent(char: str) -> bool:
    category = unicodedata.category(char)
    return (category in {"Cc", "Cs", "Zl", "Zp"} and char not in "\n\t") or (
        unicodedata.bidirectional(char) in _BIDIRECTIONAL
    )
