"""Find the reviewed plan: the plan of the last commit of the merged pull request, according to its comment."""

from __future__ import annotations

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablectl.ci.post_comment import digest_in, find_comment, marker
from tablectl.ci.rest_api import GitHub
from tablectl.model.errors import PlanFileError
from tablectl.planning.plan_file import MAX_BYTES

BY_HAND = (
    "plan again and apply that plan: run this workflow by hand, have the plan on its page reviewed, and run it "
    "once more with the number of that run as `plan-run`"
)
CHOSEN = "chosen by hand"
"""Used instead of a digest if a person named the run whose plan is applied."""
PLAN = "plan.json"
ARCHIVE_BYTES = 128 << 20
"""The maximum size of an artifact: a plan and its reports."""
_PLAN_AGAIN = "look at the page of the run that made it, and plan again"
_MOST_FILES = 1_000
_ENTRY = b"PK\x01\x02"
"""Starts each entry of the directory of a ZIP file (APPNOTE.TXT 4.3.12)."""
_SHORT = 10
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")


@dataclass(frozen=True, slots=True)
class ReviewedPlan:
    """An artifact with a plan."""

    run: int
    artifact: int
    """The id of the artifact. A later artifact of the same run and name has another one."""
    pull_request: int | None
    digest: str = CHOSEN
    """The digest of the reviewed plan."""


@dataclass(frozen=True, slots=True)
class ArtifactOrigin:
    """Who applies a plan: for which use of tablectl, and from where plans are accepted."""

    name: str
    commit: str
    workflow: str
    """The path of the workflow file that plans."""
    branch: str
    """The branch from which plans are applied."""


def artifact_name(name: str, pull_request: int | None) -> str:
    """The name of the artifact with the plan of a pull request, or of a manual run."""
    return f"{name}-plan" if pull_request is None else f"{name}-plan-pr-{pull_request}"


def find_reviewed(github: GitHub, origin: ArtifactOrigin, plan_run: int | None) -> ReviewedPlan:
    """The plan of the named run, else of the pull request whose merge created the commit.

    Raises ``PlanFileError``, with what to do, if there is no plan that may be applied, and ``LiveError``.
    """
    return _of_run(github, origin, plan_run) if plan_run is not None else _of_merge(github, origin)


def _of_run(github: GitHub, origin: ArtifactOrigin, number: int) -> ReviewedPlan:
    """The plan of a manual run on the branch that is applied. A plan of a pull request is accepted only through its
    merge.
    """
    wanted = artifact_name(origin.name, None)
    found = [
        each for each in github.pages(f"actions/runs/{number}/artifacts", "artifacts") if each.get("name") == wanted
    ]
    if not found:
        raise PlanFileError(f"run {number} kept no plan named {wanted}", BY_HAND)
    chosen = _newest(found)
    what = f"the plan of run {number}"
    _check(chosen, what)
    run = _run(github, number)
    _check_workflow(run, origin, what)
    if run.get("event") != "workflow_dispatch" or run.get("head_branch") != origin.branch:
        made = f"{run.get('event')} on {run.get('head_branch')}"
        raise PlanFileError(f"{what} was made by {made}, and not by hand on {origin.branch}", BY_HAND)
    # Check that a run's commit is in the history of the applied one. A tag may have the name of the branch.
    head = str(run.get("head_sha"))
    compared = github.send("GET", f"compare/{head}...{origin.commit}") if _COMMIT.match(head) else None
    if not isinstance(compared, dict) or compared.get("status") not in {"ahead", "identical"}:
        raise PlanFileError(f"{what} was made of {head[:_SHORT]}, which is not in the history of this commit", BY_HAND)
    return ReviewedPlan(number, int(chosen["id"]), None)


def _of_merge(github: GitHub, origin: ArtifactOrigin) -> ReviewedPlan:
    commit = origin.commit
    pulls = [each for each in github.pages(f"commits/{commit}/pulls") if each.get("merge_commit_sha") == commit]
    pull = next((each for each in pulls if each.get("merged_at")), None)
    if pull is None:
        raise PlanFileError(f"no pull request was merged as {commit[:_SHORT]}, so no plan of it was reviewed", BY_HAND)
    head_of = pull.get("head")
    number, head = int(pull["number"]), str(head_of.get("sha") if isinstance(head_of, dict) else "")
    wanted = artifact_name(origin.name, number)
    kept = list(github.pages(f"actions/artifacts?name={wanted}", "artifacts"))
    if not kept:
        raise PlanFileError(f"#{number} has no plan: none was made, or it has expired", BY_HAND)
    of_head = [each for each in kept if _run_of(each).get("head_sha") == head]
    if not of_head:
        last = str(_run_of(_newest(kept)).get("head_sha"))[:_SHORT]
        raise PlanFileError(
            f"the last plan of #{number} is of its commit {last}; what was merged is {head[:_SHORT]}, without a plan",
            BY_HAND,
        )
    what = f"the plan of #{number}"
    merged = str(pull["merged_at"])
    before = [each for each in of_head if str(each.get("created_at")) < merged]
    if not before:
        raise PlanFileError(f"{what} was made after the merge, so it was not reviewed", BY_HAND)
    chosen = _of_workflow(github, origin, [each for each in before if _is_own(each)] or before, what)
    digest = _digest(github, origin, number, merged)
    return ReviewedPlan(int(_run_of(chosen)["id"]), int(chosen["id"]), number, digest)


