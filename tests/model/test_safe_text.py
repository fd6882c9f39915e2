"""Text of others in text for people."""

from __future__ import annotations

import re
import shutil
import unicodedata

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tablectl.delta.names import INVISIBLE, quote_text
from tablectl.model.safe_text import escape_output, printable, value_text
from tablectl.planning.table_makers import java_text, shell_word
from tablectl.policies.write_yaml import quoted, write_text
from tools.invisible_characters import invisible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 東京", "plain é 東京"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_control_characters_are_shown_not_sent(text: str, shown: str) -> None:
    assert printable(text) == shown


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
@example("\u2028\u2029\x85")
def test_whatever_is_printed_is_printable(text: str) -> None:
    assert printable(text).isprintable()
    assert value_text(text).isprintable()
    assert value_text((text,)).isprintable()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "not set"),
        ("payments", "payments"),
        ("not set", "'not set'"),
        ("", "''"),
        (" x", "' x'"),
        ("a\nb", "'a\\nb'"),
        ("a\\nb", "a\\nb"),
        (("id", "a\x1b"), "[id, a\\x1b]"),
        ((), "[]"),
    ],
)
def test_values(value: str | tuple[str, ...] | None, shown: str) -> None:
    assert value_text(value) == shown


# Characters that leave no mark, and look-alikes

UNSEEN = [
    *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180E, 0x180F, 0x200B, 0x200C),
    *(0x200D, 0x200E, 0x200F, 0x2028, 0x2029, 0x202A, 0x202E, 0x2060, 0x2061, 0x2064, 0x2066, 0x2069, 0x206F, 0x2800),
    *(0x3164, 0xFE00, 0xFE0E, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0x1D159, 0x1D173, 0xE0001, 0xE0041, 0xE0100, 0xE01EF),
    *(0x00A0, 0x1680, 0x2000, 0x2007, 0x202F, 0x205F, 0x3000, 0x85, 0x1B),
]


@pytest.mark.parametrize("number", UNSEEN, ids=hex)
def test_a_character_that_leaves_no_mark_is_marked_wherever_it_is_shown_or_written(number: int) -> None:
    text = f"or{chr(number)}ders"
    for made in (printable(text), value_text(text), value_text((text,)), quote_text(text), quoted(text)):
        assert chr(number) not in made
        assert f"{number:x}" in made.lower() or number == 0x85
    assert yaml.safe_load(write_text(text)) == text
    assert chr(number) not in shell_word(text) + java_text(text) + escape_output(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p\u0430yments", "p\\u0430yments"),  # Cyrillic a
        ("\u043erders", "\\u043erders"),
        ("orde\u03c1s", "orde\\u03c1s"),  # Greek rho
        ("\u0391lpha", "\\u0391lpha"),
        ("\u0585rders", "\\u0585rders"),  # Armenian oh
        ("\u13a0lpha", "\\u13a0lpha"),  # Cherokee a
        ("заказ\u03bfв", "заказ\\u03bfв"),  # Greek omicron in a Cyrillic word
        ("o\u0301rd\u0435rs", "o\u0301rd\\u0435rs"),  # a combining mark does not end the word
        ("\uff4frders", "\\uff4frders"),  # fullwidth
        ("\U0001d428rders", "\\U0001d428rders"),  # mathematical
        ("\u212aafka", "\\u212aafka"),  # Kelvin sign
        ("\ufb01le", "\\ufb01le"),  # ligature
        ("t\u0131me и p\u0430th", "t\u0131me и p\\u0430th"),
    ],
)
def test_a_letter_that_looks_like_another_is_marked(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown
    assert yaml.safe_load(write_text(text)) == text
    assert value_text(text).isprintable()
    assert shown in value_text(text) or repr(shown)[1:-1] in value_text(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "заказы",
            "Заказы за 2026 год",
            "παραγγελίες",
            "Ελληνικά",
            "հայերեն",
            "ქართული",
            "sales_заказы",
            "заказы.csv",
        ),
        *(
            "注文",
            "訂單",
            "주문",
            "ご注文",
            "カタカナ",
            "SQL入門",
            "T시리즈",
            "Kafkaログ",
            "طلبات",
            "הזמנות",
            "हिन्दी",
            "ไทย",
        ),
        *("naïve café", "Größe", "İstanbul", "Łódź", "smørrebrød", "Đặng", "o\u0301"),
        *("5 µs", "m²", "1ª", "½", "€ 5", "a → b", "✓", "😀", "👍🏽", "🇩🇪", "①", "x ≤ y", "…", "—", "Ω"),
    ],
)
def test_words_in_any_script_stay_readable(text: str) -> None:
    assert printable(text) == text
    assert value_text(text) == text


@given(st.text(max_size=30))
def test_what_is_shown_is_shown_the_same_again(text: str) -> None:
    assert printable(printable(text)) == printable(text)
    assert yaml.load(quoted(text), Loader=yaml.BaseLoader) == text


def test_the_fixed_ranges_are_those_of_unicode() -> None:
    found = re.compile(f"[{INVISIBLE}]")
    made = {number for number in range(0x110000) if found.match(chr(number))}
    assert {each for each in range(0x80, 0x110000) if unicodedata.category(chr(each)) == "Zs"} <= made
    if shutil.which("perl"):
        assert made == invisible()


def test_ten_thousand_foreign_letters_take_no_longer_than_they_are() -> None:
    assert printable("a" + "\u0430" * 10_000) == "a" + "\\u0430" * 10_000
