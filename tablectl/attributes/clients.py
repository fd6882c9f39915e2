"""Which client knows which protocol feature, since which version: what its documentation says, and nothing else.

Where documentation is silent, the answer is that nobody knows. Each entry names its source and when it was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from tablectl.model.live import READER_FEATURES, Client, Protocol

Version = tuple[int, ...]
Access = Literal["read", "write"]

LISTS = "table features"
"""Stands for a protocol that lists its features, which a client must know beside each of them."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Knows(StrEnum):
    """Whether a client knows a feature."""

    YES = "yes"
    NO = "no"
    UNDOCUMENTED = "undocumented"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientData:
    """One client, as documented."""

    name: str
    """As policies name it."""
    title: str
    version: str
    """What its version is the version of."""
    reads: Mapping[str, str]
    """Reader features, each with the version that first reads tables with it; empty where no version is told."""
    writes: Mapping[str, str] | None
    """Features, each with the version that first writes tables with it; ``None`` for a client that never writes."""
    never: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Features that lock out every version, and why."""
    whole: tuple[str, str] | None = None
    """The versions for which a feature that is not listed is one that the client does not know."""
    open: frozenset[str] = frozenset()
    """Features that are left open even for those versions."""
    lines: frozenset[Version] = frozenset()
    """The release lines there are, where versions of something else are easily taken for them."""
    engine: str = ""
    """Its name in ``Client.engine``, where a history tells it."""
    source: str
    as_of: str
    """Year and month of what was read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is documented of one feature."""

    knows: Knows
    since: str = ""
    """The version that first knows it, where one is told."""
    why: str = ""
    """What else there is to say, as a clause."""


def parse_version(text: str) -> Version:
    """``4.0.1`` as numbers."""
    return tuple(map(int, text.split(".")))


def ask(data: ClientData, version: Version, feature: str, access: Access) -> Answer:
    """Whether a version of a client can read, or write, a table with a feature."""
    if feature in data.never:
        return Answer(Knows.NO, why=data.never[feature])
    listed = data.reads if access == "read" else data.writes or _NOTHING
    if data.lines and version[:2] not in data.lines and version <= max(data.lines):
        return Answer(Knows.UNDOCUMENTED, why=f"there is no {data.version} {_text(version)}")
    if feature in listed:
        since = listed[feature]
        if not since or _padded(version) >= _padded(parse_version(since)):
            return Answer(Knows.YES, since)
        if data.whole and since == data.whole[0]:  # what older versions know was not written down
            return Answer(Knows.UNDOCUMENTED, since, f"what versions before {since} know is not documented")
        return Answer(Knows.NO, since)
    if data.whole and feature not in data.open and _within(version, data.whole):
        return Answer(Knows.NO)
    return Answer(Knows.UNDOCUMENTED)


def _padded(version: Version) -> Version:
    return (*version, 0, 0, 0)[:3]


def _within(version: Version, span: tuple[str, str]) -> bool:
    first, last = map(parse_version, span)
    return _padded(version) >= _padded(first) and version[: len(last)] <= last


def _text(version: Version) -> str:
    return ".".join(map(str, version))


@dataclass(frozen=True, slots=True)
class LockedOut:
    """A client that a raise of the protocol locks out."""

    client: str
    version: str
    access: Access
    """What it can no longer do; one that cannot read cannot write either."""
    feature: str
    answer: Answer
    data: ClientData


@dataclass(frozen=True, slots=True)
class Unknown:
    """A client of which it is not documented whether it knows what a raise adds."""

    client: str
    version: str
    features: tuple[str, ...]
    why: str = ""
    data: ClientData | None = None
    """``None`` for a client of which nothing is known here."""


def judge(name: str, version: str, before: Protocol, after: Protocol) -> Iterator[LockedOut | Unknown]:
    """What a raise of the protocol means to a client of a version: one thing locked out at most.

    What a client could not do with the protocol as it was, it does not lose.
    """
    new = _needs(after) - _needs(before)
    if not new:
        return
    data = find_client(name)
    if data is None:
        yield Unknown(name, version, _shown(new))
        return
    number, undocumented = parse_version(version), dict[str, str]()
    for access in ("read", "write") if data.writes is not None else ("read",):
        if any(ask(data, number, each, access).knows is Knows.NO for each in _wanted(_needs(before), access)):
            continue
        for feature in sorted(_wanted(new, access)):
            answer = ask(data, number, feature, access)
            if answer.knows is Knows.NO:
                yield LockedOut(name, version, access, feature, answer, data)
                return
            if answer.knows is Knows.UNDOCUMENTED:
                undocumented.setdefault(feature, answer.why)
    if undocumented:
        why = next(filter(None, undocumented.values()), "")
        yield Unknown(name, version, _shown(frozenset(undocumented)), why, data)


def judge_writer(client: Client, before: Protocol, after: Protocol) -> LockedOut | None:
    """Whether a raise locks out a client that the history names, by its documentation."""
    data = next((each for each in CLIENTS if each.engine == client.engine), None)
    # Below 1.0 nobody knows whether delta-rs tells the version of its crate or of its Python package.
    if data is None or not client.version or (client.engine == "delta-rs" and client.version < (1,)):
        return None
    found = judge(data.name, _text(client.version), before, after)
    return next((each for each in found if isinstance(each, LockedOut)), None)


def _needs(protocol: Protocol) -> frozenset[str]:
    return protocol.features | ({LISTS} if protocol.lists_features else frozenset())


def _wanted(features: frozenset[str], access: Access) -> frozenset[str]:
    """Those that the access is about. Lists of features concern writers; reader features make readers read them."""
    return features if access == "write" else features & READER_FEATURES


def _shown(features: frozenset[str]) -> tuple[str, ...]:
    """Features by name; that they are listed is worth a word only where nothing else is new."""
    return tuple(sorted(features - {LISTS})) or tuple(features)


def find_client(name: str) -> ClientData | None:
    """The entry of a client by the name that policies use."""
    return next((each for each in CLIENTS if each.name == name), None)


_DELTA_SPARK = {
    "appendOnly": "",
    "invariants": "",
    "checkConstraints": "0.8.0",
    "generatedColumns": "1.0.0",
    "columnMapping": "1.2.0",
    "changeDataFeed": "2.0.0",
    LISTS: "2.3.0",
    "deletionVectors": "2.3.0",
    "timestampNtz": "2.4.0",
    "domainMetadata": "3.0.0",
    "icebergCompatV1": "3.0.0",
    "v2Checkpoint": "3.0.0",
    "allowColumnDefaults": "3.1.0",
    "clustering": "3.1.0",
    "icebergCompatV2": "3.1.0",
    "rowTracking": "3.2.0",
    "typeWidening-preview": "3.2.0",
    "vacuumProtocolCheck": "3.2.0",
    "identityColumns": "3.3.0",
    "inCommitTimestamp": "3.3.0",
    "variantType-preview": "3.3.0",
    "checkpointProtection": "4.0.0",
    "typeWidening": "4.0.0",
    "variantShredding-preview": "4.0.0",
    "variantType": "4.0.0",
    "catalogManaged": "4.1.0",
    "materializePartitionColumns": "4.1.0",
    "variantShredding": "4.1.0",
    "geospatial": "4.3.0",
    "icebergCompatV3": "4.3.0",
}
_KERNEL = {
    "appendOnly": "3.3.0",
    "columnMapping": "3.3.0",
    "deletionVectors": "3.3.0",
    "domainMetadata": "3.3.0",
    "inCommitTimestamp": "3.3.0",
    LISTS: "3.3.0",
    "timestampNtz": "3.3.0",
    "typeWidening": "3.3.0",
    "typeWidening-preview": "3.3.0",
    "vacuumProtocolCheck": "3.3.0",
    "variantType-preview": "3.3.0",
    "clustering": "4.0.0",
    "icebergCompatV2": "4.0.0",
    "invariants": "4.0.0",
    "rowTracking": "4.0.0",
    "v2Checkpoint": "4.0.0",
    "variantShredding-preview": "4.0.0",
    "variantType": "4.0.0",
    "catalogManaged": "4.1.0",
    "checkpointProtection": "4.1.0",
    "icebergCompatV3": "4.1.0",
    "materializePartitionColumns": "4.1.0",
    "geospatial": "4.2.0",
    "variantShredding": "4.2.0",
}

CLIENTS: Sequence[ClientData] = (
    ClientData(
        name="spark",
        title="Delta Lake on Apache Spark",
        version="Delta Lake",
        reads={name: since for name, since in _DELTA_SPARK.items() if name in READER_FEATURES},
        writes=_DELTA_SPARK,
        whole=("0.8.0", "4.4"),
        lines=frozenset(
            {(0, minor) for minor in range(1, 9)}
            | {(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4), (3, 0), (3, 1), (3, 2), (3, 3)}
            | {(4, 0), (4, 1), (4, 2), (4, 3), (4, 4)}
        ),
        engine="delta-spark",
        source="docs.delta.io/versioning, and TableFeature.scala by release tag for what it does not name",
        as_of="2026-08",
    ),
    ClientData(
        name="kernel",
        title="Delta Kernel for Java, and what is built on it",
        version="Delta Kernel",
        reads={name: since for name, since in _KERNEL.items() if name in READER_FEATURES},
        writes=_KERNEL,
        whole=("3.3.0", "4.4"),
        # Written to or not by what the table's metadata uses of them.
        open=frozenset(
            {"checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns", "allowColumnDefaults"}
        ),
        engine="kernel",
        source="TableFeatures.java of Delta Kernel by release tag",
        as_of="2026-08",
    ),
    ClientData(
        name="databricks",
        title="Databricks Runtime",
        version="Databricks Runtime",
        reads={"columnMapping": "10.4", "deletionVectors": "12.2"},
        writes={
            "appendOnly": "",
            "invariants": "",
            "checkConstraints": "9.1",
            "changeDataFeed": "9.1",
            "generatedColumns": "9.1",
            "columnMapping": "10.4",
            "identityColumns": "10.4",
            LISTS: "12.2",
            "deletionVectors": "12.2",
            "clustering": "13.3",
            "domainMetadata": "13.3",
            "rowTracking": "14.1",
        },
        engine="databricks",
        source="docs.databricks.com: feature compatibility, deletion vectors, liquid clustering, row tracking",
        as_of="2026-08",
    ),
    ClientData(
        name="deltalake",
        title="delta-rs (the Python package deltalake)",
        version="deltalake",
        reads={
            "columnMapping": "0.14.0",
            "timestampNtz": "0.16.0",
            "deletionVectors": "1.4.0",
            "variantType": "1.6.0",
            "variantType-preview": "1.6.0",
            "v2Checkpoint": "1.6.3",
        },
        writes={
            "appendOnly": "0.14.0",
            "invariants": "0.14.0",
            "checkConstraints": "0.14.0",
            "changeDataFeed": "0.14.0",
            "generatedColumns": "0.14.0",
            LISTS: "0.14.0",
            "timestampNtz": "0.16.0",
            "deletionVectors": "1.4.0",
            "variantType": "1.6.0",
            "variantType-preview": "1.6.0",
            "v2Checkpoint": "1.6.3",
        },
        whole=("0.14.0", "1.6.3"),
        # Its protocol checker admits these; writes of tables that use them are refused, or were, elsewhere in it.
        open=frozenset({"columnMapping", "identityColumns"}),
        engine="delta-rs",
        source="protocol.rs of delta-rs by release tag, which a table's protocol is checked against",
        as_of="2026-08",
    ),
    ClientData(
        name="trino",
        title="Trino, Delta Lake connector",
        version="Trino",
        reads={
            "timestampNtz": "423",
            "deletionVectors": "427",
            "columnMapping": "440",
            "v2Checkpoint": "444",
            "typeWidening": "450",
            "vacuumProtocolCheck": "454",
        },
        writes={
            LISTS: "427",
            "appendOnly": "440",
            "invariants": "440",
            "checkConstraints": "440",
            "changeDataFeed": "440",
            "columnMapping": "440",
            "timestampNtz": "440",
            "deletionVectors": "454",
            "vacuumProtocolCheck": "454",
        },
        whole=("440", "478"),
        source="trino.io: table features of the Delta Lake connector, and release notes, by release",
        as_of="2025-11",
    ),
    ClientData(
        name="athena",
        title="Amazon Athena, engine version 3",
        version="Athena engine",
        reads={"columnMapping": "3", "timestampNtz": "3", "deletionVectors": "3"},
        writes=None,
        whole=("3", "3"),
        source="docs.aws.amazon.com/athena, Query Linux Foundation Delta Lake tables",
        as_of="2026-01",
    ),
    ClientData(
        name="bigquery",
        title="Google BigQuery, Delta Lake tables",
        version="BigQuery",
        reads={"columnMapping": "", "deletionVectors": ""},
        writes=None,
        source="docs.delta.io/bigquery-integration",
        as_of="2025-08",
    ),
    ClientData(
        name="snowflake",
        title="Snowflake, Iceberg tables from Delta files",
        version="Snowflake",
        reads={"deletionVectors": ""},
        writes=None,
        source="docs.snowflake.com, release note of 2026-03-02",
        as_of="2026-03",
    ),
    ClientData(
        name="redshift",
        title="Amazon Redshift Spectrum, by symlink manifests",
        version="Redshift",
        reads={},
        writes=None,
        never={
            "deletionVectors": "it reads manifests, which cannot say that a row is deleted, and Delta writes none then"
        },
        source="docs.delta.io/redshift-spectrum-integration; delta.md 1.3",
        as_of="2025-08",
    ),
    ClientData(
        name="duckdb",
        title="DuckDB, extension delta",
        version="DuckDB",
        reads={"deletionVectors": "0.10.3"},
        writes={},
        source="README of duckdb-delta",
        as_of="2026-08",
    ),
)
"""Every client that is known here, the most common first. The Flink and Hive connectors name no features."""
