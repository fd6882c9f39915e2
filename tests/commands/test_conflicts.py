"""``tablectl conflicts``: which table, whose rules, which policy."""

from __future__ import annotations

import json

import pytest

import tablectl
from tablectl.delta.protocol import Client
from tests.commands.conftest import Cli, Repository

ENGINE = "Databricks-Runtime/14.3.x-scala2.12"


def test_a_table_without_any_policy(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    result = cli("conflicts", repo.name("orders"))
    assert (result.code, result.err) == (0, "")
    assert "When Delta Spark 4.4.0 commits second  at Serializable (not set)\n" in result.out
    assert "  c INSERT that reads the table X X X X X ~ X X X X X X\n" in result.out
    assert "What the policy changes  no policy covers this table\n" in result.out


def test_what_its_policy_changes(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    repo.policies({"orders": "{clustering: [id], deletion_vectors: enabled}"})
    result = cli("conflicts", repo.name("orders"))
    assert result.code == 0
    assert "  clustering        none → [id]\n" in result.out
    assert "full overwrite fails if CLUSTER BY commits first" in result.out


def test_a_pattern_speaks_for_it_too(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    repo.policies({"*": "{deletion_vectors: enabled}"})
    found = json.loads(cli("conflicts", repo.name("orders"), "--format", "json").out)
    assert [change["attribute"] for change in found["changes"]] == ["deletion_vectors"]


def test_a_catalog_name_whose_policy_says_where_it_lies(cli: Cli, repo: Repository) -> None:
    path = repo.table("orders")
    repo.policies(f"version: 1\ntables:\n  lake.sales.orders: {{location: {path}, isolation: Serializable}}\n")
    for name in ("lake.sales.orders", repo.name("orders")):
        result = cli("conflicts", name)
        assert result.code == 0
        assert "isolation  default → Serializable" in result.out


def test_a_policy_that_apply_refuses(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    repo.policies({"orders": "{partitioning: [day]}"})
    result = cli("conflicts", repo.name("orders"))
    assert result.code == 3
    assert "partitioning  none → [day]\n      apply refuses it\n" in result.out


def test_clients_come_from_the_log(cli: Cli, repo: Repository) -> None:
    repo.table("orders", client=ENGINE)
    assert (
        "When Databricks 14.3 commits second  at WriteSerializable (not set)\n"
        in cli("conflicts", repo.name("orders")).out
    )


@pytest.mark.parametrize(
    ("client", "says"),
    [
        ("spark 3.2", "When Delta Spark 3.2 commits second"),
        ("delta-spark 4.0.1", "When Delta Spark 4.0.1 commits second"),
        ("Databricks 14.2 Photon", "MERGE    holds (D50, D45)"),
        ("databricks 14.2", "MERGE    does not hold: deletion vectors are off"),
        ("kernel", "When Delta Kernel commits second"),
        ("delta-rs", "When delta-rs commits second"),
    ],
)
def test_a_client_that_is_named(cli: Cli, repo: Repository, client: str, says: str) -> None:
    vectors = {"delta.enableDeletionVectors": "true"} if "Photon" in client else {}
    repo.table("orders", properties=vectors, features=["deletionVectors"] if vectors else [])
    assert says in cli("conflicts", repo.name("orders"), "--client", client).out


def test_one_operation_by_key_or_by_name(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    for name in ("add-columns", "ADD COLUMNS"):
        result = cli("conflicts", repo.name("orders"), "--operation", name)
        assert "ADD COLUMNS in flight\n" in result.out
        assert "ADD COLUMNS commits first\n" in result.out
        assert "in flight  " not in result.out


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["lake.*.t"], 64, "name one table"),
        (["isolation"], 64, "an attribute of tables, not a table"),
        (["delta.`{lake}/missing`"], 1, "missing"),
        (["delta.`{lake}/orders`", "--operation", "optimise"], 64, "did you mean optimize?"),
        (["delta.`{lake}/orders`", "--operation", "zzzzzz"], 64, "one of insert, stream"),
        (["delta.`{lake}/orders`", "--client", "oracle"], 64, "is not a client"),
        (["delta.`{lake}/orders`", "--client", "spark 4 photon"], 64, "is not a client"),
        (["delta.`{lake}/orders`", "--client", "trino 470"], 64, "--client unknown asks the strictest rules"),
        (["delta.`{lake}/orders`", "nowhere.yaml"], 1, "nowhere.yaml"),
    ],
)
def test_what_makes_no_sense(cli: Cli, repo: Repository, args: list[str], code: int, says: str) -> None:
    repo.table("orders")
    result = cli("conflicts", *(arg.replace("{lake}", str(repo.lake)) for arg in args))
    assert (result.code, result.out) == (code, "")
    assert says in result.err


def test_as_a_function(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    (view,) = tablectl.conflict_report(repo.name("orders"), clients=[(Client("delta-spark", (3, 2)), None)]).views
    assert not view.live.cell("insert", "vectors-on").overlapping.succeeds


_DELETE = "DELETE FROM {} WHERE day = '2026-01-01'"
_UPDATE = "UPDATE {} SET kind = 'x' WHERE day > '2026-01-01'"


def test_two_statements_that_keep_apart(cli: Cli, repo: Repository) -> None:
    repo.table("orders", partitions=["day"])
    name = repo.name("orders")
    result = cli("conflicts", name, "--between", _DELETE.format(name), _UPDATE.format(name))
    assert (result.code, result.err) == (0, "")
    assert "  1 in flight, 2 commits first: commits\n" in result.out
    assert "  2 in flight, 1 commits first: commits\n" in result.out


def test_two_statements_and_the_partitioning_that_would_help(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    name = repo.name("orders")
    arguments = ("conflicts", name, "--between", _DELETE.format(name), _UPDATE.format(name), "--format", "json")
    found = json.loads(cli(*arguments, "--client", "delta-spark 4.0").out)
    (view,) = found["views"]
    assert view["clients"] == [{"engine": "delta-spark", "version": [4, 0]}]
    assert view["ways"]["partitionings"] == [{"columns": ["day"], "unclustered": False}]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT 1", "the first statement: cannot tell what 'SELECT 1' conflicts with"),
        ("DELETE FROM lake.other", "the statement writes lake.other, not delta.`"),
        ("DELETE FROM", "the first statement: the statement 'DELETE FROM' cannot be read"),
        ("DELETE FROM t; DELETE FROM t", "one statement is expected, and 'DELETE FROM t; DELETE FROM t' holds 2"),
        ("TRUNCATE TABLE t FOR SURE", "the first statement: cannot tell"),
        ("x" * 1_000_000, "has 1,000,000 characters, and at most 65,536 are read"),
    ],
)
def test_texts_that_are_not_such_statements(cli: Cli, repo: Repository, sql: str, said: str) -> None:
    repo.table("orders")
    name = repo.name("orders")
    result = cli("conflicts", name, "--between", sql, _DELETE.format(name))
    assert (result.code, result.out) == (1, "")
    assert said in result.err
    assert "Traceback" not in result.err


def test_two_statements_are_all_that_is_asked(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    name = repo.name("orders")
    result = cli("conflicts", name, "--all", "--between", _DELETE.format(name), _DELETE.format(name))
    assert result.code == 64
    assert "--between cannot be combined with --operation or --all" in result.err


def test_statements_of_every_kind(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    name = repo.name("orders")
    alter = f"ALTER TABLE {name} SET TBLPROPERTIES ('owner.team' = 'x')"
    result = cli("conflicts", name, "--between", alter, _UPDATE.format(name))
    assert (result.code, result.err) == (0, "")
    assert "  1 in flight, 2 commits first: commits\n" in result.out
    assert "  2 in flight, 1 commits first: fails with MetadataChangedException\n" in result.out
    assert "1: run it with `tablectl apply`" in result.out
    by_place = f"OPTIMIZE '{name.removeprefix('delta.').strip('`')}'"
    found = json.loads(cli("conflicts", name, "--between", by_place, alter, "--format", "json").out)
    assert [each["operation"] for each in found["statements"]] == ["OPTIMIZE", "ALTER TABLE … SET TBLPROPERTIES"]
    assert found["apart"] is True


def test_the_sessions_setting_of_automatic_compaction(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    name = repo.name("orders")
    arguments = ("conflicts", name, "--between", f"OPTIMIZE {name}", f"INSERT INTO {name} SELECT * FROM u")
    (without,) = json.loads(cli(*arguments, "--format", "json").out)["views"]
    (view,) = json.loads(cli(*arguments, "--format", "json", "--auto-compact").out)["views"]
    assert [each["result"] for each in without["fates"]] == ["commits", "commits"]
    assert [each["result"] for each in view["fates"]] == ["may fail", "commits"]
    assert [each["automatic"] for each in view["commits"][1]] == ["", "automatic compaction"]
    text = cli("conflicts", name, "--auto-compact", "--operation", "optimize").out
    assert "by the automatic compaction after INSERT" in " ".join(text.split())


def test_sessions_can_turn_off_what_the_table_sets(cli: Cli, repo: Repository) -> None:
    repo.table("orders", properties={"delta.autoOptimize.autoCompact": "true"}, client=ENGINE)
    name = repo.name("orders")
    arguments = ("conflicts", name, "--between", f"OPTIMIZE {name}", f"INSERT INTO {name} SELECT * FROM u")

    def automatic(*more: str) -> list[str | None]:
        (view,) = json.loads(cli(*arguments, "--format", "json", *more).out)["views"]
        return [each["automatic"] for each in view["commits"][1]]

    assert automatic() == ["", "automatic compaction"]
    assert automatic("--no-auto-compact") == [""]


def test_a_statement_of_another_form_is_refused_with_the_accepted_ones(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    name = repo.name("orders")
    result = cli("conflicts", name, "--between", f"OPTIMIZE {name} QUICKLY", _UPDATE.format(name))
    assert (result.code, result.out) == (1, "")
    assert "its end is expected, not 'QUICKLY'" in result.err
    assert "accepted is OPTIMIZE table [FULL] [WHERE condition] [ZORDER BY (column, …)]" in result.err


def test_each_pair_of_a_folder_of_sql_files_the_worst_first(cli: Cli, repo: Repository) -> None:
    repo.table("orders", partitions=["day"])
    name, jobs = repo.name("orders"), repo.root / "jobs"
    (jobs / "daily").mkdir(parents=True)
    (jobs / "daily" / "load.sql").write_text(
        f"-- it's ; a comment\nINSERT INTO {name} SELECT * FROM u;\n\nDELETE FROM {name}\nWHERE day = '2026-01-01';\n"
    )
    (jobs / "merge.sql").write_text(
        f"MERGE INTO {name} t USING u s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;"
        f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = ';')"
    )
    (jobs / "other.sql").write_text("UPDATE another SET a = 1; SELECT 1; {{ config() }}")
    (jobs / "atomic.sql").write_text(f"BEGIN ATOMIC\n  TRUNCATE TABLE {name};\nEND;")
    (jobs / "job.py").write_text("spark.sql('x')")
    result = cli("conflicts", name, "--between", str(jobs))
    assert (result.code, result.err) == (0, "")
    found = json.loads(cli("conflicts", name, "--between", str(jobs), "--format", "json").out)
    places = [each["place"].removeprefix(f"{jobs}/") for each in found["statements"]]
    assert places == ["atomic.sql:2", "daily/load.sql:2", "daily/load.sql:4", "merge.sql:1", "merge.sql:1"]
    pairs = [(each["failing"]["place"].removeprefix(f"{jobs}/"), each["result"]) for each in found["pairs"]]
    assert pairs[0][1] == "fails"
    assert [result for _, result in pairs] == sorted((result for _, result in pairs), key=["fails", "may fail"].index)
    assert len(pairs) == 10
    assert [each["sql"][:5] for each in found["metadata"]] == ["ALTER"]
    skipped = {place.removeprefix(f"{jobs}/"): why for place, why in found["skipped"]}
    assert set(skipped) == {"job.py", "other.sql:1"}
    assert "Not looked at" in result.out
    assert "Change metadata" in result.out
