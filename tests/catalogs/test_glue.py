"""AWS Glue as it answers (moto, in one process with S3), and as it must not answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablectl.catalogs.glue import GlueCatalog
from tablectl.catalogs.open_catalogs import open_catalogs
from tablectl.catalogs.registry import CatalogTable
from tablectl.delta.names import parse_table
from tablectl.model.errors import LiveError, TablectlError, UsageError
from tablectl.policies.catalog_config import CatalogConfig
from tests.s3 import REGION, S3Server

pytest.importorskip("pyparsing", reason="moto needs it for Glue")

SPARK = {"spark.sql.sources.provider": "delta"}
ORDERS = parse_table("lake.sales.orders")


def no_spark() -> Any:
    pytest.fail("Spark was started")


@pytest.fixture
def glue(s3: S3Server) -> Any:
    """boto3's client of a catalog with the database ``sales`` alone."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.glue.models import glue_backends

    glue_backends[DEFAULT_ACCOUNT_ID][REGION].reset()
    client = s3.boto3("glue")
    client.create_database(DatabaseInput={"Name": "sales"})
    return client


def add(glue: Any, name: str, location: str = "", parameters: Any = SPARK, **more: Any) -> None:
    table = {"Name": name, "Parameters": parameters, "StorageDescriptor": {"Location": location}, **more}
    glue.create_table(DatabaseName="sales", TableInput=table)


def reader() -> GlueCatalog:
    found = open_catalogs({"lake": CatalogConfig(type="glue", region=REGION)}, no_spark, {}).reader("lake")
    assert isinstance(found, GlueCatalog)
    return found


def locations(listed: Any) -> dict[str, str]:
    return {name.text: each.location for name, each in listed.items() if isinstance(each, CatalogTable)}


def failed(call: Callable[[], object]) -> TablectlError:
    with pytest.raises(TablectlError) as caught:
        call()
    return caught.value


def test_tables_of_spark_athena_and_crawlers_are_found(glue: Any) -> None:
    add(glue, "orders", "s3://lake/orders")
    add(glue, "events", "s3://lake/events", {"table_type": "DELTA", "EXTERNAL": "TRUE"})
    add(glue, "clicks", "s3://lake/clicks", {"classification": "delta"})
    assert locations(reader().tables("lake", "sales")) == {
        "lake.sales.orders": "s3://lake/orders",
        "lake.sales.events": "s3://lake/events",
        "lake.sales.clicks": "s3://lake/clicks",
    }
    assert reader().schemas("lake") == ("sales",)


def test_the_path_of_spark_wins_over_the_placeholder_of_hive(glue: Any) -> None:
    storage = {"Location": "s3://w/orders-__PLACEHOLDER__", "SerdeInfo": {"Parameters": {"path": "s3a://lake/orders"}}}
    add(glue, "orders", StorageDescriptor=storage)
    add(glue, "lost", "s3://w/lost-__PLACEHOLDER__")
    assert reader().load(ORDERS).location == "s3a://lake/orders"
    assert "has no location" in failed(lambda: reader().load(parse_table("lake.sales.lost"))).message


def test_views_links_manifests_and_other_formats_are_errors_that_name_them(glue: Any) -> None:
    add(glue, "seen", TableType="VIRTUAL_VIEW")
    add(glue, "csv", "s3://lake/csv", {"classification": "csv"})
    add(glue, "ice", "s3://lake/ice", {"table_type": "ICEBERG"})
    add(glue, "bare", "s3://lake/bare", {})
    add(glue, "manifest", "s3://lake/m/_symlink_format_manifest/", {"classification": "delta"})
    add(glue, "link", TargetTable={"CatalogId": "210987654321", "DatabaseName": "shared", "Name": "orders"})
    add(glue, "orders", "s3://user:pass@lake/orders")
    listed = reader().tables("lake", "sales")
    assert locations(listed) == {"lake.sales.orders": "s3://lake/orders"}
    assert {name.parts[1]: each.message for name, each in listed.items() if isinstance(each, LiveError)} == {
        "seen": "lake.sales.seen is a view",
        "csv": "lake.sales.csv is not a Delta table (its format is csv)",
        "ice": "lake.sales.ice is not a Delta table (its format is iceberg)",
        "bare": "lake.sales.bare is not a Delta table (its format is unknown)",
        "manifest": "lake.sales.manifest lists the manifest of a Delta table, not the table",
        "link": "lake.sales.link is a link to the table shared.orders of the account 210987654321",
    }


