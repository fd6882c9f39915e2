"""What clients know, as documented: who is locked out, and who is not known to go on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from typing import Any

import pytest

from tablectl.delta.clients import (
    LISTS,
    MAX_BYTES,
    VECTORS_OFF,
    ClientData,
    ClientFeatures,
    LockedOut,
    Probe,
    Unknown,
    ask,
    find_client,
    judge,
    judge_writer,
    known_clients,
    newest_version,
    read_clients,
    wrong_rows,
)
from tablectl.delta.databricks_runtimes import known_features
from tablectl.delta.protocol import READER_FEATURES, Client, Protocol, leaves
from tablectl.planning.locked_out_clients import added_features
from tools.probe_clients import ENTRIES

_PLAIN = Protocol(1, 2)


def raised(*features: str) -> Protocol:
    return _PLAIN.raised(frozenset(features))


def verdict(name: str, version: str, *features: str, before: Protocol = _PLAIN) -> str:
    """``write deletionVectors 454``, ``? deletionVectors``, or nothing."""
    said = []
    for each in judge(name, version, before, before.raised(frozenset(features))):
        if isinstance(each, LockedOut):
            said.append(f"{each.access} {each.feature} {each.answer.since}".rstrip())
        else:
            said.append(f"? {', '.join(each.features)}")
    return "; ".join(said)


@pytest.mark.parametrize(
    ("client", "version", "features", "expected"),
    [
        ("spark", "4.4", ("deletionVectors", "clustering", "domainMetadata"), ""),
        ("spark", "2.2", ("deletionVectors",), "read deletionVectors 2.3.0"),
        ("spark", "3.0", ("clustering", "domainMetadata"), "write clustering 3.1.0"),
        ("spark", "1.0", ("changeDataFeed",), "write changeDataFeed 2.0.0"),
        ("spark", "2.0", ("changeDataFeed",), "write table features 2.3.0"),
        ("spark", "4.1.5", ("variantShredding",), ""),
        # Spark 3.5 is not a version of Delta Lake; what comes after 4.4 counts as 4.4.
        ("spark", "3.5", ("deletionVectors",), "? deletionVectors"),
        ("spark", "9.0", ("deletionVectors",), ""),
        ("spark", "9.0", ("somethingNew",), "write somethingNew"),
        ("spark", "4.4", ("somethingNew",), "write somethingNew"),
        ("trino", "440", ("deletionVectors",), "write deletionVectors 454"),
        ("trino", "454", ("deletionVectors",), ""),
        ("trino", "420", ("deletionVectors",), "read deletionVectors 427"),
        ("trino", "478", ("clustering", "domainMetadata"), "write clustering"),
        ("trino", "430", ("clustering", "domainMetadata"), "? clustering, domainMetadata"),
        ("trino", "600", ("clustering", "domainMetadata"), "write clustering"),
        # Some readers of deltalake refuse deletion vectors in every version; QueryBuilder reads them.
        ("deltalake", "1.6.6", ("deletionVectors",), "read deletionVectors"),
        ("deltalake", "9.0", ("deletionVectors",), "read deletionVectors"),
        ("deltalake-querybuilder", "1.6.6", ("deletionVectors",), ""),
        ("deltalake-querybuilder", "1.3", ("deletionVectors",), "read deletionVectors 1.4.0"),
        ("deltalake", "1.6.6", ("clustering", "domainMetadata"), "write clustering"),
        ("deltalake", "1.9", ("clustering", "domainMetadata"), "write clustering"),
        ("deltalake", "1.6.6", ("rowTracking", "domainMetadata"), "write domainMetadata"),
        ("deltalake-querybuilder", "1.6.3", ("v2Checkpoint",), ""),
        ("deltalake-querybuilder", "1.6", ("v2Checkpoint",), "read v2Checkpoint 1.6.3"),
        ("deltalake", "1.6", ("columnMapping",), "write columnMapping 1.6.1"),
        ("deltalake", "0.17.4", ("changeDataFeed",), "write changeDataFeed 0.18.0"),
        ("deltalake", "0.14.0", ("checkConstraints",), "write checkConstraints 0.15.0"),
        ("deltalake", "1.5.0", ("columnMapping",), "read columnMapping 1.6.0"),
        ("databricks", "11.3", ("deletionVectors",), "read deletionVectors 12.2"),
        ("databricks", "16.4", ("v2Checkpoint",), "? v2Checkpoint"),
        ("athena", "3", ("deletionVectors", "clustering", "domainMetadata"), ""),
        ("athena", "3", ("v2Checkpoint",), "read v2Checkpoint"),
        ("redshift", "1", ("deletionVectors",), "read deletionVectors"),
        ("bigquery", "1", ("v2Checkpoint",), "? v2Checkpoint"),
        ("kernel", "4.0.1", ("rowTracking", "domainMetadata"), ""),
        ("kernel", "4.4", ("changeDataFeed",), ""),
        ("kernel", "4.4", ("identityColumns",), "? identityColumns"),
        ("kernel", "3.3.2", ("deletionVectors",), "write deletionVectors 4.0.0"),
        ("kernel", "4.0.0", ("variantType",), "write variantType 4.1.0"),
        ("kernel", "3.3.0", ("v2Checkpoint",), "write v2Checkpoint 4.0.0"),
        ("spark", "3.3.0", ("typeWidening", "checkpointProtection"), ""),
        ("flink", "4.4", ("deletionVectors",), ""),
        ("presto", "0.296", ("deletionVectors",), "read deletionVectors"),
        ("presto", "0.296", ("typeWidening",), "? typeWidening"),
        ("flink", "3.3", ("deletionVectors",), "read deletionVectors 4.2.0"),
        ("flink", "3.3", ("clustering", "domainMetadata"), "write clustering 4.2.0"),
        ("hive", "3.3", ("columnMapping",), "read columnMapping"),
        ("starrocks", "3.4", ("deletionVectors",), "read deletionVectors 3.4.1"),
        ("starrocks", "3.5", ("deletionVectors",), ""),
        ("starrocks", "3.5.3", ("typeWidening",), "read typeWidening"),
        ("synapse-serverless", "1", ("deletionVectors",), "read deletionVectors"),
        ("delta-sharing", "3.0", ("deletionVectors",), "read deletionVectors 3.1"),
        ("pinot", "3.0", ("deletionVectors",), "? deletionVectors"),
        ("pinot", "3.0", (), ""),
    ],
)
def test_which_clients_a_protocol_upgrade_locks_out(
    client: str, version: str, features: tuple[str, ...], expected: str
) -> None:
    assert verdict(client, version, *features) == expected


def test_access_that_a_client_never_had_is_not_a_lockout() -> None:
    clustered = raised("clustering", "domainMetadata")
    assert verdict("trino", "478", "rowTracking", before=clustered) == ""
    assert verdict("trino", "478", "typeWidening-preview", before=clustered) == "read typeWidening-preview"


def test_without_a_protocol_upgrade_no_client_is_judged() -> None:
    assert list(judge("spark", "0.8", raised("deletionVectors"), raised("deletionVectors"))) == []


def test_a_version_that_is_none_of_its_client_says_so() -> None:
    (found,) = judge("spark", "3.5", _PLAIN, raised("deletionVectors"))
    assert isinstance(found, Unknown)
    assert found.why == "there is no Delta Lake 3.5"


@pytest.mark.parametrize(
    ("client", "locked"),
    [
        (Client("delta-spark", (2, 2, 0)), True),
        (Client("delta-spark", (4, 4, 0)), False),
        (Client("delta-spark"), False),
        (Client("delta-rs", (1, 3, 2)), True),
        # Of the crate, or of the package: it counts as the newest known, which does not read them by every interface.
        (Client("delta-rs", (0, 30, 2)), True),
        (Client("unknown"), False),
    ],
)
def test_a_client_of_the_history(client: Client, locked: bool) -> None:
    assert isinstance(judge_writer(client, _PLAIN, raised("deletionVectors")), LockedOut) is locked


def test_a_writer_of_unknown_kind_is_not_passed_over() -> None:
    judged = judge_writer(Client("unknown"), _PLAIN, raised("deletionVectors"))
    assert isinstance(judged, Unknown)
    assert judged.data is None


@pytest.mark.parametrize("version", [(), (0, 30, 2), (1, 6, 6), (1, 6, 7), (2, 0), (99,)])
def test_a_writer_newer_than_the_data_counts_as_the_newest_known(version: tuple[int, ...]) -> None:
    judged = judge_writer(Client("delta-rs", version), _PLAIN, raised("clustering", "domainMetadata"))
    assert isinstance(judged, LockedOut)
    assert (judged.access, judged.feature) == ("write", "clustering")


def _probed(**fields: Any) -> ClientData:
    probe = Probe(
        version="2.0",
        date="2026-11-22",
        tables="Delta 4.4.0",
        reads={
            "clustering": {"a": ("yes", ""), "b": ("no", "error")},
            "rowTracking": {"a": ("yes", ""), "b": ("yes", "")},
            "columnMapping": {"a": ("yes", ""), "b": ("wrong rows", "NULLs")},
            VECTORS_OFF: {"a": ("wrong rows", "10 rows instead of 7"), "b": ("yes", "")},
        },
        writes={"clustering": ("yes", "")},
    )
    plain: dict[str, Any] = {"reads": {}, "writes": {}, "source": "s", "as_of": "2026-01-01", "probe": probe}
    return ClientData(name="c", title="C", version="C", **{**plain, **fields})


@pytest.mark.parametrize(
    ("version", "feature", "access", "knows"),
    [
        ((2, 0), "clustering", "read", ClientFeatures.NO),
        ((2, 0), "clustering", "write", ClientFeatures.YES),
        ((2, 0), "rowTracking", "read", ClientFeatures.YES),
        ((3, 0), "rowTracking", "read", ClientFeatures.YES),
        ((1, 9), "rowTracking", "read", ClientFeatures.UNDOCUMENTED),
        ((2, 0), "columnMapping", "read", ClientFeatures.WRONG),
        ((2, 0), "columnMapping", "write", ClientFeatures.UNDOCUMENTED),
    ],
)
def test_a_probe_answers_for_its_release_and_newer_ones(
    version: tuple[int, ...], feature: str, access: Any, knows: ClientFeatures
) -> None:
    assert ask(_probed(), version, feature, access).knows is knows


def test_a_probe_names_the_interfaces_that_fail() -> None:
    answer = ask(_probed(), (2, 0), "clustering", "read")
    assert answer.why == "C 2.0 was tried and does not read tables with clustering by b, only by a"


def test_what_was_found_after_the_documentation_was_written_counts() -> None:
    assert ask(_probed(reads={"clustering": "1.0"}), (2, 0), "clustering", "read").knows is ClientFeatures.NO
    assert ask(_probed(reads={"clustering": "1.0"}), (1, 5), "clustering", "read").knows is ClientFeatures.YES


@pytest.mark.parametrize(
    ("client", "version", "wrong"),
    [("trino", (479,), True), ("trino", (900,), True), ("spark", (4, 4), False), ("daft", (0, 7, 26), True)],
)
def test_who_returns_deleted_rows_once_vectors_are_off(client: str, version: tuple[int, ...], wrong: bool) -> None:
    data = find_client(client)
    assert data
    assert bool(wrong_rows(data, version, VECTORS_OFF)) is wrong


def test_the_newest_version_known_is_that_of_the_probe_where_that_is_newest() -> None:
    assert newest_version(_probed(reads={"clustering": "1.0"})) == (2, 0)
    assert newest_version(_probed(reads={"clustering": "2.10"})) == (2, 10)


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{}",
        b'{"format": 2, "clients": []}',
        b'{"format": 1}',
        b'{"format": 1, "clients": [{"name": "a"}]}',
        b'{"format": 1, "clients": [7]}',
        b"x",
        b" " * (MAX_BYTES + 1),
    ],
)
def test_what_is_not_client_data_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_clients(data)


def test_every_probe_also_appended_to_the_tables() -> None:
    probed = {data.name: data.probe.writes for data in known_clients() if data.probe}
    assert [name for name, writes in probed.items() if not writes] == []
    assert probed["daft"]["columnMapping"][0] == "wrong rows"


def test_every_entry_of_the_client_data_is_complete() -> None:
    assert len({data.name for data in known_clients()}) == len(known_clients())
    for data in known_clients():
        assert data.source
        for day in (data.as_of, data.checked, data.probe.date if data.probe else data.as_of):
            assert date.fromisoformat(day) <= date(2100, 1, 1)
        assert set(data.reads) <= READER_FEATURES
        readable = {feature for feature in data.writes or {} if feature in READER_FEATURES}
        assert not data.writes or readable <= {*data.reads, *data.partly}, "who writes a table reads it"
        for since in [*data.reads.values(), *(data.writes or {}).values()]:
            assert not since or all(part.isdigit() for part in since.split("."))
        assert data.probe is None or data.probe.reads


def test_each_client_that_is_on_pypi_was_tried() -> None:
    assert {data.name for data in known_clients() if data.probe} == set(ENTRIES)


def test_newer_versions_know_more() -> None:
    spark = find_client("spark")
    assert spark
    assert spark.writes
    for feature in spark.writes:
        known = [ask(spark, version, feature, "write").knows is ClientFeatures.YES for version in sorted(spark.lines)]
        assert known == sorted(known)
    assert LISTS in spark.writes


@dataclass(frozen=True)
class _Fate:
    feature: str
    leaves: str


@pytest.mark.parametrize(
    "pair_outcome",
    [
        _Fate("clustering", "never"),
        _Fate("deletionVectors", "with history"),
        _Fate("checkpointProtection", "truncating"),
        _Fate("columnMapping", "with history"),
        _Fate("timestampNtz", "never"),
        _Fate("rowTracking", "freely"),
        _Fate("checkConstraints", "freely"),
        _Fate("neverHeardOf", "never"),
    ],
)
def test_how_a_feature_leaves(pair_outcome: _Fate) -> None:
    assert leaves(pair_outcome.feature) == pair_outcome.leaves


def test_what_a_numbered_protocol_implies_is_not_added() -> None:
    added = added_features(Protocol(1, 4), Protocol(1, 4).raised(frozenset({"deletionVectors"})))
    assert [each.name for each in added] == ["deletionVectors"]


def test_no_feature_of_databricks_has_a_version_in_two_files() -> None:
    listed = next(
        each
        for each in read_clients((files("tablectl.delta") / "clients.json").read_bytes())
        if each.name == "databricks"
    )
    assert not {*listed.reads, *(listed.writes or {})} & set(known_features())
    found = find_client("databricks")
    assert found is not None
    assert (found.reads["typeWidening"], (found.writes or {})["rowTracking"]) == ("15.2", "14.1")
