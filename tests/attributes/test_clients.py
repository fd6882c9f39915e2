"""What clients know, as documented: who is locked out, and who is not known to go on."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tablectl.attributes.clients import CLIENTS, LISTS, Knows, LockedOut, Unknown, ask, find_client, judge, judge_writer
from tablectl.attributes.features import added_features, leaves
from tablectl.model.live import READER_FEATURES, Client, Protocol

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
        # Spark 3.5 is no version of Delta Lake; and what comes after 4.4 nobody knows yet.
        ("spark", "3.5", ("deletionVectors",), "? deletionVectors"),
        ("spark", "9.0", ("deletionVectors",), ""),
        ("spark", "9.0", ("somethingNew",), "? somethingNew"),
        ("spark", "4.4", ("somethingNew",), "write somethingNew"),
        ("trino", "440", ("deletionVectors",), "write deletionVectors 454"),
        ("trino", "454", ("deletionVectors",), ""),
        ("trino", "420", ("deletionVectors",), "read deletionVectors 427"),
        ("trino", "478", ("clustering", "domainMetadata"), "write clustering"),
        ("trino", "430", ("clustering", "domainMetadata"), "? clustering, domainMetadata"),
        ("trino", "600", ("clustering", "domainMetadata"), "? clustering, domainMetadata"),
        ("deltalake", "1.6", ("deletionVectors",), ""),
        ("deltalake", "1.3", ("deletionVectors",), "read deletionVectors 1.4.0"),
        ("deltalake", "1.6.3", ("v2Checkpoint",), ""),
        ("deltalake", "1.6", ("v2Checkpoint",), "read v2Checkpoint 1.6.3"),
        ("deltalake", "1.6", ("columnMapping",), "? columnMapping"),
        ("databricks", "11.3", ("deletionVectors",), "read deletionVectors 12.2"),
        ("databricks", "16.4", ("v2Checkpoint",), "? v2Checkpoint"),
        ("athena", "3", ("deletionVectors", "clustering", "domainMetadata"), ""),
        ("athena", "3", ("v2Checkpoint",), "read v2Checkpoint"),
        ("redshift", "1", ("deletionVectors",), "read deletionVectors"),
        ("bigquery", "1", ("v2Checkpoint",), "? v2Checkpoint"),
        ("kernel", "4.0.1", ("rowTracking", "domainMetadata"), ""),
        ("kernel", "4.4", ("changeDataFeed",), "? changeDataFeed"),
        ("presto", "0.29", ("deletionVectors",), "? deletionVectors"),
        ("presto", "0.29", (), ""),
    ],
)
def test_a_raise_means_to_a_client(client: str, version: str, features: tuple[str, ...], expected: str) -> None:
    assert verdict(client, version, *features) == expected


def test_what_a_client_could_not_do_before_it_does_not_lose() -> None:
    clustered = raised("clustering", "domainMetadata")
    assert verdict("trino", "478", "rowTracking", before=clustered) == ""
    assert verdict("trino", "478", "typeWidening-preview", before=clustered) == "read typeWidening-preview"


def test_no_raise_says_nothing() -> None:
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
        (Client("delta-rs", (0, 30, 2)), False),  # of the crate, or of the package: nobody knows
        (Client("unknown"), False),
    ],
)
def test_a_client_of_the_history(client: Client, locked: bool) -> None:
    assert (judge_writer(client, _PLAIN, raised("deletionVectors")) is not None) is locked


def test_the_data_is_whole() -> None:
    assert len({data.name for data in CLIENTS}) == len(CLIENTS)
    for data in CLIENTS:
        assert data.source
        assert data.as_of[:2] == "20"
        assert set(data.reads) <= READER_FEATURES
        readable = {feature for feature in data.writes or {} if feature in READER_FEATURES}
        assert not data.writes or readable <= set(data.reads), "who writes a table reads it"
        for since in [*data.reads.values(), *(data.writes or {}).values()]:
            assert not since or all(part.isdigit() for part in since.split("."))


def test_newer_versions_know_more() -> None:
    spark = find_client("spark")
    assert spark
    assert spark.writes
    for feature in spark.writes:
        known = [ask(spark, version, feature, "write").knows is Knows.YES for version in sorted(spark.lines)]
        assert known == sorted(known)
    assert LISTS in spark.writes


@dataclass(frozen=True)
class _Fate:
    feature: str
    leaves: str


@pytest.mark.parametrize(
    "fate",
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
def test_how_a_feature_leaves(fate: _Fate) -> None:
    assert leaves(fate.feature) == fate.leaves


def test_what_a_numbered_protocol_implies_is_not_added() -> None:
    added = added_features(Protocol(1, 4), Protocol(1, 4).raised(frozenset({"deletionVectors"})))
    assert [each.name for each in added] == ["deletionVectors"]
