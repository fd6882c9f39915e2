"""Splits code into parts with a kind, so that a page can colour them. The parts together are the code, unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
