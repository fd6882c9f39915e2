"""Each maker of tables writes the settings in its own words, and names what it has no words for."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.names import parse_table
from tablectl.model.patterns import make_catalog_pattern
from tablectl.planning.new_table import birth_of
from tablectl.planning.table_makers import MAKERS, BirthScope
from tests.planning.maker_files import READERS


def scope(text: str, **policy: Any) -> BirthScope:
    target = make_catalog_pattern(*text.split(".")) if "*" in text else parse_table(text)
    return BirthScope(target=target, birth=birth_of(Policy(policy)), place="policies/sales.yaml:3")


ORDERS = scope("lake.sales.orders", isolation="Serializable", retention={"log": "interval 10 days"})
SALES = scope("lake.sales.*", isolation="Serializable", deletion_vectors="enabled")
EVERYTHING = scope(
    "lake.sales.events",
    partitioning=("day",),
    deletion_vectors="enabled",
    retention={"log": "interval 10 days"},
    properties={"owner.team": "it's ours", "delta.appendOnly": "true"},
)


def written(maker: str, *scopes: BirthScope, dialect: str = "oss") -> str:
    return MAKERS[maker].write(scopes, dialect, "shop").text


def left(maker: str, *scopes: BirthScope, dialect: str = "oss") -> list[str]:
    return [each.what for each in MAKERS[maker].write(scopes, dialect, "shop").left]


def test_a_session_sets_what_all_its_tables_need() -> None:
    assert written("spark", ORDERS, SALES) == (
        "spark.databricks.delta.properties.defaults.isolationLevel Serializable\n"
    )
    assert left("spark", ORDERS, SALES) == [
        "delta.logRetentionDuration = interval 10 days",
        "delta.enableDeletionVectors = true",
    ]


def test_the_session_of_one_table_sets_all_of_its_properties() -> None:
    assert written("python", ORDERS) == (
        'spark.conf.set("spark.databricks.delta.properties.defaults.isolationLevel", "Serializable")\n'
        'spark.conf.set("spark.databricks.delta.properties.defaults.logRetentionDuration", "interval 10 days")\n'
    )
    assert not left("python", ORDERS)


def test_the_options_of_spark_submit_are_shell_words() -> None:
    assert shlex.split(written("spark-submit", ORDERS).replace("\\\n", " ")) == [
        "--conf",
        "spark.databricks.delta.properties.defaults.isolationLevel=Serializable",
        "--conf",
        "spark.databricks.delta.properties.defaults.logRetentionDuration=interval 10 days",
    ]


def test_a_session_names_users_properties_partitions_and_clustering() -> None:
    assert left("spark", EVERYTHING) == ["owner.team = it's ours", "partitioning by day"]
    assert left("spark", scope("lake.s.t", clustering=("id", "a.b"))) == ["clustering by id, a.b"]
    assert '.partitionBy("day")' in written("python", EVERYTHING)


def test_a_session_of_several_tables_sets_no_list_of_columns() -> None:
    one = scope("lake.s.a", data_skipping=("id",))
    assert "dataSkippingStatsColumns" in written("spark", one)
    assert left("spark", one, scope("lake.s.b", data_skipping=("id",))) == ["delta.dataSkippingStatsColumns = id"] * 2


def test_dbt_configures_the_folder_of_a_schema_and_the_model_of_a_table() -> None:
    assert written("dbt", SALES, scope("lake.sales.events", partitioning=("day",))) == (
        "models:\n"
        "  shop:\n"
        "    sales:\n"
        '      +file_format: "delta"\n'
        "      +tblproperties:\n"
        '        "delta.enableDeletionVectors": "true"\n'
        '        "delta.isolationLevel": "Serializable"\n'
        "      events:\n"
        '        +file_format: "delta"\n'
        '        +partition_by: ["day"]\n'
    )


def test_dbt_has_no_words_for_a_part_of_a_folder() -> None:
    assert left("dbt", scope("lake.sales.raw_*", isolation="Serializable")) == ["every setting"]
    assert left("dbt", scope("lake.*.orders", isolation="Serializable")) == ["every setting"]


def test_only_dbt_databricks_clusters() -> None:
    clustered = scope("lake.sales.orders", clustering=("id",))
    assert left("dbt", clustered) == ["clustering by id"]
    assert '+liquid_clustered_by: ["id"]' in written("dbt", clustered, dialect="databricks")
    automatic = scope("lake.sales.orders", clustering="auto")
    assert '+auto_liquid_cluster: "true"' in written("dbt", automatic, dialect="databricks")


def test_delta_rs_gets_the_arguments_of_a_write() -> None:
    names: dict[str, Any] = {}
    exec(written("delta-rs", EVERYTHING), names)
    assert names["NEW_TABLES"] == {
        "lake.sales.events": {
            "configuration": {
                "delta.appendOnly": "true",
                "delta.enableDeletionVectors": "true",
                "delta.logRetentionDuration": "interval 10 days",
            },
            "partition_by": ["day"],
        }
    }
    assert left("delta-rs", EVERYTHING) == ["owner.team = it's ours"]


@pytest.mark.parametrize(
    ("policy", "feature"),
    [
        ({"row_tracking": "enabled"}, "domainMetadata, rowTracking"),
        ({"clustering": ("id",)}, "clustering, domainMetadata"),
        ({"features": {"typeWidening": "supported"}}, "typeWidening"),
        ({"properties": {"delta.enableInCommitTimestamps": "true"}}, "inCommitTimestamp"),
    ],
)
def test_a_table_that_delta_rs_cannot_write_gets_no_settings_for_it(policy: dict[str, Any], feature: str) -> None:
    """The table that delta-rs made would lock it out with the first plan."""
    made = MAKERS["delta-rs"].write((ORDERS, scope("lake.s.t", isolation="Serializable", **policy)), "oss", "")
    assert "lake.s.t" not in made.text
    assert "lake.sales.orders" in made.text
    (one,) = made.left
    assert one.what == "every setting"
    assert one.why.startswith(f"delta-rs 1.6.6 cannot write a table with {feature}")


def test_what_delta_rs_never_turns_on_need_not_be_off() -> None:
    assert not left("delta-rs", scope("lake.s.t", row_tracking="disabled"))


def test_what_no_maker_says_is_a_statement_of_the_next_plan() -> None:
    managed = scope("lake.s.t", predictive_optimization="enabled")
    for maker in MAKERS:
        assert left(maker, managed, dialect="databricks") == ["ENABLE PREDICTIVE OPTIMIZATION"], maker


def test_features_and_constraints() -> None:
    checked = scope("lake.s.t", features={"typeWidening": "supported"}, constraints={"positive": "amount > 0"})
    assert "delta.properties.defaults.feature.typeWidening supported" in written("spark", checked)
    for maker, names in {"spark": 1, "dbt": 1, "delta-rs": 1, "sql": 0}.items():
        assert len(left(maker, checked)) == names, maker


@pytest.mark.parametrize("maker", list(MAKERS))
def test_what_a_maker_writes_reads_back_as_the_settings(maker: str) -> None:
    found = READERS[maker](written(maker, EVERYTHING), "file")
    values = {name.rpartition(" > ")[2]: value for name, value in found.items()}
    assert values["delta.appendOnly"] == "true"
    assert values["delta.logRetentionDuration"] == "interval 10 days"


def test_the_empty_settings_of_dbt_are_a_file_of_dbt() -> None:
    nothing = written("dbt", scope("lake.s.a_*", isolation="Serializable"))
    assert READERS["dbt"](nothing, "dbt_project.yml") == {}
