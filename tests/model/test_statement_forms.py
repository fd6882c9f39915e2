"""Every statement that can be sent is an instance of one form, whatever the names in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.delta import databricks_runtimes
from tablectl.delta.expressions import why_refused
from tablectl.delta.names import TableName, column_text
from tablectl.model.operations import (
    OPERATIONS,
    AddConstraint,
    ClusterBy,
    DropConstraint,
    DropFeature,
    DropNotNull,
    Operation,
    OptimizeData,
    Purge,
    RemoveMapping,
    Repartition,
    ReplacePartitions,
    SetManaged,
    SetNotNull,
    SetOptimization,
    SetProperties,
    UnsetManaged,
    UnsetProperties,
    UpgradeUniform,
    VacuumFiles,
)
from tests.model.sql_forms import FORMS, form_of

HOSTILE = st.one_of(
    st.text(min_size=1, max_size=12),
    st.sampled_from(
        [
            "`",
            "``",
            "'",
            "\\",
            "\\'",
            "a`) CLUSTER BY NONE --",
            "x' = 'y",
            "amount > 0",
            "a) OR (b",
            "(a) OR (b)",
            "a IS NULL OR b IN ('x)', \"y\")",
            "' TRUNCATE HISTORY",
            "` FULL",
            "\n",
            "--",
            ";",
            "/*",
        ]
    ),
)
TABLES = st.one_of(
    st.builds(lambda parts: TableName(parts[0], parts[1:]), st.tuples(HOSTILE, HOSTILE, HOSTILE)),
    st.builds(lambda path: TableName("", (f"/{path}",)), HOSTILE),
)
COLUMNS = st.lists(HOSTILE, min_size=1, max_size=3).map(tuple).map(column_text)
PAIRS = st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=3).map(tuple)
EXAMPLES: dict[str, st.SearchStrategy[Operation]] = {
    "set properties": st.one_of(st.builds(SetProperties, PAIRS), st.just(RemoveMapping())),
    "unset properties": st.builds(UnsetProperties, st.lists(HOSTILE, min_size=1, max_size=3).map(tuple)),
    "cluster by": st.builds(ClusterBy, st.lists(COLUMNS, min_size=1, max_size=4).map(tuple)),
    "cluster by none": st.just(ClusterBy(())),
    "cluster by auto": st.just(ClusterBy((), automatic=True)),
    "replace partitions by columns": st.builds(ReplacePartitions, st.lists(COLUMNS, min_size=1, max_size=4).map(tuple)),
    "replace partitions by auto": st.just(ReplacePartitions((), automatic=True)),
    "enable predictive optimization": st.just(SetOptimization("ENABLE")),
    "disable predictive optimization": st.just(SetOptimization("DISABLE")),
    "inherit predictive optimization": st.just(SetOptimization("INHERIT")),
    "set managed": st.just(SetManaged()),
    "set managed truncate uniform history": st.just(SetManaged(truncates=True)),
    "unset managed": st.just(UnsetManaged()),
    "purge": st.just(Purge()),
    "upgrade uniform": st.builds(UpgradeUniform, st.sampled_from([1, 2])),
    "optimize": st.just(OptimizeData()),
    "optimize full": st.just(OptimizeData(full=True)),
    "vacuum": st.just(VacuumFiles()),
    "drop feature": st.builds(DropFeature, HOSTILE),
    "drop feature truncate history": st.builds(DropFeature, HOSTILE, st.just(True)),
    "add constraint": st.builds(AddConstraint, HOSTILE, HOSTILE.filter(lambda text: not why_refused(text))),
    "drop constraint": st.builds(DropConstraint, HOSTILE),
    "set not null": st.builds(SetNotNull, COLUMNS),
    "drop not null": st.builds(DropNotNull, COLUMNS),
}


def test_each_form_has_statements_and_each_statement_a_form() -> None:
    assert sorted(EXAMPLES) == sorted(form.id for form in FORMS)


@pytest.mark.parametrize("form", sorted(EXAMPLES))
@given(data=st.data())
def test_no_name_changes_the_form_of_a_statement(form: str, data: Any) -> None:
    operation = data.draw(EXAMPLES[form])
    assert operation.form.id == form
    assert operation.form in operation.forms
    assert form_of(operation.sql(data.draw(TABLES))) is operation.form


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_an_example_is_an_instance_of_its_form_alone(form: Any) -> None:
    assert form_of(form.example) is form
    assert form.source.startswith("https://")


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE `a`",
        "ALTER TABLE `a` DROP COLUMN `b`",
        "ALTER TABLE `a` REPLACE PARTITIONED BY WITH CLUSTER BY",
        "ALTER TABLE `a` SET MANAGED TRUNCATE HISTORY",
        "ALTER SCHEMA `a` ENABLE PREDICTIVE OPTIMIZATION",
        "OPTIMIZE `a` FULL; DROP TABLE `b`",
        "ALTER TABLE a SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE `a` SET TBLPROPERTIES ('a' = 'b') -- x",
        "OPTIMIZE `a` WHERE `b` = 1",
        "",
    ],
)
def test_other_statements_have_no_form(sql: str) -> None:
    with pytest.raises(ValueError, match="forms"):
        form_of(sql)


def test_a_form_says_who_ran_it() -> None:
    words = {form.id: form.evidence("databricks") for form in FORMS}
    assert words["purge"] == "documented only"
    assert words["cluster by"] == (
        "run by dbt-databricks' functional tests in a workspace "
        "(tests/functional/adapter/incremental/test_incremental_clustering.py, 1.12.4)"
    )
    assert "run by tablectl on open source" not in words.values(), "that says nothing about Databricks"
    on_open_source = {form.evidence("oss") for form in FORMS}
    assert on_open_source == {"run by tablectl on open source", "documented only"}


def test_a_form_that_worked_in_a_workspace_says_on_which_runtime_and_when(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databricks_runtimes, "_RUN_IN_A_WORKSPACE", {"cluster by": "Runtime 17.3, 2026-12-01"})
    words = {form.id: form.evidence("databricks") for form in FORMS}
    assert words["cluster by"] == "run by tablectl in a user's workspace (Runtime 17.3, 2026-12-01)"
    assert words["purge"] == "documented only"


def test_the_forms_that_every_runtime_has_need_no_capability() -> None:
    assert {form.id for form in FORMS if form.capability is None} == {
        "set properties",
        "unset properties",
        "purge",
        "upgrade uniform",
        "vacuum",
        "optimize",
        "add constraint",
        "drop constraint",
        "set not null",
        "drop not null",
    }


def test_only_a_dataframe_write_has_no_form() -> None:
    assert [each for each in OPERATIONS if not each.forms] == [Repartition]
    assert Repartition(()).form is None


@pytest.mark.spark
def test_open_source_spark_parses_the_forms(spark: Any) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    for form in FORMS:
        if form.run_on:
            parser.parsePlan(form.example)


@pytest.mark.spark
@pytest.mark.parametrize(
    "form", [form for form in FORMS if not form.run_on and form.id != "set not null"], ids=lambda form: form.id
)
def test_open_source_spark_has_no_parser_for_the_other_forms(spark: Any, form: Any) -> None:
    """If a release parses one, tests of this project can run it."""
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        spark._jsparkSession.sessionState().sqlParser().parsePlan(form.example)


@pytest.mark.spark
def test_open_source_spark_parses_set_not_null_and_refuses_it(spark: Any, tmp_path: Any) -> None:
    table = TableName("", (str(tmp_path / "orders"),))
    spark.sql(f"CREATE TABLE {table.sql} (id BIGINT) USING delta")
    with pytest.raises(Exception, match="Cannot change nullable column to non-nullable"):
        spark.sql(SetNotNull("id").sql(table))
