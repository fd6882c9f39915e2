"""What ``window show`` says of a lease record that makes no sense."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tablectl.leases.guards import delete_dead_guard, newest_beats, read_guard
from tablectl.model.errors import WindowError
from tablectl.storage.records import open_records
from tests.commands.conftest import Cli, FakeSpark, Repository, cli, fake_spark, repo

__all__ = ["cli", "fake_spark", "repo"]


@pytest.mark.parametrize("content", ["", "[" * 100_000, '{"format": 1, "since": "0001-01-01T00:00:00+14:00"}'])
def test_a_record_that_cannot_be_read_is_said_to_be_so(repo: Repository, cli: Cli, content: str) -> None:
    leases = repo.table("orders") / "_tablectl" / "lease"
    leases.mkdir(parents=True)
    (leases / "00000000000000000001.json").write_text(content)
    ran = cli("window", "show", repo.name("orders"))
    assert ran.code == 0
    assert "its last record cannot be read" in ran.err
    assert "tablectl window break" in ran.err


@pytest.mark.parametrize("command", [("show",), ("break", "--epoch", "1", "--reason", "x"), ("clean",)])
def test_a_record_with_an_impossible_number_is_named_with_what_to_do(
    repo: Repository, cli: Cli, command: tuple[str, ...]
) -> None:
    leases = repo.table("orders") / "_tablectl" / "lease"
    leases.mkdir(parents=True)
    (leases / "01000000000000000000.json").write_text("x")
    ran = cli("window", command[0], repo.name("orders"), *command[1:])
    assert ran.code == 4
    assert "lease/01000000000000000000.json is not a record of tablectl: no log has so many" in ran.err
    assert "remove it" in ran.err


def directory(record: Path) -> None:
    record.mkdir()


def full_directory(record: Path) -> None:
    (record / "deep").mkdir(parents=True)


def pipe(record: Path) -> None:
    os.mkfifo(record)


def link_to_zeros(record: Path) -> None:
    record.symlink_to("/dev/zero")


def link_to_nothing(record: Path) -> None:
    record.symlink_to("gone")


def link_to_a_directory(record: Path) -> None:
    record.symlink_to("/tmp")


def end_of_a_socket(record: Path) -> None:
    here = Path.cwd()
    os.chdir(record.parent)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(record.name)
    os.chdir(here)


KINDS = [directory, full_directory, pipe, link_to_zeros, link_to_nothing, link_to_a_directory, end_of_a_socket]


@pytest.mark.parametrize("make", KINDS)
def test_something_in_place_of_a_record_that_is_not_a_file_is_refused_until_it_is_removed(
    repo: Repository, cli: Cli, fake_spark: FakeSpark, make: Callable[[Path], None]
) -> None:
    table = repo.table("orders", properties={"owner.team": "web"})
    record = table / "_tablectl" / "lease" / "00000000000000000001.json"
    record.parent.mkdir(parents=True)
    make(record)
    repo.policies({"orders": "{properties: {owner.team: pay}}"})
    window = ("window", "break", repo.name("orders"), "--epoch", "1", "--reason", "damaged")
    for ran in (cli("window", "show", repo.name("orders")), cli(*window), cli("apply", "--yes")):
        assert ran.code != 0
        said = " ".join(f"{ran.out} {ran.err}".split())
        assert f"{record}: it is " in said
        assert "remove it" in said
    assert os.path.lexists(record)
    assert fake_spark.sent == []
    shutil.rmtree(record) if record.is_dir() and not record.is_symlink() else record.unlink()
    assert cli("apply", "--yes").code == 0


@pytest.mark.parametrize("make", KINDS)
def test_something_in_place_of_a_guard_that_is_not_a_file_is_refused_and_stays(
    repo: Repository, make: Callable[[Path], None]
) -> None:
    guards = repo.table("orders") / "_tablectl" / "guards"
    guards.mkdir(parents=True)
    guard = guards / f"{'a' * 32}.3.json"
    make(guard)
    store = open_records(str(guards.parent.parent))
    for act in (
        lambda: newest_beats(store),
        lambda: read_guard(store, "a" * 32, 3),
        lambda: store.delete(f"guards/{guard.name}"),
    ):
        with pytest.raises(WindowError, match=r"it is (a link to|not a file)"):
            act()
    delete_dead_guard(store, "a" * 32, 3)
    assert os.path.lexists(guard)
