"""Records on Google Cloud Storage, against a server that does what Google's XML API documents for single objects.

fake-gcs-server has no puts of the XML API (https://github.com/fsouza/fake-gcs-server/issues/331), which obstore sends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.records import open_records

_DATE = "Sun, 22 Nov 2026 12:00:00 GMT"


class XmlApi(BaseHTTPRequestHandler):
    """One bucket. A put with ``x-goog-if-generation-match: 0`` fails with 412 if the object exists."""

    objects: dict[str, bytes]
    lock: threading.Lock
    conditions: list[str | None]

    def name(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix("/lake").removeprefix("/")

    def answer(self, code: int, body: bytes = b"") -> None:
        self.send_response(code)
        self.send_header("ETag", '"1"')
        self.send_header("x-goog-generation", "1")
        self.send_header("Last-Modified", _DATE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        condition = self.headers.get("x-goog-if-generation-match")
        self.conditions.append(condition)
        with self.lock:
            exists = self.name() in self.objects
            if not (condition == "0" and exists):
                self.objects[self.name()] = data
        self.answer(412 if condition == "0" and exists else 200)

    def do_GET(self) -> None:
        if self.name():
            found = self.objects.get(self.name())
            self.answer(404 if found is None else 200, found or b"")
            return
        prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
        keys = sorted(key for key in self.objects if key.startswith(prefix))
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size><ETag>1</ETag>"
            "<LastModified>2026-11-22T12:00:00.000Z</LastModified></Contents>"
            for key in keys
        )
        self.answer(200, f"<ListBucketResult>{entries}</ListBucketResult>".encode())

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.answer(204 if self.objects.pop(self.name(), None) is not None else 404)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[type[XmlApi], StoreOptions]]:
    class Handler(XmlApi):
        """The objects of this test."""

    Handler.objects, Handler.lock, Handler.conditions = {}, threading.Lock(), []
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    given = {"base_url": f"http://127.0.0.1:{listening.server_port}", "allow_http": "true", "skip_signature": "true"}
    yield Handler, StoreOptions(families={"gs": given})
    listening.shutdown()
    listening.server_close()


def test_a_record_is_put_once_read_listed_and_deleted(api: tuple[type[XmlApi], StoreOptions]) -> None:
    server, options = api
    records = open_records("gs://lake/orders", options=options)
    assert records.create("lease/1.json", b"first")
    assert not records.create("lease/1.json", b"second")
    assert set(server.conditions) == {"0"}
    assert records.read("lease/1.json") == b"first"
    assert records.names("lease/") == ("lease/1.json",)
    records.delete("lease/1.json")
    assert records.read("lease/1.json") is None


def test_of_processes_that_put_one_number_one_wins(api: tuple[type[XmlApi], StoreOptions]) -> None:
    _, options = api
    won = list[int]()

    def put(number: int) -> None:
        if open_records("gs://lake/orders", options=options).create("lease/1.json", str(number).encode()):
            won.append(number)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    (winner,) = won
    assert open_records("gs://lake/orders", options=options).read("lease/1.json") == str(winner).encode()
