"""Steps of an action or a job run by hand: expressions evaluated, our commands run, artifacts copied."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.ci.conftest import FakeGitHub, Runner, git

ACTION: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text())

OURS = re.compile(r'^"?(?:\$PYTHON|python)"? -P -m tablectl\.ci (\w+)$')
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_TOKEN = re.compile(r"'[^']*'|\|\||&&|==|!(?!=)|[()]|,|always\(\)|contains(?=\()|[\w.-]+|\s+")
_WORDS = {"||": " or ", "&&": " and ", "!": " not ", "always()": "True"}


@dataclass
class Hand:
    """One job. ``context`` holds what expressions may name, such as ``inputs.mode``; anything else is an error."""

    runner: Runner
    github: FakeGitHub
    store: Path
    head: str
    number: int
    """Of the run."""
    context: dict[str, str]
    event: str = "pull_request"
    code: int = 0
    done: list[str] = field(default_factory=list)

    def play(self, steps: Sequence[Mapping[str, Any]]) -> int:
        """Runs what would be run; the exit code of the first step that fails."""
        for step in steps:
            condition = str(step.get("if", ""))
            if (self.code and "always()" not in condition) or (condition and not self.value(condition)):
                continue
            name = str(step.get("name") or step.get("uses") or step.get("run"))
            self.done.append(name.partition("@")[0])
            code = self._run(step) if "run" in step else self._use(step)
            self.code = self.code or code
        return self.code

    def value(self, expression: str) -> Any:
        """An expression as GitHub evaluates it."""
        tokens = _TOKEN.findall(expression)
        assert "".join(tokens) == expression, expression
        python = "".join(_WORDS.get(each) or self._name(each) for each in tokens)
        return eval(python, {"contains": lambda text, part: part in text})

    def text(self, template: object) -> str:
        """Text with expressions in it."""
        return _EXPRESSION.sub(lambda match: str(self.value(match[1])), str(template))

    def _name(self, token: str) -> str:
        if token == "contains" or not token[0].isalpha():
            return token
        if token.startswith("steps."):
            return repr(self.context.get(token, ""))
        assert token in self.context, f"{token} is not known here"
        return repr(self.context[token])

    def _run(self, step: Mapping[str, Any]) -> int:
        ours = OURS.match(step["run"])
        env = {key: self.text(value) for key, value in step.get("env", {}).items()}
        if ours is None:
            return 0
        kept = dict(self.runner.environ)
        self.runner.environ.pop("INPUT_TOKEN", None)
        self.runner.environ.update(env)
        code, outputs = self.runner.step(ours[1])
        self.runner.environ = kept
        for key, value in outputs.items():
            self.context[f"steps.{step.get('id')}.outputs.{key}"] = value
        return code

    def _use(self, step: Mapping[str, Any]) -> int:
        given = {key: self.text(value) for key, value in step.get("with", {}).items()}
        match str(step["uses"]).partition("@")[0]:
            case "actions/upload-artifact":
                assert given["overwrite"].lower() == "true"
                kept = self.store / str(self.number) / given["name"]
                shutil.copytree(given["path"], kept)
                self.github.kept(given["name"], run=self.number, head=self.head, event=self.event, files=kept)
            case "github/codeql-action/upload-sarif":
                assert Path(given["sarif_file"]).exists()
            case "OWNER/tablectl":  # as pages name the action
                return self._composite(given)
            case _:
                pass
        return 0

    def _composite(self, given: Mapping[str, str]) -> int:
        """The steps of the action, whose inputs have defaults."""
        outer, self.context = self.context, {}
        for name, declared in ACTION["inputs"].items():
            default = str(declared.get("default", "")).replace("${{ github.token }}", outer.get("github.token", ""))
            self.context[f"inputs.{name}"] = given.get(name, default)
        code = self.play(ACTION["runs"]["steps"])
        self.context = outer
        return code


def checkout(server: Path, workspace: Path, given: Mapping[str, str], commit: str) -> None:
    """What actions/checkout does (``git-source-provider.ts``, ``ref-helper.ts`` of v4): a folder without a repository
    is emptied, and ``ref`` without its kind is a branch, else a tag.
    """
    folder = workspace / given.get("path", ".")
    if not (folder / ".git").exists():
        for each in folder.iterdir() if folder.exists() else ():
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        git("clone", "--quiet", str(server), str(folder))
    ref = given.get("ref", commit)
    branch = f"refs/remotes/origin/{ref.removeprefix('refs/heads/')}"
    known = git("-C", str(folder), "for-each-ref", "--format=%(refname)").split()
    git("-C", str(folder), "checkout", "--quiet", "--force", "--detach", branch if branch in known else ref)


def bash_reads(script: str) -> bool:
    return subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
