"""Which texts a policy may give as the expression of a CHECK constraint, and which of them are equal."""

from __future__ import annotations

import pytest

from tablectl.delta.expressions import columns_in, equal, foreign_functions, why_no_condition, why_refused


@pytest.mark.parametrize(
    "text",
    [
        "amount > 0",
        "`a b` <> 'x)' AND day >= DATE '2020-01-01'",
        "address.city IN ('Bern', \"Basel\") OR tags[0] IS NULL",
        "length(name) BETWEEN 1 AND 100",
        "extract(year FROM day) > 2000",
        "a <=> b",
        "v:field = 1",
        "CASE WHEN a THEN b ELSE c END",
        "price * 1.5e3 < 10L",
        "random_code = 'x'",
        "exists(tags, x -> x > 1)",
        "count > 0 AND first = 1",
        "a LIKE ANY ('x%', 'y')",
        "a::int > 1L AND NOT b RLIKE '^x' AND c IS DISTINCT FROM d",
        "timestampdiff(MONTH, a, b) < 3",
        "day > DATE '2020-01-01' + INTERVAL 1 DAY",
        "is_open",
        "`größe` > 0",
        "forall(lines, line -> line.price > 0 AND line.price < limit)",
    ],
)
def test_an_expression_over_one_row_is_taken(text: str) -> None:
    assert (why_refused(text), why_no_condition(text)) == ("", "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "needs an expression"),
        ("   ", "needs an expression"),
        ("a > 0) OR (1 = 1", "closes nothing"),
        ("a > 0); DROP TABLE t --", "has a comment"),
        ("a > 0; DROP TABLE t", "which ends a statement"),
        ("(a > 0", "is not closed"),
        ("a[0) > 1", "closes nothing"),
        ("a /* x */ > 0", "has a comment"),
        ("a = '--'", "has a comment, or text that reads as one"),
        ("a = 'x", "is not part of SQL"),
        ("a = 'x\\'", "is not part of SQL"),
        ("a = '${env:HOME}'", "Spark replaces"),
        ("a\x00 > 0", "control characters"),
        ("id IN (SELECT id FROM other)", "takes no query"),
        ("EXISTS (VALUES (1))", "takes no query"),
        ("sum(amount) > 0", "calls sum, whose result is about several rows"),
        ("`count`(*) > 0", "calls `count`, whose result is about several rows"),
        ("hll_sketch_agg(a) > 0", "about several rows"),
        ("some(a)", "about several rows"),
        ("row_number () OVER () > 1", "about several rows"),
        ("explode(tags) > 0", "returns several rows"),
        ("reflect('java.lang.System', 'exit', 1) = 1", "runs code"),
        ("`reflect`('java.lang.System', 'exit', 1) = 1", "runs code"),
        ("größe > 0", "takes in backticks only"),
        ("rand() > 0.5", "changes from one reading"),
        ("day <= current_date", "changes from one reading"),
        ("day <= current_date()", "changes from one reading"),
        ("a" * 5_000, "more than 4,000 characters"),
        ("(" * 21 + "a" + ")" * 21, "more than 20 deep"),
    ],
)
def test_what_could_leave_the_clause_or_the_row_is_refused(text: str, why: str) -> None:
    assert why in why_refused(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("amount >", "is not an expression: it cannot be read at its end"),
        ("amount > 0 AND", "at its end"),
        ("a = 1 2", "at '2'"),
        ("a BETWEEN 1 AND", "at its end"),
        ("a > 0 ORDER BY a", "at 'ORDER BY'"),
        ("a > 0, b > 0", "is not one condition"),
        ("a > 0 AS b", "is not one condition"),
        (":price > 0", "has a parameter"),
        ("1", "is a value, and not a condition"),
        ("(a + 1)", "is a value, and not a condition"),
        ("NOT " * 900 + "a", "is nested too deeply"),
        ("struct(" * 15 + "a" + ")" * 15, "too deeply"),
        ("CAST(a AS " + "array<" * 15 + "int" + ">" * 15 + ")", "too deeply"),
    ],
)
def test_what_is_not_a_condition_is_refused(text: str, why: str) -> None:
    assert why_refused(text) == ""
    assert why in why_no_condition(text)