def test_names_are_filtered_here_and_asked_in_lower_case(glue: Any) -> None:
    for name in ("orders", "orders_old", "returns"):
        add(glue, name, f"s3://lake/{name}")
    assert list(locations(reader().tables("lake", "Sales", "ORDERS*"))) == [
        "lake.Sales.orders",
        "lake.Sales.orders_old",
    ]
    assert reader().load(parse_table("lake.Sales.Orders")).location == "s3://lake/orders"
    few = reader().tables("lake", "sales", "orders|gone")
    assert list(locations(few)) == ["lake.sales.orders"]
    assert "does not exist" in str(few[parse_table("lake.sales.gone")])


def test_what_does_not_exist_says_where_to_look(glue: Any) -> None:
    assert failed(lambda: reader().tables("lake", "web")).message == "the schema lake.web does not exist"
    error = failed(lambda: reader().load(ORDERS))
    assert (error.message, error.hint) == (
        "lake.sales.orders does not exist",
        "check the name and `catalogs` in tablectl.yaml",
    )


class Pages:
    """Answers with these pages, whatever is asked."""

    def __init__(self, *pages: Any) -> None:
        self.pages = list(pages)
        self.asked: list[dict[str, Any]] = []

    def get_tables(self, **request: Any) -> Any:
        self.asked.append(request)
        page = self.pages.pop(0) if len(self.pages) > 1 else self.pages[0]
        if isinstance(page, Exception):
            raise page
        return page

    get_databases = get_table = get_tables


def page(*names: str, token: str = "") -> dict[str, Any]:
    storage = [
        {"Name": name, "Parameters": SPARK, "StorageDescriptor": {"Location": f"s3://lake/{name}"}} for name in names
    ]
    return {"TableList": storage, **({"NextToken": token} if token else {})}


def test_all_pages_are_read_and_empty_ones_in_between() -> None:
    client = Pages(page("a", "b", token="1"), page(token="2"), page("c"))
    found = GlueCatalog(client, "123456789012").tables("lake", "sales")
    assert list(locations(found)) == ["lake.sales.a", "lake.sales.b", "lake.sales.c"]
    assert client.asked == [
        {"DatabaseName": "sales", "CatalogId": "123456789012"},
        {"DatabaseName": "sales", "NextToken": "1", "CatalogId": "123456789012"},
        {"DatabaseName": "sales", "NextToken": "2", "CatalogId": "123456789012"},
    ]


def test_pages_that_never_end_are_an_error() -> None:
    catalog = GlueCatalog(Pages(page(token="again")))
    assert "do not end" in failed(lambda: catalog.tables("lake", "sales")).message
    numbered, tokens = Pages({}), iter(range(10**6))
    numbered.get_tables = lambda **_request: page(token=str(next(tokens)))  # type: ignore[method-assign]
    assert "too long" in failed(lambda: GlueCatalog(numbered).tables("lake", "sales")).message


@pytest.mark.parametrize("answer", [{"TableList": "x"}, {"TableList": [1]}, {"TableList": [{"Name": 7}]}])
def test_an_answer_of_another_form_is_an_error(answer: Any) -> None:
    assert isinstance(failed(lambda: GlueCatalog(Pages(answer)).tables("lake", "sales")), LiveError)
    assert "another form" in failed(lambda: GlueCatalog(Pages({"Table": []})).load(ORDERS)).message


def test_a_missing_right_is_named() -> None:
    from botocore.exceptions import ClientError, NoCredentialsError

    denied = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetTables")
    error = failed(lambda: GlueCatalog(Pages(denied)).tables("lake", "sales"))
    assert "AccessDeniedException" in error.message
    assert "glue:GetTables" in error.hint
    error = failed(lambda: GlueCatalog(Pages(NoCredentialsError())).load(ORDERS))
    assert "cannot be asked" in error.message
    assert "log in" in error.hint


def test_a_missing_region_is_said_before_any_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UsageError, match="AWS Glue cannot be opened") as caught:
        open_catalogs({"lake": CatalogConfig(type="glue")}, no_spark, {})
    assert "set `region`" in caught.value.hint
