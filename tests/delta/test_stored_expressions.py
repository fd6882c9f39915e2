"""What Delta's ADD CONSTRAINT makes of an expression, and the spelling that it stores with the same meaning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.delta.expressions import equal, sent_text, why_not_stored
from tablectl.delta.sql_tokens import sql_tokens, stored_by_delta


@pytest.mark.parametrize(
    ("declared", "sent", "stored"),
    [
        ("s != 'O''Brien'", r"s != 'O\'Brien'", r"s != 'O\'Brien'"),
        ('s<>"say ""hi"""', r's<>"say \"hi\""', r's <> "say \"hi\""'),
        ("s RLIKE r'^[a-z]+\\d$'", "s RLIKE '^[a-z]+\\\\d$'", "s RLIKE '^[a-z]+\\\\d$'"),
        ("s <> ''''", r"s <> '\''", r"s <> '\''"),
        (r"s <> 'a\''''", r"s <> 'a\'\''", r"s <> 'a\'\''"),
        (r"s <> 'a\\'''", r"s <> 'a\\\''", r"s <> 'a\\\''"),
        ("s <> '' AND t = 'x'", "s <> '' AND t = 'x'", "s <> '' AND t = 'x'"),
        ("s = 'a' 'b'", "s = 'a' 'b'", "s = 'a' 'b'"),
        ("a.b[0]>=1.5e3", "a.b[0]>=1.5e3", "a . b [ 0 ] >= 1.5e3"),
        ("x<=>1 OR NOT y||'z'='w'", "x<=>1 OR NOT y||'z'='w'", "x <=> 1 OR NOT y || 'z' = 'w'"),
        ("CAST(a AS ARRAY<ARRAY<INT>>) IS NULL",) * 2 + ("CAST ( a AS ARRAY < ARRAY < INT > > ) IS NULL",),
    ],
)
def test_the_text_that_is_sent_is_stored_with_the_declared_meaning(declared: str, sent: str, stored: str) -> None:
    assert sent_text(declared) == sent
    assert stored_by_delta(sent) == stored
    assert why_not_stored(declared) == ("", "")
    assert equal(declared, stored)


@pytest.mark.parametrize(
    ("declared", "mark", "instead"),
    [
        ("forall(arr, e -> e > 0)", "->", "without a lambda"),
        ("amount::int > 0", "::", "CAST"),
        ("substring(str => s, pos => 1) = 'a'", "=>", "by their place"),
        ("a << 2 > 0", "<<", "shiftleft"),
        ("a >> 2 > 0", ">>", "shiftright"),
        ("a >>> 2 > 0", ">>>", "shiftrightunsigned"),
        ("CAST(m AS MAP<INT, ARRAY<INT>>) IS NULL AND a >> 1 > 0", ">>", "shiftright"),
        ("x > 1.5F", "1.5F", "AS FLOAT"),
        ("x > 1e-3f", "1e-3f", "AS FLOAT"),
    ],
)
def test_a_text_that_delta_cuts_in_pieces_is_refused_with_what_to_write(declared: str, mark: str, instead: str) -> None:
    reason, hint = why_not_stored(declared)
    assert f"has {mark}, which Delta's ALTER TABLE cuts in pieces" in reason
    assert instead in hint


def test_texts_in_quotes_are_compared_by_what_they_mean() -> None:
    assert equal("s = 'O''Brien'", r"""s = "O'Brien" """)
    assert equal(r"s = 'A'", r"s = '\u0041'")
    assert equal(r"s = 'A'", r"s = '\101'")
    assert not equal("s = 'u0041'", r"s = '\u0041'")
    assert not equal("s = 'O''Brien'", "s = 'O' 'Brien'")
    assert not equal("s = 'x'", "s = x")
    assert not equal("s = '`x`'", "s = `x`")


def test_a_long_expression_equals_what_delta_stores_of_it() -> None:
    declared = "+".join(["a"] * 1_900) + ">0"
    assert len(stored_by_delta(declared)) > 4_000
    assert equal(declared, stored_by_delta(declared))


_TEXTS = ("'O''Brien'", '"a""b"', r"'\''", r"r'a\d'", 'R"x"', "''", "a", "`b c`", " ", "\n")
_NUMBERS = ("1", "1.5", "2.", ".5", "1e-3", "1e3F", "2L", "1.5BD", "1.5D", "1.5F", "x1", "1x")
_LONG = ("<=>", "<=", "<>", "!=", "||", "->", "::", "=>", "<<", ">>", "INTERVAL", "ARRAY", "--")
_PIECES = st.sampled_from((*_TEXTS, *_NUMBERS, *_LONG, *"!.-+<>=()[],:*/%&|"))


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_what_is_not_refused_has_the_same_tokens_when_it_is_stored(text: str) -> None:
    try:
        declared = [*sql_tokens(text)]
    except ValueError:
        return
    if "--" in text or "/*" in text or "*/" in text or any(why_not_stored(text) if declared else ()):
        return
    kept = [*sql_tokens(stored_by_delta(sent_text(text)))]
    assert [(each.kind, each.value) for each in kept] == [(each.kind, each.value) for each in declared]
