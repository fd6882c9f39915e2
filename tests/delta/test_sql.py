"""Quoting: what goes in comes out of Spark's parser unchanged, and nothing in it is ever read as SQL."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tablectl.delta.names import ColumnPath, TableName, column_text, quote_name, quote_text
from tablectl.model.operations import ClusterBy, SetProperties, UnsetProperties

_NAMED_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}

texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("'\\`\"\n\0\x1b012uU${};-/* "), max_size=30)
names = texts.filter(bool)


@dataclass(frozen=True)
class Token:
    """A piece of SQL: ``kind`` is text, name, or the character itself."""

    kind: str
    value: str


def tokens(sql: str) -> list[Token]:
    """SQL cut up by Spark's rules (``SqlBaseLexer.g4``; ``unescapeSQLString`` with escapedStringLiterals off)."""
    found, index = [], 0
    while index < len(sql):
        char = sql[index]
        if char == "'":
            value, index = _literal(sql, index + 1)
            found.append(Token("text", value))
        elif char == "`":
            value, index = _backticked(sql, index + 1)
            found.append(Token("name", value))
        else:
            found += [] if char.isspace() else [Token(char, char)]
            index += 1
    return found


def _literal(sql: str, index: int) -> tuple[str, int]:
    value = ""
    while sql[index] != "'" or sql[index + 1 : index + 2] == "'":
        if sql[index] == "\\":
            char, index = _escape(sql, index + 1)
            value += char
        else:
            # A doubled quote stands for one.
            value += sql[index]
            index += 2 if sql[index] == "'" else 1
    return value, index + 1


def _escape(sql: str, index: int) -> tuple[str, int]:
    hexed = {"u": 4, "U": 8}.get(sql[index], 0)
    digits = sql[index + 1 : index + 1 + hexed]
    if hexed and len(digits) == hexed and set(digits) <= set("0123456789abcdefABCDEF"):
        return chr(int(digits, 16)), index + 1 + hexed
    octal = sql[index : index + 3]
    if len(octal) == 3 and octal[0] in "01" and set(octal) <= set("01234567"):
        return chr(int(octal, 8)), index + 3
    return _NAMED_ESCAPES.get(sql[index], sql[index]), index + 1


def _backticked(sql: str, index: int) -> tuple[str, int]:
    value = ""
    while sql[index] != "`" or sql[index + 1 : index + 2] == "`":
        value += sql[index]
        index += 2 if sql[index] == "`" else 1
    return value, index + 1


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("payments", "'payments'"),
        ("it's", r"'it\'s'"),
        ("C:\\new", r"'C:\\new'"),
        ("two\nlines", r"'two\nlines'"),
        ("${env:HOME}", "'${env:HOME}'"),
        ("`; DROP TABLE t; --", "'`; DROP TABLE t; --'"),
        ("\x1b[31m", r"'\u001b[31m'"),
        ("\u202eright to left", r"'\u202eright to left'"),
        ("Zürich 東京 🚲", "'Zürich 東京 🚲'"),
    ],
)
def test_text_as_statements_carry_it(text: str, sql: str) -> None:
    assert quote_text(text) == sql


def test_nul_before_digits_is_not_read_as_an_octal_number() -> None:
    assert tokens(quote_text("\x0012")) == [Token("text", "\x0012")]


@settings(max_examples=300, deadline=None)
@given(texts)
@example("\\'")
@example("\\u0041")
@example("'' OR ''")
@example("%_\\%\\_")
def test_text_comes_out_as_it_went_in_and_stands_on_one_line(text: str) -> None:
    sql = quote_text(text)
    assert tokens(f"({sql}, 'next')") == [
        Token("(", "("),
        Token("text", text),
        Token(",", ","),
        Token("text", "next"),
        Token(")", ")"),
    ]
    assert len(sql.splitlines()) == 1


@settings(max_examples=200, deadline=None)
@given(names)
@example("a`b")
@example("`")
def test_names_come_out_as_they_went_in(name: str) -> None:
    assert tokens(quote_name(name) + ";") == [Token("name", name), Token(";", ";")]


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(names, texts, min_size=1, max_size=3), names, st.lists(names, min_size=1, max_size=2))
def test_no_statement_can_be_broken_out_of(values: dict[str, str], table: str, column: list[str]) -> None:
    where = TableName("lake", ("sales", table))
    path: ColumnPath = tuple(column)
    pairs = [text for pair in values.items() for text in pair]
    for operation, inside in (
        (SetProperties(tuple(values.items())), pairs),
        (UnsetProperties(tuple(values)), list(values)),
        (ClusterBy((column_text(path),)), []),
    ):
        cut = tokens(operation.sql(where))
        assert [token.value for token in cut if token.kind == "text"] == inside
        named = [token.value for token in cut if token.kind == "name"]
        assert named == ["lake", "sales", table, *(path if isinstance(operation, ClusterBy) else ())]
        assert not [token for token in cut if token.kind in {";", "-", "/"}]
