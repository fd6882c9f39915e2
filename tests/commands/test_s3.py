"""The whole cycle on a table in S3, reached by nothing but what tablectl.yaml says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tablectl.delta.names import TableName
from tablectl.engine import spark
from tablectl.leases.acquire import Claim
from tablectl.leases.clock import SystemClock
from tablectl.leases.lease import Lease
from tablectl.leases.owner import Owner
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.records import open_records
from tests.commands.conftest import Cli, Repository
from tests.commands.log_lake import LogEngine, Logged
from tests.leases.lease_fakes import try_acquire
from tests.s3 import S3Server

NAME = "sales.orders"


@dataclass
class Mirror:
    """A table whose log lies in a folder for the engine to write, and in S3 foreverybody to read."""

    server: S3Server
    folder: Path
    bucket: str

    @property
    def location(self) -> str:
        return f"{self.bucket}/lake/orders"

    def upload(self) -> None:
        self.server.upload(self.folder / "_delta_log", self.bucket, "lake/orders/_delta_log")

    def __call__(self, options: Any, stamp: str = "") -> LogEngine:
        mirror = self

        class Engine(LogEngine):
            def location(self, table: TableName) -> str:
                return mirror.location

        catalog: dict[tuple[str, ...], Path] = {("spark_catalog", "sales", "orders"): self.folder}
        return Engine(stamp, options.dialect, catalog, lambda _sql: self.upload())


@pytest.fixture
def orders(repo: Repository, s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    mirror = Mirror(s3, repo.table("orders", properties={"debug": "on"}), bucket)
    mirror.upload()
    monkeypatch.setattr(spark, "open_spark", mirror)
    for variable in ("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP", "AWS_REGION"):
        monkeypatch.delenv(variable)
    (repo.root / "tablectl.yaml").write_text(
        f"stores: {{s3: {{endpoint: '{s3.url}', region: eu-west-1, allow_http: true}}}}\n"
    )
    policy = f"{{location: {mirror.location}, isolation: Serializable, properties: {{debug: null}}}}"
    repo.policies(f"version: 1\ntables:\n  {NAME}: {policy}\n")
    return mirror


def test_plan_apply_plan(cli: Cli, orders: Mirror) -> None:
    planned = cli("plan", "--out", "p.json", "--detailed-exitcode")
    assert planned.code == 2, planned
    assert json.loads(Path("p.json").read_text())["tables"][0]["location"] == orders.location
    applied = cli("apply", "p.json")
    assert applied.code == 0, applied
    assert Logged(orders.folder).properties == {"delta.isolationLevel": "Serializable"}
    again = cli("plan", "--detailed-exitcode")
    assert (again.code, again.out) == (0, "No changes. 1 table matches its policy.\n")
    shown = cli("window", "show", f"delta.`{orders.location}`")
    assert "free; last held (epoch 1) by" in shown.out
    kept = orders.server.client.list_objects_v2(Bucket=orders.bucket.removeprefix("s3://"), Prefix="lake/orders/_tab")
    assert kept["KeyCount"] >= 2
    assert all(each["Key"].startswith("lake/orders/_tablectl/lease/") for each in kept["Contents"])


def test_a_lease_in_s3_is_seen_and_broken(cli: Cli, orders: Mirror) -> None:
    options = StoreOptions(families={"s3": {"endpoint": orders.server.url, "allow_http": "true"}})
    owner = Owner(who="ben", host="laptop", pid=7, ci="", tool="0.1.0")
    records = open_records(orders.location, options=options)
    assert isinstance(try_acquire(records, Claim(owner, "run-of-ben", "d", 10), SystemClock()), Lease)
    name = f"delta.`{orders.location}`"
    assert "held by ben on laptop" in cli("window", "show", name).out
    assert cli("window", "break", name, "--epoch", 1, "--reason", "the job was cancelled").code == 0
    assert cli("apply", "--yes").code == 0


def test_a_state_in_s3_holds_the_leases(cli: Cli, orders: Mirror) -> None:
    config = Path("tablectl.yaml")
    config.write_text(f"state: {orders.bucket}/state\n{config.read_text()}")
    assert cli("apply", "--yes").code == 0
    listed = orders.server.client.list_objects_v2(Bucket=orders.bucket.removeprefix("s3://"))["Contents"]
    records = [each["Key"] for each in listed if "lease" in each["Key"]]
    assert records
    assert all(key.startswith("state/") for key in records)


def test_a_table_of_another_bucket_is_a_failure_of_its_own(cli: Cli, repo: Repository, orders: Mirror) -> None:
    policies = (repo.root / "policies" / "lake.yaml").read_text()
    (repo.root / "policies" / "lake.yaml").write_text(
        policies + "  delta.`s3://no-such-bucket/t`: {isolation: Serializable}\n"
    )
    result = cli("plan")
    assert result.code == 1
    assert "1 table to change" in result.out
    assert "the bucket does not exist" in result.flat


def test_wrong_options_are_problems_of_the_file(cli: Cli, orders: Mirror) -> None:
    Path("tablectl.yaml").write_text("stores: {s3: {secret_access_key: hunter2}}\n")
    result = cli("plan")
    assert result.code == 1
    assert "AWS_SECRET_ACCESS_KEY" in result.err
    assert "hunter2" not in result.err + result.out


@pytest.mark.parametrize(
    ("refused", "right"),
    [
        ("put _tablectl/lease", "s3:PutObject on {location}/_tablectl/lease/*"),
        ("delete _tablectl/lease", "s3:DeleteObject on {location}/_tablectl/lease/*"),
        ("list _tablectl/guards", "s3:ListBucket on {bucket} (s3:prefix lake/orders/_tablectl/guards/*)"),
        ("delete _tablectl/guards", "s3:DeleteObject on {location}/_tablectl/guards/*"),
    ],
)
def test_an_apply_that_lacks_a_right_shuts_no_gate_and_names_the_right(
    cli: Cli, orders: Mirror, refused: str, right: str
) -> None:
    with Path("tablectl.yaml").open("a") as file:
        file.write("window: {before: [touch hooked]}\n")
    before = Logged(orders.folder).properties
    with orders.server.faulty(refused=(refused,)) as faults:
        ran = cli("apply", "--yes", "--format", "json")
    (table,) = json.loads(ran.out)["tables"]
    assert (ran.code, table["outcome"], table["commits"]) == (1, "failed", [])
    assert right.format(location=orders.location, bucket=orders.bucket) in table["message"]
    assert "AccessDenied" not in ran.out + ran.err
    assert "docs/guards.md" in table["hint"]
    assert Logged(orders.folder).properties == before
    assert not Path("hooked").exists()
    records = open_records(orders.location, options=StoreOptions({"s3": s3_options(orders)}))
    kept = [json.loads(records.read(name) or b"") for name in records.names("lease/")]
    assert {each["gate"] for each in kept} <= {"open"}
    assert [each["kind"] for each in kept[-1:]] in ([], ["release"])
    assert len(faults.seen) < 60
    assert cli("apply", "--yes").code == 0, "with the right it goes on at once"


def s3_options(orders: Mirror) -> dict[str, str]:
    return {"endpoint": orders.server.url, "region": "eu-west-1", "allow_http": "true"}
