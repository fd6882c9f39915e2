"""Requests to a REST API, bounded in bytes and time. No secret appears in an error.

The standard library is enough here: catalogs, GitHub and GitLab need a few small JSON answers. Proxies and certificates
come from the environment (``HTTPS_PROXY``, ``NO_PROXY``, ``SSL_CERT_FILE``). No redirect takes the login along.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException, HTTPMessage
from ipaddress import ip_address
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tablectl.delta.credentials import HIDDEN, scrub
from tablectl.model.errors import LiveError, UsageError
from tablectl.model.safe_text import printable
from tablectl.support.files import size_text
from tablectl.support.json_text import JsonBudgetError, read_json, write_json
from tablectl.support.threads import in_thread


def token_of(environ: Mapping[str, str], variable: str) -> str:
    """The token in a variable, without space around it; empty if there is none.

    Raises ``UsageError`` for characters that no header of HTTP can carry. The text is not shown: it can be a secret
    that was pasted with a line break.
    """
    token = environ.get(variable, "").strip()
    if not token.isprintable() or not token.isascii():
        raise UsageError(f"{variable} holds no token: it has characters that no token has", "set it again, on one line")
    return token


_CHUNK = 1 << 16
_ERROR_BYTES = 1 << 16
_MESSAGE_LENGTH = 300
_READ_LENGTH = 4096
"""Characters of a message that are searched for secrets. Fewer are shown."""
_SHORTEST_SECRET = 6
"""Shorter texts are not hidden: they would blank out ordinary words."""
_AGAIN = frozenset({429, 500, 502, 503, 504})
"""Answers after which a request that changes nothing twice is sent again."""
_PAUSES = (1.0, 4.0)
"""Seconds before it is sent again, unless the answer has ``Retry-After``."""
_LONGEST_PAUSE = 10.0
_NO_REDIRECT = "redirects are not followed, because the login would go along: give the address of the server itself"

Login = Callable[[], Mapping[str, str]]
"""The headers that log a request in. Called for each request, so that tokens can be renewed."""


class OversizeAnswerError(LiveError):
    """An answer has more bytes or values than the limit."""


class AnswerError(LiveError):
    """The server answered with an error."""

    def __init__(self, status: int, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
        self.kind = kind
        """The server's own name of the error, such as ``NoSuchTableException``; empty if it has none."""


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


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long one request may take, and how large its answer may be."""

    seconds: float = 60.0
    """The whole request, from the name look-up to the last byte."""
    silence: float = 20.0
    """The longest pause between two bytes."""
    bytes: int = 16 << 20
    pause: Callable[[float], None] = time.sleep
    """Waits before a request is sent again."""


@dataclass(frozen=True, slots=True)
class HttpClient:
    """A REST API at one base URL. Thread-safe.

    All requests raise ``AnswerError`` for an error of the server, ``OversizeAnswerError`` for an answer above the
    bounds, and ``LiveError`` for everything else.
    """

    base: str
    login: Login = dict
    headers: Mapping[str, str] = field(default_factory=dict)
    """Other headers of each request."""
    hints: Mapping[int, str] = field(default_factory=dict)
    """How to fix an error, by its status."""
    secrets: Secrets = field(default_factory=Secrets)
    bounds: Bounds = field(default_factory=Bounds)
    redirects: bool = False
    """Whether redirects are followed, without the login and with TLS alone."""
    contact: Contact | None = field(default_factory=Contact)
    """Many requests share it. ``None``: a request without an answer is sent again."""

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """The JSON object at a path. A busy server is asked again."""
        return self._object(self.send("GET", f"{path}?{urlencode(query)}" if query else path), path)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a JSON object, which is sent once."""
        return self._object(self.send("POST", path, body), path)

    def send(self, method: str, target: str, body: Any = None, *, again: bool | None = None) -> Any:
        """The answer in JSON; ``None`` for an empty one. Without ``again``, a POST is sent once and every other request
        again if the server is busy.
        """
        data = None if body is None else write_json(body).encode()
        repeated = method != "POST" if again is None else again
        raw = self._asked(lambda: self._answer(method, target, data, self.bounds), self.bounds, again=repeated)
        try:
            return read_json(raw or b"null", self.bounds.bytes)
        except JsonBudgetError as error:
            raise OversizeAnswerError(f"{self.base}{target.partition('?')[0]}: {error}") from None
        except ValueError:
            # The text of the error can repeat a part of the answer, which can hold a credential.
            raise self._no_json(target) from None

    def download(self, target: str, most: int, seconds: float) -> bytes:
        """A file of at most ``most`` bytes."""
        bounds = Bounds(seconds, self.bounds.silence, most, self.bounds.pause)
        return self._asked(lambda: self._answer("GET", target, None, bounds), bounds, again=True)

    def _asked(self, call: Callable[[], bytes], bounds: Bounds, *, again: bool) -> bytes:
        for pause in _PAUSES if again else ():
            try:
                return self._within(call, bounds.seconds)
            except _BusyError as busy:
                bounds.pause(pause if busy.wait is None else busy.wait)
        try:
            return self._within(call, bounds.seconds)
        except _BusyError as busy:
            raise busy.error from None

    def _within(self, call: Callable[[], bytes], seconds: float) -> bytes:
        """The result of a call within the time. A server that sends one byte at a time keeps no caller waiting."""
        if self.contact and self.contact.error is not None and not self.contact.answered:
            raise self.contact.error
        done = in_thread(call, "tablectl-request")
        try:
            return done.result(timeout=seconds)
        except TimeoutError:
            if done.done():
                raise
            raise self._too_slow(seconds) from None

    def _answer(self, method: str, target: str, body: bytes | None, bounds: Bounds) -> bytes:
        login = self.login()
        self.secrets.add(*(word for text in login.values() for word in text.split()[1:] or [text]))
        headers = {"Accept": "application/json", **self.headers}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = Request(f"{self.base}{target}", data=body, headers=headers, method=method)  # noqa: S310  # `why_no_url`
        for name, value in login.items():
            request.add_unredirected_header(name, value)
        end = time.monotonic() + bounds.seconds
        try:
            with build_opener(_Redirects(follow=self.redirects)).open(request, timeout=bounds.silence) as answer:
                self._answered()
                parts, size = list[bytes](), 0
                while part := answer.read(_CHUNK):
                    parts.append(part)
                    size += len(part)
                    if size > bounds.bytes:
                        raise OversizeAnswerError(f"{self.base}: the answer is larger than {size_text(bounds.bytes)}")
                    if time.monotonic() > end:
                        raise self._too_slow(bounds.seconds)
                if answer.length:  # what Content-Length promised and did not come: http.client reports no error
                    cut = LiveError(f"{self.base}: the answer was cut short after {size:,} bytes", "try again")
                    raise _BusyError(None, cut)
                return b"".join(parts)
        except HTTPError as error:
            self._answered()
            with error:
                raise self._failed(error.code, error.headers, _beginning(error)) from None
        except (OSError, HTTPException, ValueError) as error:
            raise self._unanswered(error) from None

    def _answered(self) -> None:
        if self.contact:
            self.contact.answered = True

    def _unanswered(self, error: Exception) -> Exception:
        reason = self.secrets.hide(printable(str(getattr(error, "reason", "") or error) or type(error).__name__))
        failed = LiveError(f"{self.base}: no answer: {reason[:_MESSAGE_LENGTH]}", "check the address and the network")
        if self.contact is None:
            return _BusyError(None, failed)
        self.contact.error = failed
        return failed

    def _too_slow(self, seconds: float) -> LiveError:
        return LiveError(f"{self.base}: no complete answer within {seconds:g} s", "try again")

    def _failed(self, status: int, headers: Message, body: bytes) -> Exception:
        kind, said = _server_message(body)
        said = self.secrets.hide(printable(said[:_READ_LENGTH]))[:_MESSAGE_LENGTH]
        message = f"{self.base} answers {status}{f': {said}' if said else ''}"
        hint = self.hints.get(status, "")
        if 300 <= status < 400:
            target = self.secrets.hide(printable(headers.get("Location", "").partition("?")[0]))
            hint = _NO_REDIRECT
            message += f", a redirect to {target[:_MESSAGE_LENGTH] or 'nowhere'}"
        error = AnswerError(status, kind, message, hint)
        return _BusyError(_pause(headers.get("Retry-After", "")), error) if status in _AGAIN else error

    def _object(self, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._no_json(path)
        return value

    def _no_json(self, target: str) -> LiveError:
        return LiveError(f"{self.base}{target.partition('?')[0]}: the answer is not a JSON object", "check the address")


class _BusyError(Exception):
    """The same request may succeed after a pause; ``None`` if the server did not say which."""

    def __init__(self, wait: float | None, error: LiveError) -> None:
        super().__init__(error.message)
        self.wait = wait
        self.error = error


class _Redirects(HTTPRedirectHandler):
    """Follows redirects to private addresses alone, or none: then the answer itself becomes the error. urllib drops
    unredirected headers, such as the login.
    """

    def __init__(self, *, follow: bool) -> None:
        self._follow = follow

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if not self._follow or why_no_url(newurl.partition("?")[0], token=True):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _beginning(error: HTTPError) -> bytes:
    try:
        return error.read(_ERROR_BYTES)
    except (OSError, HTTPException):
        return b""


def _pause(given: str) -> float | None:
    return min(float(given), _LONGEST_PAUSE) if given.isascii() and given.isdigit() and len(given) < 6 else None


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
        return "is not a URL"
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
