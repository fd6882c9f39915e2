"""The product and its pages are written in plain English: no phrase of ``BANNED``.

Read are the comments, docstrings and strings of ``tablectl/``, its data and templates, the help of every command, the
pages, ``action.yml``, ``Makefile``, all golden files, and the tests with their names and cases. ``plain_english.json``
lists the files that still have such phrases, with their number: a file may have fewer, never more, and a file that is
not listed has none. After a merge, or when a file has fewer, write the list again and commit it::

    PYTHONPATH=. .venv/bin/python -m tests.docs.test_plain_english
"""

from __future__ import annotations

import io
import json
import re
import tokenize
from pathlib import Path

import pytest

from tablectl.commands.command_line import run_cli
from tests.docs.pages import ROOT
from tests.program import commands

REMAINING = Path(__file__).with_name("plain_english.json")
"""The number of banned phrases that each listed file still has, by its path in the repository."""

_CRUTCHES = (
    r"shall be",
    r"anew",
    # but a place, and a word of policies
    r"(?<!copy: )(?<!copy )(?<!copy-)beside(?![ -](?:it\b|the[ -](?:live )?table\b|a table\b|itself\b))",
    r"nobody",
    r"somebody",
    r"whom",
    r"be it",
    r"be there",
    r"harm(?:s|ed)",
    r"surviv(?:es|ed)",
    r"fails whom",
    r"ways? out",
    r"in earnest",
    r"in the service of",
    r"heed(?:s|ed|ing)?",
    r"fares?",
    r"lately",
    r"is told",
    r"told so",
    r"let go",
    r"for ever",
    r"(?<!there )(?:is|are|was|were) no (?!longer|more)(?=\w)",
    r"(?:can(?:not)?|to|often) be told",
    r"(?:it|engine|session|server|catalog) cannot tell",
    r"ha(?:s|ve) it not",
    r"of which it cannot",
    r"in vain",
    r"(?:read|taken|counted|costs?|told) (?:\w+ ){0,2}for nothing",
)
_TEST = re.compile(r"test_")
BANNED = re.compile(rf"\b(?:{'|'.join(_CRUTCHES)})\b", re.IGNORECASE)

_STRING_KINDS = {
    number
    for number, name in tokenize.tok_name.items()
    if name in {"COMMENT", "STRING", "FSTRING_MIDDLE", "TSTRING_MIDDLE"}
}


def _files() -> list[Path]:
    """What users and contributors read; ``tablectl/`` whole, and all golden files."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "action.yml", ROOT / "Makefile"]
    product = [each for each in (ROOT / "tablectl").rglob("*") if each.suffix in {".py", ".j2", ".json"}]
    golden = [
        each
        for each in (ROOT / "tests").rglob("*")
        if each.is_file() and "golden" in each.parts and each.suffix not in {".parquet", ".crc", ".png"}
    ]
    folders = ("tests", "benchmarks", "chaos", "tools", "packages")
    tests = [each for folder in folders for each in (ROOT / folder).rglob("*.py") if each != Path(__file__)]
    cases = (ROOT / "tests" / "cases").rglob("*.yaml")
    return sorted([*pages, *product, *golden, *tests, *cases])


def _source_text(source: str) -> str:
    """The comments, strings and names of tests of Python source; other names in the code are not English."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    names = (
        each.string.replace("_", " ") for each in tokens if each.type == tokenize.NAME and _TEST.match(each.string)
    )
    return "\n".join((*(each.string for each in tokens if each.type in _STRING_KINDS), *names))


def phrases(text: str) -> list[str]:
    """The banned phrases of a text, also those that a line end, a comment sign or two adjacent strings split."""
    return [each.casefold() for each in BANNED.findall(re.sub(r"[\s\"'#>|│]+", " ", text))]


def phrases_of(file: Path) -> list[str]:
    """The banned phrases of one file."""
    text = file.read_text(encoding="utf-8")
    return phrases(_source_text(text) if file.suffix == ".py" else text)


def counts() -> dict[str, int]:
    """The number of banned phrases of each file that has any."""
    found = {str(each.relative_to(ROOT)): len(phrases_of(each)) for each in _files()}
    return {name: count for name, count in found.items() if count}


def write_remaining() -> None:
    """Write the list of what remains as it is now."""
    REMAINING.write_text(f"{json.dumps(counts(), indent=2)}\n", encoding="utf-8")


def test_no_file_has_more_banned_phrases_than_its_row_allows() -> None:
    allowed = json.loads(REMAINING.read_text(encoding="utf-8"))
    more = {
        name: sorted(set(phrases_of(ROOT / name))) for name, count in counts().items() if count > allowed.get(name, 0)
    }
    assert more == {}, "write these in plain English (CONTRIBUTING.md, Style)"


def test_every_row_of_remaining_phrases_names_a_file_and_a_positive_count() -> None:
    allowed = json.loads(REMAINING.read_text(encoding="utf-8"))
    assert [name for name, count in allowed.items() if count < 1] == []


@pytest.mark.parametrize("words", [words for words, _ in commands()], ids=" ".join)
def test_the_help_of_a_command_is_plain_english(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli([*words, "--help"], {"COLUMNS": "200", "NO_COLOR": "1"}) == 0
    assert phrases(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a write that\n    # survives", ["survives"]),
        ('"it shall "\n    "be read"', ["shall be"]),
        ("Nobody fares worse", ["nobody", "fares"]),
        ("the welfare of besides, maybe it's harmless", []),
        ("to `ways_out` of the old code", []),
        ("a text that is no\n    name, and is no longer read", ["is no "]),
        ("There is no lease, and there are no others", []),
        ("whether it is quiet cannot be told, nor can it be told later", ["cannot be told"]),
        ("the table has it not", ["has it not"]),
    ],
)
def test_phrases_are_found_across_lines_and_as_whole_words(text: str, found: list[str]) -> None:
    assert phrases(text) == found


def test_only_comments_and_strings_of_source_are_read() -> None:
    assert phrases(_source_text('anew = whom("let go")  # for ever\n')) == ["let go", "for ever"]


if __name__ == "__main__":
    write_remaining()
