"""GitHub's API: pages, failures, and where the token goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tablectl.catalogs.http_client import AnswerError, OversizeAnswerError
from tablectl.ci.rest_api import GitHub, open_github
from tablectl.model.errors import LiveError, UsageError
from tests.ci.conftest import REPOSITORY, TOKEN, FakeGitHub, github_at


def test_pages_are_read_to_their_end(github: FakeGitHub, client: GitHub) -> None:
    github.comments[7] = [{"id": number} for number in range(250)]
    assert [each["id"] for each in client.pages("issues/7/comments")] == list(range(250))
    assert len(github.asked) == 3
    assert github.tokens == {f"Bearer {TOKEN}"}


def test_a_temporary_failure_of_the_server_is_retried(github: FakeGitHub, client: GitHub) -> None:
    github.comments[7] = [{"id": 1}]
    github.fail = [502, 429]
    assert [each["id"] for each in client.send("GET", "issues/7/comments")] == [1]
    github.fail = [502, 502, 502]
    with pytest.raises(AnswerError, match=f"{github.api} answers 502: no"):
        client.send("GET", "issues/7/comments")


def test_a_refused_request_is_not_retried(github: FakeGitHub, client: GitHub) -> None:
    github.fail = [403]
    with pytest.raises(AnswerError) as found:
        client.send("GET", "issues/7/comments")
    assert found.value.status == 403
    assert len(github.asked) == 1


def test_a_request_that_creates_is_not_retried(github: FakeGitHub, client: GitHub) -> None:
    github.fail = [502]
    with pytest.raises(AnswerError):
        client.send("POST", "issues/7/comments", body="x")
    assert len(github.asked) == 1


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(LiveError, match=r"127.0.0.1:9: no answer: .*Connection refused"):
        github_at("http://127.0.0.1:9").send("GET", "x")


def test_the_token_is_sent_over_https_only() -> None:
    with pytest.raises(UsageError, match="the token would be readable on the network"):
        github_at("http://api.github.example")
    with pytest.raises(UsageError, match="the token is missing"):
        open_github({}, REPOSITORY)
    assert TOKEN not in repr(github_at("https://api.github.com"))


def test_an_artifact_is_read_up_to_a_limit(github: FakeGitHub, client: GitHub) -> None:
    github.archives[3] = b"x" * 2000
    assert client.download("actions/artifacts/3/zip", 2000) == b"x" * 2000
    with pytest.raises(OversizeAnswerError, match="larger than 1 kB"):
        client.download("actions/artifacts/3/zip", 1999)


def test_a_query_that_is_answered_in_part_is_an_error(github: FakeGitHub, client: GitHub) -> None:
    """A comment that the token may not read is not one that is missing."""
    answers = [{"data": {"nodes": [None]}, "errors": [{"message": "Resource not accessible"}]}, {"data": None}, []]
    for answer, message in zip(answers, ("Resource not accessible", "no answer", "no answer"), strict=True):
        github.answer = lambda *_args, answer=answer: (200, answer)  # type: ignore[method-assign]
        with pytest.raises(LiveError, match=message):
            client.query("query { viewer { login } }")


@pytest.mark.parametrize("target", ["http://store.example/x", "file:///etc/passwd", "ftp://store.example/x"])
def test_no_redirect_leaves_tls(target: str) -> None:
    with redirecting(target) as (api, tokens), pytest.raises(AnswerError, match="answers 302"):
        github_at(api).download("actions/artifacts/3/zip", 10)
    assert set(tokens) == {f"Bearer {TOKEN}"}


def test_the_store_of_artifacts_does_not_get_the_token() -> None:
    with (
        redirecting("") as (store, tokens),
        redirecting(f"{store}/x") as (api, first),
        pytest.raises(AnswerError, match="404"),
    ):
        github_at(api).download("actions/artifacts/3/zip", 10)
    assert set(first) == {f"Bearer {TOKEN}"}
    assert set(tokens) == {""}


@contextmanager
def redirecting(target: str) -> Iterator[tuple[str, list[str]]]:
    """A server that redirects every request; its address, and the tokens that it was sent."""
    tokens: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers.get("Authorization", ""))
            self.send_response(302 if target else 404)
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", tokens
    server.shutdown()
    server.server_close()
