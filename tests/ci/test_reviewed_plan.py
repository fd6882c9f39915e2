"""Which plan was reviewed, and what is said where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from tablectl.ci.post_comment import body_of, find_comment, marker, put_comment
from tablectl.ci.rest_api import GitHub
from tablectl.ci.reviewed_plan import BY_HAND, CHOSEN, ArtifactOrigin, ReviewedPlan, find_reviewed
from tablectl.model.errors import PlanFileError
from tests.ci.conftest import WORKFLOW, WRITTEN, FakeGitHub

COMMIT, HEAD, OLDER = "c" * 40, "a" * 40, "b" * 40


DIGEST = "d" * 64


def find(
    client: GitHub, plan_run: int | None = None, *, name: str = "tablectl", workflow: str = WORKFLOW
) -> ReviewedPlan:
    return find_reviewed(client, ArtifactOrigin(name, COMMIT, workflow, "main"), plan_run)


def commented(client: GitHub, number: int, *, digest: str = DIGEST, name: str = "tablectl") -> None:
    """The comment of a plan."""
    mark = marker("plan", name)
    body = body_of("**Plan**\n", "plan", name, "", digest)
    put_comment(client, number, body, find_comment(client, number, mark))


def refused(client: GitHub, plan_run: int | None = None) -> str:
    with pytest.raises(PlanFileError) as found:
        find(client, plan_run)
    assert BY_HAND in found.value.hint or "plan-workflow" in found.value.hint
    return found.value.message


def test_the_newest_plan_of_the_merged_commit_is_taken(github: FakeGitHub, client: GitHub) -> None:
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=OLDER)
    github.kept("tablectl-plan-pr-5", run=11, head=HEAD)
    github.kept("tablectl-plan-pr-5", run=12, head=HEAD)
    github.kept("tablectl-plan-pr-6", run=13, head=HEAD)
    github.kept("lake-plan-pr-5", run=14, head=HEAD)
    commented(client, 5)
    commented(client, 5, name="lake", digest="e" * 64)
    assert find(client) == ReviewedPlan(12, 2, 5, DIGEST)
    assert find(client, name="lake") == ReviewedPlan(14, 4, 5, "e" * 64)


def test_of_the_pull_requests_of_a_commit_the_one_that_became_it(github: FakeGitHub, client: GitHub) -> None:
    github.merged(4, head=HEAD, commit=OLDER)
    github.pulls[COMMIT] = [*github.pulls[OLDER], {"number": 3, "merge_commit_sha": COMMIT, "merged_at": None}]
    assert refused(client) == "no pull request was merged as cccccccccc, so no plan of it was reviewed"
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD)
    commented(client, 5)
    assert find(client).pull_request == 5


def test_a_commit_that_came_without_a_pull_request(github: FakeGitHub, client: GitHub) -> None:
    assert "no pull request was merged as" in refused(client)


def test_a_merged_pull_request_without_a_plan_is_refused(github: FakeGitHub, client: GitHub) -> None:
    github.merged(5, head=HEAD, commit=COMMIT)
    assert refused(client) == "#5 has no plan: none was made, or it has expired"


def test_a_plan_of_an_older_commit_is_refused(github: FakeGitHub, client: GitHub) -> None:
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=OLDER)
    assert refused(client) == (
        "the last plan of #5 is of its commit bbbbbbbbbb; what was merged is aaaaaaaaaa, without a plan"
    )


def test_an_expired_plan_artifact_is_refused(github: FakeGitHub, client: GitHub) -> None:
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD, expired=True)
    assert refused(client) == "the plan of #5 has expired"


def test_the_plan_of_a_fork_is_not_applied(github: FakeGitHub, client: GitHub) -> None:
    """Its workflows may keep anything under any name, for any commit that it copies."""
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD, fork=True)
    assert "made by a fork" in refused(client)
    github.kept("tablectl-plan-pr-5", run=11, head=HEAD)
    github.kept("tablectl-plan-pr-5", run=12, head=HEAD, fork=True)
    commented(client, 5)
    assert find(client).run == 11
    github.kept("tablectl-plan", run=13, head=HEAD, fork=True, event="workflow_dispatch")
    assert "made by a fork" in refused(client, 13)


def test_only_the_workflow_that_plans_made_it(github: FakeGitHub, client: GitHub) -> None:
    github.merged(5, head=HEAD, commit=COMMIT)
    commented(client, 5)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD, workflow=".github/workflows/evil.yml")
    assert refused(client) == (
        "the plan of #5 was made by the workflow .github/workflows/evil.yml, and not by .github/workflows/tablectl.yml"
    )
    github.kept("tablectl-plan-pr-5", run=11, head=HEAD, event="push")
    assert refused(client) == "the plan of #5 was made by push, and not by a pull request"
    github.kept("tablectl-plan-pr-5", run=12, head=HEAD)
    github.kept("tablectl-plan-pr-5", run=13, head=HEAD, workflow=".github/workflows/evil.yml")
    assert find(client).run == 12
    github.runs[12]["path"] += "@refs/pull/5/merge"
    assert find(client).run == 12
    assert find(client, workflow=".github/workflows/evil.yml").run == 13
    with pytest.raises(PlanFileError, match="a workflow that is known"):
        find(client, workflow="")


def test_a_plan_made_after_the_merge_is_not_applied(github: FakeGitHub, client: GitHub) -> None:
    github.merged(5, head=HEAD, commit=COMMIT)
    commented(client, 5)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD, made="2026-11-20T10:00:00Z")
    assert refused(client) == "the plan of #5 was made after the merge, so it was not reviewed"
    github.kept("tablectl-plan-pr-5", run=11, head=HEAD, made="2026-11-20T09:59:59Z")
    assert find(client).run == 11


def test_only_the_comment_of_the_jobs_own_account_gives_the_digest(github: FakeGitHub, client: GitHub) -> None:
    """Anybody may write a comment that looks like ours; other bots may, too."""
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD)
    assert "carries the digest of a plan" in refused(client)
    forged = body_of("**Plan**\n", "plan", "tablectl", "", "f" * 64)
    github.comments[5] = [
        {"id": 1, "user": {"login": "mallory", "type": "User", "id": 7}, "body": forged},
        {"id": 2, "user": {"login": "other[bot]", "type": "Bot", "id": 8}, "body": forged},
    ]
    assert "carries the digest of a plan" in refused(client)
    commented(client, 5)
    assert find(client).digest == DIGEST


def test_a_comment_edited_by_another_account_gives_no_digest(github: FakeGitHub, client: GitHub) -> None:
    """Everyone with write access to a repository may edit every comment, and its author stays the same."""
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD)
    commented(client, 5)
    (comment,) = github.comments[5]
    mallory = {"login": "mallory", "type": "User", "id": 7}
    namesake = {"login": "github-actions", "type": "User", "id": 8}
    gone = None
    for editor in (mallory, namesake, gone):
        comment |= {"editor": editor, "edited_at": WRITTEN}
        assert refused(client) == "the comment with the plan of #5 was edited by another account"
    commented(client, 5)
    assert find(client).digest == DIGEST, "the next plan writes it again"


def test_a_digest_in_a_comment_written_after_the_merge_does_not_count(github: FakeGitHub, client: GitHub) -> None:
    """A plan job that is run again after the merge keeps its commit and edits the comment."""
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD)
    commented(client, 5)
    (comment,) = github.comments[5]
    comment |= {"editor": github.viewer, "edited_at": "2026-11-20T10:00:00Z"}
    assert refused(client) == "the comment with the plan of #5 was written after the merge"
    comment |= {"editor": None, "edited_at": None, "created_at": "2026-11-21T10:00:00Z"}
    assert refused(client) == "the comment with the plan of #5 was written after the merge"


def test_of_artifacts_of_one_run_and_name_the_one_before_the_merge(github: FakeGitHub, client: GitHub) -> None:
    """A job that is run again keeps another artifact under the same number of run and the same name."""
    github.merged(5, head=HEAD, commit=COMMIT)
    commented(client, 5)
    before = github.kept("tablectl-plan-pr-5", run=10, head=HEAD)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD, made="2026-11-20T11:00:00Z")
    assert find(client).artifact == before


def test_a_tag_with_the_name_of_the_branch_is_not_the_branch(github: FakeGitHub, client: GitHub) -> None:
    """GitHub calls both `head_branch`: the commit has to be in the history of the one that is applied."""
    github.kept("tablectl-plan", run=20, head=HEAD, event="workflow_dispatch", branch="main")
    assert find(client, 20).run == 20
    github.unrelated.add(HEAD)
    assert (
        refused(client, 20) == "the plan of run 20 was made of aaaaaaaaaa, which is not in the history of this commit"
    )
    github.runs[20]["head_sha"] = "../../user"
    assert "which is not in the history of this commit" in refused(client, 20)


@pytest.mark.parametrize(
    "kind", [{"type": "User", "id": 12}, {"type": "Bot", "id": 41898282}, {"type": "Bot", "id": 3}]
)
def test_every_kind_of_token_finds_its_own_comment(github: FakeGitHub, client: GitHub, kind: dict[str, object]) -> None:
    github.viewer = {"login": "someone[bot]" if kind["type"] == "Bot" else "someone", **kind}
    github.merged(5, head=HEAD, commit=COMMIT)
    github.kept("tablectl-plan-pr-5", run=10, head=HEAD)
    commented(client, 5, digest="e" * 64)
    commented(client, 5)
    assert len(github.comments[5]) == 1
    assert find(client).digest == DIGEST


def test_a_run_that_is_named(github: FakeGitHub, client: GitHub) -> None:
    by_hand: dict[str, Any] = {"head": HEAD, "event": "workflow_dispatch"}
    github.kept("tablectl-plan", run=20, **by_hand)
    github.kept("tablectl-run", run=20, **by_hand)
    github.kept("tablectl-plan-pr-5", run=21, head=HEAD)
    github.kept("tablectl-planner", run=22, **by_hand)
    github.kept("tablectl-plan", run=23, head=HEAD, event="merge_group")
    github.kept("tablectl-plan", run=24, branch="feature", **by_hand)
    github.kept("tablectl-plan", run=25, workflow=".github/workflows/evil.yml", **by_hand)
    assert find(client, 20) == ReviewedPlan(20, 0, None, CHOSEN)
    assert refused(client, 21) == "run 21 kept no plan named tablectl-plan", "a pull request goes through its merge"
    assert refused(client, 22) == "run 22 kept no plan named tablectl-plan"
    assert refused(client, 23) == "the plan of run 23 was made by merge_group on main, and not by hand on main"
    assert refused(client, 24) == "the plan of run 24 was made by workflow_dispatch on feature, and not by hand on main"
    assert "was made by the workflow .github/workflows/evil.yml" in refused(client, 25)
