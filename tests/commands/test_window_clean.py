"""``window clean``, and what ``window show`` and ``status`` say of a copy that is not in place."""

from __future__ import annotations

import json

from tablectl.applying.copy_records import CopiedPart, copy_text, save_part
from tablectl.storage.records import RecordStore, open_records
from tests.commands.conftest import Cli, Repository, cli, fake_spark, repo

__all__ = ["cli", "fake_spark", "repo"]


def with_copy(repo: Repository) -> RecordStore:
    store = open_records(str(repo.table("orders")))
    for number in range(2):
        save_part(store, "one", CopiedPart(f"01795000000000-{number:06d}", ("a",), (), 1))
    return store


def test_a_copy_is_shown_and_given_up(repo: Repository, cli: Cli) -> None:
    store, name = with_copy(repo), repo.name("orders")
    assert "left of a copy beside it: 2 parts since 2026-11-18 11:06:40 UTC" in cli("window", "show", name).out
    cleaned = cli("window", "clean", name)
    assert (cleaned.code, cleaned.out) == (0, f"{name}: a copy of 2 parts is given up\n")
    assert "VACUUM removes its files" in cleaned.err
    assert copy_text(store) == ""
    again = cli("window", "clean", name, "--format", "json")
    assert (again.code, json.loads(again.out)) == (0, {"parts": 0})


def test_a_copy_under_way_is_not_given_up(repo: Repository, cli: Cli) -> None:
    store, name = with_copy(repo), repo.name("orders")
    leases = repo.table("orders") / "_tablectl" / "lease"
    leases.mkdir(parents=True)
    (leases / "00000000000000000001.json").write_text("")  # held, as far as can be read
    refused = cli("window", "clean", name)
    assert refused.code != 0
    assert "is held by" in refused.err
    assert copy_text(store)


def test_status_names_a_copy_of_a_table_that_needs_one(repo: Repository, cli: Cli) -> None:
    with_copy(repo)
    repo.policies({"orders": "{partitioning: [id], rewrite: {copy: beside}}"})
    assert "a copy beside it: 2 parts since" in " ".join(cli("status").out.split())


def test_status_names_no_copy_that_is_in_place(repo: Repository, cli: Cli) -> None:
    """A run was killed between the commit and the deletion of the records, and the table needs no further apply."""
    with_copy(repo)
    repo.policies({"orders": "{partitioning: none, rewrite: {copy: beside}}"})
    assert "a copy beside it" not in " ".join(cli("status").out.split())


def test_status_finds_a_copy_that_the_policy_does_not_ask_for_any_more(repo: Repository, cli: Cli) -> None:
    with_copy(repo)
    repo.policies({"orders": "{}"})
    assert "a copy beside it" not in " ".join(cli("status").out.split())
    assert "a copy beside it: 2 parts since" in " ".join(cli("status", "--debt").out.split())


def test_a_slip_in_the_value_is_named(repo: Repository, cli: Cli) -> None:
    repo.policies({"orders": "{partitioning: none, rewrite: {copy: besides}}"})
    refused = cli("validate")
    assert refused.code != 0
    assert "did you mean" in refused.err
