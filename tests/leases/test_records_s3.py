"""Lease records on S3, through the real client: moto's server speaks S3, and misbehaves where a test asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tablectl.applying.first_checks import check_rights
from tablectl.leases.acquire import Held, break_lease
from tablectl.leases.clock import SystemClock
from tablectl.leases.lease import Lease, LeaseLost
from tablectl.leases.lease_records import Gate, tail
from tablectl.model.errors import WindowError
from tablectl.storage.failures import MissingRightError
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.records import RecordStore, open_records
from tests.leases.lease_fakes import FakeClock, acquire, claim, try_acquire
from tests.s3 import S3Server

_ROUNDS = 40
_RACER = """
import sys, time
from tablectl.storage.records import open_records
records = open_records(sys.argv[1])
print("ready", flush=True)
start = float(sys.stdin.readline())
won = []
for number in range(int(sys.argv[3])):
    time.sleep(max(0.0, start + number * 0.05 - time.monotonic()))
    if records.create(f"lease/{number:020d}.json", sys.argv[2].encode() * 500):
        won.append(number)
print(*won)
"""


@pytest.fixture
def records(bucket: str) -> RecordStore:
    return open_records(f"{bucket}/lake/orders")


def test_records_are_kept_as_on_a_disk(records: RecordStore, s3: S3Server, bucket: str) -> None:
    assert records.create("lease/2.json", b"two")
    assert not records.create("lease/2.json", b"other")
    assert records.create("lease/1.json", b"one")
    assert records.create("guards/a.1.json", b"")
    assert records.names("lease/") == ("lease/1.json", "lease/2.json")
    assert records.read("lease/2.json") == b"two"
    assert records.read("lease/3.json") is None
    records.delete("lease/1.json")
    records.delete("lease/1.json")
    assert records.names("") == ("guards/a.1.json", "lease/2.json")
    kept = s3.client.list_objects_v2(Bucket=bucket.removeprefix("s3://"))["Contents"]
    assert [each["Key"] for each in kept] == [
        "lake/orders/_tablectl/guards/a.1.json",
        "lake/orders/_tablectl/lease/2.json",
    ]


@pytest.mark.parametrize("location", ["a b/x%20y", "größe 表", "it's #1?", "x=1&y", "t/"])
def test_any_path_is_taken_as_it_is(bucket: str, location: str) -> None:
    records = open_records(f"{bucket}/{location}")
    assert records.create("lease/1.json", b"one")
    assert open_records(f"s3a{bucket[2:]}/{location}").names("lease/") == ("lease/1.json",)
    assert open_records(f"{bucket}/{location.rstrip('/')}x").names("lease/") == ()


def test_of_processes_that_race_for_a_record_exactly_one_wins(s3: S3Server, bucket: str) -> None:
    """All ask for the same name at the same moment, again and again; whoever succeeded has its own bytes there."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER, f"{bucket}/t", me, str(_ROUNDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for me in "abcdef"
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    start = time.monotonic() + 0.3
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(f"{start}\n")
        racer.stdin.flush()
    won = {me: racer.communicate(timeout=600)[0].split() for me, racer in zip("abcdef", racers, strict=True)}
    assert Counter(number for numbers in won.values() for number in numbers) == Counter(map(str, range(_ROUNDS)))
    records = open_records(f"{bucket}/t")
    for me, numbers in won.items():
        assert all(records.read(f"lease/{int(number):020d}.json") == me.encode() * 500 for number in numbers)


def take(records: RecordStore, who: str, ttl: float = 60) -> Lease:
    got = try_acquire(records, claim(who, ttl), SystemClock())
    assert isinstance(got, Lease)
    return got


def test_the_life_of_a_lease(records: RecordStore) -> None:
    ann = take(records, "ann")
    ann.renew()
    ann.gate(Gate.CLOSED)
    held = try_acquire(records, claim("ben"), SystemClock())
    assert isinstance(held, Held)
    assert held.record == ann.record
    ann.prove(5)
    break_lease(records, ann.record.epoch, "Ann is on holiday", claim("ben").owner, SystemClock())
    with pytest.raises(LeaseLost):
        ann.renew()
    ben = take(records, "ben")
    assert ben.record.epoch == 2
    assert ben.release()
    last = tail(records)
    assert last is not None
    assert (last.kind, last.seq) == ("release", 6)


def test_a_dead_holder_is_waited_out(records: RecordStore) -> None:
    take(records, "ann", ttl=60)  # and never renews
    clock = FakeClock()
    got = acquire(records, claim("ben"), clock)
    assert isinstance(got, Lease)
    assert got.record.epoch == 2
    assert clock.now >= 1000 + 60 * 1.25


def test_a_put_whose_answer_is_lost_is_known_as_our_own(records: RecordStore, s3: S3Server) -> None:
    with s3.faulty(lost_puts=1) as faults:
        ann = take(records, "ann")
    assert sum(each.startswith("PUT") for each in faults.seen) > 1  # the client has tried again
    ann.prove(5)
    with s3.faulty(lost_puts=1):
        ann.renew()
    assert ann.release()


