"""The note of a merge request: the lines of GitLab's template, run by ``sh`` against a stand-in of the API."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from tablectl.ci.gitlab import note_step, reviewed_step
from tablectl.ci.post_comment import body_of
from tablectl.commands.lock import ci_files
from tablectl.model.install_source import CiSystem
from tablectl.reports.document_markdown import LIMIT
from tests.ci.conftest import Cli, FakeSpark, Repository, base_commit, cli, fake_spark, git, repo
from tests.commands.log_lake import create

__all__ = ["Cli", "FakeSpark", "Repository", "cli", "fake_spark", "repo"]

TOKEN = "glpat-a-token"
BOT, MALLORY = 7, 8
NOTES = "/projects/42/merge_requests/5/notes"
REPORT = "**🟡 Plan: Changes pending** · 1 table\n\nmore\n\n<!-- tablectl plan -->\n"


@dataclass
class FakeGitLab:
    """The notes of one merge request, and everything that was asked."""

    api: str = ""
    notes: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    """Further answers, by their address."""
    status: int = 0
    """The status of every answer, if it is to be a failure."""

    def answer(self, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:
        self.asked.append(f"{method} {path}")
        if self.status or token != TOKEN:
            return self.status or 401, {"message": "no"}
        address, _, query = path.partition("?")
        match method, address:
            case "GET", "/user":
                return 200, {"id": BOT}
            case "GET", "/projects/42/merge_requests/5/notes":
                page = int(dict(each.split("=") for each in query.split("&"))["page"])
                return 200, self.notes[100 * (page - 1) : 100 * page]
            case "POST", "/projects/42/merge_requests/5/notes":
                self.notes.append(
                    {"id": 100 + len(self.notes), "author": {"id": BOT}, "system": False, "body": body["body"]}
                )
                return 201, self.notes[-1]
            case "GET", _ if address in self.answers:
                return 200, self.answers[address]
            case "PUT", _ if address.startswith(f"{NOTES}/"):
                (note,) = [each for each in self.notes if each["id"] == int(address.rpartition("/")[2])]
                note["body"] = body["body"]
                return 200, note
        return 404, {"message": "404 Not Found"}


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    fake = FakeGitLab()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            path = self.path.removeprefix("/api/v4")
            status, answer = fake.answer(self.command, path, self.headers.get("PRIVATE-TOKEN", ""), body)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = _any  # noqa: N815

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    fake.api = f"http://127.0.0.1:{server.server_address[1]}/api/v4"
    yield fake
    server.shutdown()
    server.server_close()


def environ(gitlab: FakeGitLab, **more: str) -> dict[str, str]:
    return {
        "CI_API_V4_URL": gitlab.api,
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": "5",
        "CI_JOB_URL": "https://gitlab.example/acme/lake/-/jobs/9",
        "NOTE_TOKEN": TOKEN,
        "TMPDIR": str(Path.cwd() / "tmp"),
        "CI_JOB_ID": "9",
        **more,
    }


def results() -> Path:
    """The folder of the job's results, as its first line makes it."""
    folder = Path("tmp", "tablectl-9")
    if not folder.exists():
        folder.mkdir(parents=True, mode=0o700)
    return folder


def step(gitlab: FakeGitLab, **more: str) -> str:
    """The log of the step, which never fails."""
    log = StringIO()
    assert note_step(environ(gitlab, **more), log) == 0
    assert TOKEN not in log.getvalue()
    return log.getvalue()


