"""Two statements as text and as JSON, on golden files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablectl.delta.protocol import Client
from tablectl.documents.style import Style
from tablectl.insight.conflict_context import Assumption
from tablectl.insight.statements.command_actions import StatementError
from tablectl.insight.statements.compare import Comparison, compare_statements, document_of_pair
from tablectl.model.table import LiveTable
from tablectl.reports.document_markdown import document_markdown
from tablectl.reports.document_text import document_text
from tablectl.support.typed_json import json_form

_MERGE = """MERGE INTO lake.sales.orders AS t
  USING updates AS s
  ON t.order_id = s.order_id AND t.order_date = s.order_date
  WHEN MATCHED THEN UPDATE SET *
  WHEN NOT MATCHED THEN INSERT *"""
_DELETE = "DELETE FROM lake.sales.orders WHERE order_date = '2026-01-02' AND customer_id = 7"


def between_text(found: Comparison, style: Style) -> str:
    return document_text(document_of_pair(found), style)


def between_json(found: Comparison) -> Any:
    return json_form(document_of_pair(found).record)


def overlapping(live: Callable[..., LiveTable], first: str = _MERGE, second: str = _DELETE, **facts: Any) -> Comparison:
    return compare_statements(
        live("lake.sales.orders", **{"partition_columns": ("order_date",), **facts}), first, second, "oss"
    )


@pytest.mark.parametrize("width", [60, 80])
def test_two_statements_that_meet(
    width: int, live: Callable[..., LiveTable], golden: Callable[[str, str], None]
) -> None:
    found = overlapping(live)
    text = between_text(found, Style(width=width))
    statements = "".join(each.sql for view in found.views for each in view.ways.rewrites)  # as the user wrote them
    assert all(len(line) <= width or line.strip(" ;") in statements for line in text.splitlines())
    golden(f"between-{width}.txt", text)


def test_two_statements_for_two_clients(live: Callable[..., LiveTable], golden: Callable[[str, str], None]) -> None:
    clients = (Client("delta-spark", (3, 2, 0)), Client("delta-spark", (4, 4, 0)), Client("databricks", (15, 4)))
    second = _DELETE.replace("=", ">", 1)
    text = between_text(
        overlapping(live, second, "INSERT OVERWRITE lake.sales.orders TABLE x", clients=clients), Style()
    )
    golden("between-clients.txt", text)


def test_markdown_names_the_clients_of_each_view(live: Callable[..., LiveTable]) -> None:
    clients = (Client("delta-spark", (3, 2, 0)), Client("databricks", (15, 4)))
    text = document_markdown(document_of_pair(overlapping(live, clients=clients)))
    assert "<p><b>With Delta Spark 3.2.0 at " in text
    assert "<p><b>With Databricks 15.4 at " in text
    assert "lake.sales.orders</b>" not in text


def test_statements_that_keep_apart(live: Callable[..., LiveTable], golden: Callable[[str, str], None]) -> None:
    other = "UPDATE lake.sales.orders SET customer_id = 8 WHERE order_date < '2026-01-02'"
    golden("between-apart.txt", between_text(overlapping(live, other), Style()))


def test_partitions_that_would_help(live: Callable[..., LiveTable]) -> None:
    other = "UPDATE lake.sales.orders SET customer_id = 8 WHERE order_date < '2026-01-02'"
    found = overlapping(live, other, partition_columns=(), clustering=(("order_id",),))
    text = between_text(found, Style())
    assert "PARTITIONED BY (order_date) instead of clustering: both would" in text


def test_who_stands_for_clients_that_run_no_sql(live: Callable[..., LiveTable]) -> None:
    found = overlapping(live, clients=(Client("kernel"), Client("delta-rs", (1, 6))))
    assert found.clients_assumed
    assert "this answer assumes the newest Delta Spark" in " ".join(between_text(found, Style()).split())
    with pytest.raises(StatementError, match="Delta Kernel runs no SQL statements"):
        compare_statements(live("lake.sales.orders"), _MERGE, _DELETE, "oss", Assumption(((Client("kernel"), None),)))


def test_control_characters_of_a_statement_are_shown_not_sent(live: Callable[..., LiveTable]) -> None:
    found = overlapping(
        live, "DELETE FROM lake.sales.orders WHERE order_date = '\x1b[31m' OR order_date = '2026-01-01'"
    )
    assert "\x1b" not in between_text(found, Style())


def test_colours_change_no_letter(live: Callable[..., LiveTable]) -> None:
    painted = between_text(overlapping(live), Style(colour=True))
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == between_text(overlapping(live), Style())


def test_the_same_for_machines(live: Callable[..., LiveTable]) -> None:
    found = between_json(overlapping(live))
    assert (found["apart"], found["format"]) == (False, 2)
    assert [each["operation"] for each in found["statements"]] == ["MERGE", "DELETE"]
    (view,) = found["views"]
    assert [each["result"] for each in view["fates"]] == ["may fail", "may fail"]
    assert view["fates"][0]["exceptions"] == ["ConcurrentAppendException", "ConcurrentDeleteReadException"]
    assert view["footprints"][1]["reads"] == {"where": "order_date = DATE '2026-01-02'", "exact": True}
    assert [each["statement"] for each in view["ways"]["rewrites"]] == [0]


def test_the_page_about_it_shows_what_is_said(live: Callable[..., LiveTable]) -> None:
    """``TABLECTL_GOLDEN=write`` writes what is so into the page."""
    path = Path(__file__).parents[2] / "docs" / "between.md"
    page = path.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:console|text)\n(.*?)```", page, re.DOTALL)
    for command, said in zip(blocks[::2], blocks[1::2], strict=True):
        first, second = re.findall(r"\"\n(.*?)\n  \"", command, re.DOTALL)
        shown = between_text(overlapping(live, first, second), Style())
        if os.environ.get("TABLECTL_GOLDEN") == "write":
            path.write_text(page := page.replace(f"```text\n{said}```", f"```text\n{shown}```"), encoding="utf-8")
        else:
            assert shown == said


def test_a_statement_of_several_commits_shows_them(live: Callable[..., LiveTable]) -> None:
    sets = "ALTER TABLE lake.sales.orders SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    other = "INSERT INTO lake.sales.orders SELECT * FROM updates"
    found = compare_statements(live("lake.sales.orders"), sets, other, "oss", Assumption(auto_compact=True))
    text = " ".join(between_text(found, Style(width=200)).split())
    assert "1 UPGRADE PROTOCOL; 2 row tracking backfill (if there are files to rewrite); 3 SET TBLPROPERTIES" in text
    assert "1 INSERT; 2 OPTIMIZE (automatic compaction, if there are enough small files)" in text
    assert "This holds for statements that both change rows, files or settings" in text
    (view,) = between_json(found)["views"]
    assert [each["kind"] for each in view["commits"][0]] == [
        "UPGRADE PROTOCOL",
        "row tracking backfill",
        "SET TBLPROPERTIES",
    ]
    assert [each["automatic"] for each in view["commits"][1]] == ["", "automatic compaction"]


def test_a_statement_without_commit_says_so(live: Callable[..., LiveTable]) -> None:
    found = overlapping(live, "ALTER TABLE lake.sales.orders RENAME TO lake.sales.old")
    assert "commits  nothing" in between_text(found, Style())
    assert found.apart


def test_what_an_apply_can_do_is_left_to_it(live: Callable[..., LiveTable]) -> None:
    found = overlapping(live, "ALTER TABLE lake.sales.orders SET TBLPROPERTIES ('owner.team' = 'x')")
    text = " ".join(between_text(found, Style()).split())
    assert "1: run it with `tablectl apply`: guarded writers wait for it" in text
