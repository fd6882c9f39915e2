"""Colours, widths, and text that cannot move the cursor."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tablectl.documents.style import Style, plural, printable_lines
from tablectl.model.safe_text import size_text


def test_colours_only_where_they_are_taken() -> None:
    assert Style(colour=False).paint("x", "red", "bold") == "x"
    assert Style(colour=True).paint("x", "red", "bold") == "\x1b[31;1mx\x1b[0m"
    assert Style(colour=True).paint("", "red") == ""


def test_prose_is_wrapped_next_to_its_label() -> None:
    assert Style(width=40).prose("why", "the quick brown fox jumps over the lazy dog", 4) == [
        "    why      the quick brown fox jumps",
        "             over the lazy dog",
    ]
    assert Style().prose("hint", "", 4) == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("abcdefgh-/", min_size=1, max_size=12), max_size=30), st.integers(40, 100))
def test_prose_fits_the_width_and_loses_nothing(words: list[str], width: int) -> None:
    lines = Style(width=width).prose("why", " ".join(words), 6)
    assert all(len(line) <= width for line in lines)
    assert " ".join(lines).split() == (["why", *words] if words else [])


def test_a_sentence_breaks_between_its_parts_and_colours_do_not_count() -> None:
    style = Style(colour=True, width=30)
    assert style.sentence("Plan", [style.paint("one to change", "red"), "two as declared"]) == [
        "\x1b[1mPlan\x1b[0m: \x1b[31mone to change\x1b[0m;",
        "  two as declared.",
    ]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
@example("\u2028\u2029\x85")
def test_whatever_is_printed_is_printable(text: str) -> None:
    assert all(line.isprintable() for line in printable_lines(text))


def test_numbers() -> None:
    assert [plural(0, "table"), plural(1, "entry"), plural(2, "entry"), plural(3, "file")] == [
        "0 tables",
        "1 entry",
        "2 entries",
        "3 files",
    ]
    assert [size_text(size) for size in (0, 999, 1000, 4_100_000, 10**12, 10**19)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "4.1 MB",
        "1.0 TB",
        "10000.0 PB",
    ]
