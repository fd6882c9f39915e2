"""Tables on an object store: moto's server speaks S3, and misbehaves where a test asks for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest

from tablectl.delta.names import TableName
from tablectl.log.reader import ReadRequest, newest_version, read_commits, read_many
from tablectl.model.errors import LiveError
from tablectl.model.table import Depth, LiveTable
from tablectl.storage.object_stores import StoreOptions
from tests.builders import read_path
from tests.s3 import KEY, RequestGroup, S3Server

deltalake = pytest.importorskip("deltalake")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 15 commits with a checkpoint at its tenth and no checksums, by the deltalake package."""
    path = tmp_path_factory.mktemp("table")
    for number in range(10):
        deltalake.write_deltalake(str(path), pa.table({"a": [number], "p": ["x y"]}), mode="append", partition_by=["p"])
    deltalake.DeltaTable(str(path)).create_checkpoint()
    for number in range(5):
        deltalake.write_deltalake(str(path), pa.table({"a": [number], "p": ["ü%"]}), mode="append")
    return path


def read(location: str, **choices: Any) -> LiveTable:
    return read_path(location, **choices)


def error(location: str, **choices: Any) -> LiveError:
    with pytest.raises(LiveError) as caught:
        read(location, **choices)
    return caught.value


def facts(table: LiveTable) -> tuple[Any, ...]:
    return table.version, table.table_id, table.protocol, table.schema, table.partition_columns, table.history


@pytest.mark.parametrize("prefix", ["t", "a b/ü/%20/it's", "deep/er/and/deeper"])
def test_a_table_reads_as_on_the_disk_that_it_came_from(s3: S3Server, bucket: str, table: Path, prefix: str) -> None:
    s3.upload(table / "_delta_log", bucket, f"{prefix}/_delta_log")
    for scheme in ("s3", "s3a"):
        location = f"{scheme}{bucket[2:]}/{prefix}"
        assert facts(read(location)) == facts(read(str(table)))
        assert read(location, counts=True).files == read(str(table), counts=True).files == 15
        assert newest_version(location) == 14
        assert [commit.version for commit in read_commits(location, limit=3)] == [14, 13, 12]
        assert read(location, version=7).version == 7


def request(location: str) -> ReadRequest:
    return ReadRequest(TableName("", (location,)), location, lambda _table: Depth(look_back=20))


def test_tables_of_one_bucket_in_parallel_and_their_errors(s3: S3Server, bucket: str, table: Path) -> None:
    for name in ("one", "two", "one/nested", "one-more"):
        s3.upload(table / "_delta_log", bucket, f"{name}/_delta_log")
    locations = [f"{bucket}/{name}" for name in ("one", "two", "none", "one/nested", "one-more")]
    results = list(read_many(map(request, locations)))
    assert [getattr(result, "version", None) for result in results] == [14, 14, None, 14, 14]
    assert "not a Delta table" in str(results[2])


def test_a_table_of_many_commits_is_listed_in_pages(s3: S3Server, bucket: str) -> None:
    schema = '{"type":"struct","fields":[]}'
    first = {"metaData": {"id": "x", "schemaString": schema, "partitionColumns": [], "configuration": {}}}
    for version in range(1200):
        actions: list[dict[str, Any]] = [{"commitInfo": {"operation": "WRITE"}}]
        if version == 0:
            actions += [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, first]
        body = "\n".join(json.dumps(action) for action in actions)
        s3.put(bucket, f"t/_delta_log/{version:020d}.json", body.encode())
    table = read(f"{bucket}/t")
    assert (table.version, table.table_id, len(table.history)) == (1199, "x", 20)


def test_commits_are_requested_before_the_first_is_answered(s3: S3Server, bucket: str, table: Path) -> None:
    s3.upload(table / "_delta_log", bucket, "t/_delta_log")
    with s3.faulty(group=RequestGroup("GET", ".json", size=15)) as faults:
        assert len(read(f"{bucket}/t").history) == 15
    assert len(faults.seen) >= 17


def test_each_thing_that_is_wrong_has_its_message(
    s3: S3Server, bucket: str, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.upload(table / "_delta_log", bucket, "t/_delta_log")
    missing = error("s3://no-such-bucket/t")
    assert missing.message == "s3://no-such-bucket/t/_delta_log: cannot be read: the bucket does not exist"
    assert "check the location" in missing.hint
    with s3.faulty(denied=("t/_delta_log",)):
        denied = error(f"{bucket}/t")
    assert "permission denied (AccessDenied: Access Denied)" in denied.message
    assert "list and to get" in denied.hint
    with s3.faulty(denied=(f"{14:020d}.json",)):
        assert f"{14:020d}.json: cannot be read: permission denied" in error(f"{bucket}/t").message
    plain = error(f"{bucket}/t", options=StoreOptions(families={"s3": {"allow_http": "false"}}))
    assert "plain HTTP" in plain.message
    assert "stores.s3.allow_http: true" in plain.hint
    monkeypatch.setenv("AWS_ALLOW_HTTP", "perhaps")
    assert 'failed to parse "perhaps" as boolean' in error(f"{bucket}/t").message


def test_without_credentials_the_way_to_them_is_reported(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert "Missing AccessKeyId" in error(f"{bucket}/t").message
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9/169.254.169.254")  # as on no machine of AWS
    unknown = error(f"{bucket}/t")
    assert "no credentials were found" in unknown.message
    assert "AWS_ACCESS_KEY_ID" in unknown.hint
    assert "docs/object-stores.md" in unknown.hint


def test_a_store_that_does_not_answer_is_waited_for_once(
    s3: S3Server, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    locations = [f"s3://lake/t{number}" for number in range(200)] + [str(table)]
    asked: list[object] = []
    listed = obstore.list

    def counted(*args: Any, **options: Any) -> Any:
        asked.append(args)
        return listed(*args, **options)

    monkeypatch.setattr(obstore, "list", counted)
    results = list(read_many(map(request, locations), options=StoreOptions(concurrency=3)))
    assert 1 <= len(asked) <= 3, "each thread waits for the store once"
    assert isinstance(results[-1], LiveTable)
    for location, result in zip(locations[:-1], results[:-1], strict=True):
        assert isinstance(result, LiveError)
        assert result.message.startswith(f"{location}/_delta_log")
        assert "http://127.0.0.1:9 cannot be reached" in result.message
        assert "check the network" in result.hint


def test_options_of_the_file_go_before_the_environment_and_leave_the_rest_of_it(
    s3: S3Server, bucket: str, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.upload(table / "_delta_log", bucket, "t/_delta_log")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    options = StoreOptions(families={"s3": {"endpoint": s3.url, "timeout": "20s"}})  # allow_http is in the environment
    assert read(f"{bucket}/t", options=options).version == 14
    assert "cannot be reached" in error(f"{bucket}/t", options=StoreOptions(families={"s3": {"timeout": "5s"}})).message


def test_profiles_are_read_by_boto3(s3: S3Server, bucket: str, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.upload(table / "_delta_log", bucket, "t/_delta_log")
    home = Path.home()
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    (home / ".aws").mkdir()
    (home / ".aws" / "credentials").write_text(
        f"[work]\naws_access_key_id = {KEY}\naws_secret_access_key = {KEY}\n", encoding="utf-8"
    )
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert read(f"{bucket}/t").version == 14
    monkeypatch.setenv("AWS_PROFILE", "holiday")
    wrong = error(f"{bucket}/t")
    assert "'holiday'" in wrong.message
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9/169.254.169.254")
    assert "no credentials were found" in error(f"{bucket}/t").message  # there is no default profile
