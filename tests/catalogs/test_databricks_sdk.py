"""An independent client reads the stand-in: what databricks-sdk accepts has the form of the real API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalogs.unity_server import UnityServer

sdk = pytest.importorskip("databricks.sdk", reason="databricks-sdk is not installed: pip install databricks-sdk")


@pytest.fixture
def client(server: UnityServer) -> Any:
    server.add_recorded()
    for number in range(7):
        server.add_external(f"fleet.t{number}", f"s3://lake/t{number}")
    return sdk.WorkspaceClient(host=server.url, token="any-token", auth_type="pat")


def test_it_pages_through_a_schema(client: Any, server: UnityServer) -> None:
    server.page_size, server.last_page_empty = 3, True
    found = [table.name for table in client.tables.list(catalog_name="lake", schema_name="fleet")]
    assert found == [f"t{number}" for number in range(7)]


def test_it_reads_a_table_as_the_catalog_describes_it(client: Any) -> None:
    table = client.tables.get("lake.sales.man")
    assert table.table_type.value == "MANAGED"
    assert table.data_source_format.value == "DELTA"
    assert table.properties["delta.isolationLevel"] == "Serializable"
    assert [column.name for column in table.columns] == ["id", "d", "c", "z"]


def test_it_reads_the_catalog_and_its_errors(client: Any) -> None:
    assert client.catalogs.get("lake").name == "lake"
    with pytest.raises(sdk.errors.NotFound, match=r"Table not found: lake\.sales\.none"):
        client.tables.get("lake.sales.none")


def test_its_unified_login_opens_a_catalog(server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablectl.catalogs.open_catalogs import open_catalogs
    from tablectl.delta.names import parse_table
    from tablectl.policies.catalog_config import CatalogConfig

    server.token = "t0ken-of-ci"
    server.add_external("sales.orders", "/w/orders")
    monkeypatch.setenv("DATABRICKS_HOST", server.url)
    monkeypatch.setenv("DATABRICKS_TOKEN", "t0ken-of-ci")
    catalogs = open_catalogs(
        {"lake": CatalogConfig(type="unity", login="databricks")}, lambda: pytest.fail("Spark"), {}
    )
    assert catalogs.location(parse_table("lake.sales.orders")) == "/w/orders"


def test_settings_of_a_table_are_those_of_the_client(client: Any, server: UnityServer) -> None:
    """The field names of ``TableInfo`` are the contract: an SDK that renames one fails here."""
    from tablectl.catalogs.unity_answers import catalog_entry
    from tablectl.model.catalog_answers import CatalogEntry

    server.tables["sales.man"] |= {
        "enable_predictive_optimization": "INHERIT",
        "effective_predictive_optimization_flag": {"value": "ENABLE", "inherited_from_type": "CATALOG"},
    }
    table = client.tables.get("lake.sales.man")
    assert table.enable_predictive_optimization.value == "INHERIT"
    assert table.effective_predictive_optimization_flag.value.value == "ENABLE"
    entry = CatalogEntry(managed=True, optimization="inherit", optimized=True, filtered=False)
    assert catalog_entry(table.as_dict()) == entry
    server.tables["sales.man"] |= {"row_filter": {"function_name": "lake.f.mine", "input_column_names": ["id"]}}
    filtered = client.tables.get("lake.sales.man")
    assert filtered.row_filter.function_name == "lake.f.mine"
    assert catalog_entry(filtered.as_dict()).filtered
    server.tables["sales.man"] |= {"table_type": "FOREIGN"}
    foreign = catalog_entry(client.tables.get("lake.sales.man").as_dict())
    assert (foreign.foreign, foreign.managed) == (True, None)
