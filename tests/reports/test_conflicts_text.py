"""Which operations conflict as people read it. Golden files: see ``conftest.py``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.protocol import Client
from tablectl.documents.style import Style
from tablectl.insight.conflict_context import Assumption
from tablectl.insight.conflict_report import ConflictReport, conflict_report, document_of_conflicts
from tablectl.model.table import LiveTable
from tablectl.reports.document_html import document_html
from tablectl.reports.document_markdown import document_markdown
from tablectl.reports.document_text import document_text
from tablectl.reports.report_context import Context
from tablectl.support.typed_json import json_form

Golden = Callable[[str, str], None]
Live = Callable[..., LiveTable]


def conflicts_text(report: ConflictReport, style: Style, *, everything: bool = False, about: str = "") -> str:
    return document_text(document_of_conflicts(report, everything=everything, about=about), style)


def conflicts_json(report: ConflictReport) -> Any:
    return json_form(document_of_conflicts(report).record)


@pytest.fixture
def found(live: Live) -> ConflictReport:
    policy = Policy({"isolation": "Serializable", "deletion_vectors": "enabled", "clustering": ("order_date",)})
    return conflict_report(live(), policy, "oss")


@pytest.fixture
def databricks(live: Live) -> ConflictReport:
    policy = Policy({"isolation": "Serializable", "deletion_vectors": "enabled"})
    return conflict_report(live(), policy, "databricks", Assumption(((Client("databricks", (14, 3)), False),)))


@pytest.mark.parametrize("width", [60, 80])
def test_plain(found: ConflictReport, golden: Golden, width: int) -> None:
    golden(f"conflicts-{width}.txt", conflicts_text(found, Style(width=width)))


def test_databricks(databricks: ConflictReport, golden: Golden) -> None:
    golden("conflicts-databricks.txt", conflicts_text(databricks, Style()))


def test_one_operation(found: ConflictReport, golden: Golden) -> None:
    golden("conflicts-optimize.txt", conflicts_text(found, Style(), about="optimize"))


def test_an_operation_that_the_table_cannot_take(found: ConflictReport) -> None:
    assert "this table cannot take it, or already has it" in conflicts_text(found, Style(), about="vectors-off")


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("everything", [True, False])
def test_no_line_is_longer_than_the_width(
    found: ConflictReport, databricks: ConflictReport, width: int, everything: bool
) -> None:
    for each in (found, databricks):
        lines = conflicts_text(each, Style(width=width), everything=everything).splitlines()
        assert [line for line in lines if len(line) > width and len(line.split()[-1]) < 50] == []


def test_colours_change_nothing_else(found: ConflictReport) -> None:
    coloured = conflicts_text(found, Style(colour=True))
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == conflicts_text(found, Style())
    assert "\x1b[31mX" in coloured


def test_every_pair_that_fails_is_in_the_long_form(found: ConflictReport) -> None:
    said = conflicts_text(found, Style(width=100), everything=True)
    assert "RESTORE takes the next version, or it fails" in said
    assert "ADD CONSTRAINT" in said


def test_names_cannot_paint_the_terminal(live: Live) -> None:
    said = conflicts_text(conflict_report(live(partition_columns=("\x1b[31mred",)), None, "oss"), Style())
    assert "\x1b" not in said


def test_several_clients_have_a_part_each(live: Live) -> None:
    clients = (Client("delta-spark", (3, 2, 0)), Client("delta-spark", (4, 4, 0)))
    said = conflicts_text(
        conflict_report(live(clients=clients), Policy({"deletion_vectors": "enabled"}), "oss"), Style()
    )
    assert "When Delta Spark 3.2.0 commits second  at Serializable (not set)" in said
    assert "When Delta Spark 4.4.0 commits second  at Serializable (not set)" in said


def test_no_policy_and_nothing_to_change(live: Live) -> None:
    said = conflicts_text(conflict_report(live(), None, "oss"), Style())
    assert "What the policy changes  no policy covers this table\n" in said
    said = conflicts_text(conflict_report(live(), Policy({"isolation": "default"}), "oss"), Style())
    assert "What the policy changes  nothing: the table matches it\n" in said


def test_for_machines(found: ConflictReport, databricks: ConflictReport) -> None:
    plain = conflicts_json(found)
    assert plain["format"] == 2
    (view,) = plain["views"]
    pairs = {(each["current"], each["committed"]): each for each in view["pairs"]}
    assert pairs["update", "insert"]["meeting"]["condition"] == "DELTA_CONCURRENT_APPEND"
    assert pairs["update", "insert"]["meeting"]["exception"] == "ConcurrentAppendException"
    assert pairs["update", "insert"]["verdict"] == "fails"
    assert pairs["insert", "update"]["avoid"] == []
    assert view["policy"]["equal"] + len(view["policy"]["different"]) > 900
    assert {each["committed"]: each["effect"] for each in view["streaming_readers"]}["update"] == "stops"
    (row_level, *_) = conflicts_json(databricks)["views"][0]["row_level"]
    assert row_level == {"statement": "update", "holds": False, "sources": "D43", "why_not": "deletion vectors are off"}
    assert set(pairs) <= {(a, b) for a in plain["operations"] for b in plain["operations"]}


def test_the_matrix_is_a_coloured_grid_in_pages_and_comments(found: ConflictReport) -> None:
    document = document_of_conflicts(found)
    page = document_html(document, Context())
    assert "<title>INSERT after INSERT: commits</title>" in page
    assert page.count('<rect class="bad"') == page.count(">X</text>") > 10
    rows = re.findall(r"<tr><td>[a-z] [^<]*</td><td>([🟩🟨🟥⬜]+)</td></tr>", document_markdown(document))
    assert {len(each) for each in rows} == {len(rows)}
    assert rows[0] == "🟩" * len(rows)  # an INSERT conflicts with no write of rows
