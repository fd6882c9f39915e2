"""GitHub's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tablectl.ci.rest_api import ApiError, RestApi
from tablectl.frozen import frozen
from tablectl.model.errors import UsageError
from tablectl.model.tokens import token_of


@frozen
class GitHub(RestApi):
    """One repository of one server."""

    graphql: str = ""
    """The address of GraphQL; if empty, it is derived from ``api``."""

    @staticmethod
    def of(environ: Mapping[str, str], repository: str) -> GitHub:
        """The server and token of a job. Raises ``UsageError`` without a token, or for one that cannot be sent."""
        token = token_of(environ, "INPUT_TOKEN")
        if not token:
            raise UsageError("there is no token", "give the step INPUT_TOKEN: ${{ github.token }}")
        api = environ.get("GITHUB_API_URL") or "https://api.github.com"
        return GitHub(api, repository, token, graphql=environ.get("GITHUB_GRAPHQL_URL", ""))

    def address(self, path: str) -> str:
        """The address of a path of the repository."""
        return f"{self.api}/repos/{self.repository}/{path}"

    def headers(self) -> Mapping[str, str]:
        """The version of the API."""
        return {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}

    def token_header(self) -> tuple[str, str]:
        """The header that has the token."""
        return "Authorization", f"Bearer {self.token}"

    def query(self, query: str, **variables: object) -> Mapping[str, Any]:
        """The data of a GraphQL query. Raises ``ApiError``, also where a part of it could not be answered."""
        address = self.graphql or f"{self.api.removesuffix('/v3')}/graphql"
        body = {"query": query, "variables": variables}
        answer = self.retried(lambda: self.send("POST", address, body, "POST graphql"))
        answer = answer if isinstance(answer, dict) else {}
        data, errors = answer.get("data"), answer.get("errors")
        if errors or not isinstance(data, dict):
            first = errors[0].get("message") if isinstance(errors, list) and isinstance(errors[0], dict) else ""
            raise ApiError(f"POST graphql: {first or 'no answer to the query'}", 0)
        return data
