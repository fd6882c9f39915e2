from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.delta.protocol import Client, Protocol
from tablectl.log.parse_action import FileAction, parse_clustering
from tablectl.log.parse_commit import CommitSyntaxError, ParsedCommit, parse_client, parse_commit
from tablectl.model.commit import AppTransaction

METADATA = {"id": "x", "schemaString": '{"type":"struct","fields":[]}', "partitionColumns": [], "configuration": {}}
ADD = {"add": {"path": "a%20b", "size": 3, "dataChange": True}}


def parse(*actions: dict[str, Any] | str, version: int = 1, with_files: bool = False) -> ParsedCommit:
    lines = [each if isinstance(each, str) else json.dumps(each, separators=(",", ":")) for each in actions]
    return parse_commit(version, [line.encode() for line in lines], with_files=with_files)


def info(operation: str, **parameters: Any) -> dict[str, Any]:
    return {"commitInfo": {"operation": operation, "operationParameters": parameters}}


@pytest.mark.parametrize(
    ("text", "client"),
    [
        ("Apache-Spark/4.2.0 Delta-Lake/4.4.0", Client("delta-spark", (4, 4, 0))),
        ("Apache-Spark/3.4.1-amzn-0 Delta-Lake/2.4.0-SNAPSHOT", Client("delta-spark", (2, 4, 0))),
        ("Databricks-Runtime/15.4.x-scala2.12", Client("databricks", (15, 4))),
        ("Databricks-Runtime/client.1.13.x-scala2.12", Client("databricks")),
        ("delta-rs:py-1.6.6", Client("delta-rs", (1, 6, 6))),
        ("delta-rs.py-1.6.6", Client("delta-rs", (1, 6, 6))),
        ("delta-rs:0.17.0", Client("delta-rs", (0, 17, 0))),
        ("Kernel-3.2.0/test-engine", Client("kernel", (3, 2, 0))),
        ("Kernel-4.1.0/Apache-Spark/4.1.0 Delta-Lake/4.1.0", Client("kernel", (4, 1, 0))),
        ("Flink/1.17 Delta-Kernel/3.0.0", Client("kernel", (3, 0, 0))),
        ("Trino", Client("unknown")),
        ("", Client("unknown")),
        ("Delta-Lake/" + "9" * 5000, Client("unknown")),
    ],
)
def test_clients(text: str, client: Client) -> None:
    assert parse_client(text) == client


@given(st.text())
def test_any_text_is_some_client(text: str) -> None:
    assert parse_client(text).engine


def test_what_a_commit_did() -> None:
    commit = parse(
        {
            "commitInfo": {
                "timestamp": 5,
                "inCommitTimestamp": 7,
                "operation": "WRITE",
                "operationParameters": {"mode": "Append"},
                "userName": "me",
                "userMetadata": "signed",
                "engineInfo": "delta-rs:py-1.6.6",
                "txnId": "t",
            }
        },
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": METADATA},
        ADD,
    )
    assert commit.commit.timestamp == 7
    assert commit.commit.user == "me"
    assert commit.commit.user_metadata == "signed"
    assert commit.commit.changes_metadata
    assert commit.commit.changes_data
    assert commit.protocol == Protocol(1, 2)
    assert commit.txn_id == "t"
    assert commit.commit.schema_writer


@pytest.mark.parametrize(
    ("action", "overwrites"),
    [
        (info("WRITE", mode="Overwrite", partitionBy="[]"), True),
        (info("WRITE", mode="Overwrite", predicate="[]"), True),
        (info("WRITE", mode="Overwrite", predicate="a = 1"), False),
        (info("WRITE", mode="Overwrite", isDynamicPartitionOverwrite=True), False),
        (info("WRITE", mode="Append"), False),
        (info("RESTORE", version=3), True),
        (info("CREATE OR REPLACE TABLE AS SELECT"), True),
        (info("REPLACE TABLE"), True),
        (info("CREATE TABLE"), False),
        ({"commitInfo": {"operation": "WRITE", "operationParameters": 7}}, False),
    ],
)
def test_overwrites(action: dict[str, Any], overwrites: bool) -> None:
    assert parse(action).commit.overwrites is overwrites
    assert not parse(action, version=0).commit.overwrites


