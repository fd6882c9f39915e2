"""Reports of hostile plans, read by cmark-gfm, an HTML parser, an XML parser, a JSON parser and Chromium.

``cmark-gfm`` is GitHub's own reader of Markdown (Debian: ``apt-get install cmark-gfm``); without it the same is read
by markdown-it, and the counts say so. Chromium is asked by a subject of its own, in which a try is a page.
"""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from xml.etree import ElementTree as ET

from markdown_it import MarkdownIt

from tablectl.documents.style import Style
from tablectl.model.plan import Plan
from tablectl.model.safe_text import escape_output
from tablectl.reports.mask import Mask
from tablectl.reports.render import ReportFormat
from tablectl.reports.report_context import Context
from tests.fuzz.hostile import hostile_text
from tests.fuzz.subject import Subject
from tests.output_commands import obeyed
from tests.reports import chromium
from tests.reports.conftest import _plan
from tests.reports.rendered import render_plan
from tests.reports.test_plan_markdown import OURS, hostile_plan

_CMARK = shutil.which("cmark-gfm")
_GFM = ("--unsafe", "-e", "table", "-e", "autolink", "-e", "strikethrough", "-e", "tagfilter", "-e", "tasklist")
_CONTEXT = Context(pending_fails=True)


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name) for name, _ in attrs]


@cache
def _clean(form: ReportFormat) -> frozenset[tuple[str, str]]:
    """The attributes of a report without anything hostile."""
    return frozenset(_Tags(render_plan(_hostile("x"), form, Style(), Mask(), _CONTEXT)).attributes)


def _hostile(text: str) -> Plan:
    return hostile_plan(_plan(), text)


def rendered(random: Random) -> str:
    plan = _hostile(hostile_text(random))
    form = random.choice(list(ReportFormat))
    text = escape_output(render_plan(plan, form, Style(), Mask(), _CONTEXT))
    assert obeyed(text) == []
    match form:
        case ReportFormat.MARKDOWN:
            reader = _check_markdown(text)
            return f"Markdown, read by {reader}"
        case ReportFormat.HTML:
            _check_html(text)
        case ReportFormat.JUNIT:
            assert ET.fromstring(text).tag == "testsuites"
        case ReportFormat.JSON | ReportFormat.SARIF:
            json.loads(text)
        case ReportFormat.TEXT:
            pass
    return str(form)


def _check_markdown(text: str) -> str:
    if _CMARK:
        done = subprocess.run([_CMARK, *_GFM], input=text.encode(), capture_output=True, check=True, timeout=60)
        page = _Tags(done.stdout.decode())
    else:
        page = _Tags(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
    assert set(page.tags) <= OURS, set(page.tags) - OURS
    assert {name for _, name in page.attributes} <= {"class", "lang"}, page.attributes
    return "cmark-gfm" if _CMARK else "markdown-it, since cmark-gfm is not installed"


def _check_html(text: str) -> None:
    page = _Tags(text)
    assert page.tags.count("script") == 1
    assert page.tags.count("style") == 1
    assert set(page.attributes) <= _clean(ReportFormat.HTML), set(page.attributes) - _clean(ReportFormat.HTML)


@cache
def _browser() -> tuple[chromium.Browser, Path]:
    stack = ExitStack()
    atexit.register(stack.close)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tablectl-fuzz-", ignore_cleanup_errors=True)))
    return stack.enter_context(chromium.browser(folder / "profile")), folder


def opened(random: Random) -> str:
    if chromium.find() is None:
        return "skipped: no Chromium is installed"
    browser, folder = _browser()
    file = folder / "page.html"
    text = render_plan(_hostile(hostile_text(random)), ReportFormat.HTML, Style(), Mask(), _CONTEXT)
    file.write_text(text, encoding="utf-8")
    page = chromium.Page.open(browser, file)
    assert page.value("document.scripts.length") == 1
    loads = "img, iframe, object, embed, form[action], link[href]"
    assert page.value(f"document.querySelectorAll('{loads}').length") == 0
    handlers = "[...document.querySelectorAll('*')].some(e => e.getAttributeNames().some(n => /^on/.test(n)))"
    assert page.value(handlers) is False
    requests = (each["params"]["request"] for each in browser.events if each["method"] == "Network.requestWillBeSent")
    asked = {each["url"] for each in requests}
    assert asked <= {file.as_uri()}, asked
    said = {"Log.entryAdded", "Runtime.exceptionThrown", "Page.javascriptDialogOpening"}
    assert not [each for each in browser.events if each["method"] in said]
    browser.call("Target.closeTarget", targetId=_target(browser, file))
    return "opened by Chromium"


def _target(browser: chromium.Browser, file: Path) -> str:
    targets = browser.call("Target.getTargets")["targetInfos"]
    return next(str(each["targetId"]) for each in targets if each["url"] == file.as_uri())


SUBJECTS = (
    Subject("reports", "whatever a plan holds, no report has a tag, an attribute or a command of it", rendered, 60),
    Subject("pages", "whatever a plan holds, Chromium runs and loads nothing of it", opened, 3),
)
