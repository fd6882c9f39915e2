"""The note of a merge request on GitLab: one per project and merge request, edited with each plan.

Fields of the API: https://docs.gitlab.com/api/notes/#merge-requests and https://docs.gitlab.com/api/users/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from tablectl.ci.comment import DEFAULT, addition, body_of, marker
from tablectl.ci.rest_api import HostedRepository, open_gitlab
from tablectl.commands.plan_files import read_plan
from tablectl.model.errors import ExitCode, LiveError, TablectlError
from tablectl.model.output_escapes import escape_output
from tablectl.planning.plan_file import digest_of
from tablectl.support.frozen import frozen

REPORT = "plan.md"
PLAN = "plan.json"
_NUMBER = re.compile(r"[0-9]{1,19}\Z")


@frozen
class Note:
    """A note that the account of the token wrote."""

    number: int
    body: str


def note_step(environ: Mapping[str, str], log: TextIO) -> int:
    """Post ``plan.md`` as the note of the job's merge request, or edit the note of an earlier plan.

    If that fails it is only a warning: the job's artifacts have the report.
    """
    numbers = [environ.get(key, "") for key in ("CI_PROJECT_ID", "CI_MERGE_REQUEST_IID")]
    if not all(map(_NUMBER.match, numbers)):
        return _tell(log, "no note: this pipeline has no merge request")
    if not environ.get("NOTE_TOKEN", "").strip():
        return _tell(log, "no note: set NOTE_TOKEN to a project access token with the scope `api` (docs/ci.md)")
    if not Path(REPORT).is_file():
        return _tell(log, f"no note: there is no {REPORT}; the log of the plan says why")
    try:
        gitlab = open_gitlab(environ, numbers[0])
        made = _put(gitlab, f"merge_requests/{numbers[1]}/notes", environ.get("CI_JOB_URL", ""))
    except TablectlError as error:
        return _tell(log, f"no note could be written: {error.message}. The artifacts of this job have the report")
    return _tell(log, made)


def _put(gitlab: HostedRepository, path: str, job: str) -> str:
    mark = marker("plan", DEFAULT)
    old = _find(gitlab, path, mark)
    digest = digest_of(read_plan(Path(PLAN))) if Path(PLAN).is_file() else ""
    report = Path(REPORT).read_text(encoding="utf-8", errors="replace")
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
            return Note(number, body)
    return None


def _tell(log: TextIO, text: str) -> int:
    log.write(f"{escape_output(text, colour=False)}\n")
    return ExitCode.DONE
