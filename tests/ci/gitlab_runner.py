"""Jobs of GitLab's template run as a runner runs them: cache, checkout, artifacts, then the lines of the job by bash.

The order of the steps, and that all lines of ``script`` are of one shell: https://docs.gitlab.com/ci/yaml/#script,
https://docs.gitlab.com/ci/jobs/job_logs/ and https://docs.gitlab.com/ci/yaml/#after_script (read 28 November 2026).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tablectl.commands.lock import ci_files
from tablectl.model.install_source import CiSystem

TEMPLATE: dict[str, Any] = yaml.safe_load(ci_files(CiSystem.GITLAB)[".gitlab-ci.yml"])
_APPLIES = """#!/bin/sh
if [ "$1" = apply ]; then
  cp "$2" "{applied}"; shift 2
  for each; do case "$each" in --*) ;; *) echo run > "$each" ;; esac; done
  exit 0
fi
exec "{python}" -P -m tablectl "$@"
"""


@dataclass
class GitLabRunner:
    """A runner of one project. Programs that a job finds are the real ones, but for those in ``bin``."""

    project: Path
    """The repository at the server."""
    root: Path
    environ: dict[str, str]
    """What the server gives to each job."""
    artifacts: dict[tuple[int, str], Path] = field(default_factory=dict)
    """What was kept, by pipeline and job."""
    said: str = ""
    """The log of the last job."""
    ran: int = 300
    """The number of the last job."""

    def __post_init__(self) -> None:
        (self.root / "bin").mkdir(parents=True)
        (self.root / "home").mkdir()
        (self.root / "tmp").mkdir()
        self.program("python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        self.program("tablectl", _APPLIES.format(applied=self.applied, python=sys.executable))
        self.program("pip", f'#!/bin/sh\nfor last; do true; done\ncat "$last" >> "{self.installed}"\n')
        self.program("apt-get", "#!/bin/sh\n")

    def program(self, name: str, text: str) -> None:
        file = self.root / "bin" / name
        file.write_text(text)
        file.chmod(0o755)

    @property
    def applied(self) -> Path:
        """The plan that was applied."""
        return self.root / "applied.json"

    @property
    def installed(self) -> Path:
        """The requirements that pip was given."""
        return self.root / "installed"

    @property
    def checkout(self) -> Path:
        """The folder of the last job."""
        return self.root / "builds" / "lake"

    def job(self, name: str, commit: str, given: Mapping[str, str], pipeline: int = 30) -> int:
        """The exit code of a job of a pipeline; ``given`` are its variables."""
        job = {**TEMPLATE.get("default", {}), **TEMPLATE[name]}
        self.ran += 1
        shutil.rmtree(self.checkout.parent, ignore_errors=True)
        shutil.rmtree(self.root / "tmp" / f"tablectl-{self.ran}", ignore_errors=True)
        _git("clone", "-q", str(self.project), str(self.checkout))
        _git("-C", str(self.checkout), "checkout", "-q", "--detach", commit)
        self._restore(job)
        for need in job.get("needs", ()):
            if (pipeline, need["job"]) in self.artifacts:
                _lay(self.artifacts[pipeline, need["job"]], self.checkout)
        environ = {
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "CI_PROJECT_DIR": str(self.checkout),
            "CI_JOB_ID": str(self.ran),
            "CI_COMMIT_SHA": commit,
            **self.environ,
            **given,
        }
        for key, value in TEMPLATE.get("variables", {}).items():
            environ[key] = re.sub(r"\$(\w+)", lambda found: environ.get(found[1], ""), str(value))
        code, self.said = self._shell(job["script"], environ)
        self.said += self._shell(job.get("after_script", ()), environ)[1]
        if not code or job["artifacts"].get("when") == "always":
            self._keep(job, pipeline, name)
        self._save(job)
        return code

    def _shell(self, lines: Any, environ: dict[str, str]) -> tuple[int, str]:
        script = "\n".join(["set -eo pipefail", *_flat(lines)])
        ran = subprocess.run(
            ["bash"], input=script, cwd=self.checkout, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False, timeout=300,
        )  # fmt: skip
        return ran.returncode, ran.stdout

    def _keep(self, job: dict[str, Any], pipeline: int, name: str) -> None:
        kept = self.root / "artifacts" / str(self.ran)
        kept.mkdir(parents=True)
        for pattern in [*job["artifacts"]["paths"], *job["artifacts"].get("reports", {}).values()]:
            for file in self.checkout.glob(pattern):
                path = file.relative_to(self.checkout)
                (kept / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, kept / path)
        self.artifacts[pipeline, name] = kept

    def _restore(self, job: dict[str, Any]) -> None:
        for path in job.get("cache", {}).get("paths", ()):
            if (self.root / "cache" / path).exists():
                _lay(self.root / "cache" / path, self.checkout / path)

    def _save(self, job: dict[str, Any]) -> None:
        for path in job.get("cache", {}).get("paths", ()):
            if (self.checkout / path).exists():
                _lay(self.checkout / path, self.root / "cache" / path)

    def files(self, pipeline: int, name: str) -> dict[str, str]:
        """The artifacts of a job."""
        kept = self.artifacts[pipeline, name]
        return {str(each.relative_to(kept)): each.read_text() for each in sorted(kept.rglob("*")) if each.is_file()}


def jobs_of(**variables: str) -> list[str]:
    """The jobs of a pipeline with these variables."""

    def holds(rule: dict[str, Any]) -> bool:
        """A rule, as if every file had changed."""
        parts = [each.strip() for each in rule["if"].split("&&")]
        sides = [[side.strip() for side in each.split("==")] for each in parts]
        value = [
            [variables.get(side[1:], "") if side.startswith("$") else side.strip('"') for side in each]
            for each in sides
        ]
        return all(left == right and left for left, right in value)

    return [name for name, job in TEMPLATE.items() if "script" in job and any(map(holds, job["rules"]))]


def _flat(lines: Any) -> Iterator[str]:
    """GitLab flattens lists in lists, which anchors make."""
    for each in lines:
        yield from [each] if isinstance(each, str) else _flat(each)


def _lay(source: Path, target: Path) -> None:
    shutil.copytree(source, target, dirs_exist_ok=True)


def _git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, capture_output=True)
