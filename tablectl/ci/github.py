"""A minimal client of GitHub's API, using only the standard library."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tablectl.model.errors import TablectlError, UsageError

_TIMEOUT = 30
_PAUSES = (1.0, 4.0)
_PAGE = 100
_MOST_PAGES = 30
_MOST_BYTES = 64 << 20
"""The maximum size of an answer in JSON; a longer one is cut, so it is no JSON."""
_Result = TypeVar("_Result")


class GitHubError(TablectlError):
    """A request to GitHub failed. ``status`` is the HTTP status, 0 without an answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class GitHub:
    """One repository of one server. The token is sent to that server and nowhere else."""

    api: str
    repository: str
    token: str = field(repr=False)
    sleep: Callable[[float], None] = time.sleep
    graphql: str = ""
    """The address of GraphQL; if empty, it is derived from ``api``."""

    @staticmethod
    def of(environ: Mapping[str, str], repository: str) -> GitHub:
        """The server and token of a job. Raises ``UsageError`` without a token."""
        token = environ.get("INPUT_TOKEN", "").strip()
        if not token:
            raise UsageError("there is no token", "give the step INPUT_TOKEN: ${{ github.token }}")
        api = environ.get("GITHUB_API_URL") or "https://api.github.com"
        return GitHub(api, repository, token, graphql=environ.get("GITHUB_GRAPHQL_URL", ""))

    def get(self, path: str) -> Any:
        """GET a path of the repository. Raises ``GitHubError``."""
        return self._call("GET", path)

    def query(self, query: str, **variables: object) -> Mapping[str, Any]:
        """The data of a GraphQL query. Raises ``GitHubError``, also where a part of it could not be answered."""
        address = self.graphql or f"{self.api.removesuffix('/v3')}/graphql"
        body = {"query": query, "variables": variables}
        answer = self._retried(lambda: self._send("POST", address, body, "POST graphql"))
        answer = answer if isinstance(answer, dict) else {}
        data, errors = answer.get("data"), answer.get("errors")
        if errors or not isinstance(data, dict):
            first = errors[0].get("message") if isinstance(errors, list) and isinstance(errors[0], dict) else ""
            raise GitHubError(f"POST graphql: {first or 'no answer to the query'}", 0)
        return data

    def download(self, path: str, limit: int) -> bytes:
        """GET a file, which may be in a store of the server. Raises ``GitHubError``, also if it exceeds the limit."""
        what = f"GET {path}"
        request = self._request("GET", self._address(path), None)
        data = self._retried(lambda: self._open(request, what, limit + 1))
        if len(data) > limit:
            raise GitHubError(f"{what}: larger than {limit:,} bytes", 0)
        return data

    def post(self, path: str, **body: object) -> Any:
        """POST to a path. Raises ``GitHubError``."""
        return self._call("POST", path, body)

    def patch(self, path: str, **body: object) -> Any:
        """PATCH a path. Raises ``GitHubError``."""
        return self._call("PATCH", path, body)

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
            return self._send(method, self._address(path), body, what)
        return self._retried(lambda: self._send(method, self._address(path), body, what))

    def _retried(self, call: Callable[[], _Result]) -> _Result:
        """The result of an idempotent request, sent again after a pause if it failed for now."""
        for pause in _PAUSES:
            try:
                return call()
            except GitHubError as error:
                if 0 < error.status < 500 and error.status != 429:
                    raise
            self.sleep(pause)
        return call()

    def _address(self, path: str) -> str:
        return f"{self.api}/repos/{self.repository}/{path}"

    def _send(self, method: str, address: str, body: Mapping[str, object] | None, what: str) -> Any:
        data = self._open(self._request(method, address, body), what, _MOST_BYTES)
        try:
            return json.loads(data or b"null")
        except (ValueError, RecursionError) as error:
            raise GitHubError(f"{what}: the answer is no JSON", 0) from error

    def _request(self, method: str, address: str, body: Mapping[str, object] | None) -> Request:
        if not _is_safe(address):
            raise UsageError(f"{address} is no address that a token may be sent to", "GITHUB_API_URL wants https")
        request = Request(address, None if body is None else json.dumps(body).encode(), method=method)  # noqa: S310
        request.add_header("Accept", "application/vnd.github+json")
        request.add_header("Content-Type", "application/json")
        request.add_header("X-GitHub-Api-Version", "2022-11-28")
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        return request

    def _open(self, request: Request, what: str, most: int) -> bytes:
        """At most the given number of bytes of an answer."""
        try:
            with build_opener(_SafeRedirects).open(request, timeout=_TIMEOUT) as answer:
                data: bytes = answer.read(most)
                return data
        except HTTPError as error:
            raise GitHubError(f"{what}: {error.code} {error.reason}", error.code) from error
        except (URLError, HTTPException, OSError) as error:
            raise GitHubError(f"{what}: {getattr(error, 'reason', None) or error}", 0) from error


class _SafeRedirects(HTTPRedirectHandler):
    """Follows redirects to safe addresses alone. The token is not sent there."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        if not _is_safe(newurl):
            raise URLError("the server redirects to an address without TLS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_safe(address: str) -> bool:
    return address.startswith(("https://", "http://127.0.0.1:", "http://localhost:"))
