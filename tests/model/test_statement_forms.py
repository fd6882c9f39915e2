"""Every statement that can be sent is an instance of one form, whatever the names in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.delta.dialects import DIALECTS
from tablectl.delta.names import TableName
from tablectl.model.operations import (
    ClusterBy,
    DropFeature,
    Operation,
    OptimizeData,
    Purge,
    RemoveMapping,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
    render,
)
from tablectl.model.statement_forms import FORMS, StatementForm

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
PATHS = st.lists(HOSTILE, min_size=1, max_size=3).map(tuple)
PAIRS = st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=3).map(tuple)
OPERATIONS: dict[str, st.SearchStrategy[Operation]] = {
    "set properties": st.one_of(st.builds(SetProperties, PAIRS), st.just(RemoveMapping())),
    "unset properties": st.builds(UnsetProperties, st.lists(HOSTILE, min_size=1, max_size=3).map(tuple)),
    "cluster by": st.builds(ClusterBy, st.lists(PATHS, min_size=1, max_size=4).map(tuple)),
    "cluster by none": st.just(ClusterBy(())),
    "purge": st.just(Purge()),
    "upgrade uniform": st.builds(UpgradeUniform, st.sampled_from([1, 2])),
    "optimize": st.just(OptimizeData()),
    "optimize full": st.just(OptimizeData(full=True)),
    "drop feature": st.builds(DropFeature, HOSTILE),
    "drop feature truncate history": st.builds(DropFeature, HOSTILE, st.just(True)),
}


def form_of(sql: str) -> StatementForm:
    """The form of a statement. Raises ``ValueError`` if it has none, or several."""
    found = [form for form in FORMS if form.matches(sql)]
    if len(found) != 1:
        raise ValueError(f"the statement has {len(found)} forms: {sql[:200]}")
    return found[0]


def test_each_form_has_statements_and_each_statement_a_form() -> None:
    assert sorted(OPERATIONS) == sorted(form.id for form in FORMS)


@pytest.mark.parametrize("form", sorted(OPERATIONS))
@given(data=st.data())
def test_no_name_changes_the_form_of_a_statement(form: str, data: Any) -> None:
    sql = render(data.draw(OPERATIONS[form]), data.draw(TABLES))
    assert form_of(sql).id == form


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_an_example_is_an_instance_of_its_form_alone(form: Any) -> None:
    assert form_of(form.example) is form
    assert form.source.startswith("https://")


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE `a`",
        "ALTER TABLE `a` DROP COLUMN `b`",
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


def test_a_form_that_never_ran_on_a_product_says_so() -> None:
    assert {form.evidence(each.name) for form in FORMS for each in DIALECTS} == {
        "run by the tests of tablectl",
        "documented, not verified here",
    }
    assert {form.evidence("databricks") for form in FORMS} == {"documented, not verified here"}


@pytest.mark.spark
def test_open_source_spark_parses_the_forms(spark: Any) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    for form in FORMS:
        parser.parsePlan(form.example)
