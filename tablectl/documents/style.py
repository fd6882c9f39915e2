"""Terminal colours and line wrapping."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tablectl.model.safe_text import printable

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CODES: Mapping[str, str] = MappingProxyType(
    {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
)


@dataclass(frozen=True, slots=True)
class Style:
    """The style of a text: ``colour`` off gives plain text, ``width`` is where prose wraps. SQL is never wrapped."""

    colour: bool = False
    width: int = 80

    def paint(self, text: str, *names: str) -> str:
        """Text in a colour or weight, if colours are on."""
        if not self.colour or not text or not any(names):
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names if name)}m{text}\x1b[0m"

    def prose(self, label: str, text: str, indent: int, pad: int = 8) -> list[str]:
        """``label``, padded to a width, and wrapped text next to it, continued under the text."""
        first = " " * indent + label.ljust(pad) + " "
        return textwrap.wrap(
            printable(text),
            max(self.width, indent + 30),
            initial_indent=first,
            subsequent_indent=" " * len(first),
            break_long_words=False,
            break_on_hyphens=False,
        )

    def facts(self, pairs: Sequence[tuple[str, str]], indent: int) -> list[str]:
        """Labels and texts, the texts in one column."""
        longest = max((len(label) for label, _ in pairs), default=0)
        pad = longest if longest == 1 else max(8, longest)  # a list of points needs no column
        return [line for label, text in pairs for line in self.prose(label, text, indent, pad)]

    def sentence(self, opening: str, parts: list[str]) -> list[str]:
        """A bold word and a list that wraps behind commas and semicolons. Colour codes have no width."""
        lines, used = [self.paint(opening, "bold") + ":"], len(opening) + 1
        for text in re.split(r"(?<=[,;]) ", "; ".join(parts) + "."):
            length = len(_ANSI.sub("", text)) + 1
            if used + length > self.width:
                lines.append(" ")
                used = 1
            lines[-1] += " " + text
            used += length
        return lines


def printable_lines(text: str) -> list[str]:
    """The lines of a text, each without unprintable characters."""
    return [printable(line) for line in text.split("\n")]


def plural(count: int, noun: str) -> str:
    """A count and its noun: ``1 table``, ``2 tables``, ``3 entries``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("ry") else f"{count} {noun}s"


def wrapped(text: str, indent: int, style: Style, *paint: str) -> list[str]:
    """The lines of a paragraph, each indented and painted."""
    margin = " " * indent
    lines = textwrap.wrap(
        printable(text),
        max(style.width, indent + 30),
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [style.paint(line, *paint) if paint else line for line in lines]


def titled(subject: str, env: str) -> str:
    """The subject of a report and its environment, if any: ``Plan``, ``Plan (prod)``."""
    return f"{subject} ({printable(env)})" if env else subject
