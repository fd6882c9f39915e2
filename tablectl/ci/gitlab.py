"""The note of a merge request on GitLab: one per project and merge request, edited with each plan; and the plan that it
shows, to apply after the merge.

Fields of the API: https://docs.gitlab.com/api/notes/#merge-requests, https://docs.gitlab.com/api/users/,
https://docs.gitlab.com/api/commits/#list-merge-requests-associated-with-a-commit,
https://docs.gitlab.com/api/merge_requests/#list-merge-request-pipelines, https://docs.gitlab.com/api/jobs/ and
https://docs.gitlab.com/api/job_artifacts/#download-a-single-artifact-file-by-job-id (read 23 November 2026).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

from tablectl.ci.base_branch import check_newest
from tablectl.ci.post_comment import DEFAULT, addition, body_of, digest_in, marker
from tablectl.ci.rest_api import HostedRepository, open_gitlab
from tablectl.commands.user_files import read_plan, write_file
from tablectl.model.errors import ExitCode, LiveError, PlanFileError, TablectlError, UsageError
from tablectl.model.safe_text import escape_output
from tablectl.planning.plan_file import MAX_BYTES, digest_of, load_plan
from tablectl.support.files import read_regular

REPORT = "plan.md"
PLAN = "plan.json"
ARTIFACT = "tablectl-plan/plan.json"
"""The plan in the artifacts of a job."""
_NUMBER = re.compile(r"[0-9]{1,19}\Z")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_MOST_PIPELINES = 20
BY_HAND = "run a pipeline of the default branch by hand: it plans again, and its apply runs that plan"


@dataclass(frozen=True, slots=True)
class Note:
    """A note that the account of the token wrote."""

    number: int
    body: str
    written: str = ""
    """When it was last edited, as the API writes times."""


def note_step(environ: Mapping[str, str], log: TextIO) -> int:
    """Post ``plan.md`` as the note of the job's merge request, or edit the note of an earlier plan.

    If that fails it is only a warning: the job's artifacts have the report.
    """
    numbers = [environ.get(key, "") for key in ("CI_PROJECT_ID", "CI_MERGE_REQUEST_IID")]
    if not all(map(_NUMBER.match, numbers)):
        return _tell(log, "no note: this pipeline has no merge request")
    if not environ.get("NOTE_TOKEN", "").strip():
        return _tell(log, "no note: set NOTE_TOKEN to a project access token with the scope `api` (docs/ci.md)")
    try:
        folder = results(environ)
        if not (folder / REPORT).is_file():
            return _tell(log, f"no note: there is no {folder / REPORT}; the log of the plan says why")
        gitlab = open_gitlab(environ, numbers[0])
        made = _put(gitlab, f"merge_requests/{numbers[1]}/notes", environ.get("CI_JOB_URL", ""), folder)
    except TablectlError as error:
        return _tell(log, f"no note could be written: {error.message}. The artifacts of this job have the report")
    return _tell(log, made)


def results(environ: Mapping[str, str]) -> Path:
    """The folder of this job's results. The first line of the job makes it, outside of the checkout: a commit could put
    a report or a plan of its own into the checkout. Raises ``UsageError`` if it is not there, or not ours alone.
    """
    folder = Path(environ.get("TMPDIR") or "/tmp", f"tablectl-{environ.get('CI_JOB_ID', '')}")  # noqa: S108  # checked below
    hint = "make it first: write the template again with `tablectl lock --ci gitlab` (docs/ci.md)"
    try:
        facts = folder.lstat()
    except (OSError, ValueError) as error:
        raise UsageError(f"there is no folder {folder} of this job", hint) from error
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
        raise UsageError(f"others than this job can write to {folder}", hint)
    return folder


def reviewed_step(environ: Mapping[str, str], log: TextIO) -> int:
    """Write ``plan.json`` into the folder of the job: the plan that the note of the merged merge request shows, or, in
    a pipeline by hand, that of its plan job. Returns the exit code.
    """
    commit, branch = environ.get("CI_COMMIT_SHA", ""), environ.get("CI_DEFAULT_BRANCH", "")
    try:
        folder = results(environ)
        if not branch or environ.get("CI_COMMIT_BRANCH") != branch:
            raise UsageError(f"plans are applied on {branch or 'the default branch'} alone", "run the job there")
        if environ.get("CI_PIPELINE_SOURCE") == "web":
            data, what = read_regular(Path(ARTIFACT), MAX_BYTES), "of this pipeline"
        else:
            data, number = _reviewed(environ)
            what = f"that the note of !{number} shows"
        check_newest(load_plan(data, f"the plan {what}"), commit, branch, environ, BY_HAND)
        write_file(folder / PLAN, data, private=True)  # a plan can hold values that reports hide
    except TablectlError as error:
        _tell(log, f"error: {error}")
        return error.exit_code
    except OSError as error:
        _tell(log, f"error: {ARTIFACT} of the plan job cannot be read: {error.strerror or error}")
        return ExitCode.REFUSED
    return _tell(log, f"applying the plan {what}")


def _reviewed(environ: Mapping[str, str]) -> tuple[bytes, int]:
    """The reviewed plan and the number of its merge request. Raises ``PlanFileError``, with what to do, if there is
    none, and ``LiveError``.
    """
    project, commit = environ.get("CI_PROJECT_ID", ""), environ.get("CI_COMMIT_SHA", "")
    if not _NUMBER.match(project) or not _COMMIT.match(commit) or not environ.get("NOTE_TOKEN", "").strip():
        raise PlanFileError("the reviewed plan is found with NOTE_TOKEN, in a job of GitLab (docs/ci.md)", BY_HAND)
    gitlab, branch = open_gitlab(environ, project), environ.get("CI_DEFAULT_BRANCH", "")
    merged = [
        each
        for each in gitlab.pages(f"repository/commits/{commit}/merge_requests")
        if each.get("state") == "merged"
        and each.get("target_branch") == branch
        and commit in {each.get("merge_commit_sha"), each.get("squash_commit_sha"), each.get("sha")}
    ]
    if not merged:
        raise PlanFileError(f"no merge request was merged as {commit[:10]}, so no plan of it was reviewed", BY_HAND)
    number, mark = int(merged[0]["iid"]), marker("plan", DEFAULT)
    note = _find(gitlab, f"merge_requests/{number}/notes", mark)
    digest = digest_in(note.body, mark) if note else ""
    if note is None or not digest:
        raise PlanFileError(f"no note of !{number} by the account of this token shows a plan", BY_HAND)
    if note.written >= str(merged[0].get("merged_at") or ""):
        raise PlanFileError(f"the note with the plan of !{number} was written after the merge", BY_HAND)
    for job in _plan_jobs(gitlab, project, number):
        try:
            data = gitlab.download(f"jobs/{job}/artifacts/{ARTIFACT}", MAX_BYTES)
            if digest_of(load_plan(data, f"the plan of job {job}")) == digest:
                return data, number
        except LiveError:  # the artifacts are no longer kept
            continue
    raise PlanFileError(f"no job of !{number} keeps the plan {digest[:12]}… that its note shows", BY_HAND)


def _plan_jobs(gitlab: HostedRepository, project: str, number: int) -> Iterator[int]:
    """The jobs of this project that planned a merge request, the newest first."""
    ours = (
        each for each in gitlab.pages(f"merge_requests/{number}/pipelines") if str(each.get("project_id")) == project
    )
    for pipeline in islice(ours, _MOST_PIPELINES):
        for job in gitlab.pages(f"pipelines/{int(pipeline['id'])}/jobs"):
            if job.get("name") == "plan" and job.get("status") == "success":
                yield int(job["id"])


def _put(gitlab: HostedRepository, path: str, job: str, folder: Path) -> str:
    mark = marker("plan", DEFAULT)
    old = _find(gitlab, path, mark)
    digest = digest_of(read_plan(folder / PLAN)) if (folder / PLAN).is_file() else ""
    report = (folder / REPORT).read_text(encoding="utf-8", errors="replace")
    added = addition(report, old.body if old else "", digest, f"{job}/artifacts/browse")
    body = body_of(report, "plan", DEFAULT, job, digest, added)
    if old:
        gitlab.send("PUT", f"{path}/{old.number}", body=body)
        return f"edited the note {old.number} of this merge request"
    gitlab.send("POST", path, body=body)
    return "wrote a note for this merge request"


def _find(gitlab: HostedRepository, path: str, mark: str) -> Note | None:
    """The first note with the marker by the account of the token. Whoever wrote a note can change it later."""
    user = gitlab.http.send("GET", "/user")
    account = user.get("id") if isinstance(user, dict) else None
    if not isinstance(account, int):
        raise LiveError(f"{gitlab.http.base}: the answer names no account")
    for each in gitlab.pages(f"{path}?sort=asc&order_by=created_at"):
        author, body, number = each.get("author"), each.get("body"), each.get("id")
        ours = isinstance(author, dict) and author.get("id") == account and not each.get("system")
        if ours and isinstance(number, int) and isinstance(body, str) and body.rstrip().endswith(mark):
            return Note(number, body, str(each.get("updated_at") or ""))
    return None


def _tell(log: TextIO, text: str) -> int:
    log.write(f"{escape_output(text, colour=False)}\n")
    return ExitCode.DONE
