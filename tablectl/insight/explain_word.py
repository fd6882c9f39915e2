"""Explains a word: what the tables of the documentation's pages say of it, and the facts behind conflict rules.

The pages hold a row for each word, setting, key, state or code; they are the only place where these are explained.

The facts are ``D37``, documented by Databricks, and ``delta-2.2``, from Delta's own code. ``facts.json`` holds the
texts of ``docs/reference``, which an installation does not have, and the public page behind each.
``python -m tests.docs.publish_facts`` writes it.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pkgutil import get_data

from tablectl.delta.clients import known_clients
from tablectl.delta.protocol import FEATURES, READER_FEATURES
from tablectl.documents.document import Block, Document, Facts, Listing, Paragraph, page
from tablectl.model.safe_text import Code
from tablectl.support.docs_folder import pages_folder
from tablectl.support.json_text import read_json

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
"""The pages whose tables say what a word means, the most important first."""
CONFLICT_TERMS = "conflict-terms.md"
"""The page with the terms of ``insight/glossary.py`` and with the words that have facts. It is not one of ``PAGES``:
a term is explained with what causes it.
"""
_FACTS_ABOUT = "facts about it"
"""The column of its table of words."""
_LINK = re.compile(r"\[([^\[\]]{0,300})\]\(([^()\s]{0,300})\)")
_CELLS = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|[-:| ]+\|\Z")
_LONGEST = 100
"""Letters of a word that are compared."""
_SMALL_WORDS = frozenset({"a", "an", "and", "for", "how", "in", "is", "of", "on", "the", "to", "what", "with"})


@dataclass(frozen=True, slots=True)
class PageRow:
    """One row of a table. The first cell holds the words."""

    words: tuple[str, ...]
    cells: tuple[tuple[str, str], ...]
    """The other cells that say something, each with the title of its column."""
    page: str
    """From the root of the repository."""

    def cell(self, title: str) -> str:
        """What it says in this column; empty if nothing."""
        return dict(self.cells).get(title, "")


def rows_about(word: str) -> tuple[PageRow, ...]:
    """The rows about a word, in any letter case; ``_`` and ``-`` count as spaces. Of a group of keys
    (``window.allow``), the rows of its keys. A rule of a report is the last meaning that counts.
    """
    asked = key_of(word)
    rows = list(page_rows())
    found = [row for row in rows if _folded(word) in map(_folded, row.words)]
    found = found or [row for row in rows if asked in map(key_of, row.words)]
    found = [row for row in found if row.page != "docs/reports.md"] or found
    groups = (f"{_folded(word)}.", f"{_folded(word)}[].")
    found = found or [row for row in rows if _folded(row.words[0]).startswith(groups)]
    return tuple(found or _feature_rows(asked))


def _feature_rows(asked: str) -> Iterator[PageRow]:
    """A feature of the protocol: whether readers need it, and the first versions that read and write it."""
    for feature in FEATURES:
        if key_of(feature.name) == asked:
            kind = "readers and writers" if feature.name in READER_FEATURES else "writers alone"
            cells = [("what it is", f"a feature of the protocol that {kind} must support")]
            cells.append(("declare", f"`{feature.attribute or f'features: {{{feature.name}: supported}}'}`"))
            for title, access in (("read by", "reads"), ("written by", "writes")):
                known = [(each.name, (getattr(each, access) or {}).get(feature.name)) for each in known_clients()]
                clients = ", ".join(f"{name} {since}".strip() for name, since in known if since is not None)
                cells += [(title, clients)] if clients else []
            yield PageRow((feature.name,), tuple(cells), "docs/features.md")


def nearest_words(word: str, others: Sequence[str] = (), most: int = 3) -> Sequence[str]:
    """The words that are nearest to one that has no row: by their letters, and by the words of what is said of them."""
    said = {row.words[0]: " ".join(text for _, text in row.cells) for row in page_rows((*PAGES, CONFLICT_TERMS))}
    asked = word.casefold()[:_LONGEST]
    parts = {key_of(each) for each in re.findall(r"[\w.]+", asked)} - _SMALL_WORDS
    texts = {name: [key_of(each) for each in re.findall(r"[\w.]+", f"{name} {said.get(name, '')}")] for name in said}
    texts |= {name: [key_of(name)] for name in (*explained_words(), *explained_words((CONFLICT_TERMS,)), *others)}

    def score(name: str) -> float:
        close = difflib.SequenceMatcher(None, asked, name.casefold()).ratio()
        named = {key_of(each) for each in re.findall(r"[\w.]+", name)}
        meant = sum(texts[name].count(each) > 0 for each in parts) + 2 * len(parts & named)
        return close + meant / max(len(parts), 1)

    return sorted(texts, key=lambda name: (-score(name), name))[:most]


def explained_words(pages: Sequence[str] = PAGES) -> tuple[str, ...]:
    """Every word that has a row, for suggestions."""
    return tuple(dict.fromkeys(word for row in page_rows(pages) for word in row.words))


def pages_about(word: str) -> Sequence[str]:
    """The pages whose title or first line has a word."""
    asked, found = f" {_folded(word)} ", []
    for file in sorted(pages_folder().glob("*.md")):
        top = " ".join(file.read_text(encoding="utf-8").splitlines()[:3])
        if asked in f" {_folded(' '.join(re.findall(r'[A-Za-z0-9_]+', top)))} ":
            found.append(f"docs/{file.name}")
    return found


def key_of(word: str) -> str:
    """A word without what its usual spellings differ in: letter case, hyphens, blanks, quotes and the plural."""
    parts = re.sub(r"[-_\s`'\"]+", " ", word.casefold()).split()
    return "".join(re.sub(r"(?<=..[^su])s\Z", "", re.sub(r"ies\Z", "y", each)) for each in parts)


def _folded(word: str) -> str:
    return " ".join(re.sub("[-_]", " ", word.casefold()).split())


def page_rows(pages: Sequence[str] = PAGES) -> Iterator[PageRow]:
    """The rows of all tables of these pages."""
    folder = pages_folder()
    for name in pages:
        titles: list[str] = []
        before: list[str] = []
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            cells = [_plain(each, name) for each in _CELLS.split(line)[1:-1]]
            if _RULE.match(line):
                titles = before
            elif not cells:
                titles = []
            elif titles:
                words = tuple(each.strip("`* ") for each in cells[0].split(", "))
                told = tuple(each for each in zip(titles[1:], cells[1:], strict=False) if each[1])
                yield PageRow(words, told, f"docs/{name}")
            before = cells


def conflict_rows(column: str) -> Sequence[PageRow]:
    """The rows of ``CONFLICT_TERMS`` that say something in this column, which only one kind of its tables has."""
    return [row for row in page_rows((CONFLICT_TERMS,)) if row.cell(column)]


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


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about Databricks, or a section about Delta."""

    id: str
    text: str
    source: str
    """The address of the public page or source file behind it; empty if a section has none of its own."""
    page: str
    """The page of this project's documentation."""


