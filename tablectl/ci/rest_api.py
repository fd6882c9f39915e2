"""The REST APIs of GitHub and GitLab: one repository of one server each. The token is sent to that server alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tablectl.catalogs.http_client import Bounds, HttpClient, token_of, why_no_url
from tablectl.model.errors import LiveError, UsageError

_JSON = Bounds(silence=30.0, bytes=64 << 20)
_DOWNLOAD_SECONDS = 600.0
_PAGE = 100
_MOST_PAGES = 30


@dataclass(frozen=True, slots=True)
class HostedRepository:
    """A repository of GitHub, or a project of GitLab. Requests raise as those of ``HttpClient``."""

    http: HttpClient
    path: str
    """That of the repository, below the API."""

    def send(self, method: str, path: str, **body: object) -> Any:
        """The answer to a request. Only POST is sent once: it could create a comment twice."""
        return self.http.send(method, f"{self.path}/{path}", body or None)

    def download(self, path: str, most: int) -> bytes:
        """A file of at most ``most`` bytes, which may be in a store of the server."""
        return self.http.download(f"{self.path}/{path}", most, _DOWNLOAD_SECONDS)

    def pages(self, path: str, key: str = "") -> Iterator[dict[str, Any]]:
        """The elements of a list, page by page, up to some thousands. ``key`` is the field with the list."""
        mark = "&" if "?" in path else "?"
        for page in range(1, _MOST_PAGES + 1):
            found = self.send("GET", f"{path}{mark}per_page={_PAGE}&page={page}")
            elements = found.get(key) if key and isinstance(found, dict) else found
            elements = elements if isinstance(elements, list) else []
            yield from (each for each in elements if isinstance(each, dict))
            if len(elements) < _PAGE:
                return


@dataclass(frozen=True, slots=True)
class GitHub(HostedRepository):
    """A repository, and the GraphQL of its server."""

    graphql: HttpClient

    def query(self, query: str, **variables: object) -> Mapping[str, Any]:
        """The data of a GraphQL query. Raises ``LiveError`` also where a part of it could not be answered."""
        answer = self.graphql.send("POST", "", {"query": query, "variables": variables}, again=True)
        answer = answer if isinstance(answer, dict) else {}
        data, errors = answer.get("data"), answer.get("errors")
        if errors or not isinstance(data, dict):
            first = errors[0].get("message") if isinstance(errors, list) and isinstance(errors[0], dict) else ""
            raise LiveError(f"{self.graphql.base}: {first or 'no answer to the query'}")
        return data


def open_github(environ: Mapping[str, str], repository: str, bounds: Bounds = _JSON) -> GitHub:
    """The server and token of a job. Raises ``UsageError`` without a token, or for one that cannot be sent."""
    token = token_of(environ, "INPUT_TOKEN")
    if not token:
        raise UsageError("the token is missing", "give the step INPUT_TOKEN: ${{ github.token }}")
    api = environ.get("GITHUB_API_URL") or "https://api.github.com"
    graphql = environ.get("GITHUB_GRAPHQL_URL") or f"{api.removesuffix('/v3')}/graphql"
    login = {"Authorization": f"Bearer {token}"}
    more = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    rest, queries = (_client(address, login, more, bounds) for address in (api, graphql))
    return GitHub(rest, f"/repos/{repository}", queries)


def open_gitlab(environ: Mapping[str, str], project: str) -> HostedRepository:
    """The server and token of a job. Raises ``UsageError`` for a token that cannot be sent."""
    login = {"PRIVATE-TOKEN": token_of(environ, "NOTE_TOKEN")}
    return HostedRepository(_client(environ.get("CI_API_V4_URL", ""), login, {}, _JSON), f"/projects/{project}")


def _client(address: str, login: Mapping[str, str], more: Mapping[str, str], bounds: Bounds) -> HttpClient:
    if wrong := why_no_url(address, token=True):
        raise UsageError(f"the address of the API, {address or 'empty'}, {wrong}", "the API of the server wants https")
    return HttpClient(address, lambda: login, more, bounds=bounds, redirects=True, contact=None)
