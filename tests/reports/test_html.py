"""Pages as they are written. What browsers make of them: ``test_html_in_chromium.py``."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from time import process_time

import pytest

from tablectl.model.plan import Plan
from tablectl.model.run_report import CommitRun, RunOutcome, RunReport, TableRun
from tablectl.model.safe_text import printable
from tablectl.reports.report_context import Context
from tests.reports.hostile import EVIL
from tests.reports.rendered import plan_html, run_html
from tests.reports.test_plan_markdown import hostile_plan, many

_VOID = {"meta", "input", "line", "circle", "wbr"}


class Read(HTMLParser):
    """Elements with their attributes, text by element, and whether every one is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.inside: list[str] = []
        self.unclustered: list[str] = []
        self.feed(page)
        self.unclustered += self.inside

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.inside or self.inside.pop() != tag:
            self.unclustered.append(tag)

    def handle_data(self, data: str) -> None:
        if self.inside and self.inside[-1] not in {"style", "script"}:
            if self.found[-1][0] == "wbr" and self.text:  # a place where a name may be broken
                data = f"{self.text.pop()}{data}"
            self.text.append(data)

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.found if tag in tags]


@pytest.fixture(scope="module")
def pages(plan: Plan, run_report: RunReport) -> dict[str, str]:
    unmatched = replace(plan, unmatched=("lake.old.*",))
    return {
        "plan": plan_html(unmatched, Context(digest="5f" * 32, plan_file="plans/today.json")),
        "run": run_html(run_report, Context(plan=plan, ci="https://ci.example/7")),
        "nothing": plan_html(replace(plan, tables=(), failures=()), Context()),
        "nothing run": run_html(RunReport(run="1", plan="2", tables=()), Context()),
    }


KINDS = pytest.mark.parametrize("kind", ["plan", "run", "nothing", "nothing run"])


@KINDS
def test_it_is_well_formed(pages: dict[str, str], kind: str) -> None:
    page = Read(pages[kind])
    ids = [attrs["id"] for _, attrs in page.found if "id" in attrs]
    assert page.unclustered == []
    assert len(set(ids)) == len(ids)
    targets = {str(attrs["href"])[1:] for attrs in page.all("a") if str(attrs["href"]).startswith("#")}
    labels = {str(attrs["aria-labelledby"]) for _, attrs in page.found if "aria-labelledby" in attrs}
    assert targets | labels <= set(ids)


@KINDS
def test_it_needs_nothing_else(pages: dict[str, str], kind: str) -> None:
    page = Read(pages[kind])
    assert page.all("link", "img", "iframe", "object", "base", "embed", "video", "audio", "source") == []
    loaded = [attrs for _, attrs in page.found if {"src", "srcset", "style", "action"} & attrs.keys()]
    assert loaded == []
    (style,), (script,) = (
        re.findall("<style>(.*?)</style>", pages[kind], re.DOTALL),
        re.findall("<script>(.*?)</script>", pages[kind], re.DOTALL),
    )
    policy = str(page.all("meta")[1]["content"])
    for kind_of, text in (("style", style), ("script", script)):
        assert f"{kind_of}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "url(" not in style
    assert "@import" not in style
    assert "fetch" not in script


@KINDS
def test_it_can_be_read_out(pages: dict[str, str], kind: str) -> None:
    page = Read(pages[kind])
    levels = [int(tag[1]) for tag, _ in page.found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(attrs.get("scope") for attrs in page.all("th"))
    assert len(page.all("summary")) == len(page.all("details"))
    assert page.all("html") == [{"lang": "en"}]
    assert all(attrs.get("aria-label") for attrs in page.all("svg"))


def test_a_plan_has_everything(pages: dict[str, str], plan: Plan) -> None:
    said = " ".join(" ".join(Read(pages["plan"]).text).split())
    assert (
        "Not all tables can be read 1 not readable 1 refused 1 irreversible 2 blocking 2 unchanged "
        "3 tables to change, 9 statements."
    ) in said
    assert "3 tables: concurrent writes fail once; 1 table rewrites some data" in said
    assert "writers with a guard ( tablectl.guard ) wait and do not fail" in said
    assert "isolation default Serializable" in said
    code = "".join("".join(Read(pages["plan"]).text).split())
    assert "CLUSTERBY(`customer_id`,`address`.`city`);" in code
    assert "rewrites the files of 1 deletion vector, at most 1 file, at most 4.1 MB" in said
    assert "reader 1, writer 2 → reader 3, writer 7" in said
    assert "P001 warning: readers need protocol 3 with deletionVectors" in said
    assert "clustering: none → [customer_id, address.city]" in said, "the overview says which change"
    assert "partitioning: the table has no column month" in said
    assert "declare isolation: Serializable or default ; or set" in said
    assert "/lake/gone: not a Delta table: there is no _delta_log hint check the location" in said
    for name in ("lake.old.*", "lake.sales.ledger", "plans/today.json", "5f5f5f5f5f5f"):
        assert name in said
    assert all("".join(each.sql.split()) in code for table in plan.tables for each in table.statements)


def test_a_run_has_every_commit(pages: dict[str, str], run_report: RunReport) -> None:
    said = " ".join(" ".join(Read(pages["run"]).text).split())
    for table in run_report.tables:
        for commit in (*table.commits, *table.foreign):
            assert f"version {commit.version}: {commit.operation}" in said
    assert (
        "2026-11-18 11:06:40.200 UTC commit of others version 14: MERGE (data) by etl, while the gate was closed"
        in said
    )
    assert "2026-11-18 11:06:40.150 UTC gate closed, for 700 ms" in said
    assert "version 16: SET TBLPROPERTIES (metadata) by apply, of the apply 77aa, which had lost its lease" in said
    assert "properties.owner.team web payments applied, then changed by others" in said
    assert "despite active writers: the load hangs since Monday" in said


@pytest.mark.parametrize("text", EVIL)
def test_nothing_of_others_means_anything(plan: Plan, run_report: RunReport, text: str) -> None:
    clean = {tag for tag, _ in Read(plan_html(hostile_plan(plan, "x"), Context())).found}
    page = Read(plan_html(hostile_plan(plan, text), Context(plan_file=text, ci=f"https://x/{text}")))
    assert {tag for tag, _ in page.found} <= clean | {"code"}
    assert not [name for _, attrs in page.found for name in attrs if name.startswith("on")]
    assert any(printable(text) == each for each in page.text)
    commit = CommitRun(version=1, operation=text, user=text, at=10**20, run=text)
    run = TableRun(
        name=text, outcome=RunOutcome.FAILED, message=text, commits=(commit,), foreign=(commit,), notes=(text,)
    )
    page = Read(run_html(replace(run_report, run=text, tables=(run, run_report.tables[0]), proceed=text), Context()))
    assert page.unclustered == []
    assert not [name for _, attrs in page.found for name in attrs if name.startswith("on")]


def test_ten_thousand_changes(plan: Plan) -> None:
    started = process_time()
    page = plan_html(many(plan, 10_000), Context())
    assert process_time() - started < 30
    assert page.count("<article") == 2, "equal changes are one group"
    assert len(page) < 2_000_000
