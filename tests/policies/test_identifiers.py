"""Names of tables, locations and columns as policies write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.names import NameSyntaxError, parse_column, parse_table, quote_name
from tablectl.policies.variables import Variables, read_column, read_location, read_table, why_unusable

NONE = Variables()
TEXTS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])).filter(lambda text: "${" not in text)
"""Texts without a variable. Hypothesis draws constants of the product, too, and ``${A}`` is one."""


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("sales.orders", "`lake`.`sales`.`orders`"),
        ("other.sales.orders", "`other`.`sales`.`orders`"),
        ("`a.b`.`c``d; e`", "`lake`.`a.b`.`c``d; e`"),
        ("delta.`/data/my ``table`` [1]*`", "delta.`/data/my ``table`` [1]*`".replace("delta", "`delta`")),
        ("DELTA.`s3://lake/öl/`", "`delta`.`s3://lake/öl`"),
    ],
)
def test_tables(text: str, sql: str) -> None:
    assert read_table(text, NONE, "lake").sql == sql


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("orders", "has 1 part"),
        ("a.b.c.d", "has 4 parts"),
        ("delta.`events`", "is relative"),
        ("delta.`/a/../b`", "step"),
        ("delta.`/a\nb`", "control character"),
        ("delta./data/x", "unexpected '/'"),
        ("a.b;c", "unexpected ';'"),
        ("a..b", "unexpected '.'"),
        ("a.`b", "never closed"),
        ("$${A}.b", "unexpected '\\$'"),
        ("a.`b\0`", "NUL"),
        ("", "empty part"),
    ],
)
def test_what_is_not_a_table(text: str, words: str) -> None:
    with pytest.raises(NameSyntaxError, match=words):
        read_table(text, NONE, "lake")


@settings(deadline=None)
@given(catalog=TEXTS.filter(bool), schema=TEXTS.filter(bool), table=TEXTS.filter(bool))
def test_a_name_is_read_back_from_its_own_text(catalog: str, schema: str, table: str) -> None:
    if any(map(why_unusable, (catalog, schema, table))):
        return
    name = read_table(".".join(map(quote_name, (catalog, schema, table))), NONE, "spark_catalog")
    assert (name.catalog, name.parts) == (catalog, (schema, table))
    assert parse_table(name.text) == name
    assert parse_table(name.text).key == name.key


def test_a_schema_called_delta_is_not_a_path() -> None:
    name = read_table("spark_catalog.delta.orders", NONE, "spark_catalog")
    assert parse_table(name.text) == name


@settings(deadline=None)
@given(path=TEXTS)
def test_a_path_is_read_back_from_its_own_text(path: str) -> None:
    try:
        name = read_table("delta." + quote_name("/" + path), NONE, "spark_catalog")
    except NameSyntaxError:
        return
    assert parse_table(name.text) == name


@settings(deadline=None)
@given(location=TEXTS)
def test_any_location_is_read_or_refused(location: str) -> None:
    for text in (location, f"s3://{location}", f"abfss://{location}/x"):
        try:
            name = parse_table("delta." + quote_name(read_location(text, NONE)))
        except NameSyntaxError:
            continue
        assert name.key


def test_locations_take_variables_and_lose_their_last_slash() -> None:
    assert read_location("${ROOT}/sales/", Variables({"ROOT": "s3://lake"})) == "s3://lake/sales"
    with pytest.raises(NameSyntaxError, match="relative"):
        read_location("sales/orders", NONE)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("id", "id"),
        ("address.city", "address.city"),
        ("`a.b`", "`a.b`"),
        ("`id`", "id"),
        ("order date", "order date"),
        ("${COL}", "`x.y`"),
        ("s.${COL}", "`s`.`x.y`"),
        ("`${COL}`.z", "`x.y`.`z`"),
    ],
)
def test_columns_in_their_shortest_spelling(text: str, column: str) -> None:
    assert read_column(text, Variables({"COL": "x.y"})) == column
    assert parse_column(column) == parse_column(read_column(column, NONE))
