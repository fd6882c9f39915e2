"""Pages in a real browser: read, clicked, on a phone, in the dark, on paper.

``TABLECTL_SCREENSHOTS=FOLDER`` keeps pictures of them to be looked at.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tablectl.model.plan import Plan
from tablectl.model.run_report import RunReport
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.report_context import Context
from tests.reports import chromium
from tests.reports.chromium import Browser, Page
from tests.reports.hostile import EVIL
from tests.reports.rendered import plan_html, run_html
from tests.reports.test_plan_markdown import hostile_plan

pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="no Chromium is installed (apt-get install chromium): pages are opened in none"
)
_CONTRAST = """(() => {
  const bright = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const behind = each => { for (; each; each = each.parentElement) {
    const found = parse(getComputedStyle(each).backgroundColor); if (found.length < 4 || found[3] > 0) return found; }
    return [255, 255, 255]; };
  const wrong = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const each = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || each.closest("script, svg") || !each.getClientRects().length) continue;
    const [one, two] = [bright(parse(getComputedStyle(each).color)), bright(behind(each))].sort((a, b) => b - a);
    const ratio = (one + .05) / (two + .05);
    if (ratio < 4.5) wrong.push(`${walk.currentNode.data.trim()}: ${ratio}`);
  }
  return wrong;
})()"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium.browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def plan_file(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "plan.html"
    sources = {"lake.sales.orders": {"": SourceFile("policies/sales.yaml", 7, 3)}}
    file.write_text(plan_html(plan, Context(digest="5f" * 32, sources=sources, plan_file="plans/today.json")))
    return file


