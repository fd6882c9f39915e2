"""A minimal client of GitHub's API, using only the standard library."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tablectl.model.errors import TablectlError, UsageError

_TIMEOUT = 30
_PAUSES = (1.0, 4.0)
_PAGE = 100
_MOST_PAGES = 30


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

    def identity(self) -> int:
        """The account id under which the token posts: of a person, an App, or of GitHub Actions itself.

        GraphQL's ``viewer`` returns all of them; REST's ``/user`` only people. Raises ``GitHubError``.
        """
        address = self.graphql or f"{self.api.removesuffix('/v3')}/graphql"
        answer = self._send("POST", address, {"query": "query { viewer { databaseId } }"}, "POST graphql")
        for key in ("data", "viewer", "databaseId"):
            answer = answer.get(key) if isinstance(answer, dict) else None
        if not isinstance(answer, int) or isinstance(answer, bool):
            raise GitHubError("the server does not say under which account the token posts", 0)
        return answer

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
        address, what = f"{self.api}/repos/{self.repository}/{path}", f"{method} {path}"
        for pause in _PAUSES if method != "POST" else ():
            try:
                return self._send(method, address, body, what)
            except GitHubError as error:
                if 0 < error.status < 500 and error.status != 429:
                    raise
            self.sleep(pause)
        return self._send(method, address, body, what)

    def _send(self, method: str, address: str, body: Mapping[str, object] | None, what: str) -> Any:
        if not address.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
            raise UsageError(f"{address} is no address that a token may be sent to", "GITHUB_API_URL wants https")
        request = Request(address, None if body is None else json.dumps(body).encode(), method=method)  # noqa: S310
        request.add_header("Accept", "application/vnd.github+json")
        request.add_header("Content-Type", "application/json")
        request.add_header("X-GitHub-Api-Version", "2022-11-28")
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        try:
            with urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            raise GitHubError(f"{what}: {error.code} {error.reason}", error.code) from error
        except (URLError, HTTPException, OSError) as error:
            raise GitHubError(f"{what}: {getattr(error, 'reason', None) or error}", 0) from error
        except ValueError as error:
            raise GitHubError(f"{what}: the answer is no JSON", 0) from error
