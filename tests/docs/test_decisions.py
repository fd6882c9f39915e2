"""The records of decisions: numbered, dated, complete, and in the index."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT

FOLDER = ROOT / "docs" / "decisions"
RECORDS = sorted(each for each in FOLDER.glob("*.md") if each.name != "README.md")
_RECORD = re.compile(r"# (.+)\n\nDecided (\d{4}-\d\d-\d\d)\.\n")


def test_records_are_numbered_without_a_gap() -> None:
    numbers = [int(each.name.partition("-")[0]) for each in RECORDS]
    assert numbers == list(range(1, len(RECORDS) + 1))


def test_each_record_says_what_was_known_what_was_decided_and_what_follows() -> None:
    for each in RECORDS:
        text = each.read_text(encoding="utf-8")
        assert _RECORD.match(text), f"{each.name} has no title with a date below it"
        headings = re.findall(r"(?m)^## (.+)$", text)
        assert [*headings[:2], headings[-1]] == ["Context", "Decision", "Consequences"], each.name


def test_the_index_lists_the_records_with_their_dates() -> None:
    index = re.findall(r"(?m)^\| (\S+) \| \[(.+)\]\((.+)\) \|$", (FOLDER / "README.md").read_text(encoding="utf-8"))
    found = [(_RECORD.match(each.read_text(encoding="utf-8")), each.name) for each in RECORDS]
    assert index == [(match[2], match[1], name) for match, name in found if match]
