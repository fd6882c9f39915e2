"""Names as people say them: the last part of a name, and places as a shell takes them."""

from __future__ import annotations

import json

import pytest

from tests.commands.conftest import Cli, Repository

SERIALIZABLE = "{isolation: Serializable}"


@pytest.fixture
def shop(repo: Repository) -> Repository:
    for name in ("orders", "items", "eu/returns", "us/returns"):
        repo.table(name)
    repo.policies(dict.fromkeys(("orders", "items", "eu/returns", "us/returns"), SERIALIZABLE))
    return repo


@pytest.mark.parametrize(
    "line",
    [
        ("explain", "orders"),
        ("conflicts", "orders"),
        ("window", "show", "orders"),
        ("explain", "ConcurrentAppendException", "--table", "orders"),
        ("advise", "orders"),
        ("check", "orders"),
    ],
    ids=" ".join,
)
def test_the_last_part_of_a_name_is_enough(cli: Cli, shop: Repository, line: tuple[str, ...]) -> None:
    ran = cli(*line)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    "line",
    [("explain",), ("conflicts",), ("window", "show"), ("advise",), ("plan", "--select"), ("status",)],
    ids=" ".join,
)
def test_the_end_of_a_path_that_reports_print_is_enough(cli: Cli, shop: Repository, line: tuple[str, ...]) -> None:
    ran = cli(*line, "eu/returns")
    assert (ran.code, "us/returns" in ran.out) == (0, False), ran.err


def test_a_pattern_names_the_end_of_a_path(cli: Cli, repo: Repository) -> None:
    repo.table("eu/returns")
    repo.policies({"eu/*": SERIALIZABLE})
    assert repo.name("eu/returns") in cli("explain", "eu/returns", "--format", "json").out
    repo.policies({"*/*": SERIALIZABLE})
    assert repo.name("eu/returns") in cli("explain", "eu/returns", "--format", "json").out
    assert cli("explain", "us/eu/returns").code == 64


def test_a_path_needs_no_backticks(cli: Cli, shop: Repository) -> None:
    assert cli("explain", f"{shop.lake}/orders").out == cli("explain", shop.name("orders")).out
    assert cli("conflicts", f"{shop.lake}/orders").code == 0


def test_an_ambiguous_last_part_is_refused_with_the_names(cli: Cli, shop: Repository) -> None:
    ran = cli("conflicts", "returns")
    assert ran.code == 64
    assert f"several tables are called returns: {shop.name('eu/returns')}, {shop.name('us/returns')}" in ran.err


def test_a_misspelt_last_part_gets_a_suggestion(cli: Cli, shop: Repository) -> None:
    ran = cli("conflicts", "ordres")
    assert (ran.code, "did you mean orders?" in ran.err) == (64, True)


def test_a_pattern_names_a_table_if_it_leaves_one_name(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    repo.policies({"*": SERIALIZABLE})
    assert repo.name("orders") in cli("explain", "orders", "--format", "json").out
    repo.policies({"*": SERIALIZABLE, "*/*": SERIALIZABLE})
    assert repo.name("orders") in cli("explain", "orders", "--format", "json").out, "one level names it, two do not"


def test_explain_names_the_tables_of_an_ambiguous_last_part(cli: Cli, shop: Repository) -> None:
    ran = cli("explain", "returns")
    assert (ran.code, "several tables are called returns" in ran.err) == (64, True)


def test_a_table_that_only_patterns_match_is_not_said_to_exist(cli: Cli, repo: Repository) -> None:
    repo.policies({"*": SERIALIZABLE, "orders": SERIALIZABLE})
    ran = cli("explain", f"{repo.lake}/ordrs")
    assert (ran.code, "only patterns match it, and it was not looked up; did you mean" in ran.err) == (0, True)
    assert "was not looked up" not in cli("explain", "orders").err


def test_new_tables_take_short_names_too(cli: Cli, shop: Repository) -> None:
    one = cli("defaults", "spark", "--select", shop.name("orders"))
    assert one.code == 0
    assert cli("defaults", "spark", "--select", "orders").out == one.out
    assert cli("defaults", "sql", "--select", "or*").out == cli("defaults", "sql", "--select", "orders").out
    assert cli("defaults", "spark", "--select", "ordres").code == 64
    like = cli("create", "items", "--like", "orders", "--show")
    assert like.code == 3, "items exists with other columns or the same"


def test_statements_name_a_table_by_its_folder(cli: Cli, shop: Repository) -> None:
    ran = cli("conflicts", "orders", "--between", "UPDATE orders SET kind = 'a'", "DELETE FROM orders WHERE id = 1")
    assert ran.code == 0, ran.err
    assert cli("conflicts", "orders", "--between", "UPDATE items SET kind = 'a'", "DELETE FROM orders").code != 0


def test_a_word_selects_the_tables_that_are_called_so(cli: Cli, shop: Repository) -> None:
    def planned(*more: str) -> list[str]:
        return [each["name"] for each in json.loads(cli("plan", "--format", "json", *more).out)["tables"]]

    assert planned("--select", "orders") == [shop.name("orders")]
    assert planned("--select", "returns") == [shop.name("eu/returns"), shop.name("us/returns")]
    assert shop.name("orders") not in planned("--exclude", "orders")
    assert planned("--select", "or*") == [shop.name("orders")]
    assert planned("--select", "?eturns") == [shop.name("eu/returns"), shop.name("us/returns")]
    assert shop.name("orders") not in planned("--exclude", "or*")
    assert "--select 'order' matches no table" in cli("plan", "--select", "order").err


def test_a_term_comes_before_a_table(cli: Cli, repo: Repository) -> None:
    repo.table("gate")
    repo.policies({"gate": SERIALIZABLE})
    assert str(repo.lake) not in cli("explain", "gate").out


def test_rename_takes_the_last_part_of_the_old_name(cli: Cli, shop: Repository) -> None:
    assert cli("rename", "orders", f"{shop.lake}/sales", "--yes").code == 0
    text = (shop.root / "policies" / "lake.yaml").read_text()
    assert (f"{shop.lake}/sales`" in text, f"{shop.lake}/orders`" in text) == (True, False)


def test_a_shell_completes_the_names_of_the_policies(
    cli: Cli, shop: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def completed(*words: str) -> list[str]:
        monkeypatch.setenv("_TABLECTL_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("tablectl", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return cli().out.split()

    assert completed("explain", "o") == ["orders"]
    assert completed("plan", "--select", "i") == ["items"]
    assert completed("conflicts", "r") == [], "two tables are called returns"
    shop.policies("version: [")
    assert completed("explain", "o") == []
