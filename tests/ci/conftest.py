"""A job of GitHub Actions on this machine: its files, and a server that answers as GitHub's API does."""

from __future__ import annotations

import io
import json
import re
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tablectl.catalogs.http_client import Bounds
from tablectl.ci.job import CiJob, CommandResult
from tablectl.ci.rest_api import GitHub, open_github
from tablectl.ci.steps import run_step
from tests.commands.conftest import Cli, FakeSpark, Repository, cli, fake_spark, repo

__all__ = ["Cli", "FakeSpark", "Repository", "cli", "fake_spark", "repo"]

REPOSITORY = "acme/lake"
TOKEN = "ghs_a-token"
BOT = {"login": "github-actions[bot]", "type": "Bot", "id": 41898282}
WRITTEN = "2026-11-02T00:00:00Z"
"""When comments are written: after the first artifact, and before the merge."""
WORKFLOW = ".github/workflows/tablectl.yml"


@dataclass
class FakeGitHub:
    """Comments, pull requests and artifacts of one repository, and everything that was asked."""

    api: str = ""
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    pulls: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    viewer: dict[str, Any] = field(default_factory=lambda: dict(BOT))
    """The account of the token."""
    asked: list[str] = field(default_factory=list)
    archives: dict[int, bytes] = field(default_factory=dict)
    """The bytes of artifacts by their ids."""
    unrelated: set[str] = field(default_factory=set)
    """Commits that are not in the history of any other one."""
    tokens: set[str] = field(default_factory=set)
    fail: list[int] = field(default_factory=list)
    """The statuses of the next answers."""

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        if self.fail:
            return self.fail.pop(0), {"message": "no"}
        if (method, path) == ("POST", "/graphql"):
            return 200, {"data": {"nodes": [self._node(each) for each in body["variables"]["ids"]]}}
        return self._answer(method, path, query, body)

    def _node(self, node_id: str) -> dict[str, Any] | None:
        """A comment as GraphQL shows it, where an App's account has another login."""
        found = (each for kept in self.comments.values() for each in kept if str(each["id"]) == node_id)
        comment = next(found, None)
        if comment is None:
            return None

        def actor(user: Any) -> dict[str, str] | None:
            kind = "Bot" if user and user["type"] == "Bot" else "User"
            return {"__typename": kind, "login": user["login"].removesuffix("[bot]")} if user else None

        user = comment["user"]
        return {
            "databaseId": comment["id"],
            "body": comment["body"],
            "createdAt": comment.get("created_at", WRITTEN),
            "lastEditedAt": comment.get("edited_at"),
            "viewerDidAuthor": bool(user) and user.get("id") == self.viewer["id"],
            "author": actor(user),
            "editor": actor(comment.get("editor")),
        }

    def _answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        page = int(query.get("page", ["1"])[0]) - 1
        size = int(query.get("per_page", ["30"])[0])

        def some(found: Sequence[Any]) -> list[Any]:
            return list(found)[page * size : (page + 1) * size]

        match method, *path.removeprefix(f"/repos/{REPOSITORY}/").split("/"):
            case "GET", "issues", number, "comments":
                return 200, some([{**each, "node_id": str(each["id"])} for each in self.comments.get(int(number), [])])
            case "POST", "issues", number, "comments":
                return 201, self._write(int(number), body["body"])
            case "PATCH", "issues", "comments", identity:
                (found,) = [each for kept in self.comments.values() for each in kept if each["id"] == int(identity)]
                found |= {"body": body["body"], "editor": self.viewer, "edited_at": WRITTEN}
                return 200, found
            case "GET", "commits", sha, "pulls":
                return 200, some(self.pulls.get(sha, []))
            case "GET", "compare", commits:
                head = commits.partition("...")[0]
                return 200, {"status": "diverged" if head in self.unrelated else "ahead"}
            case "GET", "actions", *rest:
                return self._actions(rest, query, some)
        return 404, {"message": "Not Found"}

    def _actions(
        self, path: list[str], query: dict[str, list[str]], some: Callable[[Sequence[Any]], list[Any]]
    ) -> tuple[int, Any]:
        match path:
            case ["artifacts"]:
                named = [each for each in self.artifacts if each["name"] == query["name"][0]]
                return 200, {"total_count": len(named), "artifacts": some(named)}
            case "artifacts", number, "zip" if int(number) in self.archives:
                return 200, self.archives[int(number)]
            case "runs", run if int(run) in self.runs:
                return 200, self.runs[int(run)]
            case "runs", run, "artifacts":
                of_run = [each for each in self.artifacts if each["workflow_run"]["id"] == int(run)]
                return 200, {"total_count": len(of_run), "artifacts": some(of_run)}
        return 404, {"message": "Not Found"}

    def _write(self, number: int, body: str) -> dict[str, Any]:
        kept = self.comments.setdefault(number, [])
        identity = sum(map(len, self.comments.values())) + 101
        kept.append(
            {"id": identity, "user": self.viewer, "body": body, "html_url": f"https://github.example/c/{identity}"}
        )
        return kept[-1]

    def merged(self, number: int, *, head: str, commit: str) -> None:
        pull = {
            "number": number,
            "merged_at": "2026-11-20T10:00:00Z",
            "merge_commit_sha": commit,
            "head": {"sha": head},
        }
        self.pulls.setdefault(commit, []).append(pull)

    def kept(
        self,
        name: str,
        *,
        run: int,
        head: str,
        fork: bool = False,
        expired: bool = False,
        event: str = "pull_request",
        workflow: str = WORKFLOW,
        branch: str = "main",
        made: str = "",
        files: Path | bytes | None = None,
    ) -> int:
        """An artifact; its id. ``files`` is a directory, or the bytes of the archive."""
        self.runs[run] = {"id": run, "event": event, "path": workflow, "head_branch": branch, "head_sha": head}
        of = {"id": run, "repository_id": 1, "head_repository_id": 2 if fork else 1, "head_sha": head}
        made = made or f"2026-11-{1 + len(self.artifacts):02d}T00:00:00Z"
        artifact = {"id": len(self.artifacts), "name": name, "expired": expired, "created_at": made, "workflow_run": of}
        self.artifacts.insert(0, artifact)
        number = len(self.artifacts) - 1
        self.archives[number] = files if isinstance(files, bytes) else zipped(files)
        return number


