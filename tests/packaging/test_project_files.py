"""What contributors meet on the site of the repository: the workflow, the templates, the hooks before a commit."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tablectl.commands.lock import ci_files
from tablectl.model.install_source import CiSystem

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOW_TEXT = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
JOB: dict[str, Any] = yaml.safe_load(WORKFLOW_TEXT)["jobs"]["test"]
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][
    0
]["hooks"]
FORMS = [each for each in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if each.name != "config.yml"]
_PINNED = re.compile(r"uses: ([\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$", re.MULTILINE)


def test_the_workflow_runs_make_test_on_every_python_that_the_package_names() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    supported = [each.rpartition(" ")[2] for each in classifiers if re.search(r":: 3\.\d+$", each)]
    assert JOB["strategy"]["matrix"]["python"] == supported
    assert JOB["steps"][-1]["run"] == "make test PYTHON=python"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda each: each.stem)
def test_a_workflow_pins_the_same_commits_of_actions_as_the_workflow_of_init(workflow: Path) -> None:
    templates = _PINNED.findall(ci_files(CiSystem.GITHUB)[".github/workflows/tablectl.yml"])
    text = workflow.read_text(encoding="utf-8")
    pinned = _PINNED.findall(text)
    assert len(pinned) == text.count("uses:")
    assert set(pinned) <= set(templates)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda each: each.stem)
def test_a_workflow_may_only_read_unless_a_job_says_more(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}


def test_nothing_is_uploaded_to_an_index_but_by_hand_and_after_a_review() -> None:
    publish = yaml.safe_load((ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8"))
    assert list(publish[True]) == ["workflow_dispatch"]  # YAML 1.1 reads `on` as true
    assert publish["jobs"]["publish"]["environment"] == "pypi"


def test_every_lock_is_looked_up_in_the_advisory_database() -> None:
    job = yaml.safe_load((ROOT / ".github" / "workflows" / "advisories.yml").read_text(encoding="utf-8"))["jobs"][
        "look-up"
    ]
    script = job["steps"][-1]["run"]
    (globs,) = re.findall(r"for lock in (.*); do", script)
    looked_up = {each for pattern in globs.split() for each in ROOT.glob(pattern)}
    assert looked_up == {*ROOT.glob("*.lock"), *(ROOT / "locks").rglob("*.lock")}
    assert "--require-hashes -r locks/audit.lock" in job["steps"][-2]["run"]


def test_a_release_has_a_bill_of_materials() -> None:
    publish = yaml.safe_load((ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8"))
    steps = publish["jobs"]["publish"]["steps"]
    assert "make dist sbom PYTHON=python" in [each.get("run") for each in steps]
    assert any("build/sbom.cdx.json" in each.get("with", {}).get("path", "") for each in steps)


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed")
def test_actionlint_finds_nothing_in_the_workflows() -> None:
    command = ["actionlint", "-shellcheck=", *(str(each.relative_to(ROOT)) for each in WORKFLOWS)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_each_field_of_an_issue_form_has_an_id_and_a_label(form: Path) -> None:
    read = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(read)
    fields = [each for each in read["body"] if each["type"] != "markdown"]
    assert len({each["id"] for each in fields}) == len(fields) > 2
    assert all(each["attributes"]["label"] and each["type"] in {"input", "textarea"} for each in fields)


def test_templates_name_files_and_pages_that_exist() -> None:
    texts = [each.read_text(encoding="utf-8") for each in [*FORMS, ROOT / ".github" / "pull_request_template.md"]]
    named = {
        each for text in texts for each in re.findall(r"\b(?:docs/[\w/-]+|[A-Z]+\.md|changelog\.d)\b[\w./]*", text)
    }
    assert named >= {"SECURITY.md", "changelog.d/"}
    assert [each for each in sorted(named) if not (ROOT / each.rstrip(".")).exists()] == []


def test_the_hooks_before_a_commit_run_the_tools_of_make_check() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    check = makefile.partition("\ncheck:")[2].partition("\n\n")[0]
    tools = re.findall(r"\$\(BIN\)/(ruff format|ruff check|mypy|lint-imports)", check)
    assert len(tools) == 4
    entries = [" ".join(shlex.split(each["entry"])) for each in HOOKS]
    assert [tool for tool in tools if not any(each.startswith(f".venv/bin/{tool}") for each in entries)] == []


def test_the_hooks_before_a_commit_download_nothing() -> None:
    assert {each["language"] for each in HOOKS} == {"system"}
