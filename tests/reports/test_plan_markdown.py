"""A plan as a comment. It is read as the sites read it: Markdown first, then HTML."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import groupby
from time import process_time

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt

from tablectl.model.plan import Change, Plan, TableFailure, TablePlan
from tablectl.model.safe_text import printable, read_code
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.document_markdown import LIMIT, fenced, words
from tablectl.reports.report_context import Context
from tests.reports.hostile import EVIL, TEXTS
from tests.reports.rendered import plan_markdown

Golden = Callable[[str, str], None]
OURS = frozenset(
    {
        "a",
        "code",
        "details",
        "i",
        "li",
        "p",
        "pre",
        "strong",
        "b",
        "br",
        "sub",
        "summary",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "wbr",
        "ul",
    }
)
_MENTION = re.compile(r"[@#!]\w|https?://|www\.\w|GH-\d|\b[0-9a-f]{7,40}\b")


def fence(*statements: str) -> str:
    """Statements as fenced blocks, one for each run of statements in the same language. They need an empty line before
    them.
    """
    codes = groupby(map(read_code, statements), key=lambda each: each.language)
    return "\n\n".join(fenced(name, [line for each in group for line in each.shown()]) for name, group in codes)


class Page(HTMLParser):
    """What a browser is left with: tags, attributes, text in code, and text that the sites look into."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str | None] = []
        self.code = ""
        self.prose = ""
        self._depth = 0
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name != "class"]
        self._depth += tag == "code"
        self.prose += " " if tag == "code" else ""  # an element: the texts before and after it do not touch

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag == "code"

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.code += data
        else:
            self.prose += data


def test_the_whole_of_it(plan: Plan, golden: Golden) -> None:
    source = SourceFile("policies/sales.yaml", 7, 5)
    sources = {"lake.sales.orders": {"isolation": source, "": replace(source, line=6)}}
    run = "https://github.com/acme/lake/actions/runs/7"
    context = Context(digest="5f" * 32, sources=sources, plan_file="plans/today.json", ci=run)
    golden("plan.md", plan_markdown(plan, context))


def test_the_verdict_is_the_first_line(plan: Plan) -> None:
    def first(plan: Plan) -> str:
        return plan_markdown(plan, Context()).splitlines()[0]

    pending = replace(plan, tables=(plan.tables[0],), failures=())
    refused = replace(plan, tables=(plan.tables[2],), failures=())
    assert first(plan) == (
        "**⛔ Plan: Not all tables can be read** · ⛔ <b>1 not readable</b> · ⛔ <b>1 refused</b> · "
        "🟠 <b>1 irreversible</b> · 🟡 <b>2 blocking</b> · 2 unchanged"
    )
    assert first(pending) == "**🟠 Plan: Cannot be undone in full** · 🟠 <b>1 irreversible</b> · 2 unchanged"
    assert first(refused) == "**⛔ Plan: Refused** · ⛔ <b>1 refused</b> · 2 unchanged"
    assert first(replace(plan, tables=(), failures=())) == "**✅ Plan: No changes** · 2 tables match their policies"


def test_what_is_worst_comes_first_in_the_table_and_in_the_details(plan: Plan) -> None:
    text = plan_markdown(plan, Context())
    worst = ["lake.sales.gone", "lake.sales.sessions", "lake.sales.orders"]
    assert re.findall("<summary>.*?<code>(lake.*?|delta.*?)</code>", text)[:3] == worst
    assert re.findall("<tr><td>. <b>[a-z ]+</b><br><code>(.*?)</code>", text)[:3] == worst


def hostile_plan(plan: Plan, text: str) -> Plan:
    """A plan in which a text stands wherever someone else's may stand."""
    first, *_, refused, last = plan.tables
    change = Change(attribute="properties", key=text, before=text, after=text)
    statement = replace(first.statements[0], sql=f"SET ('{text}')", reason=text, fails=text, undo=(text,))
    tables = (
        replace(first, name=text, changes=(change,), statements=(statement,)),
        replace(refused, refusals=(replace(refused.refusals[0], change=text, reason=text, fix=text),)),
        last,
    )
    failure = TableFailure(name=text, message=text, hint=text)
    return replace(plan, tables=tables, failures=(failure,), unmatched=(text,), tool=text, dialect=text)


