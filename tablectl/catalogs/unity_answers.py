"""Reads the Delta API's answer about one table: ``DeltaLoadTableResponse`` of ``api/delta.yaml``. Pure and strict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tablectl.delta.locations import canonical_location
from tablectl.delta.protocol import READER_FEATURES, Protocol
from tablectl.log.parse_action import (
    FEATURE_LENGTH,
    FEATURES,
    expect_integer,
    expect_object,
    expect_text,
    expect_texts,
    parse_json,
)
from tablectl.model.catalog_answers import CATALOG_FEATURES, CatalogEntry, ManagedTable
from tablectl.model.errors import LiveError
from tablectl.support.json_text import write_json

_FEATURE = "delta.feature."
_READER, _WRITER = "delta.minReaderVersion", "delta.minWriterVersion"
_CLUSTERING = ("delta.clusteringColumns", "clusteringColumns")
"""The key of the specification, then the one that server 0.6.0 answers with."""
_DERIVED = frozenset(
    {
        _READER,
        _WRITER,
        *_CLUSTERING,
        "delta.lastUpdateVersion",
        "delta.lastCommitTimestamp",
        "delta.rowTracking.rowIdHighWaterMark",
    }
)
"""Keys that the catalog adds to the properties of ``metaData`` (``DeltaTableMetadata.properties``)."""
_READER_FEATURES = READER_FEATURES | CATALOG_FEATURES
"""Features that readers must support too. The answer has one list for readers and writers."""
_STAGED = re.compile(r"(?P<version>[0-9]{20})\.[0-9a-fA-F-]{36}\.json")
_MOST_COMMITS = 100_000
_ALL_USERS = "account users"
"""The group of Databricks to which every login belongs."""


def managed_table(answer: Mapping[str, Any], table: str) -> ManagedTable:
    """The state of a table as its catalog tells it. For an external table only the location is reliable.

    Raises ``LiveError`` if the answer has another form, or if the catalog manages the table's commits and its answer is
    not complete.
    """
    try:
        made = _parsed(answer)
    except (ValueError, RecursionError) as error:
        raise LiveError(f"{table}: the catalog's answer cannot be read: {error}") from None
    if not made.managed:
        return made
    newest = made.version
    if newest < 0 or made.metadata_version < 0:
        raise LiveError(f"{table}: the catalog manages the table and does not say its newest version")
    if made.metadata_version > newest or (made.commits and max(made.commits) != newest):
        raise LiveError(f"{table}: the catalog's answer contradicts itself: its commits do not end at version {newest}")
    return made


def _parsed(answer: Mapping[str, Any]) -> ManagedTable:
    metadata = expect_object(answer.get("metadata"), "metadata")
    expect_text(metadata.get("table-type"), "table-type")  # every answer of the API has one
    told = expect_object(metadata.get("properties") or {}, "properties")
    properties = {key: expect_text(value, f"property {key!r}") for key, value in told.items()}
    commits = _commits(answer.get("commits") or [])
    version = _whole(answer.get("latest-table-version"), "latest-table-version")
    return ManagedTable(
        location=canonical_location(expect_text(metadata.get("location"), "location")),
        table_id=expect_text(metadata.get("table-uuid"), "table-uuid"),
        protocol=_protocol(properties),
        schema=write_json(_data_type(expect_object(metadata.get("columns"), "columns"))),
        partition_columns=expect_texts(metadata.get("partition-columns") or [], "partition-columns"),
        properties={
            key: value for key, value in properties.items() if not (key in _DERIVED or key.startswith(_FEATURE))
        },
        clustering=_clustering(properties),
        version=version if version >= 0 else max(commits, default=-1),
        metadata_version=_whole(metadata.get("last-commit-version"), "last-commit-version"),
        etag=expect_text(metadata.get("etag") or "", "etag"),
        commits=commits,
    )


_TYPE_KEYS = {
    "element-type": "elementType",
    "contains-null": "containsNull",
    "key-type": "keyType",
    "value-type": "valueType",
    "value-contains-null": "valueContainsNull",
}
"""The Delta API spells the keys of arrays and maps differently from the log (``DeltaArrayType``, ``DeltaMapType``)."""


def _data_type(value: Any) -> Any:
    """A data type as ``schemaString`` spells it. The metadata of a field is copied unchanged."""
    if isinstance(value, list):
        return [_data_type(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {_TYPE_KEYS.get(key, key): each if key == "metadata" else _data_type(each) for key, each in value.items()}


def _whole(value: object, what: str) -> int:
    """A version of a table; -1 if it is not told."""
    if value is None:
        return -1
    number = expect_integer(value, what)
    if number < 0 or number >= 2**63:
        raise ValueError(f"{what} is not a version")
    return number


def _commits(given: object) -> Mapping[int, str]:
    """The commits that may be unpublished. A file name must not lead anywhere but into the staging directory."""
    if not isinstance(given, list) or len(given) > _MOST_COMMITS:
        raise ValueError("commits is not a list, or too long")
    found: dict[int, str] = {}
    for each in given:
        commit = expect_object(each, "a commit")
        name, version = expect_text(commit.get("file-name"), "file-name"), _whole(commit.get("version"), "version")
        match = _STAGED.fullmatch(name)
        if match is None or int(match["version"]) != version or version in found:
            raise ValueError(f"a commit has the file name {name[:100]!r} for version {commit.get('version')}")
        found[version] = name
    if found and len(found) != max(found) - min(found) + 1:
        raise ValueError("its list of unpublished commits has a gap")
    return found


def through_catalog(properties: Mapping[str, Any]) -> bool:
    """Whether the properties in a list entry say that commits go through the catalog."""
    return any(f"{_FEATURE}{name}" in properties for name in CATALOG_FEATURES)


_OPTIMIZATION = {"ENABLE": "enabled", "DISABLE": "disabled", "INHERIT": "inherit"}
"""``enable_predictive_optimization`` of ``TableInfo`` in Databricks' API, and the values of the policy."""


