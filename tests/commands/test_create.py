"""``tablectl create`` without an engine: what it decides before it sends its statement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Cli, FakeSpark, Repository

SCHEMA = {
    "type": "struct",
    "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
}


def orders(repo: Repository, policy: str = "{properties: {owner.team: web}}") -> str:
    repo.policies({"orders": policy})
    Path("orders.json").write_text(json.dumps(SCHEMA))
    return repo.name("orders")


def test_a_table_that_is_as_it_would_be_created_is_left_alone(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    name = orders(repo)
    repo.table("orders", columns={"id": "long"}, properties={"owner.team": "web"})
    ran = cli("create", name, "--schema", "orders.json", "--format", "json")
    assert (ran.code, json.loads(ran.out)["made"]) == (0, "already"), ran.err
    assert not fake_spark.sent


def test_a_table_that_is_something_else_is_refused_with_each_difference(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    name = orders(repo)
    repo.table("orders", columns={"id": "string", "day": "date"})
    ran = cli("create", name, "--schema", "orders.json")
    assert ran.code == 3
    assert "column day; column id: type; properties.owner.team is" in ran.err
    assert not fake_spark.sent


def test_what_no_such_table_can_have_is_refused_before_anything_is_sent(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    name = orders(repo, "{clustering: [nope], data_skipping: [neither]}")
    ran = cli("create", name, "--schema", "orders.json")
    assert ran.code == 3
    assert "clustering: the table has no column nope; data_skipping: the table has no column neither" in ran.err
    assert not fake_spark.engines


def test_a_name_without_a_policy_and_columns_that_are_missing_are_wrong_usage(repo: Repository, cli: Cli) -> None:
    name = orders(repo)
    assert cli("create", repo.name("other"), "--schema", "orders.json").code == 64
    assert cli("create", name).code == 64
    assert cli("create", name, "--schema", "orders.json", "--like", name).code == 64
    assert cli("create", name, "--schema", "missing.json").code == 1
    Path("orders.json").write_text("{}")
    assert "not the JSON of a Spark schema" in cli("create", name, "--schema", "orders.json").err


def test_the_columns_of_another_table_are_taken_without_its_policy(repo: Repository, cli: Cli) -> None:
    name = orders(repo)
    repo.table("other", columns={"id": "long", "day": "date"}, properties={"owner.team": "x"})
    ran = cli("create", name, "--like", repo.name("other"), "--show")
    assert ran.out.startswith(f"CREATE TABLE `delta`.`{repo.lake}/orders` (\n  `id` BIGINT,\n  `day` DATE\n)\n")
    assert ran.out.endswith("USING DELTA\nTBLPROPERTIES ('owner.team' = 'web')\n")


def test_a_statement_that_is_shown_hides_what_reports_hide(repo: Repository, cli: Cli) -> None:
    name = orders(repo, "{properties: {my.password: hunter2, owner.team: web}}")
    for form in ("text", "json"):
        ran = cli("create", name, "--schema", "orders.json", "--show", "--format", form)
        assert (ran.code, "hunter2" in ran.out, "web" in ran.out) == (0, False, True)


def test_what_a_table_differs_in_is_named_without_hidden_values_and_in_full(repo: Repository, cli: Cli) -> None:
    name = orders(repo, "{properties: {my.password: hunter2}}")
    repo.table("orders", columns={f"c{each}": "long" for each in range(20)}, properties={"my.password": "secret1"})
    for form in ("text", "json"):
        ran = cli("create", name, "--schema", "orders.json", "--show", "--format", form)
        assert ran.code == 3
        assert "hunter2" not in ran.out + ran.err
        assert "secret1" not in ran.out + ran.err
        assert " more" in ran.out + ran.err


def test_columns_in_sql_need_no_engine_and_name_their_line(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    name = orders(repo)
    Path("orders.sql").write_text("id BIGINT NOT NULL,\nday DATE")
    ran = cli("create", name, "--schema", "orders.sql", "--show")
    assert ran.code == 0
    assert "(\n  `id` BIGINT NOT NULL,\n  `day` DATE\n)\n" in ran.out
    assert f"{name} does not exist" in ran.err
    Path("orders.sql").write_text("id BIGINT,\nday DATUM")
    assert (
        "orders.sql:2:1: a type that tablectl knows is expected, and found DATUM"
        in cli("create", name, "--schema", "orders.sql", "--show").err
    )
    Path("orders.sql").write_bytes(b"\xff\xfe")
    assert "orders.sql: it is not text in UTF-8" in cli("create", name, "--schema", "orders.sql").err
    assert not fake_spark.engines


def test_a_hostile_schema_is_refused_in_time(repo: Repository, cli: Cli) -> None:
    name = orders(repo)
    many = [{"name": f"c{at}", "type": "long", "nullable": True, "metadata": {}} for at in range(5_000)]
    Path("orders.json").write_text(json.dumps({"type": "struct", "fields": [*many, many[0]]}))
    assert "column c0 is named twice" in cli("create", name, "--schema", "orders.json", "--show").err
    deep = '{"type":"array","elementType":' * 2_000 + '"long"' + "}" * 2_000
    Path("orders.json").write_text(f'{{"type":"struct","fields":[{{"name":"a","type":{deep}}}]}}')
    ran = cli("create", name, "--schema", "orders.json", "--show")
    assert (ran.code, "nested too deeply" in ran.err and "orders.json" in ran.err) == (1, True), ran.err
    Path("orders.sql").write_text("a " + "ARRAY<" * 100_000)
    assert "more than 50 deep" in cli("create", name, "--schema", "orders.sql", "--show").err


def test_what_delta_refuses_is_refused_before_anything_is_sent(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    name = orders(repo)
    for columns, code, why in (
        (
            "`unit price` INT",
            3,
            "columns: data files cannot have the name unit price: it holds one of ' ,;{}()=', a tab",
        ),
        ("s STRUCT<`a=b`: INT>", 3, "columns: data files cannot have the name s.a=b"),
        ("p DECIMAL(99,2)", 1, "columns.sql: column p is decimal(99,2): a decimal has at most 38 digits"),
        ("id INT, ID STRING", 1, "columns.sql: column ID is named twice"),
    ):
        Path("columns.sql").write_text(columns)
        ran = cli("create", name, "--schema", "columns.sql", "--show")
        assert (ran.code, why in ran.err.replace("`", "")) == (code, True), ran.err
    assert not fake_spark.engines
    orders(repo, "{column_mapping: name}")
    Path("columns.sql").write_text("`unit price` INT")
    assert cli("create", name, "--schema", "columns.sql", "--show").code == 0
    orders(repo, "{uniform: iceberg_v2}")
    assert cli("create", name, "--schema", "columns.sql", "--show").code == 0


def test_a_file_of_columns_that_is_too_large_is_named(repo: Repository, cli: Cli) -> None:
    name = orders(repo)
    Path("columns.sql").write_text(f"id BIGINT COMMENT '{'x' * 1_000_000}'")
    ran = cli("create", name, "--schema", "columns.sql", "--show")
    assert (ran.code, ran.err) == (
        1,
        "error: columns.sql: the file is larger than 1 MB\n  hint: split it, if it is a policy file\n",
    )


def test_a_locked_table_is_not_created(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    lock = "locked: {until: 2099-01-31, reason: audit, owner: data}"
    name = orders(repo, f"{{properties: {{owner.team: web}}, {lock}}}")
    for option in ([], ["--show"]):
        ran = cli("create", name, "--schema", "orders.json", *option)
        assert (ran.code, "locked until 2099-01-31 by data: audit" in ran.err) == (3, True)
    assert not fake_spark.sent
    repo.table("orders", columns={"id": "long"}, properties={"owner.team": "web"})
    assert "exists already" in cli("create", name, "--schema", "orders.json").out
    orders(repo, f"{{properties: {{owner.team: web}}, {lock.replace('2099', '2020')}}}")
    assert cli("create", name, "--schema", "orders.json", "--show").code == 0


TYPED = "version: 1\ntables:\n  s.*: {properties: {owner.team: web}}\n  s.returns: {isolation: Serializable}\n"


@pytest.mark.parametrize("typed", ["retruns", "retrns", "returnss", "RETRUNS"])
def test_a_slip_in_a_name_makes_no_table_of_a_pattern(
    repo: Repository, cli: Cli, fake_spark: FakeSpark, typed: str
) -> None:
    repo.policies(TYPED)
    Path("columns.sql").write_text("id BIGINT")
    ran = cli("create", f"s.{typed}", "--schema", "columns.sql", "--show")
    assert ran.code == 64
    assert f"no entry names s.{typed}: only patterns match it" in ran.err
    assert f"did you mean s.returns? If not, name the table in the policies: `s.{typed}: {{}}`" in ran.err
    assert not fake_spark.sent


def test_the_file_of_the_columns_shows_a_slip_too(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    repo.policies("version: 1\ntables: {s.*: {properties: {owner.team: web}}}\n")
    Path("returns.sql").write_text("id BIGINT")
    ran = cli("create", "s.retruns", "--schema", "returns.sql", "--show")
    assert (ran.code, "did you mean s.returns?" in ran.err) == (64, True)
    assert cli("create", "s.returns", "--schema", "returns.sql", "--show").code == 0


@pytest.mark.parametrize("name", ["returns", "return_items", "returns2", "returns_2025", "refunds", "other.retruns"])
def test_a_name_of_its_own_needs_no_entry(repo: Repository, cli: Cli, name: str) -> None:
    repo.policies(TYPED.replace("s.*", "o*.*") + "  s.*: {properties: {owner.team: web}}\n")
    Path("columns.sql").write_text("id BIGINT")
    ran = cli("create", name if "." in name else f"s.{name}", "--schema", "columns.sql", "--show")
    assert ran.code == 0, ran.err


def test_an_entry_says_that_a_name_like_another_one_is_meant(repo: Repository, cli: Cli) -> None:
    repo.policies(TYPED + "  s.retruns: {}\n")
    Path("columns.sql").write_text("id BIGINT")
    assert cli("create", "s.retruns", "--schema", "columns.sql", "--show").code == 0


def test_a_table_that_exists_is_left_alone_whatever_its_name(repo: Repository, cli: Cli) -> None:
    name, every = orders(repo), f"delta.`{repo.lake}/*`"
    repo.policies(f"version: 1\ntables:\n  {every}: {{properties: {{owner.team: web}}}}\n  {name}: {{}}\n")
    repo.table("ordesr", columns={"id": "long"}, properties={"owner.team": "web"})
    ran = cli("create", repo.name("ordesr"), "--schema", "orders.json", "--format", "json")
    assert (ran.code, json.loads(ran.out)["made"]) == (0, "already"), ran.err
    ran = cli("create", repo.name("odrers"), "--schema", "orders.json")
    assert (ran.code, f"did you mean {name}?" in ran.err) == (64, True), ran.err


def test_a_statement_that_is_shown_says_whether_the_table_exists(repo: Repository, cli: Cli) -> None:
    name = orders(repo)
    repo.table("orders", columns={"id": "long"}, properties={"owner.team": "web"})
    ran = cli("create", name, "--schema", "orders.json", "--show")
    assert (ran.code, "`create` would send nothing" in ran.err) == (0, True)
    repo.table("orders", columns={"id": "long"}, properties={"owner.team": "ours"})
    assert cli("create", name, "--schema", "orders.json", "--show").code == 3


def test_no_engine_starts_to_show_a_statement(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    repo.policies("version: 1\ntables: {s.orders: {isolation: Serializable}}\n")
    Path("orders.sql").write_text("id BIGINT")
    ran = cli("create", "s.orders", "--schema", "orders.sql", "--show")
    assert (ran.code, "whether s.orders exists was not looked up" in ran.err) == (0, True), ran.err
    assert not fake_spark.engines


def test_a_feature_that_other_settings_bring_cannot_be_dropped(repo: Repository, cli: Cli) -> None:
    name = orders(repo, "{clustering: [id], features: {domainMetadata: dropped}}")
    ran = cli("create", name, "--schema", "orders.json", "--show")
    assert ran.code == 3
    assert "it adds the feature domainMetadata, which the same policy drops" in ran.err


def test_constraints_and_the_drop_of_their_feature_exclude_each_other(repo: Repository, cli: Cli) -> None:
    name = orders(repo, '{constraints: {positive: "id > 0"}, features: {checkConstraints: dropped}}')
    ran = cli("create", name, "--schema", "orders.json", "--show")
    assert (ran.code, "exclude each other" in ran.err) == (1, True)


def test_a_pattern_is_not_the_name_of_a_table(repo: Repository, cli: Cli) -> None:
    orders(repo)
    ran = cli("create", repo.name("*"), "--schema", "orders.json", "--show")
    assert (ran.code, "is a pattern" in ran.err) == (64, True)


def test_without_columns_a_table_that_exists_is_said_to_exist(repo: Repository, cli: Cli) -> None:
    name = orders(repo)
    assert "the table has no columns" in cli("create", name).err
    repo.table("orders", columns={"id": "long"})
    ran = cli("create", name)
    assert ran.code == 64
    assert "exists already, at version 1: create never changes a table" in ran.err
