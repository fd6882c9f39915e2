"""A dbt manifest: whose settings are read, and what a hostile one cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.delta.names import TableName, parse_column, quote_name
from tablectl.model.errors import UsageError
from tablectl.policies import dbt_manifest
from tablectl.policies.dbt_manifest import DbtTable, read_manifest


def node(name: str = "orders", **more: Any) -> dict[str, Any]:
    config = {"materialized": "incremental", "enabled": True, **more.pop("config", {})}
    made = {"resource_type": "model", "database": "lake", "schema": "sales", "name": name, "alias": name}
    return {**made, "original_file_path": f"models/{name}.sql", "config": config, **more}


def read(path: Path, *nodes: Any, adapter: str = "databricks") -> tuple[DbtTable, ...]:
    found = {f"model.shop.{number}": each for number, each in enumerate(nodes)}
    path.write_text(json.dumps({"metadata": {"adapter_type": adapter}, "nodes": found}))
    return read_manifest(path, "spark_catalog")


def test_the_settings_of_a_model(tmp_path: Path) -> None:
    config = {
        "tblproperties": {"delta.isolationLevel": "Serializable", "delta.appendOnly": True, "owner.level": 3},
        "liquid_clustered_by": ["customer_id", "day"],
    }
    (found,) = read(tmp_path / "m.json", node(config=config))
    assert found.name == TableName("lake", ("sales", "orders"))
    assert (found.model, found.file) == ("model.shop.0", "models/orders.sql")
    assert found.properties == {
        "delta.appendOnly": "true",
        "delta.isolationLevel": "Serializable",
        "owner.level": "3",
    }
    assert (found.clustering, found.partitioning) == (("customer_id", "day"), None)
    assert found.lines["clustering"] == 'liquid_clustered_by: ["customer_id", "day"]'


@pytest.mark.parametrize(
    ("written", "columns"),
    [
        ("day", ("day",)),
        ("a, b", ("a", "b")),
        (["a ,b", " c "], ("a", "b", "c")),
        ("`id`", ("id",)),
        ("`a b`, `c,d`", ("a b", "c,d")),
        ("`n.x`", ("`n.x`",)),
        ("n.x", ("n.x",)),
        ("`a``b`.c", ("`a``b`.`c`",)),
        ('"a"', None),
        ("a b", None),
        ("a,", None),
        ("`a", None),
        ("date(a)", None),
        ("{{ var('x') }}", None),
        ([], None),
        (["a", 1], None),
        ({"field": "a"}, None),
    ],
)
def test_the_text_of_columns_means_what_spark_reads_in_it(
    tmp_path: Path, written: Any, columns: tuple[str, ...] | None
) -> None:
    """dbt writes the texts into a statement as they are. Any other text is a line that stays in dbt."""
    config = {"liquid_clustered_by": written, "partition_by": written, "tblproperties": {"a": "1"}}
    (found,) = read(tmp_path / "m.json", node(config=config))
    assert (found.clustering, found.partitioning) == (columns, columns)
    assert ("clustering" in found.lines) is (written != [])


_PART = st.text('ab `.,"é1', min_size=1, max_size=5)


@given(columns=st.lists(st.lists(_PART, min_size=1, max_size=3), min_size=1, max_size=4), together=st.booleans())
def test_any_columns_in_backticks_are_read_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, columns: list[list[str]], *, together: bool
) -> None:
    texts = [".".join(map(quote_name, each)) for each in columns]
    config = {"liquid_clustered_by": ", ".join(texts) if together else texts}
    (found,) = read(tmp_path_factory.getbasetemp() / "m.json", node(config=config))
    assert [parse_column(each) for each in found.clustering or ()] == list(map(tuple, columns))


def test_only_delta_tables_with_settings_are_read(tmp_path: Path) -> None:
    sets = {"partition_by": "day"}
    nodes = [
        node("plain"),
        node("seen", config={**sets, "materialized": "view"}),
        node("off", config={**sets, "enabled": False}),
        node("parquet", config={**sets, "file_format": "parquet"}),
        node("tested", resource_type="test", config=sets),
        node("kept", config=sets),
    ]
    assert [each.name.parts[1] for each in read(tmp_path / "m.json", *nodes)] == ["kept"]
    assert read(tmp_path / "m.json", *nodes, adapter="spark") == ()
    (found,) = read(tmp_path / "m.json", node(config={**sets, "file_format": "delta"}, database=None), adapter="spark")
    assert found.name == TableName("spark_catalog", ("sales", "orders"))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"nodes": []}', "[" * 100_000, '{"nodes": {}, "metadata": 1}'])
def test_other_files_are_errors_that_say_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_manifest(tmp_path / "m.json", "lake")
    assert "dbt parse" in caught.value.hint


def test_a_manifest_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dbt_manifest, "_MOST_NODES", 2)
    with pytest.raises(UsageError, match="the maximum"):
        read(tmp_path / "m.json", node(), node(), node())
    monkeypatch.setattr(dbt_manifest, "LARGEST", 10)
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "m.json", node())
    with pytest.raises(UsageError, match="cannot be read"):
        read_manifest(tmp_path, "lake")


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(config=_ANY, properties=_ANY, columns=_ANY, schema=_ANY, name=_ANY)
def test_nothing_in_a_node_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, config: Any, properties: Any, columns: Any, schema: Any, name: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "m.json"
    sets = {"tblproperties": properties, "liquid_clustered_by": columns, "partition_by": columns}
    read(path, node(config=sets, schema=schema, alias=name), {**node(), "config": config}, config)
