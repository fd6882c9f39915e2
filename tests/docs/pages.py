"""Pages of documentation as blocks, and what is shown of a terminal in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_COMMAND = re.compile(r"^(?:\$ )?(?:\S*/)?tablectl(?: [a-z-]+(?: |$)|$)")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def file(self) -> str:
        """The file that a block says it is: ``# policies/sales.yaml`` in its first line."""
        found = re.match(r"# ([\w./-]+\.(?:ya?ml|py))(?:\s|$)", self.text)
        return found[1] if found else ""

    @property
    def commands(self) -> list[str]:
        """The command lines of ``tablectl`` in it, continued ones whole."""
        lines = iter(self.text.splitlines())
        return [_whole(line.removeprefix("$ "), lines) for line in lines if _COMMAND.match(line)]


@dataclass(frozen=True)
class Shown:
    """A command and what is shown of its output."""

    command: str
    output: str


def anchors(page: Path) -> frozenset[str]:
    """What a link to a page may name after ``#``: its headings as GitHub writes them, and explicit anchors."""
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"(?m)^#+ (.+)$", text)
    made = (re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-") for title in titles)
    return frozenset([*made, *re.findall(r'<a id="([\w.-]+)">', text)])


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"(?ms)^( *)```([\w-]*)[^\n]*\n(.*?)^\1```$", text)
    return [Block(page, text[: each.start()].count("\n") + 1, each[2], each[3]) for each in found]


def transcript(block: Block) -> list[Shown]:
    """The commands of a block, each with its output."""
    shown: list[Shown] = []
    lines = iter(block.text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            shown.append(Shown(_whole(line[2:], lines), ""))
        else:
            assert shown, f"{block}: output without a command"
            shown[-1] = Shown(shown[-1].command, f"{shown[-1].output}{line}\n")
    return shown


def like(expected: str) -> re.Pattern[str]:
    """Output with ``…`` for what is left out: of a line, or whole lines."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*?") + r"[ ]*\n"
        for line in expected.splitlines()
    ]
    return re.compile("".join(lines))


def _whole(first: str, lines: Iterator[str]) -> str:
    """A command line up to where the shell would run it."""
    text = first
    while True:
        try:
            if not text.endswith("\\"):
                shlex.split(text, comments=True)
                return text
        except ValueError:
            pass
        text = f"{text.removesuffix(chr(92))}\n{next(lines)}"