def catalog_entry(entry: Mapping[str, Any]) -> CatalogEntry:
    """What an entry of the list API says about the table itself. Databricks adds predictive optimization
    (``TableInfo`` of databricks-sdk); the open-source server does not have it. Another value says nothing.
    """
    kind, own = entry.get("table_type"), entry.get("enable_predictive_optimization")
    effective = entry.get("effective_predictive_optimization_flag")
    value = effective.get("value") if isinstance(effective, dict) else own
    return CatalogEntry(
        managed={"MANAGED": True, "EXTERNAL": False}.get(kind) if isinstance(kind, str) else None,
        optimization=_OPTIMIZATION.get(own, "") if isinstance(own, str) else "",
        optimized={"ENABLE": True, "DISABLE": False}.get(value) if isinstance(value, str) else None,
        filtered=_filtered(entry),
        foreign=kind == "FOREIGN",
    )


def identities(me: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """The name of a login, and in lower case all names under which privileges are given to it: its own, those of its
    groups, and the group of all users. Raises ``LiveError`` for an answer without a name.
    """
    name = me.get("userName")
    if not isinstance(name, str) or not name:
        raise LiveError("the workspace does not say who is logged in")
    groups = me.get("groups")
    listed = [each for each in groups if isinstance(each, dict)] if isinstance(groups, list) else []
    names = [name, me.get("id"), _ALL_USERS, *(each.get(key) for each in listed for key in ("display", "value"))]
    return name, frozenset(each.casefold() for each in names if isinstance(each, str) and each)


def privileges(answer: Mapping[str, Any], names: frozenset[str]) -> set[str]:
    """The privileges that a page of effective permissions gives to any of the names (``EffectivePermissionsList`` of
    databricks-sdk).
    """
    found: set[str] = set()
    for given in answer.get("privilege_assignments") or ():
        if isinstance(given, dict) and str(given.get("principal")).casefold() in names:
            held = [each for each in given.get("privileges") or () if isinstance(each, dict)]
            found |= {str(each.get("privilege"))[:100] for each in held}
    return found


def _filtered(entry: Mapping[str, Any]) -> bool | None:
    """``row_filter`` of ``TableInfo`` and ``mask`` of its ``ColumnInfo``. An entry without columns says nothing."""
    columns = entry.get("columns")
    if not isinstance(columns, list) or not columns or not all(isinstance(each, dict) for each in columns):
        return None
    return bool(entry.get("row_filter")) or any(each.get("mask") for each in columns)


def _protocol(properties: Mapping[str, str]) -> Protocol:
    features = frozenset(key.removeprefix(_FEATURE) for key in properties if key.startswith(_FEATURE))
    if len(features) > FEATURES or any(len(name) > FEATURE_LENGTH for name in features):
        raise ValueError("it lists too many features, or one with a long name")
    reader, writer = _version(properties.get(_READER, "1"), _READER), _version(properties.get(_WRITER, "2"), _WRITER)
    if reader < 3 or writer < 7:
        return Protocol(reader, writer, frozenset(), features if writer >= 7 else frozenset())
    return Protocol(reader, writer, features & _READER_FEATURES, features)


def _version(text: str, key: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise ValueError(f"{key} is not a version")
    return int(text)


def _clustering(properties: Mapping[str, str]) -> tuple[tuple[str, ...], ...] | None:
    text = next((properties[key] for key in _CLUSTERING if key in properties), None)
    if text is None:
        return None
    columns = parse_json(text.encode())
    if not isinstance(columns, list):
        raise ValueError("clusteringColumns is not a list")
    parsed = tuple((col,) if isinstance(col, str) else expect_texts(col, "a clustering column") for col in columns)
    if not all(parsed):
        raise ValueError("a clustering column has no name")
    return parsed
