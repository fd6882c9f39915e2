"""Which plan was reviewed, and what is said where there is none."""

from __future__ import annotations

import pytest

from tablectl.ci.github import GitHub
from tablectl.ci.reviewed import BY_HAND, Reviewed, find_reviewed
from tablectl.model.errors import PlanFileError
from tests.ci.conftest import FakeGitHub

COMMIT, HEAD, OLDER = "c" * 40, "a" * 40, "b" * 40


def refused(client: GitHub, plan_run: int | None = None) -> str:
    with pytest.raises(PlanFileError) as found:
        find_reviewed(client, "tablectl", COMMIT, plan_run)
    assert found.value.hint == BY_HAND
    return found.value.message


def test_it_is_the_newest_of_the_commit_that_was_merged(github: FakeGitHub, client: GitHub) -> None:
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=OLDER)
    github.kept("tablectl-plan-pr-5", run=11, head=HEAD)
    github.kept("tablectl-plan-pr-5", run=12, head=HEAD)
    github.kept("tablectl-plan-pr-6", run=13, head=HEAD)
    github.kept("lake-plan-pr-5", run=14, head=HEAD)
    assert find_reviewed(client, "tablectl", COMMIT, None) == Reviewed(12, "tablectl-plan-pr-5", 5)
    assert find_reviewed(client, "lake", COMMIT, None) == Reviewed(14, "lake-plan-pr-5", 5)


def test_of_the_pull_requests_of_a_commit_the_one_that_became_it(github: FakeGitHub, client: GitHub) -> None:
    github.merged(4, head=HEAD, commit=OLDER)
    github.pulls[COMMIT] = [*github.pulls[OLDER], {"number": 3, "merge_commit_sha": COMMIT, "merged_at": None}]
    assert refused(client) == "no pull request was merged as cccccccccc, so no plan of it was reviewed"
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD)
    assert find_reviewed(client, "tablectl", COMMIT, None).pull_request == 5


def test_a_commit_that_came_without_a_pull_request(github: FakeGitHub, client: GitHub) -> None:
    assert "no pull request was merged as" in refused(client)


def test_a_pull_request_without_a_plan(github: FakeGitHub, client: GitHub) -> None:
    github.merged(5, head=HEAD, commit=COMMIT)
    assert refused(client) == "there is no plan of #5: none was made, or it is no longer kept"


def test_a_plan_of_an_older_commit(github: FakeGitHub, client: GitHub) -> None:
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=OLDER)
    assert refused(client) == (
        "the last plan of #5 is of its commit bbbbbbbbbb; what was merged is aaaaaaaaaa, without a plan"
    )


def test_a_plan_that_is_no_longer_kept(github: FakeGitHub, client: GitHub) -> None:
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD, expired=True)
    assert refused(client) == "the plan of #5 is no longer kept"


def test_a_fork_plans_for_nobody(github: FakeGitHub, client: GitHub) -> None:
    """Its workflows may keep anything under any name, for any commit that it copies."""
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD, fork=True)
    assert "made by a fork" in refused(client)
    github.kept("tablectl-plan-pr-5", run=11, head=HEAD)
    github.kept("tablectl-plan-pr-5", run=12, head=HEAD, fork=True)
    assert find_reviewed(client, "tablectl", COMMIT, None).run == 11
    assert "made by a fork" in refused(client, 12)


def test_a_run_that_is_named(github: FakeGitHub, client: GitHub) -> None:
    github.kept("tablectl-plan", run=20, head=HEAD)
    github.kept("tablectl-run", run=20, head=HEAD)
    github.kept("tablectl-plan-pr-5", run=21, head=HEAD)
    github.kept("tablectl-planner", run=22, head=HEAD)
    assert find_reviewed(client, "tablectl", COMMIT, 20) == Reviewed(20, "tablectl-plan", None)
    assert find_reviewed(client, "tablectl", COMMIT, 21) == Reviewed(21, "tablectl-plan-pr-5", None)
    assert refused(client, 22) == "run 22 kept no plan named tablectl-plan"