def find_fact(id: str) -> Fact | None:  # noqa: A002
    """A fact by its id in any letter case; ``None`` for an id that does not exist."""
    name = next((each for each in _facts() if each.casefold() == id.strip().casefold()), "")
    page = f"docs/reference/{'databricks' if name.startswith('D') else 'delta'}.md#{name}"
    return Fact(name, **_facts()[name], page=page) if name else None


def facts_about(word: str) -> tuple[Fact, ...]:
    """The facts about a word in any letter case; ``()`` for a word without facts."""
    asked = key_of(word)
    for row in conflict_rows(_FACTS_ABOUT):
        if asked in map(key_of, row.words):
            return tuple(fact for each in row.cell(_FACTS_ABOUT).split(", ") if (fact := find_fact(each)))
    return ()


def words_with_facts() -> tuple[str, ...]:
    """The first word of each row that ``facts_about`` reads."""
    return tuple(row.words[0] for row in conflict_rows(_FACTS_ABOUT))


def fact_ids() -> tuple[str, ...]:
    """All ids."""
    return tuple(_facts())


@cache
def _facts() -> dict[str, dict[str, str]]:
    data = get_data("tablectl.insight", "facts.json")
    assert data is not None  # part of the package
    found = read_json(data)
    assert isinstance(found, dict)
    return found


def document_of_fact(fact: Fact) -> Document:
    """A fact with its public page."""
    return page(fact.id, *(Paragraph(each) for each in (fact.text, fact.source, fact.page) if each), record=fact)


@dataclass(frozen=True, slots=True)
class WordExplanation:
    """What is documented about a word."""

    word: str
    rows: tuple[PageRow, ...]
    facts: tuple[Fact, ...]


def document_of_word(found: WordExplanation) -> Document:
    """A word: what the tables of the pages say of it, or of the keys of a group; then what is documented about it."""
    blocks: list[Block] = []
    rows = found.rows
    keys = dict.fromkeys(row.words[0] for row in rows)
    if len(keys) > 1 and all("." in key for key in keys):
        blocks += [Facts(tuple((row.words[0], row.cells[-1][1]) for row in rows)), Paragraph(rows[0].page)]
        rows = ()
    for row in rows:
        if len(row.cells) <= 2:  # a meaning, and perhaps a page
            blocks += [Paragraph(text) for _, text in row.cells]
        else:
            blocks.append(Facts(row.cells))
        if not any(text.startswith("docs/") for _, text in row.cells):
            blocks.append(Paragraph(row.page))
    if found.facts:
        blocks.append(Facts(tuple((each.id, f"{each.text} ({each.source or each.page})") for each in found.facts)))
    name, *also = rows[0].words if rows else (found.word,)
    return page(name, *blocks, record=found, state=f"(also: {', '.join(also)})" if also else "")


@dataclass(frozen=True, slots=True)
class DocumentationPage:
    """A page of the documentation."""

    page: str
    """From the root of the repository."""
    text: str


def document_of_page(found: DocumentationPage) -> Document:
    """The page as it is written."""
    return page(found.page, Listing((Code("text", tuple(found.text.rstrip("\n").split("\n"))),)), record=found)
