"""``tablectl explain`` for exceptions, error classes and isolation levels, on a live table or without one."""

from __future__ import annotations

import json

import pytest

from tests.commands.conftest import Cli, Repository


def test_an_exception_without_a_table(cli: Cli, repo: Repository) -> None:
    result = cli("explain", "ConcurrentAppendException")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("DELTA_CONCURRENT_APPEND (ConcurrentAppendException)\n")
    for place in ("Delta Spark 4.4, without partitions", "Delta Spark 4.4, partitioned", "Databricks 14.3"):
        assert place in result.out
    assert "  - name partition columns with literals" in result.out


def test_what_causes_it_on_a_table(cli: Cli, repo: Repository) -> None:
    repo.table("orders", partitions=["day"])
    result = cli("explain", "DELTA_CONCURRENT_APPEND", "--table", repo.name("orders"))
    assert f"What causes it on {repo.name('orders')}\n  Delta Spark 4.4.0, at Serializable:\n" in result.out
    assert "on the same data" in result.flat
    assert "Databricks 14.3" not in result.out


def test_the_reordering_on_the_columns_of_a_table(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    result = cli("explain", "writeserializable", "--table", repo.name("orders"))
    told = " ".join(result.out.replace("`delta`", "delta").split())
    assert "1 the first statement begins and reads version 1: DELETE FROM" in told
    assert f"DELETE FROM {repo.name('orders')} WHERE `id` = 42" in told
    assert "a second statement commits version 2:" in told
    assert "it fails with ConcurrentAppendException" in told
    assert "it commits. The history says INSERT (2), then DELETE (3)" in told


def test_for_machines(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    found = json.loads(cli("explain", "Serializable", "--table", repo.name("orders"), "--format", "json").out)
    outcomes = found["example"]["outcomes"]
    assert {level: (each["result"], each["exception"]) for level, each in outcomes.items()} == {
        "Serializable": ("fails", "ConcurrentAppendException"),
        "WriteSerializable": ("commits", ""),
    }
    found = json.loads(cli("explain", "MetadataChangedException", "--format", "json").out)
    pairs = {(each["current"], each["committed"]): each["verdict"] for each in found["causes"][0]["pairs"]}
    assert pairs["insert", "set"] == "fails"
    assert found["example"] is None


def test_a_part_of_an_error_class(cli: Cli, repo: Repository) -> None:
    result = cli("explain", "DELTA_CONCURRENT_APPEND.WHOLE_TABLE_READ")
    assert "  The statement read the whole table: narrow it with a condition.\n" in result.out


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["DELTA_CONCURRENT_APEND"], 64, "did you mean DELTA_CONCURRENT_APPEND?"),
        (["ConcurrentApendException"], 64, "did you mean ConcurrentAppendException?"),
        (["nonsense", "--table", "a.b.c"], 64, "is not a known term"),
        (["Serializable", "--table", "isolation"], 64, "an attribute of tables, not a table"),
        (["Serializable", "--table", "delta.`{lake}/gone`"], 1, "gone"),
    ],
)
def test_what_makes_no_sense(cli: Cli, repo: Repository, args: list[str], code: int, says: str) -> None:
    result = cli("explain", *(arg.replace("{lake}", str(repo.lake)) for arg in args))
    assert (result.code, result.out) == (code, "")
    assert says in result.err


def test_a_word_needs_no_policies_and_a_table_says_why_it_is_not_found(cli: Cli, repo: Repository) -> None:
    """In a folder whose policies have an undefined variable, each word was answered with the variable alone."""
    (repo.root / "policies").mkdir(exist_ok=True)
    (repo.root / "policies" / "lake.yaml").write_text("version: 1\ntables:\n  delta.`${LAKE}/orders`: {}\n")
    known = cli("explain", "checkpointProtection")
    assert known.code == 0
    assert "docs/features.md" in known.out
    ran = cli("explain", "orders")
    assert ran.code == 64
    assert "cannot be read: policies/lake.yaml:3: the variable LAKE is not defined" in ran.err