@pytest.mark.parametrize("text", EVIL)
def test_nothing_of_others_means_anything(plan: Plan, text: str) -> None:
    page = Page(plan_markdown(hostile_plan(plan, text), Context(ci=f"https://x/{text}", plan_file=text)))
    assert set(page.tags) <= OURS
    assert page.links == []
    assert not _MENTION.search(page.prose)
    assert printable(text) in page.code


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_nothing_of_anybody_means_anything(text: str) -> None:
    page = Page(f"<p>{words(text)}</p>\n\nend")
    assert set(page.tags) <= {"p", "code"}
    assert not _MENTION.search(page.prose)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_a_statement_stays_in_its_block(text: str) -> None:
    page = Page(f"<details>\n<summary>x</summary>\n\n{fence(text)}\n<ul>\n<li>end</li>\n</ul>\n\n</details>")
    assert page.tags == ["details", "summary", "pre", "code", "ul", "li"]
    assert page.code == "\n".join(read_code(text).shown()) + "\n"


def many(plan: Plan, count: int) -> Plan:
    table = plan.tables[0]
    return replace(plan, tables=tuple(replace(table, name=f"lake.s.t{number:05}") for number in range(count)))


def distinct(plan: Plan, count: int) -> Plan:
    """Tables of which no two have equal changes."""
    tables = many(plan, count).tables
    change = tables[0].changes[0]
    changes = (replace(change, after=f"value {number}") for number in range(count))
    return replace(plan, tables=tuple(replace(t, changes=(c,)) for t, c in zip(tables, changes, strict=True)))


@pytest.mark.parametrize("count", [1, 5, 14, 10_000])
def test_it_is_never_too_long(plan: Plan, count: int) -> None:
    text = plan_markdown(distinct(plan, count), Context(plan_file="plans/today.json"))
    shown = len(re.findall(r"<tr><td>. <b>[a-z ]+</b><br><code>lake\.s\.t", text))
    left = re.search(r"<b>(\d+) groups? with (\d+) tables? of less weight are left out here</b>", text)
    assert len(text.encode()) <= LIMIT
    assert shown + (int(left[1]) if left else 0) == count
    assert bool(left) == (count > 14)
    assert text.endswith("<!-- tablectl plan -->\n")
    assert text.count("<details>") == text.count("</details>")
    if left:
        assert len(text.encode()) > LIMIT - 14_000
        assert "The whole plan is in <code>plans/today.json</code>" in text


def test_equal_tables_are_one_row_for_any_number_of_tables(plan: Plan) -> None:
    text = plan_markdown(many(plan, 10_000), Context())
    assert len(re.findall("<tr><td>. <b>irreversible</b>", text)) == 1
    assert "and 9,997 more" in text
    assert "left out here" not in text


def test_the_details_of_a_value_that_is_too_long_are_left_out(plan: Plan) -> None:
    change = Change(attribute="properties", key="note", before=None, after="<" * 100_000)
    huge = replace(plan.tables[0], changes=(change,))
    text = plan_markdown(replace(plan, tables=(huge,), failures=()), Context())
    assert "The details of some groups are left out here" in text
    assert "<code>lake.sales.orders</code>" in text
    assert len(text) < 10_000


def test_a_name_that_is_too_long_is_cut(plan: Plan) -> None:
    huge = replace(plan.tables[0], name="x" * 100_000)
    text = plan_markdown(replace(plan, tables=(huge,), failures=()), Context())
    assert "xxx…</code>" in text
    assert len(text.encode()) < LIMIT


def test_its_time_does_not_grow_with_what_is_left_out(plan: Plan) -> None:
    huge = many(plan, 10_000)
    started = process_time()
    plan_markdown(huge, Context())
    assert process_time() - started < 10


def test_a_table_tells_the_lines_that_ask_for_its_changes(plan: Plan, table_planned: Callable[..., TablePlan]) -> None:
    planned = table_planned("lake.s.t", {}, {"isolation": "Serializable"})
    source = SourceFile("policies/a|b.yaml", 3, 1)
    one = replace(plan, tables=(planned,), failures=())
    assert "declared at" not in plan_markdown(one, Context())
    text = plan_markdown(one, Context(sources={"lake.s.t": {"isolation": source}}))
    assert "<td><code>policies/a|b.yaml:3</code></td>" in text


def test_a_dataframe_write_is_fenced_as_python_and_sql_as_sql() -> None:
    write = "(spark.table('t')\n  .save('t'))"
    assert fence(write) == f"```python\n{write}\n```"
    assert fence("SELECT 1", "SELECT 2", write) == f"```sql\nSELECT 1;\nSELECT 2;\n```\n\n```python\n{write}\n```"
