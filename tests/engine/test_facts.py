"""What Spark says of a table, with texts as Spark 4.2 gives them."""

from __future__ import annotations

import pytest

from tablectl.engine.describe import delta_location, described_facts, not_found, schema_name, shown_facts
from tablectl.model.errors import EngineError, LiveError

ORDERS = "sales.orders"
SHOWN = """Catalog: spark_catalog
Database: sales
Table: orders
Created By: Spark 4.2.0
Type: MANAGED
Provider: delta
{}Location: file:/lake/some where 100%
Serde Library: org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe
Partition Provider: Catalog
"""


def test_the_facts_of_a_listing() -> None:
    facts = shown_facts(SHOWN.format("Comment: it's mine\n"))
    assert facts == {"Type": "MANAGED", "Provider": "delta", "Location": "file:/lake/some where 100%"}
    assert delta_location(ORDERS, facts or {}) == "file:/lake/some where 100%"


def test_credentials_that_a_catalog_keeps_in_a_location_are_left_out() -> None:
    facts = {"Type": "EXTERNAL", "Provider": "delta", "Location": "s3a://KEY:SEC/RET@bkt/t"}
    assert delta_location(ORDERS, facts) == "s3a://bkt/t"


@pytest.mark.parametrize(
    "forged",
    [
        "Comment: x\nLocation: /evil\n",
        "Comment: x\nProvider: parquet\n",
        "Table Properties: [a=x\nType: VIEW\n]\n",
        "Comment: x\nLocation: file:/lake/some where 100%\n",
    ],
)
def test_a_line_that_may_be_anybodys_is_believed_by_no_one(forged: str) -> None:
    assert shown_facts(SHOWN.format(forged)) is None


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Type: VIEW\nView Text: SELECT 1\n", {"Type": "VIEW"}),
        ("Catalog: v2\nTable: t\nType: MANAGED\nSchema: root\n", {"Type": "MANAGED"}),
        ("Type: MANAGED\nProvider: parquet\n", {"Type": "MANAGED", "Provider": "parquet"}),
        ("Type: MANAGED\nProvider: Delta\n", None),
        ("Type: MANAGED\nProvider: delta\nLocation: \n", None),
        ("", None),
        ("Location: /x\nProvider: delta\n", None),
    ],
)
def test_a_listing_that_lacks_facts(text: str, facts: dict[str, str] | None) -> None:
    assert shown_facts(text) == facts


def test_columns_are_not_facts() -> None:
    rows = [
        ("Location", "string", None),
        ("Type", "bigint", None),
        ("# Detailed Table Information", "", ""),
        ("Provider", "delta", ""),
        ("Location", "file:/x", ""),
    ]
    facts = described_facts(rows)
    assert (facts["Location"], facts.get("Type")) == ("file:/x", None)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"Type": "VIEW"}, "sales.orders is a view"),
        ({"Type": "MATERIALIZED_VIEW", "Provider": "delta", "Location": "/x"}, "is a view"),
        ({"Type": "MANAGED", "Provider": "iceberg", "Location": "/x"}, "not a Delta table (its provider is iceberg)"),
        ({"Type": "MANAGED"}, "not a Delta table (its provider is unknown)"),
    ],
)
def test_what_is_not_a_delta_table(facts: dict[str, str], says: str) -> None:
    with pytest.raises(LiveError) as caught:
        delta_location(ORDERS, facts)
    assert says in caught.value.message


def test_schemas_are_quoted_where_they_need_to_be_and_nested_ones_are_passed_over() -> None:
    assert [schema_name(each) for each in ("sales", "`Odd One`", "`a.b`", "outer.inner")] == [
        "sales",
        "Odd One",
        "a.b",
        None,
    ]


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("SCHEMA_NOT_FOUND", "the schema lake.nix does not exist"),
        ("REQUIRES_SINGLE_PART_NAMESPACE", "the schema lake.nix does not exist: the engine has no such catalog"),
        ("_LEGACY_ERROR_TEMP_1126", "the schema lake.nix does not exist: the engine has no such catalog"),
        ("INSUFFICIENT_PERMISSIONS", None),
        ("", None),
    ],
)
def test_what_does_not_exist_is_distinguished_from_what_failed(condition: str, says: str | None) -> None:
    error = not_found("the schema lake.nix", EngineError("words", condition=condition))
    assert (error and error.message) == says
