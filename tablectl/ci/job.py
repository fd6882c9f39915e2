"""The environment of a GitHub Actions job, and its output: step outputs, a summary, annotations."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

from tablectl.model.errors import UsageError
from tablectl.support.json_text import read_json

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}\Z")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]*\Z")
_NUMBER = re.compile(r"[0-9]{1,19}\Z")
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+\Z")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command: its exit code and its standard error."""

    code: int
    err: str


Run = Callable[[Sequence[str]], CommandResult]
"""Runs ``tablectl …`` in the directory of the policies; its output goes to the job's log."""


def run_tablectl(args: Sequence[str]) -> CommandResult:
    """Run it in a process of its own with the current Python, whatever files are in the current directory."""
    command = [sys.executable, "-P", "-m", "tablectl", *args]
    environ = {key: value for key, value in os.environ.items() if key != "INPUT_TOKEN"}
    with subprocess.Popen(  # noqa: S603
        command, stderr=subprocess.PIPE, text=True, errors="replace", env=environ
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            sys.stderr.write(line)
            sys.stderr.flush()
    return CommandResult(process.returncode, "".join(said))


@dataclass(frozen=True, slots=True)
class CiJob:
    """One job. No field of its event is assumed to have a certain form; names and numbers are checked when used."""

    environ: Mapping[str, str]
    run: Run = run_tablectl
    log: TextIO = field(default_factory=lambda: sys.stdout)

    @property
    def name(self) -> str:
        """The name that distinguishes this use of tablectl from others in the repository. Raises ``UsageError``."""
        name = self.given("name") or "tablectl"
        if not _NAME.match(name):
            raise UsageError(
                f"`name` {name!r} is not a name for an artifact", "letters, digits, dots, dashes; at most 60"
            )
        return name

    @property
    def arguments(self) -> list[str]:
        """Additional arguments of the command, one per line."""
        return [line.strip() for line in self.given("arguments").splitlines() if line.strip()]

    @property
    def named_env(self) -> str | None:
        """The environment named in the arguments; ``None`` leaves it to ``TABLECTL_ENV``."""
        pairs = pairwise([*(word for line in self.arguments for word in line.split("=", 1)), ""])
        return next((following for word, following in pairs if word == "--env"), None)

    @property
    def folder(self) -> Path:
        """The directory of this job's files, outside of the repository and otherwise empty. Raises ``UsageError``
        outside of GitHub Actions: a branch can put links anywhere into the checkout.
        """
        temporary = self.environ.get("RUNNER_TEMP", "")
        if not Path(temporary).is_absolute():
            raise UsageError("RUNNER_TEMP names no directory", "this runs in a job of GitHub Actions")
        return Path(temporary) / "tablectl-jobs" / self.name

    @property
    def repository(self) -> str:
        """``owner/name``. Raises ``UsageError`` outside of GitHub Actions."""
        found = self.environ.get("GITHUB_REPOSITORY", "")
        if not _REPOSITORY.match(found):
            raise UsageError("GITHUB_REPOSITORY names no repository", "this runs in a job of GitHub Actions")
        return found

    @property
    def pull_request(self) -> int | None:
        """The number of the event's pull request, if any."""
        number = _map(self._event.get("pull_request")).get("number")
        return number if isinstance(number, int) and not isinstance(number, bool) else None

    @property
    def base(self) -> str:
        """What a pull request or a merge queue group is merged into: a commit, or ``refs/heads/BRANCH``. For other
        events empty on the branch from which plans are applied, and that branch on any other.

        It is the base commit if that is of the branch from which plans are applied. Everyone with write access can
        push another branch and open a pull request into it, so any other base decides nothing: then it is the newest
        commit of that branch. Raises ``UsageError`` if the event does not name the base: then it is unknown what the
        branch may decide.
        """
        event = self._event
        about = next((event[key] for key in ("pull_request", "merge_group") if key in event), None)
        applied = self.applied_branch
        if about is None:
            return "" if self.is_applied or not _BRANCH.match(applied) else f"refs/heads/{applied}"
        found = _map(about)
        base = _map(found.get("base"))
        commit, ref = str(found.get("base_sha") or base.get("sha")), str(found.get("base_ref") or base.get("ref"))
        if not _COMMIT.match(commit) or not _BRANCH.match(applied):
            raise UsageError(
                "the event names no base commit, whose tablectl.yaml would count", "run this for a pull request"
            )
        return commit if ref.removeprefix("refs/heads/") == applied else f"refs/heads/{applied}"

    @property
    def applied_branch(self) -> str:
        """The branch from which plans are applied: the one given, else the default branch; empty if unknown."""
        default = _map(self._event.get("repository")).get("default_branch")
        return self.given("branch") or (default if isinstance(default, str) else "")

    @property
    def is_applied(self) -> bool:
        """Whether this job runs on the branch from which plans are applied. A tag of its name is not the branch."""
        return bool(self.applied_branch) and self.environ.get("GITHUB_REF") == f"refs/heads/{self.applied_branch}"

    @property
    def workflow(self) -> str:
        """The path of the workflow file that plans: the one given, else the current one."""
        own = self.environ.get("GITHUB_WORKFLOW_REF", "").partition("@")[0]
        return self.given("plan_workflow") or own.removeprefix(f"{self.repository}/")

    @property
    def address(self) -> str:
        """The page of this run."""
        parts = [self.environ.get(key, "") for key in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")]
        return f"{parts[0]}/{parts[1]}/actions/runs/{parts[2]}" if all(parts) else ""

    def given(self, key: str) -> str:
        """An input of the action; empty if it was not given."""
        return self.environ.get(f"INPUT_{key.upper()}", "").strip()

    def number(self, key: str) -> int | None:
        """A numeric input. Raises ``UsageError``."""
        text = self.given(key)
        if text and not _NUMBER.match(text):
            raise UsageError(f"`{key.replace('_', '-')}` {text!r} is not a number")
        return int(text) if text else None

    def output(self, **values: object) -> None:
        """Set outputs of the step. A value cannot end its own entry or start another one."""
        lines = []
        for key, value in values.items():
            mark = secrets.token_hex(16)
            text = str(value).lower() if isinstance(value, bool) else str(value)
            lines.append(f"{key.replace('_', '-')}<<{mark}\n{text}\n{mark}\n")
        self._append("GITHUB_OUTPUT", "".join(lines))

    def summary(self, markdown: str) -> None:
        """Add Markdown to the summary page of the run."""
        self._append("GITHUB_STEP_SUMMARY", markdown.rstrip("\n") + "\n\n")

    def tell(self, level: str, message: str) -> None:
        """Add an annotation: ``error``, ``warning`` or ``notice``."""
        self.log.write(f"::{level} title=tablectl::{_escaped(message)}\n")
        self.log.flush()

    def annotate(self, level: str, message: str, file: str, line: int) -> None:
        """Add an annotation to a line of a file, whose path is relative to the root of the repository."""
        path = _escaped(file).replace(":", "%3A").replace(",", "%2C")
        self.log.write(f"::{level} file={path},line={line},title=tablectl::{_escaped(message)}\n")
        self.log.flush()

    def tablectl(self, *args: str) -> CommandResult:
        """Run a command. Its output, which contains names and values of tables, cannot inject GitHub workflow
        commands.
        """
        mark = secrets.token_hex(16)
        self.log.write(f"::stop-commands::{mark}\n")
        self.log.flush()
        try:
            return self.run(args)
        finally:
            self.log.write(f"::{mark}::\n")
            self.log.flush()

    @property
    def _event(self) -> Mapping[str, Any]:
        try:
            event = read_json(Path(self.environ["GITHUB_EVENT_PATH"]).read_bytes())
        except (KeyError, OSError, ValueError):
            return {}
        return _map(event)

    def _append(self, variable: str, text: str) -> None:
        file = self.environ.get(variable)
        if file:
            with Path(file).open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)


def _escaped(text: str) -> str:
    """A text in a command of the workflow, which ends with its line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
