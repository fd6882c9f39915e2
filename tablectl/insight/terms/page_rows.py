"""The words that the pages of the documentation explain in a table: a row for each word, setting, key, state or code.

The pages are the only place where they are explained; ``tablectl explain`` shows the same rows.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from tablectl.support.frozen import frozen
from tablectl.support.pages import pages_folder

PAGES = (
    "glossary.md",
    "policies.md",
    "generated/settings.md",
    "advise.md",
    "upkeep.md",
    "features.md",
    "status.md",
    "reports.md",
    "exit-codes.md",
)
"""The pages whose tables are read, the most important first."""
_LINK = re.compile(r"\[([^\[\]]{0,300})\]\(([^()\s]{0,300})\)")
_CELLS = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|[-:| ]+\|\Z")


@frozen
class PageRow:
    """One row of a table. The first cell holds the words."""

    words: tuple[str, ...]
    cells: tuple[tuple[str, str], ...]
    """The other cells that say something, each with the title of its column."""
    page: str
    """From the root of the repository."""


def rows_about(word: str) -> tuple[PageRow, ...]:
    """The rows about a word, in any letter case; ``_`` and ``-`` count as spaces. Of a group of keys
    (``window.allow``), the rows of its keys. A rule of a report is the last meaning that counts.
    """
    asked = _folded(word)
    rows = list(_rows())
    found = [row for row in rows if asked in map(_folded, row.words)]
    found = [row for row in found if row.page != "docs/reports.md"] or found
    groups = (f"{asked}.", f"{asked}[].")
    return tuple(found or (row for row in rows if _folded(row.words[0]).startswith(groups)))


def explained_words(pages: Sequence[str] = PAGES) -> tuple[str, ...]:
    """Every word that has a row, for suggestions."""
    return tuple(dict.fromkeys(word for row in _rows(pages) for word in row.words))


def pages_about(word: str) -> Sequence[str]:
    """The pages whose title or first line has a word."""
    asked, found = f" {_folded(word)} ", []
    for file in sorted(pages_folder().glob("*.md")):
        top = " ".join(file.read_text(encoding="utf-8").splitlines()[:3])
        if asked in f" {_folded(' '.join(re.findall(r'[A-Za-z0-9_]+', top)))} ":
            found.append(f"docs/{file.name}")
    return found


def _folded(word: str) -> str:
    return " ".join(re.sub("[-_]", " ", word.casefold()).split())


def _rows(pages: Sequence[str] = PAGES) -> Iterator[PageRow]:
    folder = pages_folder()
    for page in pages:
        titles: list[str] = []
        before: list[str] = []
        for line in (folder / page).read_text(encoding="utf-8").splitlines():
            cells = [_plain(each, page) for each in _CELLS.split(line)[1:-1]]
            if _RULE.match(line):
                titles = before
            elif not cells:
                titles = []
            elif titles:
                words = tuple(each.strip("`* ") for each in cells[0].split(", "))
                told = tuple(each for each in zip(titles[1:], cells[1:], strict=False) if each[1])
                yield PageRow(words, told, f"docs/{page}")
            before = cells


def _plain(cell: str, page: str) -> str:
    """A cell without Markdown: a link is the page that it leads to."""
    folder = posixpath.dirname(f"docs/{page}")

    def link(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        if "://" in target:
            return f"{text} ({target})"
        name, _, anchor = target.partition("#")
        where = posixpath.normpath(posixpath.join(folder, name)) if name else f"docs/{page}"
        place = where + (f"#{anchor}" if anchor else "")
        return place if text.endswith(".md") or text == "below" else f"{text} ({place})"

    return _LINK.sub(link, cell).replace("**", "").replace("\\|", "|").strip()