def _of_workflow(
    github: GitHub, origin: ArtifactOrigin, artifacts: Sequence[Mapping[str, Any]], what: str
) -> Mapping[str, Any]:
    """The newest artifact that this workflow created for a pull request. Other workflows may use the same name."""
    refused: PlanFileError | None = None
    for artifact in sorted(artifacts, key=_age, reverse=True):
        try:
            _check(artifact, what)
            run = _run(github, int(_run_of(artifact)["id"]))
            _check_workflow(run, origin, what)
            if run.get("event") != "pull_request":
                raise PlanFileError(f"{what} was made by {run.get('event')}, and not by a pull request", BY_HAND)
        except PlanFileError as error:
            refused = refused or error
        else:
            return artifact
    assert refused is not None
    raise refused


def _digest(github: GitHub, origin: ArtifactOrigin, number: int, merged: str) -> str:
    """The digest in the comment. Everyone with write access may edit it, so its last edit counts, too."""
    mark = marker("plan", origin.name)
    comment = find_comment(github, number, mark)
    digest = digest_in(comment.body, mark) if comment else ""
    if comment is None or not digest:
        raise PlanFileError(
            f"no comment of #{number} by the account of this token carries the digest of a plan, so none was reviewed",
            f"plan with the same kind of token and `comment: true`; or {BY_HAND}",
        )
    if not comment.by_us:
        raise PlanFileError(f"the comment with the plan of #{number} was edited by another account", BY_HAND)
    if comment.written >= merged:
        raise PlanFileError(f"the comment with the plan of #{number} was written after the merge", BY_HAND)
    return digest


def _run(github: GitHub, number: int) -> Mapping[str, Any]:
    found = github.send("GET", f"actions/runs/{number}")
    return found if isinstance(found, dict) else {}


def _check_workflow(run: Mapping[str, Any], origin: ArtifactOrigin, what: str) -> None:
    """Check the run's workflow file. ``path`` may end in ``@`` and a branch."""
    path = str(run.get("path")).partition("@")[0]
    if not origin.workflow or path != origin.workflow:
        raise PlanFileError(
            f"{what} was made by the workflow {path}, and not by {origin.workflow or 'a workflow that is known'}",
            "name the workflow file that plans as `plan-workflow`",
        )


def _age(artifact: Mapping[str, Any]) -> tuple[str, int]:
    return str(artifact.get("created_at")), int(artifact.get("id", 0))


def _newest(artifacts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return max(artifacts, key=_age)


def _is_own(artifact: Mapping[str, Any]) -> bool:
    """Whether an artifact belongs to this repository. Artifacts of a fork's workflows are listed with ours, under any
    name.
    """
    run = _run_of(artifact)
    return run.get("repository_id") is not None and run.get("head_repository_id") == run.get("repository_id")


def _check(artifact: Mapping[str, Any], what: str) -> None:
    if not _is_own(artifact):
        raise PlanFileError(f"{what} was made by a fork, whose workflows anybody may change", BY_HAND)
    if artifact.get("expired"):
        raise PlanFileError(f"{what} has expired", BY_HAND)


def _run_of(artifact: Mapping[str, Any]) -> Mapping[str, Any]:
    found = artifact.get("workflow_run")
    return found if isinstance(found, dict) else {}


def unpack(archive: bytes, what: str) -> bytes:
    """The plan in an artifact. Whoever may push a branch decides what is in it, so only one file is read.

    Raises ``PlanFileError`` if there is no plan, or if its file is not a regular one, is there twice or is too large.
    Nothing is written, and no more is unpacked than the limit allows, whatever size the archive declares.
    """
    if archive.count(_ENTRY) > _MOST_FILES:
        raise PlanFileError(f"{what} is an artifact of more than {_MOST_FILES:,} files", _PLAN_AGAIN)
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = [each for each in opened.infolist() if each.filename.rstrip("/") == PLAN]
            found = [_unpacked(opened, each, what) for each in entries]
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OSError) as error:
        raise PlanFileError(f"{what} cannot be unpacked: {error}", _PLAN_AGAIN) from None
    if len(found) > 1:
        raise PlanFileError(f"{what} is an artifact that holds {PLAN} twice", _PLAN_AGAIN)
    if not found:
        raise PlanFileError(f"{what} is an artifact without {PLAN}: the run made a report and no plan", _PLAN_AGAIN)
    return found[0]


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, what: str) -> bytes:
    mode = entry.external_attr >> 16
    plain = stat.S_IFMT(mode) in {0, stat.S_IFREG} and not entry.is_dir()
    if not plain or entry.flag_bits & 1 or entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise PlanFileError(f"{what} is an artifact in which {entry.filename} is not a plain file", _PLAN_AGAIN)
    with archive.open(entry) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise PlanFileError(
            f"{what} is an artifact in which {entry.filename} is larger than {MAX_BYTES:,} bytes", _PLAN_AGAIN
        )
    return data
