"""One repository, several environments: ``env:`` of ``tablectl.yaml`` and ``--env``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tablectl
from tablectl.model.errors import PlanFileError, UsageError
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import set_property

CONFIG = """
engine: {{conf: {{spark.a: top, spark.b: top}}}}
env:
  dev:
    variables: {{LAKE: "{lake}/dev"}}
    engine: {{conf: {{spark.b: dev}}}}
    reports: {{mask: ["owner.*"]}}
  prod:
    variables: {{LAKE: "{lake}/prod"}}
    state: "{lake}/state"
"""
POLICIES = "version: 1\ntables:\n  delta.`${LAKE}/a`: {properties: {owner.team: payments}, tags: [web]}\n"


@pytest.fixture
def two(repo: Repository) -> Repository:
    (repo.root / "tablectl.yaml").write_text(CONFIG.format(lake=repo.lake))
    repo.policies(POLICIES)
    for env in ("dev", "prod"):
        repo.table(f"{env}/a")
    return repo


def names(plan: str) -> list[str]:
    return [table["name"] for table in json.loads(plan)["tables"]]


def test_a_plan_is_of_one_environment(cli: Cli, two: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    prod = cli("plan", "--env", "prod", "--format", "json")
    assert (names(prod.out), json.loads(prod.out)["env"]) == ([two.name("prod/a")], "prod")
    monkeypatch.setenv("TABLECTL_ENV", "dev")
    assert names(cli("plan", "--format", "json").out) == [two.name("dev/a")]
    assert names(cli("plan", "--env", "prod", "--format", "json").out) == [two.name("prod/a")]
    monkeypatch.setenv("TABLECTL_VAR_LAKE", str(two.lake / "prod"))
    assert names(cli("plan", "--format", "json").out) == [two.name("prod/a")]
    over = cli("plan", "--var", f"LAKE={two.lake}/dev", "--format", "json")
    assert names(over.out) == [two.name("dev/a")]


def test_every_report_names_the_environment(cli: Cli, two: Repository) -> None:
    text = cli("plan", "--env", "prod").out
    assert text.endswith("Plan (prod): 1 table to change (1 blocking), 1 statement.\n")
    markdown = cli("plan", "--env", "prod", "--format", "markdown").out
    assert markdown.startswith("**🟡 Plan (prod): Concurrent writes fail once**")
    page = cli("plan", "--env", "prod", "--format", "html").out
    assert re.search(r"<dt>Environment</dt><dd>\s*(<span[^>]*>)?prod", page)
    assert "<title>Plan (prod): Concurrent writes fail once" in page
    sarif = json.loads(cli("plan", "--env", "prod", "--format", "sarif").out)
    assert sarif["runs"][0]["automationDetails"]["id"] == "tablectl/plan/prod/"
    assert 'testsuite name="tablectl plan prod"' in cli("plan", "--env", "prod", "--format", "junit").out
    drift = cli("drift", "--env", "prod")
    assert re.search(r"Drift \(prod\): 1 table differs", drift.out)
    assert json.loads(cli("drift", "--env", "prod", "--format", "json").out)["env"] == "prod"


def test_without_one_the_top_level_holds_and_says_who_gives_what_is_missing(cli: Cli, two: Repository) -> None:
    result = cli("plan")
    assert result.code == 1
    assert "the variable LAKE is not defined" in result.err
    assert (
        "hint: environments give it: --env dev or --env prod; or give it with --var LAKE=… or in TABLECTL_VAR_LAKE"
        in result.err
    )
    plain = json.loads(cli("plan", "--var", f"LAKE={two.lake}/dev", "--format", "json").out)
    assert plain["env"] == ""


def test_an_environment_that_gives_less_says_where_to_add_it(cli: Cli, two: Repository) -> None:
    two.policies(POLICIES.replace("payments", "'${TEAM}'"))
    assert "hint: add it to `env.dev.variables` of tablectl.yaml, or give it" in cli("plan", "--env", "dev").err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--env", "prd"], 'tablectl.yaml has no environment "prd"\n  hint: did you mean prod? known are dev, prod'),
        (["--env", "qa"], 'tablectl.yaml has no environment "qa"\n  hint: known are dev, prod'),
        (["--env", ""], "--env is empty\n  hint: name an environment of tablectl.yaml, or leave it out"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "apply", "drift", "validate", "import x.y.z", "explain x.y.z"])
def test_what_is_not_an_environment(cli: Cli, two: Repository, command: str, args: list[str], says: str) -> None:
    result = cli(*command.split(), *args)
    assert (result.code, result.out, result.err) == (64, "", f"error: {says}\n")


def test_a_variable_that_names_none_says_so(cli: Cli, repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLECTL_ENV", "prod")
    assert cli("validate").err == (
        'error: tablectl.yaml has no environment "prod", which TABLECTL_ENV names\n'
        "  hint: it has none: add `env: {prod: …}` to it\n"
    )


def test_a_plan_is_applied_in_its_own_environment(cli: Cli, two: Repository, fake_spark: FakeSpark) -> None:
    cli("plan", "--env", "prod", "--out", "prod.json")
    cli("plan", "--env", "dev", "--out", "dev.json")
    done = cli("apply", "prod.json")
    assert (done.code, done.out.splitlines()[-1]) == (0, "Apply (prod): 1 applied; 1 commit made.")
    assert [each.name for each in (two.lake / "state").iterdir()]  # the leases of prod
    report = json.loads(cli("apply", "dev.json", "--env", "dev", "--format", "json").out)
    assert (report["env"], report["tables"][0]["outcome"]) == ("dev", "applied")
    assert (two.lake / "dev/a/_tablectl").is_dir()
    assert [dict(options.conf) for options in fake_spark.options] == [
        {"spark.a": "top", "spark.b": "top"},
        {"spark.a": "top", "spark.b": "dev"},
    ]


def test_a_plan_of_another_environment_is_refused(
    cli: Cli, two: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("plan", "--env", "prod", "--out", "prod.json")
    cli("plan", "--var", f"LAKE={two.lake}/dev", "--out", "none.json")
    refused = cli("apply", "prod.json", "--env", "dev")
    assert (refused.code, refused.out, fake_spark.sent) == (3, "", [])
    assert refused.err == (
        "error: the plan is for the environment prod, not for dev\n"
        "  hint: apply it in its own, or have one for the other made by `tablectl plan --env dev --out FILE`\n"
    )
    assert "the plan is for no environment, not for dev" in cli("apply", "none.json", "--env", "dev").err
    monkeypatch.setenv("TABLECTL_ENV", "dev")
    assert cli("apply", "prod.json").code == 3
    assert cli("show", "prod.json").code == 0
    with pytest.raises(PlanFileError, match="for the environment prod, not for dev"):
        tablectl.apply("prod.json")
    assert fake_spark.sent == []


def test_an_edited_environment_is_an_edited_plan(cli: Cli, two: Repository) -> None:
    cli("plan", "--env", "prod", "--out", "prod.json")
    text = Path("prod.json").read_text()
    Path("prod.json").write_text(text.replace('"env": "prod"', '"env": "dev"'))
    assert "the plan was edited or damaged" in cli("apply", "prod.json").err


def test_a_plan_of_an_environment_that_is_gone(cli: Cli, two: Repository, fake_spark: FakeSpark) -> None:
    cli("plan", "--env", "dev", "--out", "dev.json")
    Path("tablectl.yaml").write_text("policies: policies\n")
    refused = cli("apply", "dev.json")
    assert (refused.code, fake_spark.sent) == (3, [])
    assert 'the plan is for the environment dev: tablectl.yaml has no environment "dev"' in refused.err
    shown = cli("show", "dev.json")
    assert (shown.code, "Plan (dev): 1 table to change" in shown.out) == (0, True)
    assert "shown as without an environment" in shown.err


def test_a_plan_is_shown_with_the_masks_of_its_environment(cli: Cli, two: Repository) -> None:
    for env, shows in (("dev", False), ("prod", True)):
        cli("plan", "--env", env, "--out", "p.json")
        assert ("payments" in cli("show", "p.json").out) is shows


def test_validate_checks_every_environment(cli: Cli, two: Repository) -> None:
    assert cli("validate").out == "dev: 1 table: every policy is valid.\nprod: 1 table: every policy is valid.\n"
    assert cli("validate", "--env", "dev").out == "dev: 1 table: every policy is valid.\n"
    found = json.loads(cli("validate", "--format", "json").out)
    assert found["tables"] == [two.name("dev/a"), two.name("prod/a")]
    assert found["environments"]["prod"] == {"tables": [two.name("prod/a")], "patterns": []}


def test_what_is_wrong_in_one_environment_says_in_which(cli: Cli, two: Repository) -> None:
    config = CONFIG.format(lake=two.lake).replace("LAKE: ", "TEAM: web, LAKE: ", 1)
    Path("tablectl.yaml").write_text(config)
    two.policies(POLICIES.replace("payments", "'${TEAM}'").replace("tags: [web]", "tagz: [web]"))
    result = cli("validate")
    assert result.code == 1
    assert result.err.splitlines() == [
        "error: policies/lake.yaml:3:48: in prod: the variable TEAM is not defined",
        "  hint: add it to `env.prod.variables` of tablectl.yaml, or give it with --var TEAM=… or in TABLECTL_VAR_TEAM",
        'policies/lake.yaml:3:60: unknown key "tagz"',
        "  hint: did you mean `tags`?",
    ]


def test_what_is_wrong_in_any_environment_is_reported_to_every_command(cli: Cli, two: Repository) -> None:
    Path("tablectl.yaml").write_text("env:\n  dev: {}\n  prod: {window: {ttl: 5}, engine: {dialekt: oss}}\n")
    said = [
        'error: tablectl.yaml:3:19: `env.prod.window.ttl` needs at least 10, not "5"',
        'tablectl.yaml:3:37: unknown key "env.prod.engine.dialekt"',
        "  hint: did you mean `dialect`?",
    ]
    for command in (["plan"], ["plan", "--env", "dev"], ["plan", "--env", "prod"], ["validate"]):
        assert cli(*command).err.splitlines() == said


def test_environments_do_not_stand_in_policies(cli: Cli, repo: Repository) -> None:
    repo.policies("version: 1\nenv: {}\ntables: {}\n")
    assert cli("validate").err == (
        'error: policies/lake.yaml:2:1: "env" is not allowed here\n'
        "  hint: environments stand in tablectl.yaml, and give values for `${NAME}` here\n"
    )


def test_other_commands_look_there_too(cli: Cli, two: Repository) -> None:
    table = two.name("prod/a")
    assert "owner.team" in cli("explain", table, "--env", "prod").out
    assert "no policy declares" in cli("explain", table, "--env", "dev").err
    assert "is declared at policies/lake.yaml:3" in cli("import", table, "--env", "prod").err
    assert cli("import", "delta.`${LAKE}/a`", "--env", "dev").code == 0
    assert cli("conflicts", table, "--env", "prod").code == 0
    assert cli("window", "show", table, "--env", "prod").code == 0
    assert cli("window", "break", table, "--env", "qa", "--reason", "r").code == 64


def test_drift_is_adopted_from_one_environment(cli: Cli, two: Repository) -> None:
    set_property(two.lake / "prod/a", "owner.team", "web")
    result = cli("drift", "--env", "prod", "--adopt", "--yes")
    assert result.code == 0
    assert "owner.team: web" in Path("policies/lake.yaml").read_text()


def test_the_functions_take_an_environment(two: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = tablectl.plan(env="prod")
    assert (plan.env, [table.name for table in plan.tables]) == ("prod", [two.name("prod/a")])
    assert tablectl.drift(env="dev").env == "dev"
    assert tablectl.explain(two.name("dev/a"), env="dev").resolved
    assert tablectl.import_tables("delta.`${LAKE}/*`", env="dev").skipped
    assert tablectl.conflict_report(two.name("dev/a"), env="dev").changes
    monkeypatch.setenv("TABLECTL_ENV", "dev")
    assert tablectl.plan().env == "dev"
    assert tablectl.plan(env="", variables={"LAKE": str(two.lake / "dev")}).env == ""
    with pytest.raises(UsageError, match='no environment "qa"'):
        tablectl.plan(env="qa")
