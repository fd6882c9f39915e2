"""What a new table needs, and the CREATE TABLE that makes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablectl.attributes.policy import ATTRIBUTES, Policy
from tablectl.delta.names import parse_table
from tablectl.model.operations import SetOptimization, UnsetManaged
from tablectl.model.table_options import TableOptions
from tablectl.planning.new_table import birth_of, plan_birth

ORDERS = parse_table("lake.sales.orders")


def schema(*fields: dict[str, Any]) -> str:
    columns = fields or ({"name": "id", "type": "long"}, {"name": "day", "type": "date"})
    return json.dumps({"type": "struct", "fields": [{"nullable": True, "metadata": {}, **each} for each in columns]})


def test_one_statement_has_everything_that_the_policy_declares() -> None:
    policy = Policy(
        {
            "isolation": "Serializable",
            "deletion_vectors": "enabled",
            "clustering": ("id",),
            "row_tracking": "enabled",
            "column_mapping": "name",
            "data_skipping": ("id", "day"),
            "retention": {"log": "interval 10 days"},
            "properties": {"owner.team": "it's ours", "delta.appendOnly": "true"},
        }
    )
    born = plan_birth(ORDERS, schema(), policy, "oss", location="s3://lake/orders")
    assert not born.refusals
    assert born.sql == "\n".join(
        (
            "CREATE TABLE `lake`.`sales`.`orders` (",
            "  `id` BIGINT,",
            "  `day` DATE",
            ")",
            "USING DELTA",
            "CLUSTER BY (`id`)",
            "LOCATION 's3://lake/orders'",
            "TBLPROPERTIES (",
            "  'delta.appendOnly' = 'true',",
            "  'delta.columnMapping.mode' = 'name',",
            "  'delta.dataSkippingStatsColumns' = 'id,day',",
            "  'delta.enableDeletionVectors' = 'true',",
            "  'delta.enableRowTracking' = 'true',",
            "  'delta.isolationLevel' = 'Serializable',",
            "  'delta.logRetentionDuration' = 'interval 10 days',",
            "  'owner.team' = 'it\\'s ours'",
            ")",
        )
    )


def test_partition_columns_are_a_clause() -> None:
    assert "PARTITIONED BY (`day`)" in plan_birth(ORDERS, schema(), Policy({"partitioning": ("day",)}), "oss").sql


def test_a_setting_that_is_off_is_pinned_against_the_defaults_of_a_session() -> None:
    policy = Policy({"deletion_vectors": "disabled", "row_tracking": "disabled", "column_mapping": "none"})
    assert dict(birth_of(policy).properties) == {
        "delta.enableDeletionVectors": "false",
        "delta.enableRowTracking": "false",
        "delta.columnMapping.mode": "none",
    }


def test_a_property_that_must_not_be_set_is_not() -> None:
    assert birth_of(Policy({"properties": {"owner.team": None}, "isolation": "default"})).properties == ()


def test_uniform_is_born_with_what_its_upgrade_sets_in_steps() -> None:
    assert dict(birth_of(Policy({"uniform": "iceberg_v2"})).properties) == {
        "delta.enableIcebergCompatV2": "true",
        "delta.enableDeletionVectors": "false",
        "delta.columnMapping.mode": "name",
        "delta.universalFormat.enabledFormats": "iceberg",
    }


def test_what_no_create_table_says_is_named() -> None:
    later = birth_of(Policy({"predictive_optimization": "enabled", "managed": "false"})).later
    assert later == (UnsetManaged(), SetOptimization("ENABLE"))
    assert plan_birth(ORDERS, schema(), Policy({"managed": "false"}), "databricks", location="s3://lake/o").later == ()


def test_automatic_clustering_is_a_clause_and_not_a_property() -> None:
    born = plan_birth(ORDERS, schema(), Policy({"clustering": "auto"}), "databricks")
    assert "CLUSTER BY AUTO" in born.sql
    assert "clusterByAuto" not in born.sql


def test_every_attribute_says_what_it_needs_at_birth() -> None:
    declared: dict[str, Any] = {
        "partitioning": ("day",),
        "clustering": ("id",),
        "data_skipping": ("id",),
        "retention": {"log": "interval 1 days"},
        "properties": {"owner.team": "x"},
        "features": {"typeWidening": "supported"},
        "constraints": {"positive": "id > 0"},
    }
    for each in ATTRIBUTES:
        value = declared.get(each.name, next((word for word in each.value_type.words if word != "none"), ""))
        assert tuple(each.born(value)) or (each.name, value) == ("managed", "true"), each.name


@pytest.mark.parametrize(
    ("policy", "about"),
    [
        ({"clustering": ("nope",)}, "clustering"),
        ({"partitioning": ("nope",)}, "partitioning"),
        ({"data_skipping": ("nope",)}, "data_skipping"),
        ({"isolation": "WriteSerializable"}, "isolation"),
    ],
)
def test_a_value_that_no_such_table_can_have_is_refused(policy: dict[str, Any], about: str) -> None:
    assert [each.change for each in plan_birth(ORDERS, schema(), Policy(policy), "oss").refusals] == [about]


def test_a_client_that_could_not_read_the_new_table_is_named() -> None:
    options = TableOptions(clients=(("trino", "420"),))
    refused = plan_birth(ORDERS, schema(), Policy({"deletion_vectors": "enabled"}), "oss", options).refusals
    assert ["trino 420" in each.reason for each in refused] == [True]


def test_constraints_and_features_are_part_of_the_statement() -> None:
    constraints = {"positive": "id > 0", "day": "not null"}
    born = plan_birth(
        ORDERS, schema(), Policy({"constraints": constraints, "features": {"catalogManaged": "supported"}}), "oss"
    )
    assert not born.refusals
    assert not born.later
    assert "`day` DATE NOT NULL" in born.sql
    assert "'delta.constraints.positive' = 'id > 0'" in born.sql
    assert "'delta.feature.catalogManaged' = 'supported'" in born.sql


def test_a_column_of_a_constraint_that_is_missing_is_refused() -> None:
    refused = plan_birth(ORDERS, schema(), Policy({"constraints": {"nope": "not null"}}), "oss").refusals
    assert [each.change for each in refused] == ["constraints.nope"]


def test_a_partition_column_may_be_not_null() -> None:
    columns = ({"name": "id", "type": "long"}, {"name": "day", "type": "date", "nullable": False})
    assert not plan_birth(ORDERS, schema(*columns), Policy({"partitioning": ("day",)}), "oss").refusals
