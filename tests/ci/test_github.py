"""GitHub's API: pages, failures, and where the token goes."""

from __future__ import annotations

import pytest

from tablectl.ci.github import GitHub, GitHubError
from tablectl.model.errors import UsageError
from tests.ci.conftest import REPOSITORY, TOKEN, FakeGitHub


def test_pages_are_read_to_their_end(github: FakeGitHub, client: GitHub) -> None:
    github.comments[7] = [{"id": number} for number in range(250)]
    assert [each["id"] for each in client.pages("issues/7/comments")] == list(range(250))
    assert len(github.asked) == 3
    assert github.tokens == {f"Bearer {TOKEN}"}


def test_what_fails_for_now_is_asked_again(github: FakeGitHub, client: GitHub) -> None:
    github.comments[7] = [{"id": 1}]
    github.fail = [502, 429]
    assert client.get("issues/7/comments") == [{"id": 1}]
    github.fail = [502, 502, 502]
    with pytest.raises(GitHubError, match="GET issues/7/comments: 502"):
        client.get("issues/7/comments")


def test_what_is_refused_is_not_asked_again(github: FakeGitHub, client: GitHub) -> None:
    github.fail = [403]
    with pytest.raises(GitHubError) as found:
        client.get("issues/7/comments")
    assert found.value.status == 403
    assert len(github.asked) == 1


def test_nothing_is_made_twice(github: FakeGitHub, client: GitHub) -> None:
    github.fail = [502]
    with pytest.raises(GitHubError):
        client.post("issues/7/comments", body="x")
    assert len(github.asked) == 1


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(GitHubError) as found:
        GitHub("http://127.0.0.1:9", REPOSITORY, TOKEN, sleep=lambda _: None).get("x")
    assert found.value.status == 0


def test_the_token_goes_over_no_open_line() -> None:
    with pytest.raises(UsageError):
        GitHub("http://api.github.example", REPOSITORY, TOKEN).get("x")
    with pytest.raises(UsageError, match="no token"):
        GitHub.of({}, REPOSITORY)
    assert TOKEN not in repr(GitHub("https://api.github.com", REPOSITORY, TOKEN))
