"""A document as a self-contained HTML page: no network, no fonts, readable without scripts.

The template escapes every text, and characters that do not print are shown as escapes. A Content-Security-Policy names
the page's own script and style by their hashes, so a browser runs nothing else, whatever the texts contain.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pkgutil import get_data
from typing import Any

from markupsafe import Markup, escape

from tablectl.documents.document import Cell, Document
from tablectl.documents.style import plural
from tablectl.model.safe_text import Code, escape_markup, printable
from tablectl.reports.report_context import Context
from tablectl.reports.short_names import with_short_names

_CODE = re.compile(r"`([^`]+)`")
_COMMIT = 12
_SHORT = 20
"""So many characters of a name fit into a cell on a phone."""
_WORDS = re.compile(r"(\w+)")


def document_html(document: Document, context: Context) -> str:
    """The whole document as a page."""
    document = with_short_names(document)
    style, script = _asset("page.css"), _asset("page.js")
    states = list(dict.fromkeys(card.state for card in document.cards))
    text = (
        _environment()
        .get_template("document.html.j2")
        .render(
            document=document,
            facts=_facts(document, context),
            states=states,
            style=Markup(style),  # noqa: S704  # our own files
            script=Markup(script),  # noqa: S704
            policy=_policy(style, script),
        )
    )
    return escape_markup(text)


def fragment_html(document: Document) -> str:
    """The verdict and the overview as a part of another page, such as a notebook: no style, no script."""
    return escape_markup(_environment().get_template("fragment.html.j2").render(document=document))


def _facts(document: Document, context: Context) -> list[tuple[str, Cell]]:
    """Where the report comes from: the repository first, then what the document adds."""
    found = [
        ("Environment", Cell(document.env)),
        ("Folder", Cell(document.folder, code=True)),
        ("Repository", Cell(context.repository)),
        ("Commit", Cell(context.commit[:_COMMIT], code=True)),
        ("Author", Cell(context.author)),
        ("Made", Cell(context.made)),
        *document.facts,
        ("CI run", Cell(context.address, href=context.address)),
    ]
    return [(label, cell) for label, cell in found if cell.text]


def _policy(style: str, script: str) -> str:
    """What a browser may load and run: only this style and this script."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _asset(name: str) -> str:
    data = get_data("tablectl.reports", f"templates/{name}")
    assert data is not None  # part of the package
    return f"\n{data.decode()}"


@cache
def _environment() -> Any:
    import jinja2  # noqa: PLC0415  # slow to load, and needed for pages alone

    made = jinja2.Environment(
        autoescape=True,
        loader=jinja2.PackageLoader("tablectl.reports"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(prose=_prose, name=_name, code=_coloured, kind=lambda block: type(block).__name__, plain=_plain)
    made.globals.update(plural=plural)
    return made


_BREAKS = re.compile(r"(?<=[._/=-])(?=\w)|(?<=[a-z])(?=[A-Z])")
"""Where a long name may be broken: after its marks, and before a capital."""


def _name(text: str) -> Markup:
    """A name or a value. Without these places a narrow screen would break a long one within a word."""
    if len(text) <= _SHORT:
        return escape(printable(text))
    return Markup("<wbr>").join(map(escape, _BREAKS.split(printable(text))))


def _shown(value: object) -> object:
    """An output value: strings without unprintable characters, markup unchanged."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value)


def _prose(text: str) -> Markup:
    """Text whose parts in backticks are shown as code."""
    parts = _CODE.split(printable(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(_name(part)) if index % 2 else _long_names(part)
        for index, part in enumerate(parts)
    )


def _long_names(text: str) -> Markup:
    """Prose in which names of errors may be broken at their underscores."""
    return Markup("").join(_name(part) if "_" in part else escape(part) for part in _WORDS.split(text))


def _coloured(codes: Iterable[Code]) -> Markup:
    """The lines of code with a ``span`` around each part that has a colour."""
    lines = []
    for code in codes:
        for line in code.shown():
            parts = highlighted(line, code.language)
            lines.append(
                Markup("").join(
                    Markup('<span class="{}">{}</span>').format(kind, part) if kind else escape(part)
                    for kind, part in parts
                )
            )
    return Markup("\n").join(lines)


def _plain(words: Iterable[str]) -> str:
    return " ".join(words)


_SQL_WORDS = (
    "ADD ALTER AND APPLY AS BY CLUSTER COLUMN COLUMNS CREATE DELETE DELTA DROP EXISTS FEATURE FROM FULL HISTORY IF IN "
    "INSERT INTO IS MERGE NONE NOT NULL ON OPTIMIZE OR OVERWRITE PROPERTIES PURGE REORG REPLACE SELECT SET SYNC TABLE "
    "TBLPROPERTIES TRUNCATE UNSET UPDATE UPGRADE UNIFORM USING VALUES WHEN WHERE WITH ZORDER"
)
_PYTHON_WORDS = "and as def for from if import in is lambda not or return with None True False"
_PARTS = (
    r"(?P<note>{note})|(?P<string>{strings})|(?P<name>`[^`\n]*`)"
    r"|(?P<number>\b[0-9]+(?:\.[0-9]+)?\b)|(?P<word>\b(?:{words})\b)"
)
_STRINGS = r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
_OF_LANGUAGE = {
    language: re.compile(_PARTS.format(note=note, strings=_STRINGS, words="|".join(words.split())))
    for language, note, words in (("sql", r"--[^\n]*", _SQL_WORDS), ("python", r"#[^\n]*", _PYTHON_WORDS))
}


def highlighted(line: str, language: str) -> Iterator[tuple[str, str]]:
    """The parts of a line, each with its kind: ``word``, ``string``, ``name``, ``number``, ``note``, or empty."""
    pattern = _OF_LANGUAGE.get(language)
    start = 0
    for match in pattern.finditer(line) if pattern else ():
        if match.start() > start:
            yield "", line[start : match.start()]
        yield match.lastgroup or "", match[0]
        start = match.end()
    if start < len(line):
        yield "", line[start:]
