"""Values that no report shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.attributes.policy import HIDDEN
from tablectl.delta.names import quote_name, quote_text
from tablectl.documents.style import Style
from tablectl.model.commit import Commit
from tablectl.model.errors import PlanFileError
from tablectl.model.plan import Finding, LintedTable, Phase, Plan, Refusal, TablePlan
from tablectl.model.run_report import RunOutcome, RunReport, StatementRun, TableRun
from tablectl.planning.lint import Linted
from tablectl.planning.plan_file import dump_plan, load_plan
from tablectl.reports.mask import EMPTY, Mask
from tablectl.reports.render import ReportFormat
from tablectl.reports.report_context import Context
from tests.reports.rendered import render_plan, render_run

OLD, NEW = "hunter2-old", "it's \\ hunter2-new"
MASK = Mask(("*password*", "owner.?ey"))


@pytest.fixture
def secret(plan: Plan, table_planned: Callable[..., TablePlan]) -> Plan:
    table = table_planned(
        "lake.s.t",
        {"properties": {"db.Password": OLD, "owner.key": OLD}},
        {"properties": {"db.Password": NEW, "owner.key": None, "owner.team": "web"}},
    )
    return replace(plan, tables=(table,), failures=())


@pytest.fixture
def secret_run(secret: Plan) -> RunReport:
    sql = secret.tables[0].statements[0].sql
    statement = StatementRun(
        id="x", sql=sql, phase=Phase.CLOSED, milliseconds=1, error=f"cannot take {NEW}: no", condition="X"
    )
    stale = f"properties.db.Password was {OLD} and is someone's"
    return RunReport(
        run="1",
        plan="2",
        tables=(
            TableRun(name="a", outcome=RunOutcome.FAILED, message=f"cannot take {NEW}: no", statements=(statement,)),
            TableRun(name="b", outcome=RunOutcome.STALE, message=f"isolation was default and is x; {stale}"),
        ),
    )


@pytest.mark.parametrize("form", list(ReportFormat))
def test_no_report_of_a_plan_shows_them(secret: Plan, form: ReportFormat) -> None:
    text = render_plan(secret, form, Style(), MASK, Context(pending_fails=True))
    assert "hunter2" not in text
    if form is ReportFormat.SARIF:  # it holds no pending changes
        return
    assert HIDDEN in text or HIDDEN.encode("ascii", "backslashreplace").decode() in text
    assert "web" in text
    assert "hunter2" in render_plan(secret, form, Style(), Mask(), Context(pending_fails=True))


@pytest.mark.parametrize("form", list(ReportFormat))
def test_no_report_of_a_run_shows_them(secret_run: RunReport, form: ReportFormat) -> None:
    text = render_run(secret_run, form, Style(), MASK, Context())
    assert "hunter2" not in text
    assert "someone's" not in text
    assert "isolation was default" in text


def test_a_masked_property_that_is_not_set_is_shown_as_not_set(secret: Plan) -> None:
    text = render_plan(secret, ReportFormat.TEXT, Style(), MASK, Context())
    assert f"properties.owner.key    {HIDDEN} → not set" in text
    assert f"properties.db.Password  {HIDDEN} → {HIDDEN}" in text


def test_the_plan_itself_keeps_them(secret: Plan) -> None:
    MASK.plan(secret)
    assert OLD.encode() in dump_plan(secret)
    assert load_plan(dump_plan(secret), "p.json") == secret


def test_masked_json_names_its_plan_and_is_none(secret: Plan) -> None:
    body = json.loads(render_plan(secret, ReportFormat.JSON, Style(), MASK, Context()))
    assert body["sha256"] == json.loads(dump_plan(secret))["sha256"]
    assert body["masked"] == ["*password*", "owner.?ey"]
    with pytest.raises(PlanFileError, match="a report with masked values; it cannot be applied"):
        load_plan(json.dumps(body).encode(), "p.json")


def test_what_no_pattern_matches_is_the_plan_file(secret: Plan) -> None:
    assert render_plan(secret, ReportFormat.JSON, Style(), Mask(("nothing",)), Context()).encode() == dump_plan(secret)


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_masked_values_are_hidden_in_every_statement(table: str, key: str, value: str) -> None:
    def sql(shown: str) -> str:
        pair = f"{quote_text(key)} = {shown}"
        return f"ALTER TABLE {quote_name(table)} SET TBLPROPERTIES ({pair}, 'other' = 'x') {quote_name(pair)}"

    assert Mask((key.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]"),)).sql(sql(quote_text(value))) == (
        sql(quote_text(value)).replace(
            f"({quote_text(key)} = {quote_text(value)}", f"({quote_text(key)} = '{HIDDEN if value else EMPTY}'", 1
        )
    )


def test_an_attribute_that_speaks_for_a_masked_key_is_hidden(
    plan: Plan, table_planned: Callable[..., TablePlan]
) -> None:
    table = table_planned(
        "lake.s.t", {"properties": {"delta.isolationLevel": "WriteSerializable"}}, {"isolation": "Serializable"}
    )
    for form in ReportFormat:
        shown = render_plan(
            replace(plan, tables=(table,), failures=()),
            form,
            Style(),
            Mask(("delta.iso*",)),
            Context(pending_fails=True),
        )
        assert "WriteSerializable" not in shown
        assert "'Serializable'" not in shown


def test_a_short_value_is_hidden_where_it_is_a_word(plan: Plan, table_planned: Callable[..., TablePlan]) -> None:
    table = table_planned("lake.s.t", {"properties": {"pin.password": "42"}}, {"properties": {"pin.password": "7"}})
    refused = replace(
        table, refusals=(Refusal(change="properties.pin.password", reason="7 is not 42, 742 is", fix="not 42"),)
    )
    shown = MASK.plan(replace(plan, tables=(refused,))).tables[0].refusals[0]
    assert (shown.reason, shown.fix) == (f"{HIDDEN} is not {HIDDEN}, 742 is", f"not {HIDDEN}")


def test_a_finding_about_a_masked_key_is_its_title_alone() -> None:
    finding = Finding(code="L005", severity="warning", message="the log is kept hunter2", about="properties.x.password")
    linted = Linted((LintedTable("t", (finding,)),))
    assert "hunter2" not in str(MASK.lint(linted))
    assert Mask().lint(linted) == linted


def test_commits_show_only_the_parameters_that_hold_no_property() -> None:
    commit = Commit(
        version=1, timestamp=0, operation="X", parameters={"properties": "hunter2", "conf": "hunter2", "mode": "Append"}
    )
    shown = MASK._commit(commit)
    assert shown.parameters == {"properties": HIDDEN, "conf": HIDDEN, "mode": "Append"}