def test_a_note_has_the_size_of_a_comment(gitlab: FakeGitLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (results() / "plan.md").write_text(REPORT.replace("more", "m" * LIMIT), encoding="utf-8")
    assert step(gitlab) == "wrote a note for this merge request\n"
    (note,) = gitlab.notes
    assert len(note["body"].encode()) <= LIMIT
    assert "All of it is on the page of [this run](https://gitlab.example/acme/lake/-/jobs/9)" in note["body"]


def test_a_note_that_is_not_ours_is_not_edited(
    gitlab: FakeGitLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (results() / "plan.md").write_text(REPORT, encoding="utf-8")
    gitlab.notes = [
        {"id": 1, "author": {"id": MALLORY}, "system": False, "body": REPORT},
        {"id": 2, "author": {"id": BOT}, "system": True, "body": REPORT},
        {"id": 3, "author": {"id": BOT}, "system": False, "body": f"{REPORT} and more"},
        {"id": 4, "author": None, "system": False, "body": None},
    ]
    step(gitlab)
    assert len(gitlab.notes) == 5


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"CI_MERGE_REQUEST_IID": ""}, "no note: this pipeline has no merge request\n"),
        ({"CI_PROJECT_ID": "42/../../evil"}, "no note: this pipeline has no merge request\n"),
        ({"NOTE_TOKEN": ""}, "no note: set NOTE_TOKEN to a project access token"),
        ({"NOTE_TOKEN": "glpat-a\nb"}, "no note could be written: NOTE_TOKEN holds no token"),
        ({"NOTE_TOKEN": "glpat-a\u200b"}, "no note could be written: NOTE_TOKEN holds no token"),
        (
            {"CI_API_V4_URL": "http://gitlab.example/api/v4"},
            "is plain http: the token would be readable on the network",
        ),
    ],
)
def test_without_what_it_needs_there_is_no_note(
    gitlab: FakeGitLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (results() / "plan.md").write_text(REPORT, encoding="utf-8")
    said = step(gitlab, **more)
    assert says in said
    assert "glpat" not in said
    assert gitlab.asked == []


def test_a_refused_note_is_only_a_warning(gitlab: FakeGitLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert step(gitlab).startswith("no note could be written: there is no folder")
    results()
    assert re.match(r"no note: there is no \S+/tmp/tablectl-9/plan.md", step(gitlab))
    (results() / "plan.md").write_text(REPORT, encoding="utf-8")
    gitlab.status = 403
    assert f"no note could be written: {gitlab.api} answers 403: no. The artifacts of this job" in step(gitlab)


# The reviewed plan


def merged_as(commit: str) -> str:
    return f"/projects/42/repository/commits/{commit}/merge_requests"


@dataclass
class Reviewed:
    """A merged merge request whose note shows a plan, and the plan's file."""

    gitlab: FakeGitLab
    plan: bytes
    commit: str

    @property
    def merge_request(self) -> dict[str, Any]:
        found: dict[str, Any] = self.gitlab.answers[merged_as(self.commit)][0]
        return found

    def find(self, **more: str) -> tuple[int, str]:
        log = StringIO()
        given = {"CI_COMMIT_SHA": self.commit, "CI_DEFAULT_BRANCH": "main", "CI_COMMIT_BRANCH": "main", **more}
        code = reviewed_step(environ(self.gitlab, **given), log)
        assert TOKEN not in log.getvalue()
        assert (results() / "plan.json").exists() is (code == 0)
        return code, log.getvalue()


@pytest.fixture
def reviewed(gitlab: FakeGitLab, repo: Repository, cli: Cli) -> Reviewed:
    create(repo.root / "orders")
    repo.policies(f"version: 1\ntables:\n  delta.`{repo.root}/orders`: {{properties: {{owner.team: pay}}}}\n")
    assert cli("plan", "--out", "made.json").code == 0
    plan = Path("made.json").read_bytes()
    commit = base_commit()
    git("branch", "-M", "main")
    git("remote", "add", "origin", str(repo.root))
    results()
    body = body_of(REPORT, "plan", "tablectl", "https://gitlab.example/job", json.loads(plan)["sha256"], "")
    note = {"id": 1, "author": {"id": BOT}, "system": False, "body": body, "updated_at": "2026-11-23T10:00:00.000Z"}
    gitlab.notes = [note]
    merged = {
        "iid": 5,
        "state": "merged",
        "target_branch": "main",
        "merge_commit_sha": commit,
        "merged_at": "2026-11-23T11:00:00.000Z",
    }
    gitlab.answers = {
        merged_as(commit): [merged],
        "/projects/42/merge_requests/5/pipelines": [{"id": 31, "project_id": 42}, {"id": 30, "project_id": 42}],
        "/projects/42/pipelines/31/jobs": [{"id": 310, "name": "plan", "status": "failed"}],
        "/projects/42/pipelines/30/jobs": [
            {"id": 300, "name": "lint", "status": "success"},
            {"id": 301, "name": "plan", "status": "success"},
        ],
        "/projects/42/jobs/301/artifacts/tablectl-plan/plan.json": plan,
    }
    return Reviewed(gitlab, plan, commit)


def test_what_is_applied_is_the_plan_that_the_note_shows(reviewed: Reviewed) -> None:
    assert reviewed.find() == (0, "applying the plan that the note of !5 shows\n")
    assert (results() / "plan.json").read_bytes() == reviewed.plan


def test_a_newer_plan_than_that_of_the_note_is_left_out(reviewed: Reviewed, cli: Cli, repo: Repository) -> None:
    repo.policies(f"version: 1\ntables:\n  delta.`{repo.root}/orders`: {{properties: {{owner.team: evil}}}}\n")
    assert cli("plan", "--out", "other.json").code == 0
    answers = reviewed.gitlab.answers
    answers["/projects/42/pipelines/31/jobs"] = [{"id": 310, "name": "plan", "status": "success"}]
    answers["/projects/42/jobs/310/artifacts/tablectl-plan/plan.json"] = Path("other.json").read_bytes()
    assert reviewed.find()[0] == 0
    assert (results() / "plan.json").read_bytes() == reviewed.plan


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"merge_commit_sha": "d" * 40}, "no merge request was merged as"),
        ({"state": "opened"}, "no merge request was merged as"),
        ({"target_branch": "feature"}, "no merge request was merged as"),
        ({"merged_at": "2026-11-23T09:00:00.000Z"}, "the note with the plan of !5 was written after the merge"),
    ],
)
def test_a_plan_that_was_not_reviewed_is_refused(reviewed: Reviewed, change: dict[str, str], says: str) -> None:
    reviewed.merge_request.update(change)
    code, said = reviewed.find()
    assert (code, says in said, "run a pipeline of the default branch by hand" in said) == (3, True, True)


