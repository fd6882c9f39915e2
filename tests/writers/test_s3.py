"""Guards on S3, through the real client: what they ask of it, and what they do when it does not answer."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator

import pytest

import tablectl
from tablectl.leases.guards import newest_beats
from tablectl.leases.lease_records import Gate, record_name
from tablectl.storage.records import open_records
from tablectl.writers import keepalive as keepalive_module
from tests.s3 import S3Server
from tests.writers.conftest import await_deletions, lease_of


@pytest.fixture
def orders(s3: S3Server, bucket: str) -> str:
    """A table of one commit."""
    s3.put(bucket, f"lake/orders/_delta_log/{0:020d}.json", b"{}")
    return f"{bucket}/lake/orders"


def asked(s3: S3Server, location: str) -> list[str]:
    """The methods of the requests of one guard, but not of the question whether there is a table, which runs in
    parallel. One guard before it has shown that the store refuses second puts.
    """
    with tablectl.guard(None, location):
        pass
    await_deletions()
    with s3.faulty() as faults:
        with tablectl.guard(None, location):
            pass
        await_deletions()
    return [method for method in (request.split()[0] for request in faults.seen) if method != "HEAD"]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_guard_is_put_then_the_gate_is_listed_and_the_guard_is_deleted(s3: S3Server, orders: str) -> None:
    assert asked(s3, orders) == ["PUT", "GET", "POST"]


def test_a_gate_that_this_process_has_read_is_not_requested_again(s3: S3Server, orders: str) -> None:
    lease_of(open_records(orders))
    assert asked(s3, orders) == ["PUT", "GET", "POST"]


def test_a_gate_that_has_changed_is_requested(s3: S3Server, orders: str) -> None:
    lease = lease_of(open_records(orders))
    asked(s3, orders)
    lease.gate(Gate.APPENDS_ONLY)
    with s3.faulty() as faults, tablectl.guard(None, orders, "append"):
        pass
    await_deletions()
    assert [request.split()[0] for request in faults.seen if "HEAD" not in request][:3] == ["PUT", "GET", "GET"]


def test_a_gate_under_the_name_of_another_is_not_taken_for_it(orders: str) -> None:
    """As after the records were deleted and an apply began again at number 1."""
    records = open_records(orders)
    lease_of(records)
    with tablectl.guard(None, orders, "append"):
        pass
    opened = json.loads(records.read(record_name(1)) or b"")
    records.delete(record_name(1))
    records.create(record_name(1), json.dumps({**opened, "gate": "closed"}).encode())
    with pytest.raises(tablectl.GuardTimeout), tablectl.guard(None, orders, "append", timeout=0):
        pytest.fail("it went through")


def test_it_is_there_while_the_write_runs_and_waits_at_the_gate(orders: str) -> None:
    records = open_records(orders)
    lease_of(records).gate(Gate.APPENDS_ONLY)
    with tablectl.guard(None, orders.replace("s3://", "s3a://"), "append"):
        assert len(newest_beats(records)) == 1
    with pytest.raises(tablectl.GuardTimeout), tablectl.guard(None, orders, "rewrite", timeout=0):
        pytest.fail("it went through")
    await_deletions()
    assert newest_beats(records) == {}


def test_where_there_is_no_table_yet_nothing_stays(s3: S3Server, bucket: str, caplog: pytest.LogCaptureFixture) -> None:
    with tablectl.guard(None, f"{bucket}/lake/new"):
        assert s3.client.list_objects_v2(Bucket=bucket.removeprefix("s3://"))["KeyCount"] == 0
    assert "there is no Delta table" in warnings(caplog)[0]


def test_the_records_may_lie_in_another_bucket(s3: S3Server, orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = s3.make_bucket("state-of-guards")
    monkeypatch.setenv("TABLECTL_STATE", state)
    lease_of(open_records(orders, state, orders)).gate(Gate.CLOSED)
    with pytest.raises(tablectl.GuardTimeout), tablectl.guard(None, orders, "append", timeout=0):
        pytest.fail("it went through")


def test_a_writer_that_may_not_write_records_writes_on(
    s3: S3Server, orders: str, caplog: pytest.LogCaptureFixture
) -> None:
    with s3.faulty(denied=("_tablectl",)):
        with tablectl.guard(None, orders):
            pass
        await_deletions()
    (warning,) = warnings(caplog)
    assert "goes on without a look at the gate" in warning


@pytest.mark.parametrize(
    ("refused", "right"),
    [
        ("put _tablectl/guards", "s3:PutObject on {orders}/_tablectl/guards/*"),
        ("list _tablectl/lease", "s3:ListBucket on {bucket} (s3:prefix lake/orders/_tablectl/lease/*)"),
        ("get _tablectl/lease", "s3:GetObject on {orders}/_tablectl/lease/*"),
        ("delete _tablectl/guards", "s3:DeleteObject on {orders}/_tablectl/guards/*"),
    ],
)
def test_a_writer_that_lacks_a_right_logs_one_line_that_names_it(
    s3: S3Server, orders: str, bucket: str, caplog: pytest.LogCaptureFixture, refused: str, right: str
) -> None:
    lease_of(open_records(orders))
    with s3.faulty(refused=(refused,)):
        with tablectl.guard(None, orders):
            pass
        await_deletions()
    (warning,) = warnings(caplog)
    assert warning.endswith(f" records is missing: {right.format(orders=orders, bucket=bucket)}")
    assert "\n" not in warning


def test_a_waiting_writer_that_may_not_delete_says_so_in_one_line(
    s3: S3Server, orders: str, caplog: pytest.LogCaptureFixture
) -> None:
    lease_of(open_records(orders)).gate(Gate.CLOSED)
    waits = tablectl.guard(None, orders, timeout=0.2)
    with s3.faulty(refused=("delete _tablectl/guards",)), pytest.raises(tablectl.GuardTimeout), waits:
        pytest.fail("it went through")
    assert "s3:DeleteObject" in warnings(caplog)[0]
    assert all("s3:DeleteObject" in each and "\n" not in each for each in warnings(caplog))
    assert len(warnings(caplog)) == 1


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_store_that_never_answers_delays_a_write_in_bounds(
    orders: str, silent: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", silent)
    monkeypatch.setattr(keepalive_module, "ANSWER", 0.5)
    monkeypatch.setattr(keepalive_module, "SHORT_ANSWER", 0.1)
    with tablectl.guard(None, orders):
        pass
    await_deletions()
    (warning,) = warnings(caplog)
    assert "did not answer within 0.5 s" in warning
