"""The document of what was found in a lake."""

from __future__ import annotations

from tablectl.insight.advice.risks import LakeRisks, TableRisks, document_of_risks
from tablectl.reports.document_markdown import document_markdown


def test_a_comment_counts_the_unreadable_tables_that_it_leaves_out() -> None:
    tables = tuple(TableRisks(table=f"lake.s.t{n}", location=f"/lake/t{n}", error="no log " * 50) for n in range(400))
    text = document_markdown(document_of_risks(LakeRisks((), tables)))
    shown = text.count("not readable</b><br><code>")
    left = 400 - shown
    assert 0 < shown < 400
    assert f"<b>{left} groups with {left} tables of less weight are left out here</b>" in text