@pytest.mark.parametrize(
    ("operation", "extra", "expected"),
    [
        ("WRITE", {"metaData": METADATA}, True),
        ("MERGE", {"metaData": METADATA}, True),
        ("OPTIMIZE", {"metaData": METADATA}, False),
        ("CREATE OR REPLACE TABLE AS SELECT", {"metaData": METADATA}, False),
        ("WRITE", {"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{}", "removed": False}}, False),
    ],
)
def test_schema_writers(operation: str, extra: dict[str, Any], expected: bool) -> None:
    assert parse(info(operation), extra, ADD).commit.schema_writer is expected


def test_row_tracking_marks_are_not_a_metadata_change() -> None:
    def domain(name: str) -> dict[str, Any]:
        return {"domainMetadata": {"domain": name, "configuration": "{}", "removed": False}}

    assert not parse(domain("delta.rowTracking")).commit.changes_metadata
    assert parse(domain("delta.clustering")).commit.changes_metadata


def test_what_the_forecast_and_drift_need() -> None:
    commit = parse(
        {
            "commitInfo": {
                "operation": "STREAMING UPDATE",
                "operationParameters": {"outputMode": "Append", "epochId": 3, "statsOnLoad": False, "none": None},
                "operationMetrics": {"numRemovedFiles": "0", "numOutputRows": 12},
                "tags": {"delta.rowTracking.preserved": "true"},
                "readVersion": 41,
                "isolationLevel": "WriteSerializable",
                "isBlindAppend": True,
                "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
            }
        },
        {"txn": {"appId": "query-1", "version": 3, "lastUpdated": 1700}},
        {"txn": {"appId": "job", "version": 0, "lastUpdated": None}},
    ).commit
    assert commit.parameters == {"outputMode": "Append", "epochId": "3", "statsOnLoad": "false"}
    assert commit.metrics == {"numRemovedFiles": "0", "numOutputRows": "12"}
    assert commit.tags == {"delta.rowTracking.preserved": "true"}
    assert (commit.read_version, commit.isolation, commit.blind_append) == (41, "WriteSerializable", True)
    assert commit.transactions == (AppTransaction("query-1", 3, 1700), AppTransaction("job", 0))
    assert commit.engine == "Apache-Spark/4.2.0 Delta-Lake/4.4.0"


def test_what_a_commit_does_not_say_is_unknown() -> None:
    commit = parse({"commitInfo": {}}).commit
    assert (commit.read_version, commit.blind_append, commit.isolation, commit.transactions) == (None, None, "", ())
    assert (commit.parameters, commit.metrics, commit.tags) == ({}, {}, {})


@pytest.mark.parametrize(
    "odd",
    [
        {"operation": 5, "timestamp": True, "userName": [], "engineInfo": {}, "userMetadata": 1, "txnId": 2},
        {"operationParameters": [], "operationMetrics": "x", "tags": 7, "isBlindAppend": "true", "isolationLevel": {}},
        {"readVersion": -1, "timestamp": 2**70, "inCommitTimestamp": -5},
        {"readVersion": True, "timestamp": 1.5},
    ],
)
def test_commit_info_may_hold_anything(odd: dict[str, Any]) -> None:
    assert parse({"commitInfo": odd}).commit == parse({"commitInfo": {}}).commit


def test_what_a_commit_says_of_itself_is_bounded() -> None:
    many = {f"k{number}": "v" * 20_000 for number in range(200)}
    deep: Any = 0
    for _ in range(900):
        deep = [deep]
    commit = parse({"commitInfo": {"operation": "x" * 5000, "userMetadata": "u" * 50_000, "tags": many}}).commit
    assert (len(commit.operation), len(commit.user_metadata), len(commit.tags)) == (1000, 10_000, 100)
    assert {len(value) for value in commit.tags.values()} == {10_000}
    assert commit.tags["k0"].endswith("v…")
    assert parse({"commitInfo": {"tags": {"deep": deep}}}).commit.tags["deep"][0] in "[…"
    streams = [{"txn": {"appId": str(number), "version": 1}} for number in range(1000)]
    assert len(parse(*streams).commit.transactions) == 100


def test_a_commit_cannot_be_changed() -> None:
    commit = parse(info("WRITE", mode="Append")).commit
    with pytest.raises(TypeError):
        commit.parameters["mode"] = "Overwrite"  # type: ignore[index]


