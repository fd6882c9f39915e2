"""Requests to a catalog's REST API, bounded in bytes and time. No secret appears in an error.

The standard library is enough here: a catalog needs a few small JSON answers. Proxies and certificates come from the
environment (``HTTPS_PROXY``, ``NO_PROXY``, ``SSL_CERT_FILE``). Redirects are refused, because they would send the token
to another server.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from ipaddress import ip_address
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from tablectl.delta.credentials import HIDDEN, scrub
from tablectl.files import size_text
from tablectl.frozen import frozen
from tablectl.json_text import JsonBudgetError, read_json
from tablectl.model.errors import LiveError
from tablectl.model.text import printable
from tablectl.storage.table_log import LINE_BYTES

_CHUNK = 1 << 16
_ERROR_BYTES = 1 << 16
_MESSAGE_LENGTH = 300
_READ_LENGTH = 4096
"""Characters of a message that are searched for secrets. Fewer are shown."""
_SHORTEST_SECRET = 6
"""Shorter texts are not hidden: they would blank out ordinary words."""
_TRIES = 3
_AGAIN = frozenset({429, 500, 502, 503, 504})
"""Answers after which the same GET is sent again."""
_LONGEST_PAUSE = 10.0
_HINTS = {
    401: "the catalog wants a login: see docs/unity-catalog.md, section Login",
    403: "the token's user lacks a right in the catalog: USE CATALOG, USE SCHEMA and SELECT are needed to plan",
}

Headers = Callable[[], Mapping[str, str]]
"""The headers that log a request in. Called for each request, so that tokens can be renewed."""


class OversizeAnswerError(LiveError):
    """An answer has more bytes or values than the limit."""


class AnswerError(LiveError):
    """The catalog answered with an error."""

    def __init__(self, status: int, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
        self.kind = kind
        """The catalog's own name of the error, such as ``NoSuchTableException``; empty if it has none."""


@dataclass
class Contact:
    """Whether a server has answered in this run. Many tables wait for a dead one only once."""

    answered: bool = False
    error: LiveError | None = None
    """That of a request without an answer."""


