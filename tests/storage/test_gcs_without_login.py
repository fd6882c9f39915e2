"""Google Cloud Storage without a login (``skip_signature``): reads send no token, and puts ask no machine for one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tablectl.storage.object_stores import RetryLimits, StoreOptions, open_bucket


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """An address that takes every request, and the requests, each with its token."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            seen.append(f"{self.command} {self.path} {self.headers.get('authorization')}")
            self.send_response(200)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield f"http://127.0.0.1:{listening.server_port}", seen
    listening.shutdown()
    listening.server_close()


@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_put_without_signature_asks_no_machine_for_a_token(
    server: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    url, seen = server
    given = {"base_url": url, "allow_http": "true"}
    if by == "option":
        given["skip_signature"] = "true"
    else:
        monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    store = open_bucket("gs", "lake", StoreOptions(families={"gs": given}), RetryLimits(0, 5))
    store.put("a/b", b"x", mode="create")
    assert seen == ["PUT /lake/a%2Fb Bearer anonymous"]
