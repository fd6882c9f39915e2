"""Write ``tablectl/insight/facts.json`` from the reference pages: ``python -m tests.docs.publish_facts``."""

from __future__ import annotations

import json
import re

from tests.docs.pages import ROOT
from tests.docs.sources import FACTS, SECTIONS, page_of

FILE = ROOT / "tablectl" / "insight" / "facts.json"
_REFERENCE = ROOT / "docs" / "reference"
_ROW = re.compile(r'(?m)^\| <a id="(D[0-9]+)"></a>D[0-9]+ \| (.*?) \|$')
_HEADING = re.compile(r"(?m)^#{2,3} ([0-9]+(?:\.[0-9]+)?)\.? (.+)$")
_MARKUP = re.compile(r"\*\*|<[^>]+>|\\\\(?=\|)")
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
_SHORT = {
    r"\bWS\b": "WriteSerializable",
    r"\b[Uu]nder S\b": "under Serializable",
    r"\bRLC\b": "row-level concurrency",
    r"\bDVs?\b": "deletion vectors",
    r"\bUDM\b": "UPDATE, DELETE or MERGE",
    r"\bDBR\b": "Databricks Runtime",
}


def facts() -> dict[str, dict[str, str]]:
    """Each fact about Databricks and each section about Delta, by id: plain text with code in backticks, and its page.

    Facts in tables of several columns have the text of ``FACTS``.
    """
    databricks = (_REFERENCE / "databricks.md").read_text(encoding="utf-8")
    delta = (_REFERENCE / "delta.md").read_text(encoding="utf-8")
    rows = {name: _plain(text) for name, text in _ROW.findall(databricks) if " | " not in text}
    found = dict(sorted({**FACTS, **rows}.items(), key=lambda each: int(each[0][1:])))
    facts = {name: {"text": text, "source": page_of(name)} for name, text in found.items()}
    for number, title in _HEADING.findall(delta):
        section = SECTIONS.get(f"delta-{number}")
        said = f"{section.text[:1].upper()}{section.text[1:]}" if section else _plain(title)
        facts[f"delta-{number}"] = {"text": f"{said}.", "source": section.page if section else ""}
    return facts


def _plain(text: str) -> str:
    text = _LINK.sub(r"\1", _MARKUP.sub("", text)).strip()
    for short, words in _SHORT.items():
        text = re.sub(short, words, text)
    return text[:1].upper() + text[1:]


def page() -> str:
    return json.dumps(facts(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
