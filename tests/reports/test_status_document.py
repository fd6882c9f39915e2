"""The state of a lake, as rows and as reports."""

from __future__ import annotations

from dataclasses import replace

from tablectl.attributes.policy import HIDDEN
from tablectl.documents.style import Style
from tablectl.model.errors import ExitCode
from tablectl.reports.document_html import document_html
from tablectl.reports.document_markdown import LIMIT, document_markdown
from tablectl.reports.document_text import document_text
from tablectl.reports.mask import Mask
from tablectl.reports.report_context import Context
from tablectl.reports.status_document import LakeStatus, TableStatus, masked_status, status_document
from tests.reports.test_html import Read

ROW = TableStatus(
    table="lake.sales.orders",
    state="changed by others",
    policy="p.yaml:3",
    version=7,
    differences=("properties.owner.token: declared a, found hunter2",),
    changed_by="ann (Delta Spark 4.4.0)",
    changed_at=1_795_000_000_000,
    files=1_000,
    bytes=2_000_000,
    file_bytes=2_000,
    vectors=3,
)


def lake(*rows: TableStatus) -> LakeStatus:
    return LakeStatus(rows, "", 1_795_000_000_000)


def test_a_row_says_who_changed_what_and_what_the_table_owes() -> None:
    page = document_html(status_document(lake(ROW)), Context())
    said = " ".join(" ".join(Read(page).text).split())
    assert "changed by others" in said
    assert "by ann (Delta Spark 4.4.0), 2026-11-18 11:06:40 UTC" in said
    assert "small files: 2.0 kB on average" in said
    assert "3 deletion vectors" in said


def test_never_applied_is_not_drift() -> None:
    document = status_document(lake(replace(ROW, state="never applied")))
    assert document.title == "Not all policies are applied"
    assert document_text(document, Style()).endswith("Status: 1 of 1 table have a policy; 1 never applied.\n")


def test_text_is_one_row_a_table_and_fits_80_columns() -> None:
    well = replace(ROW, state="as declared", differences=(), changed_by="", written_at=1_795_000_000_000)
    status = lake(well, replace(well, table="lake.sales.visits_by_day"))
    lines = document_text(status_document(status), Style(width=80)).splitlines()
    assert lines[:3] == [
        "Table                     State        Last write        Debt",
        "lake.sales.orders         as declared  2026-11-18 11:06  1000 files, 2.0 MB",
        "lake.sales.visits_by_day  as declared  2026-11-18 11:06  1000 files, 2.0 MB",
    ]
    narrow = document_text(status_document(status), Style(width=40)).splitlines()
    assert narrow[1] == "lake.sales.orders         as declared"


def test_text_says_below_a_row_what_needs_attention() -> None:
    text = document_text(status_document(lake(ROW)), Style(width=80))
    assert "\n    properties.owner.token: declared a, found hunter2\n" in text
    assert all(len(each) <= 80 for each in text.splitlines())


def test_the_page_shows_sizes_as_bars_with_a_text() -> None:
    one = replace(ROW, bytes=8_000, unclustered_bytes=2_000, vacuum_bytes=2_000)
    page = document_html(status_document(lake(one, replace(ROW, table="lake.sales.visits", bytes=1_000))), Context())
    assert '<rect class="some" x="60.0%" y="17" width="20.0%"' in page
    assert '<rect class="unknown" x="80.0%" y="17" width="20.0%"' in page
    assert "<desc>lake.sales.orders: 1000 files" in page
    assert "old files, for VACUUM" in page


def test_ten_thousand_rows_are_one_file_and_a_comment_within_the_limit() -> None:
    status = lake(*(replace(ROW, table=f"lake.sales.t{number}") for number in range(10_000)))
    document = status_document(status)
    page = document_html(document, Context())
    assert page.count("<tr") == 10_001
    assert len(page) < 30_000_000
    assert len(document_markdown(document).encode()) <= LIMIT


def test_masked_values_are_not_shown() -> None:
    shown = masked_status(lake(ROW), Mask(("*token*",)))
    text = document_html(status_document(shown), Context())
    assert "hunter2" not in text
    assert HIDDEN in text


def test_a_table_that_cannot_be_read_is_an_error() -> None:
    assert lake(replace(ROW, state="not readable")).exit_code is ExitCode.ERROR
    assert lake(ROW).exit_code is ExitCode.DONE
