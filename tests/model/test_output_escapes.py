"""The last step before text leaves: nothing that a CI system or a terminal obeys."""

from __future__ import annotations

import json
import re
import unicodedata
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.model.safe_text import escape_markup, escape_output
from tests.output_commands import obeyed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error file=a::boo", "\\u003a:error file=a::boo"),
        ("a\n  ::set-output name=x::y", "a\n  \\u003a:set-output name=x::y"),
        ("a ##[error]b", "a #\\u0023[error]b"),
        ("###[error]b", "##\\u0023[error]b"),
        ("##vso[task.setvariable variable=x]y", "#\\u0023vso[task.setvariable variable=x]y"),
        ("x ##teamcity[buildStop]", "x #\\u0023teamcity[buildStop]"),
        ("section_start:1:x", "\\u0073ection_start:1:x"),
        ("\u017fection_ſtart:1:x", "\\u017fection_ſtart:1:x"),
        ("a::b\n##  heading\n# [x]", "a::b\n##  heading\n# [x]"),
        ("\x9b31m\u202ex\x1b[2J\r\x00", "\\u009b31m\\u202ex\\u001b[2J\\u000d\\u0000"),
        ("\U000e0001", "\\udb40\\udc01"),
        ("größe 東京\tx\n", "größe 東京\tx\n"),
    ],
)
def test_workflow_commands_and_control_characters_become_escapes(text: str, shown: str) -> None:
    assert escape_output(text) == shown


def test_colours_of_our_own_stay_where_they_are_taken() -> None:
    assert escape_output("\x1b[31;1mx\x1b[0m\x1b[2J", colour=True) == "\x1b[31;1mx\x1b[0m\\u001b[2J"
    assert escape_output("\x1b[31mx") == "\\u001b[31mx"


_HOSTILE = st.lists(
    st.sampled_from(
        ["::", "#", "##", "[", "vso[", "teamcity[", "\n", " ", "\r", "\u2028", "a", "error::", "section_start:"]
    )
    | st.characters(),
    max_size=12,
).map("".join)


@settings(max_examples=500, deadline=None)
@given(_HOSTILE)
def test_no_text_is_a_workflow_command_after_escaping(text: str) -> None:
    assert obeyed(escape_output(text)) == []
    assert obeyed(escape_output(text, colour=True)) == []


@settings(max_examples=500, deadline=None)
@given(_HOSTILE)
def test_escaped_json_has_the_same_value(text: str) -> None:
    body = json.dumps({text: [text]}, ensure_ascii=False, indent=1)
    assert json.loads(escape_output(body)) == json.loads(body)
    assert obeyed(escape_output(body)) == []


@settings(max_examples=300, deadline=None)
@given(_HOSTILE.filter(lambda text: text.replace("\n", "").isprintable() and "&" not in text))
def test_escaped_markup_has_the_same_text(text: str) -> None:
    assert unescape(escape_markup(text)) == text
    assert obeyed(escape_markup(text)) == []


def test_every_control_and_bidirectional_character_is_one_of_them() -> None:
    sent = [
        char
        for char in map(chr, range(0x110000))
        if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}
        or unicodedata.bidirectional(char) in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    ]
    assert {char for char in sent if re.fullmatch(r"[^\\].*", escape_output(char), re.DOTALL)} == {"\n", "\t"}
