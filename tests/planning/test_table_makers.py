"""Each maker of tables writes the settings in its own words, names what it has no words for, and reads them back."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.names import parse_table
from tablectl.model.errors import InputError
from tablectl.model.patterns import make_catalog_pattern
from tablectl.planning.new_table import birth_of
from tablectl.planning.table_makers import MAKERS, BirthScope, compare


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
def test_a_maker_reads_what_it_writes(maker: str) -> None:
    wanted = MAKERS[maker].write((EVERYTHING,), "oss", "shop")
    assert MAKERS[maker].read(wanted.text, "file")
    assert compare(MAKERS[maker], wanted, wanted.text, "file") == ((), ())


@pytest.mark.parametrize("maker", list(MAKERS))
def test_a_file_with_another_value_disagrees(maker: str) -> None:
    wanted = MAKERS[maker].write((EVERYTHING,), "oss", "shop")
    wrong, _ = compare(MAKERS[maker], wanted, wanted.text.replace("10 days", "11 days"), "file")
    assert [(each.wanted, each.found) for each in wrong] == [("interval 10 days", "interval 11 days")]


@pytest.mark.parametrize(
    ("maker", "text"),
    [
        ("spark", ""),
        ("spark", "# nothing\n! nothing\nspark.sql.shuffle.partitions=5"),
        ("spark-submit", "spark-submit --conf a=b job.py"),
        ("python", "import spark"),
        ("dbt", "name: shop\nmodels: {}\n"),
        ("delta-rs", "NEW_TABLES = {}"),
        ("sql", "CREATE TABLE lake.sales.events (id INT)"),
    ],
)
def test_a_file_that_sets_nothing_lacks_every_setting(maker: str, text: str) -> None:
    wrong, more = compare(MAKERS[maker], MAKERS[maker].write((EVERYTHING,), "oss", "shop"), text, "file")
    assert {each.found for each in wrong} == {None}
    assert not more


@pytest.mark.parametrize(
    ("maker", "text", "why"),
    [
        ("spark", 'spark.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "true")', "not a setting"),
        ("spark", "isolationLevel Serializable", "not a setting"),
        ("spark-submit", "spark.databricks.delta.properties.defaults.appendOnly true", "no option --conf"),
        ("spark-submit", "--conf 'a", "not text of a shell"),
        ("python", "spark.databricks.delta.properties.defaults.appendOnly true", "not Python"),
        ("dbt", "version: 2\n", "no map `models:`"),
        ("dbt", "models:\n- name: orders\n", "no map `models:`"),
        ("dbt", "a: [", "not valid YAML"),
        ("delta-rs", "TABLES = {}", "assigns no dictionary"),
        ("delta-rs", "NEW_TABLES = {open('x'): 1}", "not a dictionary of constants"),
        ("delta-rs", "NEW_TABLES = 5", "not a dictionary of constants"),
        ("delta-rs", "(", "not Python"),
        ("sql", "", "no CREATE TABLE"),
        ("sql", "ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true')", "no CREATE TABLE"),
        ("sql", "-- CREATE TABLE t (id INT)", "no CREATE TABLE"),
        ("sql", "CREATE TABLE a (id INT); CREATE TABLE b (id INT)", "several CREATE TABLE"),
        ("sql", "CREATE TABLE 'a", "not SQL"),
    ],
)
def test_a_file_that_is_not_of_the_makers_form_is_an_error_and_runs_nothing(maker: str, text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        compare(MAKERS[maker], MAKERS[maker].write((EVERYTHING,), "oss", "shop"), text, "file")


@pytest.mark.parametrize("maker", list(MAKERS))
def test_policies_that_need_nothing_of_a_maker_are_not_compared(maker: str) -> None:
    wanted = MAKERS[maker].write((scope("lake.s.a_*"),), "oss", "shop")
    texts = {"dbt": "models: {}", "delta-rs": "NEW_TABLES = {}", "sql": "CREATE TABLE t (id INT)"}
    with pytest.raises(InputError, match="nothing is compared"):
        compare(MAKERS[maker], wanted, {"spark-submit": "--conf a=b", **texts}.get(maker, ""), "file")


def spelled(maker: str, old: str, new: str, dialect: str = "oss") -> Any:
    """How the file of a maker compares in which a text is spelled in another way."""
    table = scope(
        "lake.s.t",
        properties={"delta.appendOnly": "true"},
        features={"typeWidening": "supported"},
        clustering=("day", "id"),
        data_skipping=("day", "id"),
    )
    wanted = MAKERS[maker].write((table,), dialect, "shop")
    assert old in wanted.text
    return compare(MAKERS[maker], wanted, wanted.text.replace(old, new), "file")


@pytest.mark.parametrize(
    ("maker", "old", "new"),
    [
        ("sql", "'true'", "TRUE"),
        ("sql", "'delta.appendOnly' = ", "'DELTA.APPENDONLY'="),
        ("sql", "delta.appendOnly", "delta.appendonly"),
        ("sql", "(`day`, `id`)", "( DAY , Id )"),
        ("sql", "'day,id'", "'day, id'"),
        ("sql", "'supported'", "'Supported'"),
        ("dbt", "delta.appendOnly", "delta.appendonly"),
        ("dbt", '"true"', "TRUE"),
        ("dbt", '"day", "id"', "DAY, ID"),
        ("spark", "appendOnly true", "appendOnly =  TRUE  "),
        ("spark", "supported", "SUPPORTED"),
        ("python", '"true"', "True"),
    ],
)
def test_a_spelling_that_the_maker_takes_for_the_same_agrees(maker: str, old: str, new: str) -> None:
    assert spelled(maker, old, new, "databricks" if maker == "dbt" else "oss") == ((), ())


@pytest.mark.parametrize(
    ("maker", "old", "new"),
    [
        ("spark", "appendOnly", "appendonly"),  # Delta looks a default up by its own spelling
        ("sql", "'true'", "'true '"),  # and reads no text with a space as a boolean
        ("sql", "(`day`, `id`)", "(id, day)"),
        ("sql", "'supported'", "'maybe'"),
    ],
)
def test_a_spelling_that_the_maker_does_not_know_disagrees(maker: str, old: str, new: str) -> None:
    wrong, _ = spelled(maker, old, new)
    assert len(wrong) == 1


def test_the_empty_settings_of_dbt_are_a_file_of_dbt() -> None:
    nothing = MAKERS["dbt"].write((scope("lake.s.a_*", isolation="Serializable"),), "oss", "shop")
    assert MAKERS["dbt"].read(nothing.text, "dbt_project.yml") == {}
    with pytest.raises(InputError, match="nothing is compared"):
        compare(MAKERS["dbt"], nothing, nothing.text, "dbt_project.yml")


def test_another_spelling_of_an_interval_agrees() -> None:
    wanted = MAKERS["spark"].write((ORDERS,), "oss", "shop")
    text = wanted.text.replace("interval 10 days", "interval 240 hours")
    assert compare(MAKERS["spark"], wanted, text, "file") == ((), ())


@pytest.mark.parametrize(
    ("maker", "text"),
    [
        ("spark", "spark.databricks.delta.properties.defaults.appendOnly true"),
        (
            "spark",
            "spark.databricks.delta.properties.defaults.appendOnly : \\\n   true",
        ),
        (
            "spark-submit",
            "spark-submit --conf spark.databricks.delta.properties.defaults.appendOnly=true -c a=b job.py",
        ),
        ("spark-submit", "x --conf 'spark.databricks.delta.properties.defaults.appendOnly=true' \\\n --conf a=b"),
        ("spark-submit", "x --conf=spark.databricks.delta.properties.defaults.appendOnly=true"),
        ("python", 'b.config("spark.databricks.delta.properties.defaults.appendOnly", "true")'),
        ("python", "spark.conf.set('spark.databricks.delta.properties.defaults.appendOnly', True)"),
        ("python", 'CONF = {"spark.databricks.delta.properties.defaults.appendOnly": "true"}'),
        ("python", 'c.setAll([("spark.databricks.delta.properties.defaults.appendOnly", "true")])'),
    ],
)
def test_a_session_default_is_found_in_every_spelling(maker: str, text: str) -> None:
    assert MAKERS[maker].read(text, "file") == {"delta.appendOnly": "true"}


@pytest.mark.parametrize(
    ("maker", "text"),
    [
        ("spark", "# spark.databricks.delta.properties.defaults.appendOnly true"),
        ("spark-submit", "--conf a=b # --conf spark.databricks.delta.properties.defaults.appendOnly=true"),
        ("python", '# s.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "true")'),
        ("python", '"""spark.databricks.delta.properties.defaults.appendOnly true"""'),
    ],
)
def test_a_default_in_a_comment_is_not_set(maker: str, text: str) -> None:
    assert not MAKERS[maker].read(text, "file")


CREATE = """CREATE OR REPLACE TABLE IF NOT EXISTS `sales`.events (
  id INT COMMENT 'USING parquet', -- PARTITIONED BY (id)
  day DATE
) USING delta
PARTITIONED BY ( day )
TBLPROPERTIES (delta.appendOnly = true, 'delta.enableDeletionVectors'='true',
  'delta.logRetentionDuration' = 'interval 1 week 3 days', "owner.team" = 'it\\'s ours')
AS SELECT 'delta.x' = 'y' FROM t;
"""


def test_a_statement_agrees_in_another_spelling_and_disagrees_for_another_table() -> None:
    wanted = MAKERS["sql"].write((EVERYTHING,), "oss", "shop")
    assert compare(MAKERS["sql"], wanted, CREATE, "file") == ((), ())
    wrong, _ = compare(MAKERS["sql"], wanted, CREATE.replace("events", "orders"), "file")
    assert [(each.key, each.found) for each in wrong] == [("TABLE", "sales.orders")]
    wrong, _ = compare(MAKERS["sql"], wanted, CREATE.replace("USING delta", ""), "file")
    assert [each.key for each in wrong] == ["USING"]
    assert compare(MAKERS["sql"], wanted, CREATE.replace("USING delta", ""), "file", delta_by_default=True)[0] == ()


def test_what_a_file_sets_beyond_the_policies_is_listed() -> None:
    wanted = MAKERS["spark"].write((ORDERS,), "oss", "shop")
    more = f"{wanted.text}spark.databricks.delta.properties.defaults.appendOnly true\n"
    assert compare(MAKERS["spark"], wanted, more, "file") == ((), ("delta.appendOnly",))


def test_dbt_takes_a_setting_without_its_plus_sign_and_has_others_of_its_own() -> None:
    wanted = MAKERS["dbt"].write((SALES,), "oss", "shop")
    text = f"name: shop\n{wanted.text.replace('+', '')}  other: {{+materialized: table}}\n"
    assert compare(MAKERS["dbt"], wanted, text, "file") == ((), ())