def test_the_columns_of_an_expression() -> None:
    assert columns_in("a > 0 AND `b c`.d IN (1, a) AND forall(e, x -> x.f > g)") == (
        ("a",),
        ("b c", "d"),
        ("e",),
        ("g",),
    )
    assert set(columns_in("extract(year FROM day) > timestampdiff(MONTH, a, b)")) == {("day",), ("a",), ("b",)}
    assert columns_in("amount >") == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("amount>0", "amount  >  0"),
        ("Amount > 0 AND b", "amount > 0 and B"),
        ("(amount > 0)", "amount > 0"),
        ("a == 1", "a = 1"),
        ("a != 1", "a <> 1"),
    ],
)
def test_spellings_of_one_expression_are_equal(one: str, other: str) -> None:
    assert equal(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a > 0", "a >= 0"),
        ("name = 'A'", "name = 'a'"),
        ("`A` > 0 OR b", "`a` > 0 OR b"),
        ("(a) OR (b)", "a OR b"),
        ("a > 0 --", "a > 0  --"),
    ],
)
def test_other_expressions_are_not(one: str, other: str) -> None:
    assert not equal(one, other)


def test_a_long_hostile_text_is_refused_in_linear_time() -> None:
    assert why_refused("'" + "\\a" * 1_900) != ""
    assert why_refused("`" + "``" * 1_900) != ""


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("secret('a', 'b') = key", ("secret",)),
        ("http_request(conn => 'c') IS NULL", ("http_request",)),
        ("ai_query('m', s) = 'ok' AND ai_query('m', t) = 'ok'", ("ai_query",)),
        ("lake.s.checked(amount)", ("checked",)),
        ("my_function(amount)", ("my_function",)),
        ("`read_files`('/x') IS NULL", ("`read_files`",)),
        ("owner = session_user", ("session_user",)),
        ("owner = SESSION_USER() OR c = current_catalog()", ("SESSION_USER", "current_catalog")),
        ("remote_query('c') = 1 OR version() = '4'", ("remote_query", "version")),
        ("IDENTIFIER('abs')(a) > 1", ("IDENTIFIER",)),
        ("try_reflect('java.lang.System', 'exit') = 1", ("try_reflect",)),
    ],
)
def test_functions_other_than_the_built_in_ones_are_named(text: str, called: tuple[str, ...]) -> None:
    assert foreign_functions(text) == called


@pytest.mark.parametrize(
    "text",
    [
        "length(s) IN (1, 2) AND (a) > 0 OR NOT (b) AND s LIKE ANY ('a', 'b') AND a BETWEEN (1) AND (2)",
        "CAST(a AS DECIMAL(10, 2)) > 0 AND try_cast(s AS VARCHAR(3)) IS NOT NULL",
        "CASE WHEN (a) THEN (b) ELSE (c) END",
        "extract(year FROM day) > 2000 AND trim(BOTH 'x' FROM s) <> '' AND substring(s, 1, 2) = 'ab'",
        "exists(tags, x -> x > 1) AND s RLIKE ('x') AND a IS DISTINCT FROM (b) AND a DIV (2) = 1",
        "timestampdiff(MONTH, a, b) < 3 AND day > DATE '2020-01-01' + INTERVAL (1) DAY",
        "`session_user` = 'x' AND t.localtimestamp IS NULL",
        "named_struct('a', 1).a = 1 AND element_at(m, 'k') = 'v' AND to_date(s, 'yyyy') IS NOT NULL",
    ],
)
def test_built_in_functions_and_words_of_the_grammar_need_no_consent(text: str) -> None:
    assert foreign_functions(text) == ()
