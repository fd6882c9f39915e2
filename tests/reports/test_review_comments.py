"""The comments of six plans, from policies and logs through the command, as a reviewer gets them on GitHub.

Whether people decide rightly from them alone is tried with people; here they are kept as files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tablectl.ci.post_comment import DEFAULT, addition, body_of
from tests.commands.conftest import Cli, FakeSpark, Repository, cli, fake_spark, repo
from tests.reports.review_plans import CASES, TEN, ReviewCase
from tools.review_comments import main

__all__ = ["Cli", "FakeSpark", "Repository", "cli", "fake_spark", "repo"]

_NOW = re.compile(r"now \(\w+ [\d:–]+ UTC\): [\d.]+ failed writes, [\d.]+ \w+ of work")
"""The loss at the hour of the test."""
RUN = "https://github.com/acme/lake/actions/runs/7"
DIGEST = "5f" * 32
ENVIRON = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "acme/lake",
    "GITHUB_RUN_ID": "7",
    "GITHUB_SHA": "3f9c" * 10,
    "GITHUB_ACTOR": "ann",
    "GITHUB_EVENT_PATH": "/nonexistent",
}


def comment(case: ReviewCase, repo: Repository, cli: Cli, fake_spark: FakeSpark) -> str:
    """The comment; places and digests that depend on the folder of the test are replaced."""
    tables = case.make(repo.lake)
    fake_spark.catalog.update({("lake", "sales", name): path for name, path in tables.items()})
    repo.policies(f"version: 1\ntables:\n{case.policies}\n", "sales.yaml")
    assert cli("plan", "--out", "plans/plan.json", "--report", "plan.md").code in {0, 3}
    report = Path("plan.md").read_text(encoding="utf-8").replace(str(repo.lake), "s3://lake")
    report = _NOW.sub("now (Monday 14:00–15:00 UTC): 0.1 failed writes, 3 s of work", report)
    report = re.sub(r"plan <code>[0-9a-f]{12}</code>", f"plan <code>{DIGEST[:12]}</code>", report)
    return body_of(report, "plan", DEFAULT, RUN, DIGEST, addition(report, "", DIGEST, f"{RUN}/artifacts/9"))


KEPT = ("harmless", "rewrite", "lockout", "irreversible", "mixed", "refused")


@pytest.mark.parametrize("name", KEPT)
def test_the_comment_of_a_plan_to_review(
    name: str,
    repo: Repository,
    cli: Cli,
    fake_spark: FakeSpark,
    monkeypatch: pytest.MonkeyPatch,
    golden: Callable[[str, str], None],
) -> None:
    for key, value in ENVIRON.items():
        monkeypatch.setenv(key, value)
    golden(f"review-{name}.md", comment(CASES[name], repo, cli, fake_spark))


@pytest.mark.slow
def test_ten_comments_are_written_to_be_decided_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TABLECTL_BASE_CONFIG", "")  # which the script sets
    main(tmp_path / "comments")
    found = {each.stem[3:]: each.read_text(encoding="utf-8") for each in (tmp_path / "comments").iterdir()}
    assert set(found) == set(TEN)
    assert "overwrites what others set on 1 table" in found["drift"]
    assert "Turns VACUUM on for 1 table" in found["upkeep"]
    assert "goes from -20 to 900" in found["constraint"]
    assert not any("No changes" in each for each in found.values())
