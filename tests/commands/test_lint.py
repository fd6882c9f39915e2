"""``tablectl lint``, the pages of its codes, what ``validate`` finds, and errors of lint in a plan."""

from __future__ import annotations

import json

import pytest

from tests.commands.conftest import Cli, FakeSpark, Repository

_SHORT = "{retention: {deleted_files: interval 1 day}}"
_SET = {"delta.deletedFileRetentionDuration": "interval 1 day"}


@pytest.fixture
def settled(repo: Repository) -> Repository:
    """A table as declared, and one that is not."""
    repo.table("a", properties=_SET)
    repo.table("b")
    repo.policies({"a": _SHORT, "b": "{properties: {owner.team: web}}"})
    return repo


def configure(repo: Repository, text: str) -> None:
    (repo.root / "tablectl.yaml").write_text(f"lint:\n{text}")


def test_all_tables_are_looked_at_whether_they_change_or_not(cli: Cli, settled: Repository) -> None:
    assert "L006" not in cli("plan").out
    result = cli("lint")
    assert result.code == 0
    assert result.out == (
        f"In {settled.lake}/:\n\n~ a  WARNING\n"
        "  - L006: deleted files are kept 1 day only (`policies/lake.yaml:3`)\n"
        "\n"
        "`tablectl explain L006` says why and how to fix it.\n"
        "Lint: 1 warning; 2 tables checked.\n"
    )
    assert cli("lint", "--select", "*/b`").out == "Nothing found: 1 table checked.\n"


def test_an_error_exits_with_3_and_what_cannot_be_read_with_1(cli: Cli, settled: Repository) -> None:
    configure(settled, "  L006: error\n")
    assert cli("lint").code == 3
    settled.policies({"gone": "{isolation: Serializable}"}, "gone.yaml")
    result = cli("lint")
    assert result.code == 1
    assert "gone" in result.out
    assert "2 tables checked; 1 not readable" in result.out


def test_as_json_and_sarif(cli: Cli, settled: Repository) -> None:
    configure(settled, "  L006: {severity: ignore, reason: no long reads}\n")
    assert "1 ignored; 2 tables checked" in cli("lint").out
    first, second = json.loads(cli("lint", "--format", "json").out)["tables"]
    assert first["findings"] == [
        {
            "code": "L006",
            "severity": "ignored",
            "message": "deleted files are kept 1 day only",
            "about": "retention.deleted_files",
            "reason": "no long reads",
        }
    ]
    assert second["findings"] == []
    (run,) = json.loads(cli("lint", "--format", "sarif").out)["runs"]
    (result,) = run["results"]
    assert result["suppressions"] == [{"kind": "external", "justification": "no long reads"}]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    assert run["tool"]["driver"]["rules"][0]["id"] == "L006"


def test_an_error_leaves_its_table_out_of_plan_and_apply(cli: Cli, settled: Repository, fake_spark: FakeSpark) -> None:
    settled.policies({"a": _SHORT, "b": _SHORT, "c": "{properties: {owner.team: web}}"})
    settled.table("c")
    configure(settled, '  L006: {severity: error, tables: ["*/b`"]}\n')
    result = cli("plan", "--out", "p.json")
    assert result.code == 3
    assert "(L006)" in result.flat
    assert result.out.endswith("Plan: 1 table to change (1 blocking), 1 statement; 1 refused; 1 unchanged.\n")
    applied = cli("apply", "p.json")
    assert applied.code == 5
    assert len(fake_spark.sent) == 1
    assert "owner.team" in fake_spark.sent[0]


def test_validate_looks_at_policies_alone(cli: Cli, settled: Repository) -> None:
    result = cli("validate")
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith("2 tables: every policy is valid. 1 warning.\n")
    configure(settled, "  L006: error\n")
    result = cli("validate")
    assert result.code == 3
    assert result.out.endswith("2 tables: every policy can be read, and a plan refuses those with errors. 1 error.\n")
    (finding,) = json.loads(cli("validate", "--format", "json").out)["findings"]
    assert (finding["table"], finding["code"], finding["severity"]) == (settled.name("a"), "L006", "error")
    (run,) = json.loads(cli("validate", "--format", "sarif").out)["runs"]
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [("L006", "error")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  L0017: error\n", "tablectl.yaml:2:3: `lint.L0017` is not a finding code\n  hint: did you mean `L017`?"),
        ("  L006: ignore\n", "tablectl.yaml:2:3: `lint.L006` is ignored without a reason"),
        ('  L006: {severity: ignore, reason: " "}\n', "`lint.L006` is ignored without a reason"),
        ("  L006: {reason: because}\n", "`lint.L006` needs `severity`"),
        ("  L006: loud\n", '"loud" is not a value of `lint.L006.severity`'),
        ("  L006: [error]\n", "`lint.L006` takes a map with `severity` and `reason` and `tables`, not a list"),
        ("  L006: {severity: error, table: x}\n", 'unknown key "lint.L006.table"'),
        ("  - L006\n", "`lint` takes a map, not a list"),
    ],
)
def test_a_configuration_that_cannot_be(cli: Cli, settled: Repository, text: str, said: str) -> None:
    configure(settled, text)
    result = cli("plan")
    assert result.code == 1
    assert said in result.err


