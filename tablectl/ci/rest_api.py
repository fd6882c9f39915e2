"""A minimal client of the REST APIs of GitHub and GitLab, using only the standard library."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tablectl.frozen import frozen
from tablectl.json_text import read_json
from tablectl.model.errors import TablectlError, UsageError

_TIMEOUT = 30
_PAUSES = (1.0, 4.0)
_PAGE = 100
_MOST_PAGES = 30
_MOST_BYTES = 64 << 20
"""The maximum size of an answer in JSON; a longer one is cut, so it is no JSON."""
_Result = TypeVar("_Result")


class ApiError(TablectlError):
    """A request failed. ``status`` is the HTTP status, 0 without an answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@frozen
class RestApi(ABC):
    """One repository of one server. The token is sent to that server and nowhere else."""

    api: str
    repository: str
    token: str = field(repr=False)
    sleep: Callable[[float], None] = time.sleep

    @abstractmethod
    def address(self, path: str) -> str:
        """The address of a path of the repository."""

    def headers(self) -> Mapping[str, str]:
        """Headers that the server wants on each request."""
        return {}

    @abstractmethod
    def token_header(self) -> tuple[str, str]:
        """The header that has the token."""

    def get(self, path: str) -> Any:
        """GET a path of the repository. Raises ``ApiError``."""
        return self._call("GET", path)

    def download(self, path: str, limit: int) -> bytes:
        """GET a file, which may be in a store of the server. Raises ``ApiError``, also if it exceeds the limit."""
        what = f"GET {path}"
        request = self._request("GET", self.address(path), None)
        data = self.retried(lambda: self._open(request, what, limit + 1))
        if len(data) > limit:
            raise ApiError(f"{what}: larger than {limit:,} bytes", 0)
        return data

    def post(self, path: str, **body: object) -> Any:
        """POST to a path. Raises ``ApiError``."""
        return self._call("POST", path, body)

    def patch(self, path: str, **body: object) -> Any:
        """PATCH a path. Raises ``ApiError``."""
        return self._call("PATCH", path, body)

    def put(self, path: str, **body: object) -> Any:
        """PUT to a path. Raises ``ApiError``."""
        return self._call("PUT", path, body)

    def pages(self, path: str, key: str = "") -> Iterator[dict[str, Any]]:
        """The elements of a list, page by page, up to some thousands. ``key`` is the field with the list."""
        mark = "&" if "?" in path else "?"
        for page in range(1, _MOST_PAGES + 1):
            found = self.get(f"{path}{mark}per_page={_PAGE}&page={page}")
            elements = found.get(key) if key and isinstance(found, dict) else found
            elements = elements if isinstance(elements, list) else []
            yield from (each for each in elements if isinstance(each, dict))
            if len(elements) < _PAGE:
                return

    def _call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Send a request. Retries idempotent requests after a pause; retrying a POST could create a comment twice."""
        what = f"{method} {path}"
        if method == "POST":
            return self.send(method, self.address(path), body, what)
        return self.retried(lambda: self.send(method, self.address(path), body, what))

    def retried(self, call: Callable[[], _Result]) -> _Result:
        """The result of an idempotent request, sent again after a pause if it failed for now."""
        for pause in _PAUSES:
            try:
                return call()
            except ApiError as error:
                if 0 < error.status < 500 and error.status != 429:
                    raise
            self.sleep(pause)
        return call()

    def send(self, method: str, address: str, body: Mapping[str, object] | None, what: str) -> Any:
        """The answer to a request, from JSON. Raises ``ApiError``."""
        data = self._open(self._request(method, address, body), what, _MOST_BYTES)
        try:
            return read_json(data or b"null", _MOST_BYTES)
        except ValueError as error:
            raise ApiError(f"{what}: the answer is no JSON", 0) from error

    def _request(self, method: str, address: str, body: Mapping[str, object] | None) -> Request:
        if not _is_safe(address):
            raise UsageError(
                f"{address} is no address that a token may be sent to", "the API of the server wants https"
            )
        request = Request(address, None if body is None else json.dumps(body).encode(), method=method)  # noqa: S310
        request.add_header("Accept", "application/json")
        request.add_header("Content-Type", "application/json")
        for name, value in self.headers().items():
            request.add_header(name, value)
        request.add_unredirected_header(*self.token_header())
        return request

    def _open(self, request: Request, what: str, most: int) -> bytes:
        """At most the given number of bytes of an answer."""
        try:
            with build_opener(_SafeRedirects).open(request, timeout=_TIMEOUT) as answer:
                data: bytes = answer.read(most)
                return data
        except HTTPError as error:
            raise ApiError(f"{what}: {error.code} {error.reason}", error.code) from error
        except (URLError, HTTPException, OSError) as error:
            raise ApiError(f"{what}: {getattr(error, 'reason', None) or error}", 0) from error


class _SafeRedirects(HTTPRedirectHandler):
    """Follows redirects to safe addresses alone. The token is not sent there."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        if not _is_safe(newurl):
            raise URLError("the server redirects to an address without TLS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_safe(address: str) -> bool:
    return address.startswith(("https://", "http://127.0.0.1:", "http://localhost:"))
