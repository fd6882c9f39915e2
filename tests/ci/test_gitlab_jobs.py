"""The jobs of GitLab's template, run as a runner runs them, on branches of people who attack them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.catalogs.unity_server import UnityServer, serving
from tests.ci.conftest import Cli, FakeSpark, Repository, cli, fake_spark, git, repo
from tests.ci.gitlab_runner import GitLabRunner, jobs_of
from tests.ci.hostile_files import hostile_files
from tests.ci.test_gitlab import MALLORY, REPORT, TOKEN, FakeGitLab, gitlab, merged_as
from tests.commands.log_lake import create, set_property

__all__ = ["Cli", "FakeSpark", "Repository", "cli", "fake_spark", "gitlab", "repo"]

MERGE_REQUEST = {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_IID": "5"}
PUSH = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main"}
BY_HAND = {"CI_PIPELINE_SOURCE": "web", "CI_COMMIT_BRANCH": "main"}
SCHEDULE = {"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_BRANCH": "main"}
NAMES = ("tablectl-plan.lock", "tablectl.txt", "tablectl-apply.lock")


def commit(**files: str | None) -> str:
    """The files of a commit of the current folder: texts, targets of links after an arrow, and what is removed."""
    for name, text in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        elif text.startswith("-> "):
            path.symlink_to(text.removeprefix("-> "))
        else:
            path.write_text(text)
    git("add", "--all", "--force")
    git("commit", "--quiet", "--allow-empty", "--message=more")
    return git("rev-parse", "HEAD")


def policy(repo: Repository, team: str) -> str:
    return f"version: 1\ntables:\n  delta.`{repo.lake}/orders`: {{properties: {{owner.team: {team}}}}}\n"


@pytest.fixture
def runner(gitlab: FakeGitLab, repo: Repository, tmp_path: Path) -> GitLabRunner:
    """A project whose default branch has policies and requirements, which is the current folder."""
    create(repo.lake / "orders", properties={"owner.team": "web"})
    git("init", "--quiet", "--initial-branch=main")
    requirements = {f"requirements/{name}": f"reviewed {name}\n" for name in NAMES}
    commit(**{"policies/p.yaml": policy(repo, "web"), **requirements})
    environ = {
        "CI_API_V4_URL": gitlab.api,
        "CI_PROJECT_ID": "42",
        "CI_DEFAULT_BRANCH": "main",
        "CI_JOB_URL": "https://gitlab.example/acme/lake/-/jobs/9",
        "NOTE_TOKEN": TOKEN,
    }
    return GitLabRunner(repo.root, tmp_path / "runner", environ)


def branch(**files: str | None) -> str:
    """A branch of a person who may push; its commit."""
    git("checkout", "--quiet", "-B", "mine", "refs/heads/main")
    return commit(**files)


def merged(runner: GitLabRunner, gitlab: FakeGitLab, pipeline: int = 30) -> str:
    """The branch is merged, after a pipeline that planned it; the commit."""
    git("checkout", "--quiet", "main")
    git("merge", "--quiet", "--no-ff", "mine")
    found = git("rev-parse", "HEAD")
    for note in gitlab.notes:
        note.setdefault("updated_at", "2026-11-23T10:00:00.000Z")
    plan = (runner.artifacts[pipeline, "plan"] / "tablectl-plan" / "plan.json").read_bytes()
    request: dict[str, Any] = {"iid": 5, "state": "merged", "target_branch": "main", "merge_commit_sha": found}
    gitlab.answers |= {
        merged_as(found): [{**request, "merged_at": "2026-11-23T11:00:00.000Z"}],
        "/projects/42/merge_requests/5/pipelines": [{"id": pipeline, "project_id": 42}],
        f"/projects/42/pipelines/{pipeline}/jobs": [{"id": 301, "name": "plan", "status": "success"}],
        "/projects/42/jobs/301/artifacts/tablectl-plan/plan.json": plan,
    }
    return found


def test_the_life_of_a_change(runner: GitLabRunner, gitlab: FakeGitLab, repo: Repository) -> None:
    gitlab.notes = [{"id": n, "author": {"id": MALLORY}, "system": False, "body": REPORT} for n in range(1, 101)]
    assert runner.job("plan", branch(**{"policies/p.yaml": policy(repo, "pay")}), MERGE_REQUEST, 29) == 0
    first = gitlab.notes[-1]["body"]
    assert first.startswith("**🟡 Plan: Concurrent writes fail once** · 🟡 <b>1 blocking</b>")
    assert '<a href="https://gitlab.example/acme/lake/-/jobs/9/artifacts/browse">' in first
    assert "Since the last plan" not in first
    assert runner.job("plan", commit(**{"policies/p.yaml": policy(repo, "billing")}), MERGE_REQUEST) == 0
    assert len(gitlab.notes) == 101
    second = gitlab.notes[-1]["body"]
    assert "<b>Since the last plan <code>" in second
    assert "gone: blocking <code>properties.owner.team: " in second
    assert second.count("<!-- tablectl plan -->") == 1
    kept = runner.files(30, "plan")
    assert [name.removeprefix("tablectl-plan/") for name in sorted(kept)] == [
        "links.json", "plan.html", "plan.json", "plan.md", "plan.xml",
    ]  # fmt: skip
    assert json.loads(kept["tablectl-plan/links.json"]) == page_link("plan")

    found = merged(runner, gitlab)
    assert runner.job("apply", found, PUSH, 31) == 0, runner.said
    assert runner.applied.read_text() == kept["tablectl-plan/plan.json"]
    assert sorted(runner.files(31, "apply")) == [
        f"tablectl-run/{name}" for name in ("links.json", "run.html", "run.md")
    ]
    assert runner.job("plan", found, BY_HAND, 32) == 0
    assert runner.job("apply", found, BY_HAND, 32) == 0, runner.said
    assert runner.applied.read_text() == runner.files(32, "plan")["tablectl-plan/plan.json"]
    assert runner.job("drift", found, SCHEDULE, 33) == 2
    names = ("drift.html", "drift.md", "drift.xml", "links.json")
    assert sorted(runner.files(33, "drift")) == [f"tablectl-drift/{name}" for name in names]
    assert json.loads(runner.files(33, "drift")["tablectl-drift/links.json"]) == page_link("drift")
    assert TOKEN not in runner.said + first + second


@pytest.mark.parametrize(
    ("variables", "jobs"),
    [
        (MERGE_REQUEST, ["plan", "check"]),
        (PUSH, ["apply"]),
        (BY_HAND, ["plan", "check", "apply"]),
        (SCHEDULE, ["drift"]),
        ({"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_BRANCH": "mine"}, []),
        ({"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "mine"}, []),
        ({"CI_PIPELINE_SOURCE": "web", "CI_COMMIT_BRANCH": "mine"}, []),
        ({"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_TAG": "main"}, []),
        ({"CI_PIPELINE_SOURCE": "web", "CI_COMMIT_TAG": "main"}, []),
    ],
)
def test_only_the_default_branch_has_jobs_with_its_own_configuration(
    variables: Mapping[str, str], jobs: list[str]
) -> None:
    assert jobs_of(CI_DEFAULT_BRANCH="main", **variables) == jobs


def page_link(page: str) -> dict[str, Any]:
    """What GitLab shows next to the log of a job (artifacts:reports:annotations)."""
    url = f"https://gitlab.example/acme/lake/-/jobs/9/artifacts/file/tablectl-{page}/{page}.html"
    return {"tablectl": [{"external_link": {"label": "The report", "url": url}}]}


def test_a_plan_with_a_refusal_fails_its_job_and_keeps_its_report(
    runner: GitLabRunner, gitlab: FakeGitLab, repo: Repository
) -> None:
    create(repo.lake / "day", partitions=["day"])
    text = f"version: 1\ntables:\n  delta.`{repo.lake}/day`: {{clustering: [id]}}\n"
    assert runner.job("plan", branch(**{"policies/p.yaml": text}), MERGE_REQUEST) == 3
    assert len(runner.files(30, "plan")) == 5
    assert len(gitlab.notes) == 1


def test_the_check_fails_for_an_error_on_any_table_and_its_report_is_on_the_page_of_the_job(
    runner: GitLabRunner, repo: Repository
) -> None:
    """The table of another policy, which the branch does not change."""
    create(repo.lake / "day", properties={"delta.deletedFileRetentionDuration": "interval 1 hours"})
    text = f"version: 1\ntables:\n  delta.`{repo.lake}/day`: {{isolation: WriteSerializable}}\n"
    config = "lint: {L006: error}\n"
    found = branch(**{"policies/day.yaml": text, "tablectl.yaml": config})
    assert runner.job("check", found, MERGE_REQUEST) == 3, runner.said
    assert "L006" in runner.said
    kept = runner.files(30, "check")
    assert sorted(kept) == [f"tablectl-check/{name}" for name in ("check.html", "check.md", "links.json")]
    assert json.loads(kept["tablectl-check/links.json"]) == page_link("check")
    assert runner.job("check", branch(**{"policies/day.yaml": text}), MERGE_REQUEST) == 0


RESULTS = {
    f"{folder}{name}": text
    for folder in ("", "tablectl-plan/", "tablectl-run/", "tablectl-drift/")
    for name, text in {"plan.json": "{}", "plan.md": REPORT, "run.md": "**✅ Apply**", "drift.xml": "<x/>"}.items()
}


def test_no_result_is_a_file_of_the_commit(runner: GitLabRunner, gitlab: FakeGitLab, repo: Repository) -> None:
    """A plan that fails leaves no report. The attacker's own would be posted by the project's account, and kept."""
    assert runner.job("plan", branch(**RESULTS, **{"policies/p.yaml": "wrong\n"}), MERGE_REQUEST) == 1
    assert gitlab.notes == []
    assert runner.files(30, "plan") == {}
    runner.program("pip", "#!/bin/sh\nexit 1\n")
    assert runner.job("plan", git("rev-parse", "HEAD"), MERGE_REQUEST) == 1
    assert (gitlab.notes, runner.files(30, "plan")) == ([], {})


@pytest.mark.parametrize("name", ["tablectl-plan", "tablectl-plan/plan.md", "tablectl-plan/plan.json"])
def test_no_result_is_written_through_a_link_of_the_commit(
    runner: GitLabRunner, gitlab: FakeGitLab, repo: Repository, tmp_path: Path, name: str
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir() if name == "tablectl-plan" else theirs.write_text("kept")
    assert runner.job("plan", branch(**{name: f"-> {theirs}"}), MERGE_REQUEST) == 0
    assert theirs.is_file() or not list(theirs.iterdir())
    assert len(runner.files(30, "plan")) == 5


def test_a_committed_plan_is_not_applied(runner: GitLabRunner, gitlab: FakeGitLab, repo: Repository, cli: Cli) -> None:
    """The merge request brings a plan of the same policies, which was not reviewed, under every name."""
    Path("policies/p.yaml").write_text(policy(repo, "pay"))
    assert cli("plan", "--out", "own.json").code == 0
    own = Path("own.json").read_text()
    Path("own.json").unlink()
    git("checkout", "--quiet", "policies")
    files = {name: own for name in RESULTS if name.endswith("plan.json")}
    assert runner.job("plan", branch(**files, **{"policies/p.yaml": policy(repo, "pay")}), MERGE_REQUEST) == 0
    reviewed = runner.files(30, "plan")["tablectl-plan/plan.json"]
    found = merged(runner, gitlab)
    assert runner.job("apply", found, PUSH, 31) == 0, runner.said
    assert runner.applied.read_text() == reviewed
    runner.applied.unlink()
    gitlab.notes = []
    assert runner.job("apply", found, PUSH, 31) == 3
    assert not runner.applied.exists()


def test_a_tag_with_the_name_of_the_default_branch_installs_and_configures_nothing(
    runner: GitLabRunner, repo: Repository
) -> None:
    """Whoever may push can make a tag. It would say what is installed, and where tokens are sent."""
    evil = {f"requirements/{name}": "evil\n" for name in NAMES}
    git("tag", "main", branch(**evil, **{"tablectl.yaml": "engine: {remote: 'sc://evil.example'}\n"}))
    assert runner.job("plan", branch(), MERGE_REQUEST) == 0
    assert runner.installed.read_text() == "reviewed tablectl-plan.lock\nreviewed tablectl.txt\n"


def test_a_branch_decides_neither_what_is_installed_nor_where_tokens_are_sent(
    runner: GitLabRunner, repo: Repository
) -> None:
    with serving(UnityServer()) as unity, serving(UnityServer()) as evil:
        catalogs = "catalogs: {{lake: {{type: unity, url: '{}'}}}}\n"
        policies = "version: 1\ntables: {lake.s.t: {isolation: Serializable}}\n"
        commit(**{"tablectl.yaml": catalogs.format(unity.url), "policies/p.yaml": policies})
        changed = {f"requirements/{name}": "evil\n" for name in NAMES} | {"tablectl.yaml": catalogs.format(evil.url)}
        for job in ("plan", "check"):
            runner.job(job, branch(**changed), {**MERGE_REQUEST, "UNITY_CATALOG_TOKEN": "t0ken-of-ci"})
        assert (evil.asked, len(unity.asked)) == ([], 2)
    assert runner.installed.read_text() == "reviewed tablectl-plan.lock\nreviewed tablectl.txt\n" * 2
    assert "lake.s.t" in runner.said


def test_the_apply_of_a_change_that_was_reverted_applies_nothing(
    runner: GitLabRunner, gitlab: FakeGitLab, repo: Repository
) -> None:
    assert runner.job("plan", branch(**{"policies/p.yaml": policy(repo, "pay")}), MERGE_REQUEST) == 0
    found = merged(runner, gitlab)
    assert runner.job("plan", found, BY_HAND, 32) == 0
    assert runner.job("apply", found, PUSH, 31) == 0
    set_property(repo.lake / "orders", "owner.team", "pay")
    runner.applied.unlink()
    commit(**{"main.py": "print()\n"})
    assert runner.job("apply", found, PUSH, 31) == 0, "another part of the repository"
    runner.applied.unlink()
    commit(**{"policies/p.yaml": policy(repo, "web")})
    git("tag", "main", found)
    set_property(repo.lake / "orders", "owner.team", "web")
    for pipeline, kind in ((31, PUSH), (32, BY_HAND)):
        assert runner.job("apply", found, kind, pipeline) == 3
        assert "Since then main has other policies" in runner.said
        assert not runner.applied.exists()


BACKEND = """
import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    info = "tablectl-1.dist-info/"
    with zipfile.ZipFile(folder + "/tablectl-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("installed.txt", "reviewed")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: tablectl\\nVersion: 1\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return "tablectl-1-py3-none-any.whl"
"""


def test_a_wheel_of_a_cache_is_not_installed_for_the_commit_that_is_named(
    runner: GitLabRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip keeps the wheel that it built of a commit, and takes it the next time. The attacker commits a cache with one
    of his own, or leaves one on a runner that keeps its home folder.
    """
    source = tmp_path / "tablectl"
    source.mkdir()
    (source / "backend.py").write_text(BACKEND)
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "tablectl"\nversion = "1"\n'
    )
    with monkeypatch.context() as patch:
        patch.chdir(source)
        git("init", "--quiet")
        pinned = f"tablectl @ git+file://localhost{source}@{commit()}\n"
    locks = {f"requirements/{name}": "# nothing\n" for name in NAMES}
    commit(**locks | {"requirements/tablectl.txt": pinned})
    cache, site = tmp_path / "pip-cache", tmp_path / "site"
    pip = f'"{sys.executable}" -m pip --quiet --disable-pip-version-check "$@" --target "{site}" --upgrade'
    runner.program("pip", f"#!/bin/sh\n{pip}\n")
    install = [str(runner.root / "bin" / "pip"), "install", "--no-deps", "--no-build-isolation"]
    environ = {**os.environ, "PIP_CACHE_DIR": str(cache)}
    requirement = str(Path("requirements/tablectl.txt").resolve())
    subprocess.run([*install, "-r", requirement], env=environ, check=True, capture_output=True)
    (wheel,) = cache.rglob("*.whl")
    evil = BACKEND.replace('"reviewed"', '"evil"')
    subprocess.run([sys.executable, "-c", f"{evil}\nbuild_wheel({str(wheel.parent)!r})"], check=True)
    shutil.rmtree(site)
    subprocess.run([*install, "-r", requirement], env=environ, check=True, capture_output=True)
    assert (site / "installed.txt").read_text() == "evil", "the attack works where pip has the cache"
    shutil.rmtree(site)
    shutil.copytree(cache, ".cache/pip")
    found = branch()
    for name in ("python", "tablectl"):
        runner.program(name, "#!/bin/sh\n")
    for job, kind in (("plan", MERGE_REQUEST), ("apply", PUSH)):
        runner.job(job, found, {"PIP_CACHE_DIR": str(cache), **kind})
        assert (site / "installed.txt").read_text() == "reviewed", job
        shutil.rmtree(site)


def test_jobs_share_no_cache(runner: GitLabRunner) -> None:
    """GitLab keeps a cache in the checkout, and gives that of a merge request to every later job with its key."""
    assert runner.job("plan", branch(**{".cache/pip/wheels/x.whl": "evil"}), MERGE_REQUEST) == 0
    assert not (runner.root / "cache").exists()


def test_no_file_of_a_branch_is_code_or_configuration_of_its_job(runner: GitLabRunner, tmp_path: Path) -> None:
    pwned = tmp_path / "pwned"
    assert runner.job("plan", branch(**hostile_files(pwned)), MERGE_REQUEST) == 0, runner.said
    assert not pwned.exists()
