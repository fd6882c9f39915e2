from __future__ import annotations

import os
import socket

import pytest

from tablectl.leases.owner import current_owner


@pytest.mark.parametrize(
    ("environ", "who", "ci"),
    [
        (
            {
                "GITHUB_ACTOR": "ann",
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_REPOSITORY": "acme/lake",
                "GITHUB_RUN_ID": "42",
            },
            "ann",
            "https://github.com/acme/lake/actions/runs/42",
        ),
        (
            {"GITLAB_USER_LOGIN": "ben", "CI_JOB_URL": "https://gitlab.com/acme/lake/-/jobs/7"},
            "ben",
            "https://gitlab.com/acme/lake/-/jobs/7",
        ),
        (
            {
                "BUILD_REQUESTEDFOR": "Cleo",
                "SYSTEM_COLLECTIONURI": "https://dev.azure.com/acme/",
                "SYSTEM_TEAMPROJECT": "Data Lake",
                "BUILD_BUILDID": "9",
            },
            "Cleo",
            "https://dev.azure.com/acme/Data%20Lake/_build/results?buildId=9",
        ),
        (
            {"BUILDKITE_BUILD_CREATOR": "dan", "BUILDKITE_BUILD_URL": "https://buildkite.com/acme/lake/builds/3"},
            "dan",
            "https://buildkite.com/acme/lake/builds/3",
        ),
        (
            {"CIRCLE_USERNAME": "eve", "CIRCLE_BUILD_URL": "https://circleci.com/gh/acme/lake/5"},
            "eve",
            "https://circleci.com/gh/acme/lake/5",
        ),
        (
            {"BUILD_URL": "https://ci.acme.com/job/lake/8/", "USER": "jenkins"},
            "jenkins",
            "https://ci.acme.com/job/lake/8/",
        ),
        ({"USER": "fay"}, "fay", ""),
        ({"USER": "fay", "GITHUB_ACTOR": "ann", "GITHUB_RUN_ID": "42"}, "fay", ""),
    ],
    ids=["github", "gitlab", "azure", "buildkite", "circleci", "jenkins", "no ci", "half a ci"],
)
def test_the_owner_is_the_one_that_ci_names(environ: dict[str, str], who: str, ci: str) -> None:
    owner = current_owner(environ, "0.1.0")
    assert (owner.who, owner.ci) == (who, ci)


def test_the_owner_is_this_process() -> None:
    owner = current_owner({"USER": "fay"}, "0.1.0")
    assert (owner.host, owner.pid, owner.tool) == (socket.gethostname(), os.getpid(), "0.1.0")
    assert str(owner) == f"fay on {owner.host} (pid {owner.pid})"


def test_a_user_without_a_name_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_entry() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", no_entry)
    assert current_owner({}, "0.1.0").who == "unknown"