def zipped(folder: Path | None) -> bytes:
    """What upload-artifact keeps of a directory."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")) if folder else ():
            archive.write(file, file.relative_to(str(folder)))
    return stream.getvalue()


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    fake = FakeGitHub()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            fake.asked.append(f"{self.command} {parts.path}")
            fake.tokens.add(self.headers.get("Authorization", ""))
            status, answer = fake.answer(self.command, parts.path, parse_qs(parts.query), body)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _any  # noqa: N815

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    fake.api = f"http://127.0.0.1:{server.server_address[1]}"
    yield fake
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(github: FakeGitHub) -> GitHub:
    return github_at(github.api)


def github_at(api: str) -> GitHub:
    """The client of a server, which waits for nothing before it asks again."""
    environ = {"GITHUB_API_URL": api, "INPUT_TOKEN": TOKEN}
    return open_github(environ, REPOSITORY, Bounds(pause=lambda _seconds: None))


@dataclass
class Runner:
    """Runs steps as a runner does: each with an output file of its own; the summary is the job's."""

    root: Path
    environ: dict[str, str]
    run: Callable[[Sequence[str]], CommandResult]
    log: str = ""
    count: int = 0

    def event(self, **event: object) -> None:
        file = self.root / "event.json"
        base = event.get("pull_request")
        if isinstance(base, dict) and isinstance(base.get("base"), dict):
            base["base"] = {"ref": "main", **base["base"]}
        file.write_text(json.dumps({"repository": {"default_branch": "main"}, **event}))
        self.environ["GITHUB_EVENT_PATH"] = str(file)

    def step(self, name: str, **inputs: object) -> tuple[int, dict[str, str]]:
        """The exit code and the outputs."""
        self.count += 1
        outputs = self.root / f"output-{self.count}"
        given = {f"INPUT_{key.upper()}": str(value) for key, value in inputs.items()}
        stream = io.StringIO()
        environ = {**self.environ, **given, "GITHUB_OUTPUT": str(outputs)}
        code = run_step(name, CiJob(environ, self.run, stream))
        self.log = stream.getvalue()
        return code, read_outputs(outputs)

    @property
    def summary(self) -> str:
        file = Path(self.environ["GITHUB_STEP_SUMMARY"])
        return file.read_text() if file.exists() else ""


def read_outputs(file: Path) -> dict[str, str]:
    """As the runner reads them."""
    text = file.read_text() if file.exists() else ""
    return {key: value for key, _, value in re.findall(r"(?ms)^([^\n<]+)<<(\w+)\n(.*?)\n\2\n", text)}


@pytest.fixture
def runner(tmp_path: Path, cli: Cli, fake_spark: FakeSpark, github: FakeGitHub) -> Runner:
    """In the repository of policies, with commands run in this process."""

    def run(args: Sequence[str]) -> CommandResult:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TABLECTL_BASE_CONFIG", made.environ.get("TABLECTL_BASE_CONFIG", ""))
            ran = cli(*args)
        return CommandResult(ran.code, ran.err)

    root = tmp_path / "runner"
    root.mkdir()
    environ = {
        "RUNNER_TEMP": str(root / "temp"),
        "GITHUB_STEP_SUMMARY": str(root / "summary.md"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_API_URL": github.api,
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_RUN_ID": "77",
        "GITHUB_SHA": "c" * 40,
        "GITHUB_REF_NAME": "main",
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/{WORKFLOW}@refs/heads/main",
        "INPUT_TOKEN": TOKEN,
    }
    made = Runner(root, environ, run)
    made.event()
    return made


def git(*args: str) -> str:
    """A command of Git in the current folder; what it prints."""
    options = ["-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *options, *args], check=True, capture_output=True, text=True).stdout.strip()


def base_commit() -> str:
    """The current folder as the base branch has it."""
    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "--message=base")
    return git("rev-parse", "HEAD")


def land(runner: Runner) -> str:
    """The current folder as the newest commit of ``main``, at the server, too; it is the commit of the job."""
    commit = base_commit()
    git("branch", "-M", "main")
    if not git("remote"):
        git("remote", "add", "origin", str(Path.cwd()))
    runner.environ["GITHUB_SHA"] = commit
    return commit


def merge(runner: Runner, github: FakeGitHub, head: str, number: int = 5) -> str:
    """A pull request is merged, as the current folder is; the commit."""
    commit = land(runner)
    github.merged(number, head=head, commit=commit)
    return commit
