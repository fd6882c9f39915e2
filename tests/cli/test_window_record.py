"""What ``window show`` says of a lease record that makes no sense."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli, Repository, cli, repo

__all__ = ["cli", "repo"]


@pytest.mark.parametrize("content", ["", "[" * 100_000, '{"format": 1, "since": "0001-01-01T00:00:00+14:00"}'])
def test_a_record_that_cannot_be_read_is_said_to_be_so(repo: Repository, cli: Cli, content: str) -> None:
    leases = repo.table("orders") / "_tablectl" / "lease"
    leases.mkdir(parents=True)
    (leases / "00000000000000000001.json").write_text(content)
    ran = cli("window", "show", repo.name("orders"))
    assert ran.code == 0
    assert "its last record cannot be read" in ran.err
    assert "tablectl window break" in ran.err
