"""``tablectl rename``: a table that moved keeps its policy."""

from __future__ import annotations

import pytest

from tests.commands.conftest import Cli, Repository

POLICY = """version: 1
tables:
  # payments: ask before you change this
  sales.orders: {isolation: Serializable}   # the old shop
  "sales.*": {deletion_vectors: enabled}
  # sales.orders is copied from here
  shop.returns: {isolation: default}
"""


def write(repo: Repository, text: str = POLICY) -> None:
    (repo.root / "policies").mkdir()
    (repo.root / "policies/a.yaml").write_text(text)


def text_of(repo: Repository) -> str:
    return (repo.root / "policies/a.yaml").read_text()


def test_only_the_key_changes_and_the_rest_is_named(repo: Repository, cli: Cli) -> None:
    write(repo)
    (repo.root / "tablectl.yaml").write_text("window: {together: [sales.orders, sales.orders_old]}\n")
    ran = cli("rename", "sales.orders", "shop.orders", "--yes")
    assert ran.code == 0, ran.err
    assert text_of(repo) == POLICY.replace("  sales.orders:", "  shop.orders:")
    assert "-  sales.orders: {isolation: Serializable}   # the old shop\n" in ran.out
    notes = [line for line in ran.err.splitlines() if not line.startswith("wrote")]
    assert notes == [
        "patterns give shop.orders another policy than sales.orders had: `tablectl explain shop.orders` shows it",
        "policies/a.yaml:5:3: the pattern sales.* matches sales.orders, if such a table still exists",
        "policies/a.yaml:6: still mentions sales.orders",
        "tablectl.yaml:1: still mentions sales.orders",
    ]


def test_a_variable_of_the_key_stays(repo: Repository, cli: Cli) -> None:
    write(repo, "version: 1\ntables:\n  delta.`${LAKE}/a`: {isolation: Serializable}\n")
    ran = cli("rename", "delta.`/lake/a`", "delta.`/lake/b`", "--yes", "--var", "LAKE=/lake")
    assert ran.code == 0, ran.err
    assert "  delta.`${LAKE}/b`: {isolation" in text_of(repo)


def test_the_location_of_the_entry_is_named(repo: Repository, cli: Cli) -> None:
    write(repo, "version: 1\ntables:\n  a.b:\n    location: s3://lake/b\n")
    ran = cli("rename", "a.b", "a.c", "--yes")
    assert "policies/a.yaml:4:5: `location` is still s3://lake/b: change it if the data moved" in ran.err


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("sales.orders", "shop.returns", "shop.returns is declared already, at policies/a.yaml:7"),
        ("sales.refunds", "shop.refunds", "it is matched by sales.* (policies/a.yaml:5"),
        ("lost.table", "a.b", "no policy declares lost.table"),
        ("sales.orders", "sales.orders", "both names are sales.orders"),
        ("sales.orders", "orders", "orders"),
        ("sales.orders", "sales.*", "sales.*"),
    ],
)
def test_what_is_refused_changes_nothing(repo: Repository, cli: Cli, old: str, new: str, why: str) -> None:
    write(repo)
    ran = cli("rename", old, new, "--yes")
    assert (ran.code, why in ran.err) == (64, True), ran.err
    assert text_of(repo) == POLICY


def test_a_key_that_aliases_share_is_refused(repo: Repository, cli: Cli) -> None:
    write(repo, "version: 1\ntables:\n  &key a.b: {isolation: Serializable}\n")
    ran = cli("rename", "a.b", "a.c", "--yes")
    assert (ran.code, "cannot be" in ran.err or "by hand" in ran.err) == (64, True), ran.err


def test_without_a_terminal_it_asks_for_yes(repo: Repository, cli: Cli) -> None:
    write(repo)
    assert cli("rename", "sales.orders", "shop.orders").code == 64
    assert text_of(repo) == POLICY
