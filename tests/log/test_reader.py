"""Whole readings of logs made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.log.reader import ReadRequest, newest_version, read_commits, read_many, read_table
from tablectl.model.errors import LiveError
from tablectl.model.table import Depth, LiveTable
from tablectl.storage.object_log import ObjectLog
from tablectl.storage.object_stores import StoreOptions
from tests.log.checkpoint_files import STATE, adds, parquet
from tests.log.log_actions import (
    CLUSTERED,
    LOCATION,
    PLAIN,
    SPARK,
    Action,
    add,
    checksum,
    clustering,
    crc,
    info,
    metadata,
    protocol,
)

LOG = "lake/t/_delta_log"
UUID = "748a6541-0f8d-4447-82ca-5c89ca51c5a3"
Put = Callable[..., None]
Read = Callable[..., LiveTable]


def test_commits_are_walked_without_any_checksum(put: Put, read: Read) -> None:
    put(0, [info(), CLUSTERED, metadata(), clustering("a")])
    put(1, [info(), metadata(x="1")])
    put(2, [info()])
    table = read()
    assert (table.version, table.table_id, dict(table.properties)) == (2, "one", {"x": "1"})
    assert table.clustering == (("a",),)
    assert (table.files, table.bytes, table.vectors) == (None, None, 0)
    assert table.clients == (Client("delta-spark", (4, 4, 0)),)
    assert read(version=0).properties == {}


def test_the_newest_checksum_says_it_all(put: Put, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    put(0, [info(), CLUSTERED, metadata(), clustering("a")])
    for version in range(1, 300):
        put(version, [info(f"t{version}")])
    put(crc(299), checksum("t299", metadata(x="1"), [clustering("b")]))
    requests = count_requests(monkeypatch)
    table = read(look_back=5)
    assert (dict(table.properties), table.clustering, table.files, table.bytes) == ({"x": "1"}, (("b",),), 4, 40)
    assert len(requests) == 7  # the listing, five commits, the checksum


def count_requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    requests: list[str] = []
    for call in ("get", "list", "head", "get_range"):
        original = getattr(obstore, call)

        def counted(store: Any, path: str = "", *args: Any, original: Any = original, **options: Any) -> Any:
            requests.append(path)
            return original(store, path, *args, **options)

        monkeypatch.setattr(obstore, call, counted)
    return requests


@pytest.mark.parametrize(
    "wrong",
    [
        checksum("other", metadata("foreign", x="9"), [clustering("b")]),
        checksum("", metadata("foreign", x="9"), [clustering("b")]),
        {**checksum("t2", metadata("foreign"), []), "protocol": None},
        {**checksum("t2", metadata("foreign"), []), "metadata": {"id": 7}},
        {**checksum("t2", metadata("foreign"), []), "numFiles": "4"},
        {**checksum("t2", metadata("foreign"), []), "domainMetadata": {}},
        json.dumps(checksum("t2", metadata("foreign"), [])).encode()[:-40],
        b"",
        b"null",
        b"[" * 100_000,
    ],
)
def test_a_wrong_checksum_is_never_believed(put: Put, read: Read, wrong: Any) -> None:
    put(0, [info("t0"), CLUSTERED, metadata(), clustering("a")])
    put(1, [info("t1"), metadata(x="1")])
    put(2, [info("t2")])
    put(crc(2), wrong)
    table = read()
    assert (table.table_id, dict(table.properties), table.clustering) == ("one", {"x": "1"}, (("a",),))
    assert table.files is None


@pytest.mark.parametrize("said", [metadata(x="2"), protocol(1, 7, "clustering"), clustering("b")])
def test_a_commit_wins_over_its_checksum(put: Put, read: Read, said: Action) -> None:
    put(0, [info("t0"), CLUSTERED, metadata(), clustering("a")])
    put(1, [info("t1"), said])
    put(crc(1), checksum("t1", metadata(x="wrong"), [clustering("a")], protocol=CLUSTERED["protocol"]))
    table = read()
    if "metaData" in said:
        assert dict(table.properties) == {"x": "2"}
    if "domainMetadata" in said:
        assert table.clustering == (("b",),)
        assert dict(table.properties) == {}
    if "protocol" in said:
        assert table.protocol.writer_features == {"clustering"}


def test_a_commit_without_a_txn_id_has_no_checksum(put: Put, read: Read) -> None:
    put(0, [info(), CLUSTERED, metadata(), clustering("a")])
    put(crc(0), checksum("t0", metadata(), [clustering("b")]))
    assert read().clustering == (("a",),)


def test_unknown_domains_are_not_none(put: Put, read: Read) -> None:
    put(0, [info("t0"), CLUSTERED, metadata(), clustering("a")])
    put(1, [info("t1")])
    put(crc(1), checksum("t1", metadata(), None))
    assert read().clustering == (("a",),)
    put(crc(1), checksum("t1", metadata(), []))
    assert read().clustering == ()


def test_an_older_checksum_ends_the_walk(put: Put, read: Read) -> None:
    put(0, b"damaged")
    put(1, [info("t1")])
    put(crc(1), checksum("t1", metadata(x="1"), [clustering("b")]))
    put(2, [info(), metadata(x="2")])
    table = read(look_back=2)
    assert (dict(table.properties), table.clustering, table.files) == ({"x": "2"}, (("b",),), None)


def test_clustering_needs_the_feature(put: Put, read: Read) -> None:
    put(0, [info(), PLAIN, metadata(), clustering("a")])
    assert read().clustering is None
    put(1, [info(), CLUSTERED])
    assert read().clustering == (("a",),)
    put(2, [info(), clustering(removed=True)])
    assert read().clustering == ()


def test_physical_names_are_mapped_only_where_columns_are(put: Put, read: Read) -> None:
    fields = [
        {"name": "new", "type": "long", "metadata": {"delta.columnMapping.physicalName": "a"}},
        {
            "name": "s",
            "type": {
                "type": "struct",
                "fields": [{"name": "in", "type": "long", "metadata": {"delta.columnMapping.physicalName": "p2"}}],
            },
            "metadata": {"delta.columnMapping.physicalName": "p1"},
        },
    ]
    mapped = metadata(**{"delta.columnMapping.mode": "name"})
    mapped["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    both = {"clusteringColumns": [["p1", "p2"], ["a"]]}
    domain = {"domain": "delta.clustering", "configuration": json.dumps(both), "removed": False}
    put(0, [info(), CLUSTERED, mapped, {"domainMetadata": domain}])
    assert read().clustering == (("s", "in"), ("new",))


def test_a_clustering_column_that_is_not_there(put: Put, read: Read) -> None:
    put(0, [info(), CLUSTERED, metadata(), clustering("nope")])
    with pytest.raises(LiveError, match=r"memory:///lake/t: .*nope"):
        read()


def test_compacted_logs_are_ignored_and_replace_no_commit(put: Put, read: Read, store: MemoryStore) -> None:
    put(0, [info(), CLUSTERED, metadata(), clustering("a")])
    for version in range(1, 10):
        put(version, [info(), metadata(x=str(version))])
    put(10, [info()])
    put(f"{1:020d}.{9:020d}.compacted.json", b"never read")
    table = read(look_back=1)
    assert (dict(table.properties), table.clustering) == ({"x": "9"}, (("a",),))
    obstore.delete(store, f"{LOG}/{4:020d}.json")
    with pytest.raises(LiveError, match=r"version 4 is missing: there is no 0+4\.json"):
        read()


def test_counts_are_replayed_where_asked_for(put: Put, read: Read) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 3, "cardinality": 1}
    put(0, [protocol(3, 7, readers=("deletionVectors",)), metadata(), add("a", 5), add("b c", 7), add("d", 11)])
    put(1, [add("a", 5, deletionVector=vector), {"remove": {"path": "a"}}, {"remove": {"path": "b%20c"}}])
    table = read()
    assert (table.files, table.bytes, table.vectors) == (None, None, None)
    table = read(counts=True)
    assert (table.files, table.bytes, table.vectors) == (2, 16, 1)


def test_history_is_newest_first_and_bounded(put: Put, options: StoreOptions) -> None:
    put(0, [info(operation="CREATE TABLE"), PLAIN, metadata()])
    for version in range(1, 6):
        put(version, [info(timestamp=version, userName="me")])
    commits = read_commits(LOCATION, after=1, options=options)
    assert [commit.version for commit in commits] == [5, 4, 3, 2]
    assert [each.version for each in read_commits(LOCATION, after=-1, until=4, limit=2, options=options)] == [4, 3]
    assert read_commits(LOCATION, after=5, options=options) == ()
    assert read_commits(LOCATION, after=9, options=options) == ()
    assert newest_version(LOCATION, options=options) == 5


def test_history_reaches_behind_the_checkpoint_until_the_log_was_cleaned(
    put: Put, options: StoreOptions, store: MemoryStore
) -> None:
    put(0, [info(operation="CREATE TABLE"), PLAIN, metadata()])
    for version in range(1, 6):
        put(version, [info()])
    put(f"{4:020d}.checkpoint.parquet", b"not read")
    put("_last_checkpoint", {"version": 4})
    assert [each.version for each in read_commits(LOCATION, after=-1, options=options)] == [5, 4, 3, 2, 1, 0]
    obstore.delete(store, f"{LOG}/{1:020d}.json")
    assert [each.version for each in read_commits(LOCATION, after=-1, options=options)] == [5, 4, 3, 2]
    assert read_commits(LOCATION, after=0, until=1, options=options) == ()
    obstore.delete(store, f"{LOG}/{4:020d}.checkpoint.parquet")
    with pytest.raises(LiveError, match="version 1 is missing"):
        read_commits(LOCATION, after=-1, options=options)
    with pytest.raises(LiveError, match="not a Delta table"):
        read_commits("memory:///lake/other", after=-1, options=options)


def test_the_look_back_crosses_the_last_checkpoint(put: Put, read: Read) -> None:
    put(0, [info(engineInfo="delta-rs:py-1.6.6"), PLAIN, metadata()])
    for version in range(1, 31):
        put(version, [info(f"t{version}", engineInfo=SPARK if version > 12 else "Kernel-4.0.0/x"), PLAIN, metadata()])
    put(f"{20:020d}.checkpoint.parquet", b"not read")
    put("_last_checkpoint", {"version": 20})
    assert {client.engine for client in read(look_back=18).clients} == {"delta-spark"}
    assert {client.engine for client in read(look_back=19).clients} == {"delta-spark", "kernel"}
    assert {client.engine for client in read(version=20, look_back=21).clients} == {"delta-spark", "kernel", "delta-rs"}
    assert {client.engine for client in read(version=15, look_back=4).clients} == {"delta-spark", "kernel"}


def test_what_recent_commits_did(put: Put, read: Read) -> None:
    put(0, [info(), PLAIN, metadata()])
    put(1, [info(operationParameters={"mode": "Overwrite"}), add("a", 1)])
    put(2, [info(engineInfo="delta-rs:py-1.6.6"), metadata("one", ("a", "b", "c")), add("b", 1)])
    table = read()
    assert table.overwrites
    assert table.schema_writers
    assert table.clients == (Client("delta-rs", (1, 6, 6)), Client("delta-spark", (4, 4, 0)))
    assert not read(look_back=1).overwrites


@pytest.mark.parametrize(
    ("reader", "features", "expected"),
    [
        (3, ("adaptiveMetadata-preview",), "adaptiveMetadata-preview"),
        (3, ("deletionVectors", "futureA", "futureB"), "features futureA, futureB"),
        (4, (), "reader version 4"),
        (3, ("catalogManaged",), "managed by its catalog"),
    ],
)
def test_unknown_readers_are_refused(
    put: Put, read: Read, reader: int, features: tuple[str, ...], expected: str
) -> None:
    put(
        0,
        [info(), protocol(reader, 7, readers=features), {"metaData": {**metadata()["metaData"], "schemaString": "?"}}],
    )
    with pytest.raises(LiveError, match=expected):
        read()


def test_catalog_managed_by_property_and_by_staged_commits(put: Put, read: Read) -> None:
    put(0, [info(), PLAIN, metadata(**{"io.unitycatalog.tableId": "u"})])
    with pytest.raises(LiveError, match="catalog"):
        read()
    put(0, [info(), PLAIN, metadata()])
    put(f"_staged_commits/{0:020d}.{UUID}.json", [info()])
    assert read().version == 0
    put(f"_staged_commits/{1:020d}.{UUID}.json", [info()])
    with pytest.raises(LiveError, match="commit 1 is not published"):
        read()


def test_errors_name_table_and_file(put: Put, read: Read) -> None:
    with pytest.raises(LiveError, match="memory:///lake/t: not a Delta table"):
        read()
    put(0, [info(), PLAIN])
    with pytest.raises(LiveError, match="no metaData action"):
        read()
    put(0, [info(), PLAIN, metadata()])
    put(2, [info()])
    with pytest.raises(LiveError, match="memory:///lake/t: version 1 is missing"):
        read()
    put(1, b'{"commitInfo":{}}\n{"add":')
    with pytest.raises(LiveError, match=r"_delta_log/0{19}1\.json:2: "):
        read()
    with pytest.raises(LiveError, match="version 7 does not exist"):
        read(version=7)


def test_hints_that_lie_cost_only_a_listing(put: Put, read: Read) -> None:
    put(0, [info(), PLAIN, metadata()])
    put(1, [info()])
    for hint in (b"", b"{", b'{"version":50}', b'{"version":1}', b'{"version":0}', b'{"version":9223372036854775807}'):
        put("_last_checkpoint", hint)
        assert read(look_back=0).version == 1


def test_a_vanished_file_is_looked_for_once_more(
    put: Put, read: Read, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(0, [info(), PLAIN, metadata()])
    listings = 0
    original = ObjectLog._kept

    def kept(log: ObjectLog, listed: Any) -> list[str]:
        nonlocal listings
        listings += 1
        return [*original(log, listed), *([f"{1:020d}.json"] if listings == 1 else [])]

    monkeypatch.setattr(ObjectLog, "_kept", kept)
    assert read().version == 0
    assert listings == 2


def test_a_listing_crossed_by_a_writer_is_repeated(put: Put, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    put(0, [info(), PLAIN, metadata()])
    put(1, [info()])
    put(2, [info()])
    original, listings = ObjectLog._kept, 0

    def kept(log: ObjectLog, listed: Any) -> list[str]:
        nonlocal listings
        listings += 1
        return [name for name in original(log, listed) if listings > 1 or not name.startswith(f"{1:020d}")]

    monkeypatch.setattr(ObjectLog, "_kept", kept)
    assert read().version == 2


def request(location: str) -> ReadRequest:
    return ReadRequest(TableName("", (location,)), location, lambda _table: Depth())


def test_how_deep_a_table_is_read_follows_from_its_state(
    put: Put, options: StoreOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(0, [info("t0"), protocol(3, 7, readers=("deletionVectors",)), metadata(), add("a", 5)])
    for version in range(1, 30):
        put(version, [info(f"t{version}"), add(f"f{version}", 1)])
    state = {"metaData": metadata()["metaData"], "protocol": protocol(3, 7, readers=("deletionVectors",))["protocol"]}
    put(crc(29), {**checksum("t29", state, []), "protocol": state["protocol"], "numDeletionVectorsOpt": None})
    name = TableName("", (LOCATION,))
    seen: list[LiveTable] = []

    def depth(live: LiveTable) -> Depth:
        seen.append(live)
        return Depth(look_back=10, counts=live.vectors is None) if live.properties == {} else Depth()

    requests = count_requests(monkeypatch)
    (shallow,) = read_many([request(LOCATION)], options=options)
    assert len(requests) == 3  # the listing, one commit, the checksum
    assert isinstance(shallow, LiveTable)
    assert (shallow.history, shallow.files, shallow.vectors) == ((), 4, None)
    (deep,) = read_many([ReadRequest(name, LOCATION, depth)], options=options)
    assert seen == [shallow]
    assert isinstance(deep, LiveTable)
    assert [commit.version for commit in deep.history] == list(range(29, 19, -1))
    assert (deep.files, deep.bytes, deep.vectors) == (30, 34, 0)


def test_many_tables_and_their_errors(put: Put, options: StoreOptions) -> None:
    put(0, [info(), PLAIN, metadata()])
    good, bad = request(LOCATION), request("memory:///no")
    results = list(read_many([good, bad, good], threads=2, options=options))
    assert [isinstance(result, LiveTable) for result in results] == [True, False, True]
    assert list(read_many([], options=options)) == []


def test_of_many_tables_only_the_next_few_are_kept_ready(
    put: Put, options: StoreOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(0, [info(), PLAIN, metadata()])
    requests = count_requests(monkeypatch)
    asked = [request(LOCATION)] * 100
    tables = read_many(asked, threads=1, options=options)
    assert isinstance(next(tables), LiveTable)
    tables.close()
    assert len(requests) <= 6 * 3
    assert len(list(read_many(asked, options=options))) == 100


@pytest.mark.parametrize(
    "location",
    ["relative/path", "", "s3://[bad", "ftp://x/y", "memory:///t", "/no/such/directory", "file:///no/such", "\0"],
)
def test_bad_locations_are_live_errors(location: str) -> None:
    with pytest.raises(LiveError):
        read_table(TableName("", (location,)), location)


def test_a_superseded_metadata_without_a_schema_stops_no_table(put: Put, read: Read) -> None:
    bare = {"metaData": {"id": "one", "partitionColumns": [], "configuration": {}}}
    put(0, [info(), PLAIN, bare])
    put(1, [info(), metadata("one", ("a",))])
    put(2, [info()])
    assert [field.name for field in read(look_back=20).schema.fields] == ["a"]


def test_a_table_whose_newest_metadata_has_no_schema_is_an_error(put: Put, read: Read) -> None:
    put(0, [info(), PLAIN, {"metaData": {"id": "one", "partitionColumns": [], "configuration": {}}}])
    with pytest.raises(LiveError, match="the table's metaData has no schemaString"):
        read()


def test_a_checkpoint_whose_commit_is_gone_is_read_with_a_note(
    put: Put, read: Read, caplog: pytest.LogCaptureFixture
) -> None:
    put(f"{7:020d}.checkpoint.parquet", parquet([*STATE, *adds(4)]))
    table = read(counts=True, look_back=20)
    assert (table.version, table.table_id, table.files, table.history) == (7, "one", 4, ())
    assert "00000000000000000007.json is gone, so version 7 is read from its checkpoint" in caplog.text


def test_a_commit_missing_behind_a_checkpoint_is_still_a_gap(put: Put, read: Read) -> None:
    put(f"{7:020d}.checkpoint.parquet", parquet([*STATE, *adds(4)]))
    put(9, [info()])
    with pytest.raises(LiveError, match="version 8 is missing"):
        read()