def test_without_the_note_or_the_artifact_nothing_is_applied(reviewed: Reviewed) -> None:
    kept = reviewed.gitlab.answers.pop("/projects/42/jobs/301/artifacts/tablectl-plan/plan.json")
    assert "no job of !5 keeps the plan" in reviewed.find()[1]
    reviewed.gitlab.answers["/projects/42/jobs/301/artifacts/tablectl-plan/plan.json"] = kept
    reviewed.gitlab.notes[0]["author"] = {"id": MALLORY}
    assert "no note of !5 by the account of this token shows a plan" in reviewed.find()[1]
    assert "the reviewed plan is found with NOTE_TOKEN" in reviewed.find(NOTE_TOKEN="")[1]


def test_a_pipeline_of_a_fork_gives_no_plan(reviewed: Reviewed) -> None:
    for pipeline in reviewed.gitlab.answers["/projects/42/merge_requests/5/pipelines"]:
        pipeline["project_id"] = 43
    assert "no job of !5 keeps the plan" in reviewed.find()[1]


def test_the_template_applies_the_reviewed_plan_after_a_merge() -> None:
    found = yaml.safe_load(ci_files(CiSystem.GITLAB)[".gitlab-ci.yml"])
    assert "python -P -m tablectl.ci reviewed" in str(found["apply"]["script"])
    assert found["apply"]["environment"] == "production"
    assert [each["if"].split('"')[1] for each in found["plan"]["rules"]] == ["merge_request_event", "web"]


def test_a_folder_that_others_can_write_is_not_that_of_the_job(reviewed: Reviewed) -> None:
    results().chmod(0o777)
    assert "others than this job can write to" in reviewed.find()[1]
    shutil.rmtree(results())
    Path("elsewhere").mkdir()
    Path("tmp", "tablectl-9").symlink_to(Path("elsewhere").resolve())
    assert "others than this job can write to" in reviewed.find()[1]


@pytest.mark.parametrize("branch", ["attacker", ""])
def test_no_other_branch_is_applied(reviewed: Reviewed, branch: str) -> None:
    code, said = reviewed.find(CI_COMMIT_BRANCH=branch)
    assert (code, "plans are applied on main alone" in said) == (64, True)