def test_a_code_is_explained(cli: Cli, settled: Repository) -> None:
    result = cli("explain", "l006")
    assert result.code == 0
    assert result.out.startswith("L006  Deleted files are kept for less than a week\n  severity warning, checked by ")
    configure(settled, "  P001: {severity: ignore, reason: readers are new}\n")
    assert "here ignored: readers are new" in cli("explain", "P001").out
    assert json.loads(cli("explain", "P001", "--format", "json").out)["here"] == "ignored"
    wrong = cli("explain", "L099")
    assert (wrong.code, wrong.out) == (64, "")
    assert "did you mean L019?" in wrong.err


def test_a_plan_without_changes_names_the_clients_that_stand_outside(cli: Cli, repo: Repository) -> None:
    repo.table("a", features=["typeWidening"])
    repo.policies({"a": '{clients: {athena: "3"}}'})
    result = cli("plan")
    assert result.code == 0
    said = result.flat
    assert "athena 3 cannot read the table: typeWidening stands in the way" in said
    repo.policies({"a": '{clients: {spark: "4.0"}}'})
    assert "L023" not in cli("plan").out
    (repo.root / "tablectl.yaml").write_text("lint: {L023: {severity: ignore, reason: athena reads a copy}}\n")
    repo.policies({"a": '{clients: {athena: "3"}}'})
    assert "L023" not in cli("plan").out


def test_a_plan_names_what_does_not_hold_on_unchanged_tables_and_refuses_nothing(cli: Cli, repo: Repository) -> None:
    for name, properties in (
        ("broken", {"delta.checkpointInterval": "0"}),
        ("folded", {"delta.appendonly": "true"}),
        ("short", _SET),
    ):
        repo.table(name, properties=properties)
    repo.policies(dict.fromkeys(("broken", "folded", "short"), "{isolation: default}"))
    result = cli("plan", "--detailed-exitcode", "--out", "p.json")
    assert result.code == 0
    broken = f"error {repo.name('broken')}: Delta Spark cannot read delta.checkpointInterval, '0':"
    assert broken in result.flat
    assert "so a job that retries writes its rows twice" in result.flat
    assert "declare `properties: {delta.checkpointInterval: null}` (L034)" in result.flat
    assert f"warning {repo.name('folded')}: no engine reads delta.appendonly, true" in result.flat
    assert "L006" not in result.out
    assert result.out.endswith("No changes. 3 tables match their policies.\n")
    markdown = cli("plan", "--format", "markdown").out
    assert "Plan: No changes** · 3 tables match their policies; 1 table with an error" in markdown
    assert "(L034)" in markdown
    saved = json.loads((repo.root / "p.json").read_text())
    assert saved == json.loads(cli("plan", "--format", "json").out)
    assert [(each["name"], each["findings"][0]["code"]) for each in saved["standing"]] == [
        (repo.name("broken"), "L034"),
        (repo.name("folded"), "L033"),
    ]
    (run,) = json.loads(cli("plan", "--format", "sarif").out)["runs"]
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [("L034", "error"), ("L033", "warning")]
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    assert cli("apply", "p.json").code == 0


def test_the_plans_of_shards_keep_what_does_not_hold_on_unchanged_tables(cli: Cli, repo: Repository) -> None:
    for name in ("a", "b", "c", "d", "e"):
        repo.table(name, properties={"delta.checkpointInterval": "0"})
    repo.policies(dict.fromkeys("abcde", "{isolation: default}"))
    for shard in ("1", "2"):
        cli("plan", "--shard", f"{shard}/2", "--out", f"{shard}.json")
    whole = cli("plan")
    assert "more 2 findings: `tablectl lint`" in whole.flat
    assert cli("plan", "--merge", "1.json", "2.json").out == whole.out


def test_a_client_in_a_policy(cli: Cli, repo: Repository) -> None:
    repo.table("a")
    repo.policies({"a": '{deletion_vectors: enabled, clients: {trino: "440"}}'})
    result = cli("plan")
    assert result.code == 3
    assert "trino 440 could no longer write the table" in result.out
    repo.policies({"a": '{deletion_vectors: enabled, clients: {trino: "454"}, allowed_features: [deletionVectors]}'})
    assert cli("plan").code == 0
    repo.policies({"a": "{deletion_vectors: enabled, allowed_features: []}"})
    assert "which `allowed_features` does not name" in " ".join(cli("plan").out.split())
