"""The expected loss as reviewers read it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tablectl.documents.style import Style
from tablectl.model.expected_loss import ExpectedLoss, StatementLoss, TableLoss, failed_text, failed_writes
from tablectl.model.plan import Plan, Refusal, TablePlan
from tablectl.reports.report_context import Context
from tests.reports.rendered import plan_html, plan_markdown, plan_text

SUNDAY = datetime(2026, 11, 22, 10, 15, tzinfo=UTC)
QUIET = 6 * 24 + 4
SAID = (
    "now (Sunday 10:00–11:00 UTC): 2.8 to 3.4 failed writes, 210 s of work; quietest: Sunday 04:00–05:00 UTC, "
    "less than 0.1; from 412 writes in the log since 2026-10-23"
)


def loss(quietest: int | None = QUIET, statement: str = "closed-set") -> TableLoss:
    failed = tuple(0.0 if hour == QUIET else 3.14 for hour in range(168))
    seconds = tuple(0.0 if hour == QUIET else 210.4 for hour in range(168))
    alone = StatementLoss(statement=statement, failed=failed, seconds=seconds)
    return TableLoss(
        writes=412, since=1_792_713_600_000, quietest=quietest, failed=failed, seconds=seconds, statements=(alone,)
    )


@pytest.fixture
def one(plan: Plan) -> Plan:
    """The plan of one table with a blocking statement."""
    table = next(each for each in plan.tables if each.name == "lake.sales.clicks")
    ident = next(each.id for each in table.statements if each.fails)
    return replace(plan, tables=(replace(table, loss=loss(statement=ident)),), failures=(), unchanged=())


def flat(text: str) -> str:
    return " ".join(text.split())


def test_text_tells_now_and_the_quietest_hour(one: Plan) -> None:
    text = flat(plan_text(one, Style(width=200), now=SUNDAY))
    assert text.count(SAID) == 2  # of the table, and of its statement
    assert f"expected loss {SAID}" in text


def test_without_a_clock_it_tells_the_busiest_hour_instead(one: Plan) -> None:
    said = "busiest: Monday 00:00–01:00 UTC: 2.8 to 3.4 failed writes, 210 s of work; quietest: Sunday 04:00–05:00 UTC,"
    assert said in flat(plan_text(one, Style(width=200)))


def test_in_the_quietest_hour_it_says_so(one: Plan) -> None:
    text = flat(plan_text(one, Style(width=200), now=SUNDAY.replace(hour=4)))
    assert (
        "now (Sunday 04:00–05:00 UTC): less than 0.1 failed writes, less than 1 s of work; no hour is quieter" in text
    )


def test_statements_that_fail_only_writers_outside_of_the_log_say_so(one: Plan) -> None:
    table, none = one.tables[0], (0.0,) * 168
    assert table.loss is not None
    nothing = replace(table.loss, failed=none, seconds=none, statements=())
    text = flat(plan_text(replace(one, tables=(replace(table, loss=nothing),)), Style(width=200), now=SUNDAY))
    assert "expected loss: none: by the rules no writer of the log conflicts (412 writes in the log since" in text


def test_markdown_and_html_tell_it(one: Plan) -> None:
    context = Context(now=SUNDAY)
    assert SAID in flat(plan_markdown(one, context)).replace("\\", "")
    assert SAID in flat(plan_html(one, context))


def test_a_table_without_writes_is_said(one: Plan) -> None:
    unknown = TableLoss(writes=0, unknown="no writes in 30 days")
    plan = replace(one, tables=(replace(one.tables[0], loss=unknown),))
    text = flat(plan_text(plan, Style(width=200), now=SUNDAY))
    said = "expected loss unknown: no writes in 30 days"
    assert text.replace("loss: ", "loss ").count(said) == 2  # of the table, and of its statement
    assert "expected loss now" not in text
    assert said.replace("loss unknown", "loss: unknown") in flat(plan_html(plan, Context(now=SUNDAY)))


def test_less_than_a_day_has_no_quietest_hour(one: Plan) -> None:
    plan = replace(one, tables=(replace(one.tables[0], loss=replace(one.tables[0].loss or loss(), quietest=None)),))
    text = flat(plan_text(plan, Style(width=200), now=SUNDAY))
    assert "210 s of work; the quietest hour is unknown, because the commits cover less than a day" in text
    assert "busiest: Monday 00:00–01:00 UTC: 2.8 to 3.4 failed writes" in flat(plan_text(plan, Style(width=200)))


def another(table: TablePlan, loss: TableLoss | None) -> TablePlan:
    """An equal table, so that both are reported together."""

    def visits(text: str) -> str:
        return text.replace("clicks", "visits")

    statements = tuple(
        replace(each, sql=visits(each.sql), undo=tuple(map(visits, each.undo))) for each in table.statements
    )
    location = visits(table.location)
    return replace(table, name=visits(table.name), location=location, statements=statements, loss=loss)


def test_equal_tables_are_added_up(one: Plan) -> None:
    table = one.tables[0]
    plan = replace(one, tables=(table, another(table, table.loss)))
    text = flat(plan_text(plan, Style(width=200), now=SUNDAY))
    assert "expected loss: now (Sunday 10:00–11:00 UTC): 5.8 to 6.7 failed writes, 421 s of work" in text


@pytest.mark.parametrize("loss", [None, TableLoss(writes=12, unknown="12 writes in 30 days")])
def test_a_table_with_an_unknown_loss_does_not_hide_the_loss_of_its_equals(one: Plan, loss: TableLoss | None) -> None:
    table = one.tables[0]
    text = flat(plan_text(replace(one, tables=(table, another(table, loss))), Style(width=200), now=SUNDAY))
    assert f"expected loss: {SAID}; unknown for 1 of the 2 tables" in text


def test_equal_tables_without_writes_are_told_in_one_line(one: Plan) -> None:
    few = [TableLoss(writes=count, unknown=f"{count} writes in 30 days") for count in (12, 13)]
    table = replace(one.tables[0], loss=few[0])
    text = flat(plan_text(replace(one, tables=(table, another(table, few[1]))), Style(width=200), now=SUNDAY))
    assert "expected loss: unknown: no writes in 30 days" in text


def test_long_work_is_reported_in_hours(one: Plan) -> None:
    table = one.tables[0]
    assert table.loss is not None
    long = replace(table.loss, seconds=(9000.0,) * 168)
    text = flat(plan_text(replace(one, tables=(replace(table, loss=long),)), Style(width=200), now=SUNDAY))
    assert "2.5 h of work" in text


def test_a_refused_table_costs_nothing(one: Plan) -> None:
    refusal = Refusal(change="clustering", reason="this runtime has no such statement", fix="use a newer one")
    table = replace(one.tables[0], refusals=(refusal,), statements=())
    assert "expected loss" not in plan_text(replace(one, tables=(table,)), Style(), now=SUNDAY)


def test_a_loss_is_never_written_as_zero() -> None:
    """A comment said "concurrent writes fail once", and next to it "expected loss: 0.0 failed writes"."""
    assert ExpectedLoss(0.02, 0.4).text() == "less than 0.1 failed writes, less than 1 s of work"
    assert ExpectedLoss().text() == "less than 0.1 failed writes, less than 1 s of work"


def test_a_writer_that_conflicts_is_in_the_loss_however_seldom_it_writes() -> None:
    assert failed_writes((ExpectedLoss(1e-9, 1e-6), ExpectedLoss())) == (0.001, 0.0)


@pytest.mark.parametrize(
    ("failed", "writes", "said"),
    [
        (3.14, 0, "3.1"),
        (3.14, 412, "2.8 to 3.4"),
        (3.14, 1_000_000, "3.1"),
        (0.3, 16, "0.1 to 0.4"),
        (0.06, 16, "up to 0.1"),
        (0.01, 412, "less than 0.1"),
        (0.0, 412, "less than 0.1"),
        (3.0, 1, "up to 9.0"),
    ],
)
def test_an_expected_number_is_a_range_by_its_evidence(failed: float, writes: int, said: str) -> None:
    assert failed_text(failed, writes) == said


def test_a_loss_from_few_writes_is_unknown(one: Plan) -> None:
    table = one.tables[0]
    assert table.loss is not None
    plan = replace(one, tables=(replace(table, loss=replace(table.loss, writes=2)),))
    text = flat(plan_text(plan, Style(width=200), now=SUNDAY))
    assert "unknown: too few to tell (2 writes in the log since 2026-10-23); a write like these can fail once" in text
    assert "failed writes" not in text


def test_the_loss_by_hour_of_the_week_is_a_picture_in_pages_and_comments(one: Plan) -> None:
    page = plan_html(one, Context(now=SUNDAY))
    assert page.count('<rect class="good"') == 1  # the quiet hour
    assert page.count('<rect class="bad"') == 167
    assert "<title>Sunday 04:00–05:00 UTC: less than 0.1 failed writes, less than 1 s of work</title>" in page
    comment = plan_markdown(one, Context(now=SUNDAY))
    assert "<tr><td>Sun</td><td>🟥🟥🟥🟥🟥🟥🟥🟥</td></tr>" in comment  # the worst of three hours


@pytest.mark.parametrize("known", [{"writes": 9}, {"quietest": None}, {"failed": (1.0,) * 168}])
def test_a_picture_that_says_nothing_is_left_out(one: Plan, known: dict[str, object]) -> None:
    table = one.tables[0]
    assert table.loss is not None
    plan = replace(one, tables=(replace(table, loss=replace(table.loss, **known)),))  # type: ignore[arg-type]
    assert "by hour of the week" not in plan_html(plan, Context(now=SUNDAY))