def test_a_store_that_writes_over_records_is_refused(s3: S3Server, bucket: str) -> None:
    records = open_records(f"{bucket}/t")
    with s3.faulty(ignores_conditions=True):
        with pytest.raises(WindowError, match="writes over what is there") as caught:
            try_acquire(records, claim("ann"), SystemClock())
        assert "set `state:`" in caught.value.hint
        with pytest.raises(WindowError, match="writes over what is there"):
            records.create("lease/2.json", b"")


def test_that_a_store_keeps_records_is_looked_at_once(s3: S3Server, bucket: str) -> None:
    with s3.faulty() as faults:
        for table in ("one", "two"):
            for number in range(3):
                assert open_records(f"{bucket}/{table}").create(f"lease/{number}.json", b"")
    assert len(faults.seen) == 7


def test_each_thing_that_is_wrong_has_its_message(s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def error(location: str, options: StoreOptions | None = None) -> WindowError:
        with pytest.raises(WindowError) as caught:
            try_acquire(open_records(location, options=options or StoreOptions()), claim("ann"), SystemClock())
        return caught.value

    missing = error("s3://no-such-bucket/t")
    assert missing.message == (
        "cannot list the window's record s3://no-such-bucket/t/_tablectl/lease: the bucket does not exist"
    )
    with s3.faulty(refused=("list _tablectl/lease",)):
        denied = error(f"{bucket}/t")
    assert denied.message.startswith("the right to list records is missing: s3:ListBucket on s3://")
    assert "set `state:`" in denied.hint
    away = error(f"{bucket}/t", StoreOptions(families={"s3": {"endpoint": "http://127.0.0.1:9"}}))
    assert "http://127.0.0.1:9 cannot be reached" in away.message
    monkeypatch.setenv("AWS_ALLOW_HTTP", "perhaps")
    assert "cannot open the window's record" in error(f"{bucket}/t").message
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9/169.254.169.254")
    assert "no credentials were found" in error(f"{bucket}/t").message


def test_options_reach_the_records_as_they_reach_the_log(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    options = StoreOptions(families={"s3": {"endpoint": s3.url, "allow_http": "true"}})
    assert open_records(f"{bucket}/t", options=options).create("lease/1.json", b"one")
    assert open_records("/lake/t", bucket, "key", options).create("lease/1.json", b"one")
    assert open_records(bucket, options=options).names("") == ()
    assert "AWS_ENDPOINT_URL" not in os.environ


@pytest.mark.parametrize(
    ("refused", "named"),
    [
        ("put _tablectl/lease", "s3:PutObject on {bucket}/lake/orders/_tablectl/lease/*"),
        ("list _tablectl/lease", "s3:ListBucket on {bucket} (s3:prefix lake/orders/_tablectl/lease/*)"),
        ("get _tablectl/lease", "s3:GetObject on {bucket}/lake/orders/_tablectl/lease/*"),
        ("delete _tablectl/lease", "s3:DeleteObject on {bucket}/lake/orders/_tablectl/lease/*"),
        ("list _tablectl/guards", "s3:ListBucket on {bucket} (s3:prefix lake/orders/_tablectl/guards/*)"),
        ("get _tablectl/guards", "s3:GetObject on {bucket}/lake/orders/_tablectl/guards/*"),
        ("delete _tablectl/guards", "s3:DeleteObject on {bucket}/lake/orders/_tablectl/guards/*"),
    ],
)
def test_each_right_that_an_apply_lacks_is_named(
    s3: S3Server, bucket: str, records: RecordStore, refused: str, named: str
) -> None:
    def begin() -> None:
        assert isinstance(try_acquire(records, claim("ann"), SystemClock()), Lease)
        check_rights(records)

    with s3.faulty(refused=(refused,)), pytest.raises(MissingRightError) as missing:
        begin()
    assert missing.value.message.endswith(f" records is missing: {named.format(bucket=bucket)}")
    assert "AccessDenied" not in str(missing.value)
    assert "\n" not in missing.value.message
    right = named.split(maxsplit=1)[0]
    assert missing.value.hint.startswith(f"give whoever runs this {right} on {bucket}")


def test_who_has_the_rights_is_checked_by_four_requests_that_change_nothing(s3: S3Server, records: RecordStore) -> None:
    lease = try_acquire(records, claim("ann"), SystemClock())
    assert isinstance(lease, Lease)
    before = records.names("")
    with s3.faulty() as faults:
        check_rights(lease.store)
    assert len(faults.seen) == 4
    assert records.names("") == before


def test_other_failures_of_a_store_are_not_a_missing_right(s3: S3Server) -> None:
    check_rights(open_records("s3://no-such-bucket/t"))