class Secrets:
    """The secrets of a run: each text that must not appear in an error. Thread-safe."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def add(self, *texts: str) -> None:
        """Hides these texts from now on."""
        with self._lock:
            self._known |= {text for text in texts if len(text) >= _SHORTEST_SECRET}

    def hide(self, text: str) -> str:
        """The text without secrets."""
        with self._lock:
            known = sorted(self._known, key=len, reverse=True)
        for secret in known:
            text = text.replace(secret, HIDDEN).replace(quote(secret, safe=""), HIDDEN)
        return scrub(text)


@frozen
class Bounds:
    """How long one request may take, and how large its answer may be."""

    seconds: float = 60.0
    """The whole request, from the name look-up to the last byte."""
    silence: float = 20.0
    """The longest pause between two bytes."""
    bytes: int = LINE_BYTES
    pause: Callable[[float], None] = time.sleep
    """Waits before a request is sent again."""


@frozen
class HttpClient:
    """A REST API at one base URL. Thread-safe."""

    base: str
    headers: Headers = dict
    secrets: Secrets = field(default_factory=Secrets)
    bounds: Bounds = field(default_factory=Bounds)
    opener: OpenerDirector = field(default_factory=lambda: build_opener(_NoRedirect()))
    contact: Contact = field(default_factory=Contact)

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """The JSON object at a path. Raises ``AnswerError`` for an error of the server, ``OversizeAnswerError`` for an
        answer above the bounds, and ``LiveError`` for everything else. A busy server is asked again.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        for _ in range(_TRIES - 1):
            try:
                return self._object(self._within(lambda: self._send(target, None)), path)
            except _BusyError as busy:
                self.bounds.pause(busy.wait)
        try:
            return self._object(self._within(lambda: self._send(target, None)), path)
        except _BusyError as busy:
            raise busy.error from None

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a JSON object. Errors as for ``get``; it is sent once."""
        try:
            return self._object(self._within(lambda: self._send(path, json.dumps(body).encode())), path)
        except _BusyError as busy:
            raise busy.error from None

    def _within(self, call: Callable[[], bytes]) -> bytes:
        """The result of a call within the time. A server that sends one byte at a time keeps no caller waiting."""
        if self.contact.error is not None and not self.contact.answered:
            raise self.contact.error
        done: Future[bytes] = Future()

        def work() -> None:
            try:
                done.set_result(call())
            except BaseException as error:  # noqa: BLE001  # passed to the waiting thread
                done.set_exception(error)

        threading.Thread(target=work, name="tablectl-catalog", daemon=True).start()
        try:
            return done.result(timeout=self.bounds.seconds)
        except TimeoutError:
            if done.done():
                raise
            raise LiveError(f"{self.base}: no complete answer within {self.bounds.seconds:g} s", "try again") from None

    def _send(self, target: str, body: bytes | None) -> bytes:
        headers = {"Accept": "application/json", **self.headers()}
        self.secrets.add(*(word for text in headers.values() for word in text.split()[1:]))
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = Request(f"{self.base}{target}", data=body, headers=headers)  # noqa: S310  # the base is checked
        end = time.monotonic() + self.bounds.seconds
        try:
            with self.opener.open(request, timeout=self.bounds.silence) as answer:
                self.contact.answered = True
                return self._bounded(answer, self.bounds.bytes, end)
        except HTTPError as error:
            self.contact.answered = True
            with error:
                raise self._failed(error.code, error.headers, self._beginning(error)) from None
        except (OSError, HTTPException, ValueError) as error:
            reason = self.secrets.hide(printable(str(getattr(error, "reason", "") or error) or type(error).__name__))
            message = f"{self.base}: no answer: {reason[:_MESSAGE_LENGTH]}"
            self.contact.error = LiveError(message, "check `url` and the network")
            raise self.contact.error from None

    def _bounded(self, answer: Any, most: int, end: float) -> bytes:
        parts, size = list[bytes](), 0
        while part := answer.read(_CHUNK):
            parts.append(part)
            size += len(part)
            if size > most:
                raise OversizeAnswerError(f"{self.base}: the answer is larger than {size_text(most)}")
            if time.monotonic() > end:
                raise LiveError(f"{self.base}: no complete answer within {self.bounds.seconds:g} s", "try again")
        if answer.length:  # what Content-Length promised and did not come: http.client reports no error
            raise _BusyError(1.0, LiveError(f"{self.base}: the answer was cut short after {size:,} bytes", "try again"))
        return b"".join(parts)

    def _beginning(self, error: HTTPError) -> bytes:
        try:
            return error.read(_ERROR_BYTES)
        except (OSError, HTTPException):
            return b""

    def _failed(self, status: int, headers: Message, body: bytes) -> Exception:
        kind, said = _server_message(body)
        said = self.secrets.hide(printable(said[:_READ_LENGTH]))[:_MESSAGE_LENGTH]
        message = f"{self.base} answers {status}{f': {said}' if said else ''}"
        hint = _HINTS.get(status, "")
        if 300 <= status < 400:
            target = self.secrets.hide(printable(headers.get("Location", "").partition("?")[0]))
            hint = "redirects are not followed, because the token would go along: set `url` to the server itself"
            message += f", a redirect to {target[:_MESSAGE_LENGTH] or 'nowhere'}"
        error = AnswerError(status, kind, message, hint)
        return _BusyError(_pause(headers.get("Retry-After", "")), error) if status in _AGAIN else error

    def _object(self, raw: bytes, path: str) -> dict[str, Any]:
        try:
            value = read_json(raw, self.bounds.bytes)
            if not isinstance(value, dict):
                raise ValueError("it is no object")
        except JsonBudgetError as error:
            raise OversizeAnswerError(f"{self.base}{path}: {error}") from None
        except ValueError:
            # The text of the error can repeat a part of the answer, which can hold a credential.
            raise LiveError(f"{self.base}{path}: the answer is no JSON object", "check `url`") from None
        return value


class _BusyError(Exception):
    def __init__(self, wait: float, error: LiveError) -> None:
        super().__init__(error.message)
        self.wait = wait
        self.error = error


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> Request | None:
        """Follows no redirect: the answer itself becomes the error."""
        return None


def _pause(given: str) -> float:
    return min(float(given), _LONGEST_PAUSE) if given.isascii() and given.isdigit() and len(given) < 6 else 1.0


def _server_message(body: bytes) -> tuple[str, str]:
    """The kind and message of an error, in either form: ``{error: {type, message}}`` or ``{error_code, message}``."""
    try:
        value = read_json(body)
    except ValueError:
        return "", ""
    value = value.get("error", value) if isinstance(value, dict) else {}
    if not isinstance(value, dict):
        return "", ""
    kind, message = value.get("type") or value.get("error_code"), value.get("message")
    return (kind if isinstance(kind, str) else ""), (message if isinstance(message, str) else "")


def segment(name: str) -> str:
    """A name as one segment of a path. No name can leave its segment: dots alone would be a relative path."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def why_no_url(url: str, *, token: bool) -> str:
    """What is wrong with the URL of a catalog; empty if nothing is. A token needs TLS, or this machine."""
    try:
        split = urlsplit(url)
        host, port = split.hostname or "", split.port
    except ValueError:
        return "is no URL"
    if split.scheme not in {"http", "https"} or not host or port == 0:
        return "needs an http or https URL, such as https://catalog.example:8080"
    if split.username is not None or split.password is not None:
        return "holds a user or a password: put the token into the environment"
    if split.query or split.fragment:
        return "has a query or a fragment"
    if token and split.scheme == "http" and not _is_this_machine(host):
        return "is plain http: the token would be readable on the network"
    return ""


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
