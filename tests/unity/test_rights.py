"""What a login may not see, on the real server: no pattern, catalog or table is green unless it was looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Repository, Result
from tests.s3 import KEY, REGION, S3Server
from tests.unity.conftest import Server

pytestmark = pytest.mark.slow
Cli = Callable[..., Result]
ISSUERS = {"server.allowed-issuers": "https://idp.example", "server.audiences": "tablectl"}


@pytest.fixture(scope="module")
def authorized(serving: Callable[..., Any]) -> Iterator[Server]:
    with serving(**{"server.authorization": "enable", **ISSUERS}) as server:
        server.make_schema("sec", "s")
        yield server


@pytest.fixture(scope="module")
def tokens(authorized: Server) -> dict[str, str]:
    """The admin, and users with less and less."""
    found = {"admin": authorized.admin}
    for name in ("some", "no-select", "none"):
        found[name] = authorized.add_user(f"{name}@example.com")
    for name in ("some", "no-select"):
        authorized.grant(f"{name}@example.com", "catalog", "sec", "USE CATALOG")
        authorized.grant(f"{name}@example.com", "schema", "sec.s", "USE SCHEMA")
    return found


@pytest.fixture
def six(repo: Repository, authorized: Server) -> Iterator[list[str]]:
    names = [f"t{number}" for number in range(6)]
    for name in names:
        authorized.register("sec", "s", name, f"file://{repo.table(name)}")
    (repo.root / "tablectl.yaml").write_text(
        "engine: {catalog: sec}\n"
        f"catalogs: {{sec: {{type: unity, url: '{authorized.url}', credentials: environment}}}}\n"
    )
    repo.policies("version: 1\ntables:\n  sec.s.*: {isolation: Serializable}\n")
    yield names
    for name in names:
        authorized.ask("DELETE", f"/api/2.1/unity-catalog/tables/sec.s.{name}")


def counted(result: Result) -> tuple[int, int, int]:
    plan = json.loads(result.out)
    return result.code, len(plan["tables"]), len(plan["failures"])


@pytest.mark.usefixtures("six")
def test_a_token_without_rights_is_never_green(
    cli: Cli, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", tokens["admin"])
    assert counted(cli("plan", "--format", "json")) == (0, 6, 0)
    for user in ("no-select", "none"):
        monkeypatch.setenv("UNITY_CATALOG_TOKEN", tokens[user])
        for command in ("plan", "drift", "lint", "status"):
            ran = cli(command)
            assert (user, command, ran.code) == (user, command, 1)
            assert "matches no table" in ran.out
        assert cli("import", "sec.s.*").code == 1
        assert cli("plan", "--select", "sec.s.t0").code == 64
    doctor = json.loads(cli("doctor", "--format", "json", "--read-only").out)["checks"]
    assert ("fail", "it answers, 0 schemas") in [(each["health"], each["found"]) for each in doctor]


@pytest.mark.usefixtures("six")
def test_a_token_that_sees_fewer_tables_than_the_policy_counts_is_never_green(
    cli: Cli, repo: Repository, authorized: Server, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in ("t1", "t4"):
        authorized.grant("some@example.com", "table", f"sec.s.{table}", "SELECT")
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", tokens["some"])
    assert counted(cli("plan", "--format", "json")) == (0, 2, 0)
    repo.policies("version: 1\ntables:\n  sec.s.*: {isolation: Serializable, min_tables: 6}\n")
    ran = cli("drift")
    assert ran.code == 1
    assert "matches 2 tables, and `min_tables` is 6" in ran.out
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", tokens["admin"])
    assert counted(cli("plan", "--format", "json")) == (0, 6, 0)


@pytest.mark.usefixtures("six")
def test_a_right_that_a_named_table_needs_is_named(
    cli: Cli, repo: Repository, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", tokens["none"])
    repo.policies("version: 1\ntables:\n  sec.s.t0: {isolation: Serializable}\n")
    (failure,) = json.loads(cli("plan", "--format", "json").out)["failures"]
    assert "answers 403" in failure["message"]
    assert "SELECT" in failure["hint"]


def test_names_that_differ_in_case_alone_are_both_named(
    cli: Cli, repo: Repository, authorized: Server, six: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    authorized.register("sec", "s", "T0", f"file://{repo.table('upper')}")
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", authorized.admin)
    try:
        plan = json.loads(cli("plan", "--format", "json").out)
        assert sorted(each["name"] for each in plan["failures"]) == ["sec.s.T0", "sec.s.t0"]
        assert [each["name"] for each in plan["tables"]] == [f"sec.s.{name}" for name in six[1:]]
    finally:
        authorized.ask("DELETE", "/api/2.1/unity-catalog/tables/sec.s.T0")


def test_storage_is_read_with_what_the_server_vends_and_nothing_else(
    cli: Cli,
    repo: Repository,
    serving: Callable[..., Any],
    s3: S3Server,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server hands out the session of ``server.properties`` for one bucket, and has no credentials for another."""
    key, secret = "AKIAVENDED", "vended-secret-key"
    vended = {"bucketPath": bucket, "region": REGION, "accessKey": key, "secretKey": secret, "sessionToken": "vended"}
    s3.upload(repo.table("orders") / "_delta_log", bucket, "lake/orders/_delta_log")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with serving(**{f"s3.{name}.0": value for name, value in vended.items()}) as server:
        server.make_schema("sec", "s")
        server.register("sec", "s", "orders", f"{bucket}/lake/orders")
        server.register("sec", "s", "elsewhere", "s3://another-bucket/lake/elsewhere")
        (repo.root / "tablectl.yaml").write_text(
            f"engine: {{catalog: sec}}\ncatalogs:\n  sec: {{type: unity, url: '{server.url}'}}\n"
            f"stores: {{s3: {{endpoint: '{s3.url}', region: {REGION}, allow_http: true}}}}\n"
        )
        repo.policies("version: 1\ntables:\n  sec.s.*: {isolation: Serializable}\n")
        with s3.faulty(expired=(KEY,)) as faults:
            ran = cli("plan", "--format", "json")
        plan = json.loads(ran.out)
    assert [each["name"] for each in plan["tables"]] == ["sec.s.orders"]
    assert faults.seen
    (failure,) = plan["failures"]
    assert failure["name"] == "sec.s.elsewhere"
    assert "S3 bucket configuration not found" in failure["message"]
    assert "credentials: environment" in failure["message"] + failure["hint"]
    for hidden in (secret, "AWS_ACCESS_KEY_ID"):
        assert hidden not in ran.out + ran.err
    assert not list(Path(repo.root).rglob("*.json"))
