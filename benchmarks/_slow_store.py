"""An object store that answers late: S3's requests for the files below a folder, each answer 30 ms after its request.

`python _slow_store.py FOLDER MILLISECONDS` prints its port and serves until its input ends. `GET /-/requests` answers
with the methods of all requests since the last such question, which is not one of them itself. It knows what a log
reader and a lease ask for: GET with ranges, HEAD, LIST (version 2), PUT with `If-None-Match: *`, DELETE, and POST of
deletions.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import urlopen
from xml.sax.saxutils import escape
from zlib import crc32

_PAGE = 1000
_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")


@dataclass(frozen=True, slots=True)
class SlowStore:
    """A running server."""

    url: str

    def environment(self) -> dict[str, str]:
        """Variables by which tablectl and deltalake find it."""
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
        return {**keys, "AWS_ENDPOINT_URL": self.url, "AWS_ALLOW_HTTP": "true"}

    def requests(self) -> list[str]:
        """The methods of the requests since the last call; a LIST is one of its own."""
        with urlopen(f"{self.url}/-/requests") as answer:
            found: list[str] = json.load(answer)
        return found


@contextmanager
def slow_store(folder: Path, milliseconds: int = 30) -> Iterator[SlowStore]:
    """A server in a process of its own, whose bucket `lake` is the folder."""
    command = (sys.executable, __file__, str(folder), str(milliseconds))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield SlowStore(f"http://127.0.0.1:{server.stdout.readline().strip()}")
        finally:
            server.stdin.close()


@dataclass(slots=True)
class _Store:
    """The files of the bucket, and what was asked."""

    folder: Path
    seconds: float
    files: dict[str, bytes] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    """Sorted, as a store lists them."""
    asked: list[str] = field(default_factory=list)

    def load(self) -> None:
        """All files are held in memory: what is measured is the client."""
        for directory, _, names in os.walk(self.folder):
            for name in names:
                path = Path(directory, name)
                self.files[path.relative_to(self.folder).as_posix()] = path.read_bytes()
        self.keys = sorted(self.files)

    def put(self, key: str, data: bytes) -> None:
        if key not in self.files:
            self.keys.insert(bisect_left(self.keys, key), key)
        self.files[key] = data

    def delete(self, key: str) -> None:
        if self.files.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    key: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes = b""
    headers: tuple[str, ...] = ()
    size: int | None = None
    """The size of what a HEAD tells."""


def _answer(store: _Store, request: _Request) -> _Answer:
    if request.method == "GET" and "list-type" in request.query:
        return _list(store, request.query)
    if request.method == "POST":
        keys = re.findall(rb"<Key>([^<]*)</Key>", request.body)
        for key in keys:
            store.delete(key.decode())
        told = b"".join(b"<Deleted><Key>%s</Key></Deleted>" % key for key in keys)
        return _Answer(200, b"<DeleteResult>%s</DeleteResult>" % told)
    if request.method == "PUT":
        if request.headers.get("if-none-match") == "*" and request.key in store.files:
            return _Answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        store.put(request.key, request.body)
        return _Answer(200, headers=(_etag(store, request.key),))
    if request.method == "DELETE":
        store.delete(request.key)
        return _Answer(204)
    return _read(store, request)


def _read(store: _Store, request: _Request) -> _Answer:
    data = store.files.get(request.key)
    if data is None:
        return _Answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
    told = (_etag(store, request.key), f"Last-Modified: {formatdate(0, usegmt=True)}")
    if request.method == "HEAD":
        return _Answer(200, headers=told, size=len(data))
    asked = _RANGE.match(request.headers.get("range", ""))
    if asked is None:
        return _Answer(200, data, told)
    first = int(asked[1]) if asked[1] else max(len(data) - int(asked[2]), 0)
    last = min(int(asked[2]), len(data) - 1) if asked[1] and asked[2] else len(data) - 1
    return _Answer(206, data[first : last + 1], (*told, f"Content-Range: bytes {first}-{last}/{len(data)}"))


def _list(store: _Store, query: Mapping[str, list[str]]) -> _Answer:
    prefix = query.get("prefix", [""])[0]
    after = query.get("continuation-token", query.get("start-after", [""]))[0]
    folders = query.get("delimiter", [""])[0] == "/"
    start = bisect_right(store.keys, after) if after >= prefix and after else bisect_left(store.keys, prefix)
    found, prefixes, more = list[str](), dict[str, None](), ""
    for number in range(start, len(store.keys)):
        key = store.keys[number]
        if not key.startswith(prefix):
            break
        if len(found) + len(prefixes) == _PAGE:
            more = store.keys[number - 1]
            break
        below, slash, _ = key[len(prefix) :].partition("/")
        if folders and slash:
            prefixes[f"{prefix}{below}/"] = None
        else:
            found.append(key)
    contents = "".join(
        f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>{_etag_of(store.files[key])}</ETag><Size>{len(store.files[key])}</Size></Contents>"
        for key in found
    )
    common = "".join(f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in prefixes)
    rest = f"<NextContinuationToken>{escape(more)}</NextContinuationToken>" if more else ""
    truncated = "true" if more else "false"
    text = f"<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{rest}{contents}{common}</ListBucketResult>"
    return _Answer(200, text.encode(), ("Content-Type: application/xml",))


def _etag(store: _Store, key: str) -> str:
    return f"ETag: {_etag_of(store.files[key])}"


def _etag_of(data: bytes) -> str:
    return f'"{crc32(data):08x}-{len(data)}"'


async def _connection(store: _Store, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head.rstrip().split("\r\n")
            method, target, _ = line.split(" ", 2)
            headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            parts = urlsplit(target)
            if parts.path == "/-/requests":
                answer = _Answer(200, json.dumps(store.asked).encode())
                store.asked.clear()
            else:
                query = parse_qs(parts.query, keep_blank_values=True)
                _, _, key = unquote(parts.path).lstrip("/").partition("/")
                store.asked.append("LIST" if "list-type" in query else method)
                await asyncio.sleep(store.seconds)
                answer = _answer(store, _Request(method, key, query, headers, body))
            size = len(answer.body) if answer.size is None else answer.size
            lines = [f"HTTP/1.1 {answer.status} OK", *answer.headers, f"Content-Length: {size}", "", ""]
            writer.write("\r\n".join(lines).encode("latin-1") + (b"" if method == "HEAD" else answer.body))
            await writer.drain()
    writer.close()


async def _serve(store: _Store) -> None:
    store.load()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _connection(store, reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(_Store(Path(sys.argv[1]), int(sys.argv[2]) / 1000)))
