"""The fact sheet of a workspace, on a session that only remembers what it was asked."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from tests.model.sql_forms import FORMS, form_of
from tools.workspace import fact_sheet, main


class Session:
    """Accepts everything, or raises for one kind of statement."""

    version = "4.2.0"

    def __init__(self, refuses: str = "") -> None:
        self.asked: list[str] = []
        self.refuses = refuses

    def sql(self, text: str) -> Session:
        self.asked.append(text)
        if self.refuses and self.refuses in text:
            raise RuntimeError(f"[NOT_HERE] {self.refuses} is not known")
        return self

    def collect(self) -> list[Any]:
        return [{"operation": "CREATE TABLE AS SELECT"}] if self.asked[-1].startswith("DESCRIBE HISTORY") else []


def answers(path: str) -> Any:
    assert path.endswith("/tables/probe")
    return {"metadata": {"etag": "e", "properties": {}}, "commits": []}


def schema_of(session: Session) -> str:
    return session.asked[0].removeprefix("CREATE SCHEMA ")


def test_every_form_is_tried_in_a_schema_of_its_own() -> None:
    session = Session()
    facts = fact_sheet(session, "main", 10, lambda: date(2026, 11, 22), get=answers)
    tried = [fact["sql"] for fact in facts["facts"] if fact["what"].startswith("form: ")]
    assert [form_of(sql).id for sql in tried] == [form.id for form in FORMS]
    schema = schema_of(session)
    assert schema.startswith("`main`.`tablectl_")
    changing = [sql for sql in session.asked if not sql.startswith("DESCRIBE")]
    assert all(schema in sql for sql in changing)
    assert session.asked[-1] == f"DROP SCHEMA {schema} CASCADE"


def test_the_open_api_of_the_catalog_is_asked() -> None:
    def refused(_path: str) -> Any:
        raise RuntimeError("404\nno such path")

    told = [fact_sheet(Session(), "main", 10, get=each)["facts"][-1]["outcome"] for each in (answers, refused)]
    assert told == ["works: etag, properties, commits, metadata", "404 no such path"]


def test_a_refused_statement_is_a_fact() -> None:
    facts = fact_sheet(Session("SET MANAGED"), "main", 10, get=answers)["facts"]
    (fact,) = [each for each in facts if each["what"] == "form: set managed"]
    assert "SET MANAGED is not known" in fact["outcome"]


def test_the_schema_is_dropped_whatever_happens() -> None:
    session = Session("DESCRIBE HISTORY")
    with pytest.raises(RuntimeError):
        fact_sheet(session, "main", 10, get=answers)
    assert session.asked[-1] == f"DROP SCHEMA {schema_of(session)} CASCADE"


def test_without_a_workspace_nothing_is_tested_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DATABRICKS_HOST", "TABLECTL_TEST_CATALOG"):
        monkeypatch.delenv(name, raising=False)
    assert main([]) == 0
    assert "there is no workspace: nothing was tested" in capsys.readouterr().out
