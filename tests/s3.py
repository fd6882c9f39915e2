"""A server for S3 and DynamoDB (moto), in a thread of the tests, which tests can make misbehave."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

REGION = "eu-west-1"
KEY = "test-key"
"""Both halves of the credentials: moto takes any."""

_App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class RequestGroup:
    """Requests that wait for each other: none is carried out before all have arrived. Later ones do not wait.

    A request belongs to the group if its method, path, DynamoDB operation and DynamoDB body contain all ``parts``.
    """

    def __init__(self, *parts: str, size: int = 2) -> None:
        self.first = threading.Event()
        """Set when the first of them is waiting."""
        self._parts = parts
        self._barrier = threading.Barrier(size)
        self._met = False

    def wait(self, request: str) -> None:
        """Hold a request of the group. Raises ``BrokenBarrierError`` if the others do not come."""
        if self._met or not all(part in request for part in self._parts):
            return
        self.first.set()
        self._barrier.wait(timeout=45)
        self._met = True


@dataclass
class Faults:
    """What the server does wrong, and what it saw."""

    denied: tuple[str, ...] = ()
    """Parts of the paths that no one may touch."""
    refused: tuple[str, ...] = ()
    """Rights that the caller lacks, as ``delete _tablectl/guards``: put, get, list or delete, and a part of the key."""
    expired: tuple[str, ...] = ()
    """Access keys that are not accepted any more."""
    lost_puts: int = 0
    """How many of the next writes are done and answered with a server error."""
    ignores_conditions: bool = False
    """Whether a write with ``If-None-Match`` is carried out all the same, as old S3-compatible stores do."""
    group: RequestGroup | None = None
    """Requests that wait for each other."""
    seen: list[str] = field(default_factory=list)
    """Method and path of each request."""
    conditional: list[str] = field(default_factory=list)
    """Those with ``If-None-Match``."""


class S3Server:
    """One server for all tests; each takes a bucket of its own.

    S3 promises that of two writes with ``If-None-Match: *`` one fails, and DynamoDB the same of two with an
    expectation. moto looks and then writes, in threads, so here writes wait for each other.
    """

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.faults = Faults()
        self._app: _App = DomainDispatcherApplication(create_backend_app)
        self._writing = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def environ(self) -> dict[str, str]:
        """The variables by which a program reaches the server, as it would reach S3."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    @contextmanager
    def tls(self) -> Iterator[str]:
        """The same server on a port with TLS and a certificate that no one signed. Gives its host and port."""
        from werkzeug.serving import make_server

        server = make_server("127.0.0.1", 0, self._answer, threaded=True, ssl_context="adhoc")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    @property
    def client(self) -> Any:
        """boto3's client of S3."""
        return self.boto3("s3")

    def boto3(self, service: str) -> Any:
        """boto3's client of a service: moto serves them all at one address."""
        import boto3

        return boto3.client(
            service, endpoint_url=self.url, region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=KEY
        )

    def make_bucket(self, name: str) -> str:
        """A new bucket; gives its URI."""
        self.client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        return f"s3://{name}"

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """An object, put straight into the server's memory: a thousand requests would take half a minute."""
        from moto.core.models import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(bucket.removeprefix("s3://"), key, body)

    def upload(self, folder: Path, bucket: str, prefix: str) -> None:
        """All files below a folder, under a prefix."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(bucket, f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    @contextmanager
    def faulty(self, **faults: Any) -> Iterator[Faults]:
        """The server with faults, for a while."""
        self.faults = Faults(**faults)
        try:
            yield self.faults
        finally:
            self.faults = Faults()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        faults, method, path = self.faults, environ["REQUEST_METHOD"], environ["PATH_INFO"]
        faults.seen.append(f"{method} {path}")
        if "HTTP_IF_NONE_MATCH" in environ:
            faults.conditional.append(f"{method} {path}")
        operation = environ.get("HTTP_X_AMZ_TARGET", "")
        if faults.group is not None:
            faults.group.wait(f"{method} {path} {operation} {_body(environ) if operation else ''}")
        if any(part in path for part in faults.denied):
            return _error(start, "403 Forbidden", "AccessDenied", "Access Denied")
        if any(f"Credential={key}/" in environ.get("HTTP_AUTHORIZATION", "") for key in faults.expired):
            return _error(start, "400 Bad Request", "ExpiredToken", "The provided token has expired.")
        if faults.refused and (answer := _refusal(faults, environ, start)) is not None:
            return answer
        if method != "PUT" and not operation.endswith(".PutItem"):
            return self._app(environ, start)
        if faults.ignores_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        with self._writing:
            if faults.lost_puts == 0:
                return [b"".join(self._app(environ, start))]
            faults.lost_puts -= 1
            b"".join(self._app(environ, lambda *_: None))
        return _error(start, "503 Service Unavailable", "SlowDown", "Please reduce your request rate.")


def _body(environ: dict[str, Any]) -> str:
    """The body of a request, which can still be read after this."""
    body: bytes = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    environ["wsgi.input"] = BytesIO(body)
    return body.decode()


def _refusal(faults: Faults, environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes] | None:
    """What S3 answers for a missing right; deletions of many objects succeed, and name those that were refused."""
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    key, right = environ["PATH_INFO"], {"PUT": "put", "DELETE": "delete"}.get(environ["REQUEST_METHOD"], "get")
    if "list-type" in query:
        right, key = "list", query.get("prefix", [""])[0]
    bulk = "delete" in query
    if bulk:
        right, key = "delete", re.findall(r"<Key>([^<]*)</Key>", _body(environ))[0]
    if not any(each.split()[0] == right and each.split()[1] in key for each in faults.refused):
        return None
    if not bulk:
        return _error(start, "403 Forbidden", "AccessDenied", "Access Denied")
    error = f"<Error><Key>{key}</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
    answer = f'<?xml version="1.0"?><DeleteResult>{error}</DeleteResult>'.encode()
    start("200 OK", [("Content-Type", "application/xml"), ("Content-Length", str(len(answer)))])
    return [answer]


def _error(start: Callable[..., Any], status: str, code: str, message: str) -> list[bytes]:
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'.encode()
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def clean_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without anything that names a cloud."""
    return {key: value for key, value in environ.items() if not key.startswith(("AWS_", "AZURE_", "GOOGLE_"))}
