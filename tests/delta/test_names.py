"""Names of tables and columns: parsed once, compared folded, rendered quoted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.locations import canonical_location
from tablectl.delta.names import (
    NameSyntaxError,
    TableName,
    column_sql,
    column_text,
    fold_column,
    join_parts,
    parse_column,
    parse_table,
    split_parts,
)

parts = st.lists(st.text(st.sampled_from("aZ_9.` \n;'é"), min_size=1, max_size=6), min_size=1, max_size=4).map(tuple)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lake.sales.orders", ("lake", "sales", "orders")),
        ("lake.`a.b`.c", ("lake", "a.b", "c")),
        ("`a``b`.c", ("a`b", "c")),
        ("2026_orders", ("2026_orders",)),
        ("`with space`", ("with space",)),
    ],
)
def test_parts_of_an_identifier(text: str, expected: tuple[str, ...]) -> None:
    assert split_parts(text) == expected


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a b", "a-b", "`a", "`a`b", "``", "a;b", "a'b", "é"])
def test_what_is_not_an_identifier(text: str) -> None:
    with pytest.raises(NameSyntaxError):
        split_parts(text)


@settings(max_examples=200, deadline=None)
@given(parts)
def test_parts_survive_being_joined(names: tuple[str, ...]) -> None:
    assert split_parts(join_parts(names)) == names


@settings(max_examples=200, deadline=None)
@given(parts)
def test_columns_survive_being_written(path: tuple[str, ...]) -> None:
    assert parse_column(column_text(path)) == path
    assert split_parts(column_sql(path)) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("id", ("id",)),
        ("address.city", ("address", "city")),
        ("`a.b`", ("a.b",)),
        ("`a.b`.c", ("a.b", "c")),
        ("order date", ("order date",)),
        ("it's; --", ("it's; --",)),
    ],
)
def test_columns_as_policies_write_them(text: str, path: tuple[str, ...]) -> None:
    assert parse_column(text) == path


@pytest.mark.parametrize("text", ["", "a.", ".a", "a..b", "`a.b", "`a`b"])
def test_what_is_not_a_column(text: str) -> None:
    with pytest.raises(NameSyntaxError):
        parse_column(text)


def test_columns_fold_their_case() -> None:
    assert fold_column(("Address", "CITY")) == fold_column(("address", "city"))


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("lake.sales.orders", "`lake`.`sales`.`orders`"),
        ("sales.orders", "`spark_catalog`.`sales`.`orders`"),
        ("delta.`/data/orders`", "`delta`.`/data/orders`"),
        ("DELTA.`s3://bucket/a b`", "`delta`.`s3://bucket/a b`"),
        ("spark_catalog.delta.orders", "`spark_catalog`.`delta`.`orders`"),
        ("lake.`we``ird; --`.t", "`lake`.`we``ird; --`.`t`"),
    ],
)
def test_tables_in_statements(text: str, sql: str) -> None:
    assert parse_table(text).sql == sql


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("orders", "1 part:"),
        ("a.b.c.d", "4 parts:"),
        ("delta.`data/orders`", "relative"),
        ("delta.orders", "relative"),
        ("delta.`/data/../orders`", "step"),
        ("delta.`/data/./orders`", "step"),
        ("delta.`/data/or\nders`", "control character"),
        ("/data/orders", "write a location as delta.`/data/orders`"),
        ("s3://bucket/orders", "write a location as delta.`s3://bucket/orders`"),
        ("lake.sales.or-ders", "backticks"),
    ],
)
def test_what_is_not_a_table(text: str, why: str) -> None:
    with pytest.raises(NameSyntaxError, match=why):
        parse_table(text)


@pytest.mark.parametrize(
    "name",
    [
        TableName("spark_catalog", ("sales", "orders")),
        TableName("spark_catalog", ("delta", "orders")),
        TableName("spark_catalog", ("Delta", "/data/orders")),
        TableName("lake", ("sales", "or`d.ers")),
        TableName("", ("/data/a`b c",)),
        TableName("", ("s3://bucket/orders",)),
    ],
    ids=lambda name: name.text,
)
def test_the_text_of_a_table_reads_back(name: TableName) -> None:
    assert parse_table(name.text) == name


def test_two_parts_lie_in_the_catalog_given() -> None:
    assert parse_table("sales.orders", "lake").text == "lake.sales.orders"


def test_catalogs_fold_the_case_of_names_and_storage_does_not() -> None:
    assert parse_table("Lake.Sales.ORDERS").key == parse_table("lake.sales.orders").key
    assert parse_table("delta.`/Data`").key != parse_table("delta.`/data`").key
    assert parse_table("delta.`s3a://b/t/`").key == parse_table("delta.`s3://b//t`").key


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("/data//orders/", "/data/orders"),
        ("file:/data/orders", "/data/orders"),
        ("file:///data/orders/", "/data/orders"),
        ("/", "/"),
        ("file:///", "/"),
        ("s3n://Bucket/a#b?c/", "s3://Bucket/a#b?c"),
        ("S3A://bucket", "s3://bucket"),
        ("abfss://box@account.dfs.core.windows.net//t", "abfss://box@account.dfs.core.windows.net/t"),
        ("dbfs:/t/", "dbfs:///t"),
    ],
)
def test_one_form_for_each_place(location: str, place: str) -> None:
    assert canonical_location(location) == place
    assert canonical_location(place) == place