@pytest.mark.parametrize("start", [b"{", b'{"add":null,'])
@pytest.mark.parametrize(("length", "kept"), [(100, True), (20_000, False)])
def test_a_large_commit_keeps_its_summary_alone(start: bytes, length: int, kept: bool) -> None:
    line = start + b'"commitInfo":{"operation":"WRITE","more":[' + b"[]," * (length // 3) + b"[]]}}"
    parsed = parse_commit(1, [line])
    assert (parsed._rest is not None) is kept
    assert parsed.commit.operation == "WRITE"
    assert parsed._rest is None


def test_files_are_parsed_only_when_asked_for() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 4}
    removed = {"remove": {"path": "a b", "deletionVector": vector}}
    assert parse(ADD, removed).files == ()
    assert parse(ADD, removed, with_files=True).files == (
        FileAction(("a b", ""), True, 3),
        FileAction(("a b", "uab@4"), False, 0),
    )


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ([ADD, "{"], 2),
        ([ADD, '{"add":{"path":"x"'], 2),
        ([ADD, '{"add":{"path":"x"}}{"metaData":{"id":1}}'], 2),
        (["[]"], 1),
        (["null"], 1),
        (['{"metaData":{},"protocol":{}}'], 1),
        (['{"metaData":5}'], 1),
        ([{"metaData": {**METADATA, "configuration": {"a": 1}}}], 1),
        ([{"metaData": {**METADATA, "id": None}}], 1),
        ([{"metaData": METADATA}, {"metaData": METADATA}], 2),
        ([{"protocol": {"minReaderVersion": True, "minWriterVersion": 2}}], 1),
        ([{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": "x"}}], 1),
        ([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 7}}], 1),
        ([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [*map(str, range(1001))]}}], 1),
        ([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["f" * 201]}}], 1),
        ([{"domainMetadata": {"domain": "d", "removed": "no"}}], 1),
        ([ADD, {"txn": {"appId": "a", "version": "1"}}], 2),
        ([{"txn": {"appId": None, "version": 1}}], 1),
        ([{"txn": {"appId": "a", "version": 1, "lastUpdated": "now"}}], 1),
        (['{"add":{"path":"x"}}{"txn":{"appId":"a","version":1}}'], 1),
        (['{"commitInfo":{"operation":"\\ud800"}}'], 1),
        (["[" * 100_000], 1),
        (["1" * 10_000], 1),
        (["\xff"], 1),
    ],
)
def test_what_is_not_a_commit_names_its_line(lines: list[Any], line: int) -> None:
    with pytest.raises(CommitSyntaxError) as caught:
        parse(*lines)
    assert caught.value.line == line


@pytest.mark.parametrize("lines", [[], [b""], [b"", b"  "]])
def test_an_empty_commit_changes_nothing(lines: list[bytes]) -> None:
    """A killed writer leaves one, and Delta Spark reads it."""
    parsed = parse_commit(3, lines, with_files=True)
    assert (parsed.protocol, parsed.metadata, parsed.domains, parsed.files) == (None, None, (), ())
    assert (parsed.commit.operation, parsed.commit.changes_data, parsed.commit.changes_metadata) == ("", False, False)


@pytest.mark.parametrize("raw", [b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\uDFFF"])
def test_half_a_character_is_not_text(raw: bytes) -> None:
    with pytest.raises(CommitSyntaxError, match="not valid Unicode"):
        parse_commit(0, [b'{"commitInfo":{"operation":"' + raw + b'"}}'])


@given(st.lists(st.binary()))
def test_any_bytes_are_a_commit_or_a_syntax_error(lines: list[bytes]) -> None:
    try:
        parsed = parse_commit(0, lines)
    except CommitSyntaxError:
        return
    assert parsed.commit.version == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


@given(st.sampled_from(["protocol", "metaData", "domainMetadata", "commitInfo", "txn", "add", "remove"]), JSON)
def test_any_action_is_read_or_refused(kind: str, value: Any) -> None:
    try:
        parsed = parse({kind: value}, with_files=True)
    except CommitSyntaxError as error:
        assert error.line == 1  # noqa: PT017 both outcomes are right
    else:
        assert parsed.commit.version == 1


def test_both_encodings_of_clustering_columns() -> None:
    assert parse_clustering('{"clusteringColumns":[["a"],["s","f"]]}') == (("a",), ("s", "f"))
    assert parse_clustering('{"clusteringColumns":["a","b.c"]}') == (("a",), ("b.c",))
    assert parse_clustering('{"clusteringColumns":[]}') == ()
    for bad in (
        "",
        "[]",
        "{}",
        '{"clusteringColumns":[[]]}',
        '{"clusteringColumns":[[1]]}',
        '{"clusteringColumns":"a"}',
    ):
        with pytest.raises(ValueError):
            parse_clustering(bad)
