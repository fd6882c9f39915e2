"""The whole life of a policy on real tables: from an empty folder to drift, and the two ways back.

The jobs are those of the workflow that ``tablectl init`` writes, step by step, against a server that answers as
GitHub's does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from tablectl.ci.job import CommandResult
from tests.ci.conftest import REPOSITORY, WORKFLOW, FakeGitHub, Runner, base_commit, github, land, merge
from tests.ci.hand import Hand

__all__ = ["github"]

pytestmark = pytest.mark.spark
SOURCE = f"git+https://github.com/acme/tablectl@{'a' * 40}"

HEAD = "a" * 40


def test_from_an_empty_folder_to_drift_and_back(  # noqa: PLR0915  # a story
    spark: Any,
    cli: Callable[..., Any],
    log: Callable[[Path], list[dict[str, Any]]],
    github: FakeGitHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake, folder = tmp_path / "lake", tmp_path / "policies-of-the-lake"
    orders, returns = lake / "orders", lake / "returns"
    spark.sql(f"""CREATE TABLE delta.`{orders}` (id BIGINT, customer BIGINT, note STRING) USING delta
        TBLPROPERTIES ('owner.team' = 'web')""")
    spark.sql(f"INSERT INTO delta.`{orders}` SELECT id, id % 7, 'n' FROM range(100)")
    spark.sql(f"CREATE TABLE delta.`{returns}` (id BIGINT, month INT) USING delta PARTITIONED BY (month)")
    folder.mkdir()
    monkeypatch.chdir(folder)

    # init: a repository in an empty folder, which says what comes next.
    assert "tablectl import TABLES… --out policies/tables.yaml --force" in cli("init", "--source", SOURCE).out
    policies = folder / "policies" / "tables.yaml"

    # import: what the tables are. Planning that changes nothing.
    assert cli("import", f"delta.`{lake}/*`", "--out", str(policies), "--force").code == 0
    assert cli("plan", "--detailed-exitcode").out == "No changes. 2 tables match their policies.\n"

    # edit
    text = policies.read_text(encoding="utf-8")
    text = text.replace("owner.team: web", "owner.team: payments   # since the merger")
    text = text.replace(f"  delta.`{orders}`:\n", f"  delta.`{orders}`:\n    clustering: [customer]\n")
    text = text.replace("    partitioning: [month]\n", "    partitioning: [month]\n    isolation: Serializable\n")
    policies.write_text(text, encoding="utf-8")
    assert cli("validate").out == "2 tables: every policy is valid.\n"

    # plan: a pull request is opened, and the workflow's first job runs.
    jobs = yaml.safe_load((folder / ".github/workflows/tablectl.yml").read_text(encoding="utf-8"))["jobs"]
    runner = runner_in(tmp_path / "runner", cli, github)
    numbers = count(10)

    event = "pull_request"

    def job(name: str, plan_run: str = "") -> int:
        context = {"github.token": "ghs_token", "inputs.plan-run": plan_run}
        return Hand(runner, github, tmp_path / "kept", HEAD, next(numbers), context, event).play(jobs[name]["steps"])

    runner.event(pull_request={"number": 5, "base": {"sha": base_commit()}})
    assert job("plan") == 0

    # comment: the verdict first, the SQL of both tables, the lines that ask for it.
    (comment,) = github.comments[5]
    assert comment["body"].startswith(
        "**🟠 Plan: Cannot be undone in full** · 🟠 <b>1 irreversible</b> · 🟡 <b>1 blocking</b>"
    )
    assert "2 tables to change, 3 statements" in comment["body"]
    assert "CLUSTER BY (`customer`);" in comment["body"]
    assert "<code>policies/tables.yaml:" in comment["body"]
    assert len(log(orders)) + len(log(returns)) == 3, "a plan changes nothing"

    # approve, merge: the job finds the plan that was reviewed and applies it.
    merge(runner, github, HEAD)
    runner.event(ref="refs/heads/main")
    assert job("apply") == 0, runner.log
    reviewed = json.loads((tmp_path / "kept/10/tablectl-plan-pr-5/plan.json").read_text(encoding="utf-8"))
    ours = [*log(orders)[2:], *log(returns)[1:]]
    assert [commit["commitInfo"]["operation"] for commit in ours] == [
        "CLUSTER BY",
        "SET TBLPROPERTIES",
        "SET TBLPROPERTIES",
    ]
    stamps = [json.loads(commit["commitInfo"]["userMetadata"])["tablectl"] for commit in ours]
    assert {stamp["plan"] for stamp in stamps} == {reviewed["sha256"]}
    (run,) = {stamp["run"][:12] for stamp in stamps}
    assert github.comments[5][1]["body"].startswith("**🟡 Apply: Applied and verified; writers may have failed** · 2")
    assert job("apply") == 0, "the same job again finds everything done"
    assert len(log(orders)) + len(log(returns)) == 6
    assert job("drift") == 0

    # drift: someone changes both tables by hand.
    spark.sql(f"ALTER TABLE delta.`{orders}` SET TBLPROPERTIES ('owner.team' = 'logistics')")
    spark.sql(f"ALTER TABLE delta.`{returns}` UNSET TBLPROPERTIES ('delta.isolationLevel')")
    assert job("drift") == 2

    # report: which commit brought it, with which operation; and the last apply.
    told = cli("drift", "--format", "json")
    assert told.code == 2
    found = {table["name"]: table for table in told.json()["tables"]}
    assert set(found) == {f"delta.`{orders}`", f"delta.`{returns}`"}
    text = " ".join(cli("drift").out.split())
    assert (
        "~ orders changed by others version 4"
        " properties.owner.team declared payments, found logistics policies/tables.yaml:9"
        " changed by unknown user (Delta Spark 4.4.0) since version 4, "
    ) in text
    assert " UTC: SET TBLPROPERTIES; before that it was payments by unknown user (Delta Spark 4.4.0)" in text
    assert (
        "~ returns changed by others version 2"
        " isolation declared Serializable, found default policies/tables.yaml:13"
        " changed by unknown user (Delta Spark 4.4.0) since version 2, "
    ) in text
    assert " UTC: UNSET TBLPROPERTIES; before that it was Serializable by unknown user (Delta Spark 4.4.0)" in text
    assert text.count(f"SET TBLPROPERTIES, by tablectl, run {run}, plan {reviewed['sha256'][:12]}") == 2
    assert text.endswith("Drift: 2 tables differ in 2 values.")
    assert runner.summary.count("**🟡 Drift: ") == 1

    # adopt: the orders are right, so the policy becomes what they are; its comment stays.
    assert cli("drift", "--adopt", "--yes", "--select", "*orders*").code == 0
    assert "owner.team: logistics   # since the merger" in policies.read_text(encoding="utf-8")

    # re-apply: the returns are not, so a plan made by hand is reviewed and applied.
    land(runner)
    runner.event(inputs={})
    event = "workflow_dispatch"
    assert job("plan") == 0
    by_hand = next(each for each in github.artifacts if each["name"] == "tablectl-plan")["workflow_run"]["id"]
    assert job("apply", plan_run=str(by_hand)) == 0, runner.log
    assert log(returns)[-1]["metaData"]["configuration"] == {"delta.isolationLevel": "Serializable"}
    assert log(orders)[-1]["metaData"]["configuration"] == {"owner.team": "logistics"}
    assert len(log(orders)) == 5, "what was adopted is not changed back"

    assert job("drift") == 0
    assert cli("plan", "--detailed-exitcode").code == 0
    assert spark.sql(f"SELECT count(*), sum(customer) FROM delta.`{orders}`").first() == (100, 295)


def runner_in(root: Path, cli: Callable[..., Any], github: FakeGitHub) -> Runner:
    """A runner whose commands run in this process, next to the shared session."""

    def run(args: Sequence[str]) -> CommandResult:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TABLECTL_BASE_CONFIG", made.environ.get("TABLECTL_BASE_CONFIG", ""))
            ran = cli(*args)
        return CommandResult(ran.code, ran.err)

    root.mkdir()
    environ = {
        "RUNNER_TEMP": str(root / "temp"),
        "GITHUB_STEP_SUMMARY": str(root / "summary.md"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_API_URL": github.api,
        "GITHUB_REF_NAME": "main",
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/{WORKFLOW}@refs/heads/main",
        "INPUT_TOKEN": "ghs_token",
    }
    made = Runner(root, environ, run)
    made.event()
    return made
