"""The log of a table in S3, read with nothing but the credentials that its catalog vends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablectl.catalogs.registry import Catalogs, SparkCatalog
from tablectl.catalogs.unity import UnityCatalog
from tablectl.delta.names import parse_table
from tablectl.log.reader import newest_version, read_table
from tablectl.model.errors import LiveError
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tests.catalogs.unity_server import API, UnityServer, send
from tests.commands.log_lake import create
from tests.s3 import S3Server

ORDERS = parse_table("lake.sales.orders")


def no_spark() -> Any:
    pytest.fail("Spark was started")


@pytest.fixture
def vended(
    server: UnityServer,
    unity: Callable[..., UnityCatalog],
    s3: S3Server,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> StoreOptions:
    """Options for a table in a bucket, in an environment without credentials of its own."""
    s3.upload(create(tmp_path / "orders"), bucket, "orders")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    server.add_external("sales.orders", f"{bucket}/orders")
    catalogs = Catalogs({"lake": unity()}, SparkCatalog(no_spark))
    catalogs.location(ORDERS)
    return StoreOptions(access=catalogs)


def vends(server: UnityServer, seconds: float) -> list[str]:
    """The server vends keys that live so long. Returns the operations that it was asked for."""
    asked: list[str] = []

    def key(_name: str, operation: str) -> dict[str, Any]:
        asked.append(operation)
        config = {
            "s3.access-key-id": f"AKIA{len(asked)}",
            "s3.secret-access-key": "s3cret-key",
            "s3.session-token": "t0ken",
        }
        return {"config": config, "expiration-time-ms": round((time.time() + seconds) * 1000)}

    server.vended = key
    return asked


def location(server: UnityServer) -> str:
    where: str = server.tables["sales.orders"]["storage_location"]
    return where


def test_a_table_is_read_with_vended_credentials_alone(server: UnityServer, vended: StoreOptions) -> None:
    asked = vends(server, 3600)
    assert read_table(ORDERS, location(server), options=vended).version == 1
    assert newest_version(location(server), options=vended) == 1
    assert asked == ["READ"]


def test_credentials_that_expire_during_a_run_are_renewed(server: UnityServer, vended: StoreOptions) -> None:
    asked = vends(server, 60)  # less than the time before which they are renewed
    for _ in range(3):
        assert read_table(ORDERS, location(server), options=vended).version == 1
    assert len(asked) >= 3
    assert set(asked) == {"READ"}


def test_a_key_that_expired_during_a_run_is_not_used_again(
    server: UnityServer, vended: StoreOptions, s3: S3Server
) -> None:
    asked = vends(server, 60)
    with Stores(vended) as run:
        log = run.open(location(server))
        before = log.names()
        with s3.faulty(expired=tuple(f"AKIA{number + 1}" for number in range(len(asked)))) as faults:
            assert log.names() == before
            assert faults.seen
        with s3.faulty(expired=tuple(f"AKIA{number + 1}" for number in range(99))), pytest.raises(LiveError):
            log.names()


def test_a_refused_credential_is_the_error_of_the_table(server: UnityServer, vended: StoreOptions) -> None:
    asked = vends(server, -60)
    with pytest.raises(LiveError, match="expired already"):
        read_table(ORDERS, location(server), options=vended)
    assert asked


def test_what_a_catalog_does_not_vend_no_variable_of_the_environment_replaces(
    server: UnityServer, vended: StoreOptions
) -> None:
    path = f"{API}/delta/v1/catalogs/lake/schemas/sales/tables/orders/credentials"
    answer = {"error_code": "FAILED_PRECONDITION", "message": "S3 bucket configuration not found."}
    server.override[path] = lambda handler: send(handler, 400, answer)
    with pytest.raises(LiveError, match="S3 bucket configuration not found") as caught:
        read_table(ORDERS, location(server), options=vended)
    assert "credentials: environment" in caught.value.message
    assert "AWS_ACCESS_KEY_ID" not in caught.value.message + caught.value.hint
