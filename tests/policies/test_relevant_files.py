"""Files are left out only if nothing in them can concern a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.delta.names import TableName, parse_table
from tablectl.model.errors import InputError
from tablectl.policies.declared_tables import TableSpec
from tablectl.policies.effective_policy import spec_for
from tablectl.policies.policy_document import read_specs
from tablectl.policies.repository import relevant_files
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables

ORDERS = parse_table("lake.sales.orders", "spark_catalog")
PLAIN = b"version: 1\ndefaults:\n  isolation: Serializable\ntables:\n  %s:\n    tags: [daily]\n"


def kept(data: bytes, table: TableName = ORDERS) -> bool:
    return bool(relevant_files({"a.yaml": data}, [table]))


@pytest.mark.parametrize(
    "key", ["lake.sales.customers", "sales.items", "delta.`/lake/other`", "${CATALOG}.sales.customers"]
)
def test_a_file_about_other_tables_is_left_out(key: str) -> None:
    assert not kept(PLAIN % key.encode())


@pytest.mark.parametrize(
    "key",
    [
        "lake.sales.orders",
        "sales.orders",
        "LAKE.Sales.ORDERS",
        "lake.`sales`.`orders`",
        '"lake.sales.orders"',
        '"lake.sales.\\x6frders"',
        "${CATALOG}.sales.orders",
        "lake.sales.${TABLE}",
        "lake.sales.${PREFIX}ders",
        "lake.sales.or${REST}",
        "lake.sales.*",
        "lake.sales.order?",
        "lake.sales.[o]rders",
        '"[l]ake.sales.o[r]ders"',
        "delta.`/lake/sales/orders`",
        "delta.`/lake/*`",
    ],
)
def test_a_file_that_can_name_the_table_is_kept(key: str) -> None:
    assert kept(PLAIN % key.encode())


def test_a_file_that_names_the_location_is_kept() -> None:
    data = PLAIN % b"lake.sales.customers" + b"    location: s3a://lake/sales/orders/\n"
    assert kept(data, parse_table("delta.`s3://lake/sales/orders`", "spark_catalog"))


@pytest.mark.parametrize("location", ["${PLACE}", "${PLACE}/", "'${PLACE}//'", "/lake/${NAME}/"])
def test_a_file_whose_location_ends_in_a_variable_is_kept(location: str) -> None:
    assert kept(PLAIN % b"lake.sales.customers" + f"    location: {location}\n".encode())


@pytest.mark.parametrize(
    "data",
    [
        b"version: 1\nprofiles:\n  gold: {isolation: Serializable}\n",
        b"{version: 1, tables: {}}",
        b"version: 1\n'tables': {}\n",
        b"  version: 1\n  profiles:\n    gold: {isolation: Serializable}\n",
        b"\n# gold\n  version: 1\n  profiles:\n    gold: {isolation: Serializable}\n",
        b"---\n  version: 1\n  profiles:\n    gold: {isolation: Serializable}\n",
        b"--- {version: 1, profiles: {gold: {isolation: Serializable}}}\n",
        b"# team\rversion: 1\rprofiles:\r  gold: {isolation: Serializable}\r",
        "# team\u2028version: 1\nprofiles:\n  gold: {isolation: Serializable}\n".encode(),
        "version: 1\ntables:\n  lake.sales.order\N{LATIN SMALL LETTER LONG S}: {}\n".encode(),
    ],
)
def test_a_file_that_is_not_understood_by_its_text_is_kept(data: bytes) -> None:
    assert kept(data)


@pytest.mark.parametrize("start", [b"---\n", b"\n\n", b"---\r\n", b"# a comment\n--- \n# another\n"])
def test_the_start_of_a_document_does_not_keep_a_file(start: bytes) -> None:
    assert not kept(start + PLAIN % b"lake.sales.customers")


def test_a_comment_does_not_keep_a_file() -> None:
    assert not kept(b"# Why? See orders*\n" + PLAIN % b"lake.sales.customers")


def test_a_name_too_short_to_search_keeps_all_files() -> None:
    assert kept(PLAIN % b"lake.sales.customers", parse_table("lake.sales.a1", "spark_catalog"))


KEYS = st.sampled_from(
    [
        "lake.sales.orders",
        "Sales.Orders",
        "lake.`sales`.`or ders`",
        "lake.sales.*",
        "lake.sa*.orders",
        "lake.sales.orders_old",
        "${CATALOG}.sales.orders",
        "lake.sales.${NAME}",
        "lake.sales.${HALF}ders",
        "delta.`/lake/orders`",
        "delta.`/lake/${NAME}`",
        "delta.`/lake/o*`",
        "delta.`/other/customers`",
        "lake.sales.customers",
    ]
)
LOCATIONS = st.sampled_from(
    ["", "/lake/orders", "/lake//orders/", "file:/lake/${NAME}", "/lake/${NAME}/", "${PLACE}/", "/else/where"]
)


def policy_file(key: str, location: str, isolation: str) -> bytes:
    located = f"    location: {location}\n" if location and "*" not in key and "delta." not in key else ""
    return f"version: 1\ntables:\n  {key}:\n    isolation: {isolation}\n{located}".encode()


def found(files: dict[str, bytes], table: TableName) -> TableSpec | str | None:
    values = {"CATALOG": "lake", "NAME": "orders", "HALF": "or", "PLACE": "/lake/orders"}
    try:
        reading = ValueReader(Variables(values, {}), "oss", "lake", [])
        return spec_for(read_specs(files.items(), reading), table)
    except InputError as error:
        return str(error)


@given(
    st.dictionaries(
        st.sampled_from(["a.yaml", "b.yaml", "c.yaml"]),
        st.builds(policy_file, KEYS, LOCATIONS, st.sampled_from(["Serializable", "SnapshotIsolation"])),
        min_size=1,
    ),
    st.sampled_from(["lake.sales.orders", "lake.sales.`or ders`", "delta.`/lake/orders`", "delta.`/other/customers`"]),
)
def test_the_other_files_change_nothing_for_the_table(files: dict[str, bytes], name: str) -> None:
    table = parse_table(name, "lake")
    everything = found(files, table)
    if not isinstance(everything, str):  # an error in a file that is left out is not found
        assert found(relevant_files(files, [table]), table) == everything
