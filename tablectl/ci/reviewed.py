"""Which plan was reviewed: that of the last commit of the pull request that was merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablectl.ci.github import GitHub
from tablectl.model.errors import PlanFileError

BY_HAND = (
    "plan again and apply that plan: run this workflow by hand, have the plan on its page reviewed, and run it "
    "once more with the number of that run as `plan-run`"
)
_SHORT = 10


@dataclass(frozen=True, slots=True)
class Reviewed:
    """An artifact with a plan in it."""

    run: int
    artifact: str
    pull_request: int | None


def artifact_name(name: str, pull_request: int | None) -> str:
    """What the plan of a pull request, or of a run by hand, is kept as."""
    return f"{name}-plan" if pull_request is None else f"{name}-plan-pr-{pull_request}"


def find_reviewed(github: GitHub, name: str, commit: str, plan_run: int | None) -> Reviewed:
    """The plan of a run that was named, else of the pull request that became ``commit``.

    Raises ``PlanFileError`` where there is none that may be applied, with what to do, and ``GitHubError``.
    """
    return _of_run(github, name, plan_run) if plan_run is not None else _of_merge(github, name, commit)


def _of_run(github: GitHub, name: str, run: int) -> Reviewed:
    wanted = artifact_name(name, None)
    found = [
        each
        for each in github.pages(f"actions/runs/{run}/artifacts", "artifacts")
        if each.get("name") == wanted or str(each.get("name")).startswith(f"{wanted}-pr-")
    ]
    if not found:
        raise PlanFileError(f"run {run} kept no plan named {wanted}", BY_HAND)
    chosen = _newest(found)
    _check(chosen, f"the plan of run {run}")
    return Reviewed(run, str(chosen["name"]), None)


def _of_merge(github: GitHub, name: str, commit: str) -> Reviewed:
    pulls = [each for each in github.pages(f"commits/{commit}/pulls") if each.get("merge_commit_sha") == commit]
    pull = next((each for each in pulls if each.get("merged_at")), None)
    if pull is None:
        raise PlanFileError(f"no pull request was merged as {commit[:_SHORT]}, so no plan of it was reviewed", BY_HAND)
    number, head = int(pull["number"]), str(pull.get("head", {}).get("sha"))
    wanted = artifact_name(name, number)
    kept = list(github.pages(f"actions/artifacts?name={wanted}", "artifacts"))
    if not kept:
        raise PlanFileError(f"there is no plan of #{number}: none was made, or it is no longer kept", BY_HAND)
    of_head = [each for each in kept if _run_of(each).get("head_sha") == head]
    if not of_head:
        last = str(_run_of(_newest(kept)).get("head_sha"))[:_SHORT]
        raise PlanFileError(
            f"the last plan of #{number} is of its commit {last}; what was merged is {head[:_SHORT]}, without a plan",
            BY_HAND,
        )
    chosen = _newest([each for each in of_head if _is_own(each)] or of_head)
    _check(chosen, f"the plan of #{number}")
    return Reviewed(int(_run_of(chosen)["id"]), wanted, number)


def _newest(artifacts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return max(artifacts, key=lambda each: (str(each.get("created_at")), int(each.get("id", 0))))


def _is_own(artifact: Mapping[str, Any]) -> bool:
    """A fork's workflows are its own, and what they keep lies among ours, under whatever name they like."""
    run = _run_of(artifact)
    return run.get("repository_id") is not None and run.get("head_repository_id") == run.get("repository_id")


def _check(artifact: Mapping[str, Any], what: str) -> None:
    if not _is_own(artifact):
        raise PlanFileError(f"{what} was made by a fork, whose workflows anybody may change", BY_HAND)
    if artifact.get("expired"):
        raise PlanFileError(f"{what} is no longer kept", BY_HAND)


def _run_of(artifact: Mapping[str, Any]) -> Mapping[str, Any]:
    found = artifact.get("workflow_run")
    return found if isinstance(found, dict) else {}