@pytest.fixture(scope="module")
def run_file(run_report: RunReport, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "run.html"
    file.write_text(run_html(run_report, Context(plan=plan, ci="https://ci.example/7")))
    return file


def shown(page: Page) -> list[str]:
    found = page.value(
        "[...document.querySelectorAll('article')].filter(e => !e.hidden).map(e => e.querySelector('code').innerText)"
    )
    assert isinstance(found, list)
    return found


def keep(page: Page, name: str) -> None:
    folder = os.environ.get("TABLECTL_SCREENSHOTS")
    if folder:
        page.picture(Path(folder) / f"{name}.png")


@pytest.mark.parametrize("kind", ["plan", "run"])
def test_nothing_is_asked_of_anybody(running: Browser, plan_file: Path, run_file: Path, kind: str) -> None:
    page = Page.open(running, {"plan": plan_file, "run": run_file}[kind])
    assert page.value("document.querySelectorAll('article').length") > 4
    assert page.complaints() == []


def test_the_filter(running: Browser, plan_file: Path) -> None:
    page = Page.open(running, plan_file)
    every = [
        "lake.sales.gone",
        "lake.sales.sessions",
        "lake.sales.orders",
        "delta.`/lake/returns`",
        "lake.sales.clicks",
    ]
    assert shown(page) == every
    page.click("input[name=text]")
    page.type("APPLY (PURGE)")
    assert shown(page) == ["delta.`/lake/returns`"]
    assert page.value("document.querySelector('output').innerText") == "1 of 5 groups"
    assert page.value("[...document.querySelectorAll('tr[data-for]')].filter(e => !e.hidden).length") == 1
    page.value("document.forms[0].reset(); document.forms[0].dispatchEvent(new Event('input'))")
    page.value(
        "document.forms[0].elements.state.value = 'refused'; document.forms[0].dispatchEvent(new Event('input'))"
    )
    assert shown(page) == ["lake.sales.sessions"]


def test_folding(running: Browser, plan_file: Path) -> None:
    page = Page.open(running, plan_file)
    opened = "document.querySelectorAll('article details[open]').length"
    assert page.value(opened) == 0, "cards are collapsed"
    page.click("article details > summary")
    assert page.value(opened) == 1
    page.click("button[name=open]")
    assert page.value(opened) == page.value("document.querySelectorAll('article details').length") > 5


def test_a_link_leads_to_its_table_and_unfolds_it(running: Browser, plan_file: Path) -> None:
    page = Page.open(running, plan_file)
    page.click("button[name=close]")
    page.click("tr[data-for=t2] a")
    assert page.value("new Promise(done => setTimeout(() => done(location.hash), 200))") == "#t2"
    assert page.value("document.querySelector('#t2 > details').open") is True
    assert page.value("document.querySelector('#t4 > details').open") is False


def test_the_keyboard(running: Browser, plan_file: Path) -> None:
    page = Page.open(running, plan_file)
    page.press("Tab")
    assert page.value("document.activeElement.innerText") == "Skip to the tables"
    assert page.value("document.activeElement.getBoundingClientRect().x") >= 0
    assert page.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.value("document.querySelector('#t2 > details > summary').focus()")
    page.press("Enter")
    assert page.value("document.querySelector('#t2 > details').open") is True


def test_without_scripts_everything_is_there(running: Browser, plan_file: Path) -> None:
    page = Page.open(running, plan_file, scripts=False)
    page.call("Emulation.setScriptExecutionDisabled", value=False)  # to ask; the page's own did not run
    assert len(shown(page)) == 5
    assert page.value("getComputedStyle(document.querySelector('.filter')).display") == "none"
    assert page.value("document.querySelectorAll('article pre').length") >= 9


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("kind", ["plan", "run"])
def test_a_phone(running: Browser, plan_file: Path, run_file: Path, kind: str, width: int) -> None:
    page = Page.open(running, {"plan": plan_file, "run": run_file}[kind], width=width, height=800)
    assert page.value("document.documentElement.scrollWidth") <= width
    cut = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel)"
    assert page.value(cut) == [], "nothing has to be scrolled sideways to be read"
    keep(page, f"{kind}-{width}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["plan", "run"])
def test_light_and_dark(running: Browser, plan_file: Path, run_file: Path, kind: str, scheme: str) -> None:
    page = Page.open(running, {"plan": plan_file, "run": run_file}[kind])
    page.look(prefers_color_scheme=scheme)
    red, *_ = page.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (red < 60) == (scheme == "dark")
    page.click("button[name=open]")
    assert page.value(_CONTRAST) == []
    keep(page, f"{kind}-{scheme}")


def test_paper(running: Browser, plan_file: Path) -> None:
    page = Page.open(running, plan_file)
    page.click("button[name=close]")
    page.look("print", prefers_color_scheme="dark")
    assert page.value("getComputedStyle(document.querySelector('.filter')).display") == "none"
    assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    # What is folded is printed all the same.
    assert page.value("document.querySelector('#t3 pre').getBoundingClientRect().height") > 20
    assert page.value(_CONTRAST) == []
    folder = os.environ.get("TABLECTL_SCREENSHOTS")
    printed = b64decode(page.call("Page.printToPDF")["data"])
    assert printed.startswith(b"%PDF")
    if folder:
        (Path(folder) / "plan.pdf").write_bytes(printed)


@pytest.mark.parametrize("kind", ["plan", "run"])
def test_a_screen_reader(running: Browser, plan_file: Path, run_file: Path, kind: str) -> None:
    page = Page.open(running, {"plan": plan_file, "run": run_file}[kind])
    page.value("document.querySelectorAll('details').forEach(each => { each.open = true })")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    found: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            found.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert len(found["banner"]) == len(found["main"]) == len(found["contentinfo"]) == len(found["search"]) == 1
    assert {"Overview", "Tables"} <= set(found["region"])
    for role in ("table", "article", "link", "button", "searchbox", "combobox", "image"):
        assert all(found.get(role, ["none is fine"])), role
    assert found["searchbox"] == ["Filter"]
    if kind == "run":
        assert any(name.startswith("Timeline of lake.sales.orders: 8 events") for name in found["image"])


@pytest.mark.parametrize("text", EVIL)
def test_nothing_of_others_does_anything(
    running: Browser, plan: Plan, run_report: RunReport, tmp_path: Path, text: str
) -> None:
    evil = replace(hostile_plan(plan, text), unchanged=(text,))
    file = tmp_path / "plan.html"
    file.write_text(plan_html(evil, Context(plan_file=text, ci=f"https://x/{text}")), "utf-8", "backslashreplace")
    page = Page.open(running, file)
    assert page.complaints() == []
    assert page.value("document.querySelectorAll('script, img, h1').length") == 2
    handlers = (
        "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).filter(a => a.name.startsWith('on'))"
    )
    assert page.value(f"{handlers}.length") == 0
