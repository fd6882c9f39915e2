"""The built site in a real browser, on a phone and a desktop: skipped without ``make docs`` before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tests.docs.pages import ROOT
from tests.reports import chromium

SITE = ROOT / "build" / "site"
pytestmark = [
    pytest.mark.skipif(chromium.find() is None, reason="no Chromium here"),
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="`make docs` has not built the site"),
]
_FOUND = "document.activeElement.shadowRoot?.querySelector('ol a, li a')?.getAttribute('href')"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        return


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the site is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(SITE))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def page(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Page]:
    with chromium.browser(tmp_path_factory.mktemp("profile")) as browser:
        yield chromium.Page.open(browser, address, width=1280, height=900)


def go(page: chromium.Page, url: str) -> None:
    page.browser.events.clear()
    page.call("Page.navigate", url=url)
    page.browser.wait("Page.loadEventFired")


def soon(page: chromium.Page, expression: str) -> Any:
    """The first value of a piece of JavaScript that is not false; ``None`` after half a minute."""
    waiting = (
        "new Promise(done => {const end = Date.now() + 30000; const look = () => {"
        f"const value = {expression}; if (value || Date.now() > end) done(value || null);"
        "else setTimeout(look, 50)}; look()})"
    )
    return page.value(waiting)


def test_no_page_is_wider_than_a_phone(page: chromium.Page, address: str) -> None:
    page.size(390, 844)
    wide = []
    for file in sorted(SITE.rglob("index.html")):
        go(page, f"{address}{file.parent.relative_to(SITE).as_posix()}/")
        if (width := page.value("document.documentElement.scrollWidth")) > 390:
            wide.append((str(file.relative_to(SITE)), width))
    assert wide == []


def test_the_colours_follow_what_the_system_prefers(page: chromium.Page, address: str) -> None:
    shown = {}
    for scheme in ("light", "dark"):
        page.look(prefers_color_scheme=scheme)
        go(page, address)
        shown[scheme] = (
            page.value("getComputedStyle(document.body).backgroundColor"),
            page.value("document.querySelector('picture img').currentSrc.split('/').pop()"),
        )
    assert shown["light"] == ("rgb(255, 255, 255)", "review-light.png")
    assert shown["dark"][1] == "review-dark.png"
    assert max(json.loads(f"[{shown['dark'][0].removeprefix('rgb(').removesuffix(')')}]")) < 40


def test_a_search_finds_the_page_that_answers(page: chromium.Page, address: str) -> None:
    for words, answer in {"stop an apply": "docs/stopping/", "terabytes": "docs/large-tables/"}.items():
        go(page, address)
        page.click(".md-search__button")
        assert soon(page, "document.activeElement.shadowRoot?.querySelector('input')") is not None
        page.type(words)
        assert answer in soon(page, _FOUND)


def test_a_page_asks_no_other_host(page: chromium.Page, address: str) -> None:
    for name in ("", "docs/architecture/", "docs/generated/commands/"):
        go(page, f"{address}{name}")
        asked = {each for each in page.complaints() if each.startswith("http")}
        assert {each for each in asked if not each.startswith(address)} == set()


def test_the_navigation_shows_the_tasks(page: chromium.Page) -> None:
    tabs = page.value("[...document.querySelectorAll('.md-tabs__link')].map(each => each.textContent.trim())")
    assert tabs == ["Start", "Decide", "Apply", "Operate", "Look up", "Contribute"]


def test_the_first_screen_of_a_desktop_shows_the_first_command(page: chromium.Page) -> None:
    top = page.value(
        "[...document.querySelectorAll('pre')].find(each => each.textContent.includes('tablectl check'))"
        ".getBoundingClientRect().top"
    )
    assert top < 900
