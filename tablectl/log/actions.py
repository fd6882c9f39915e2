"""From the JSON of one action to a plain value. Pure, and strict: the log is written by others.

Every function takes what a parser gave (JSON or Parquet) and raises ``ValueError`` where it is not the action that the
Delta protocol describes ("Actions"). Unknown fields are ignored, as the protocol demands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from tablectl.delta.protocol import Protocol
from tablectl.log.budget import PATH_LENGTH, check_json
from tablectl.model.table import AppTransaction

CLUSTERING = "delta.clustering"
ROW_TRACKING = "delta.rowTracking"
_TABLE_FEATURES = (3, 7)
_LIQUID, _ZCUBE, _ZCUBE_COLUMNS = "liquid", "ZCUBE_ID", "ZCUBE_ZORDER_BY"
_MARK_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Metadata:
    """A ``metaData`` action, its schema still as text."""

    table_id: str
    schema: str | None
    """``None`` where the action has none, as the first commit of some Databricks pipelines: a later one brings it."""
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """A ``domainMetadata`` action: what one domain says from this version on, or that it ended."""

    name: str
    configuration: str
    removed: bool


Partition = tuple[tuple[str, str | None], ...]
"""The values of a file's partition columns, by physical name and in its order."""


@dataclass(frozen=True, slots=True)
class FileAction:
    """An ``add`` or ``remove``. ``key`` is the file with its deletion vector: what log replay reconciles by."""

    key: tuple[str, str]
    added: bool
    size: int
    partition: Partition = ()
    cluster: str = ""
    """What tells by which columns the file is clustered, as it stands there; "" where nothing does."""


def parse_json(raw: bytes) -> Any:
    """One JSON value. Raises ``ValueError`` for anything else, what Python reads but cannot print included."""
    check_json(raw)
    try:
        text = raw.decode()
        value = json.loads(text)
        if "\\u" in text and ("\\ud" in text or "\\uD" in text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeError:
        raise ValueError("the text is not valid Unicode") from None
    return value


def expect_object(value: object, what: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no object")
    return value


def expect_text(value: object, what: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise ValueError(f"{what} is no text")
    return value


def expect_integer(value: object, what: str) -> int:
    """An integer; JSON's ``true`` is none, though Python's is."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{what} is no integer")
    return value


def expect_texts(value: object, what: str) -> tuple[str, ...]:
    """A list of strings."""
    if not isinstance(value, list):
        raise ValueError(f"{what} is no list")
    return tuple(expect_text(item, f"an entry of {what}") for item in value)


def parse_protocol(value: object) -> Protocol:
    """A ``protocol`` action. The feature lists belong to reader 3 and writer 7 and are ignored below."""
    action = expect_object(value, "protocol")
    reader = expect_integer(action.get("minReaderVersion"), "minReaderVersion")
    writer = expect_integer(action.get("minWriterVersion"), "minWriterVersion")
    return Protocol(
        reader=reader,
        writer=writer,
        reader_features=_features(action, "readerFeatures") if reader >= _TABLE_FEATURES[0] else frozenset(),
        writer_features=_features(action, "writerFeatures") if writer >= _TABLE_FEATURES[1] else frozenset(),
    )


def _features(action: dict[str, Any], key: str) -> frozenset[str]:
    """A feature list where one is due: the protocol wants it there even if it is empty."""
    return frozenset(expect_texts(action.get(key), key))


def parse_metadata(value: object) -> Metadata:
    """A ``metaData`` action. A property without a value (older delta-rs wrote some) is no property."""
    action = expect_object(value, "metaData")
    schema = action.get("schemaString")
    properties = expect_object(action.get("configuration"), "configuration")
    return Metadata(
        table_id=expect_text(action.get("id"), "the table's id"),
        schema=None if schema is None else expect_text(schema, "schemaString"),
        partition_columns=expect_texts(action.get("partitionColumns"), "partitionColumns"),
        properties=MappingProxyType(
            {key: expect_text(each, f"property {key!r}") for key, each in properties.items() if each is not None}
        ),
    )


def parse_domain(value: object) -> DomainMetadata:
    """A ``domainMetadata`` action."""
    action = expect_object(value, "domainMetadata")
    removed, configuration = action.get("removed"), action.get("configuration")
    if not isinstance(removed, bool) and removed is not None:
        raise ValueError("removed is neither true nor false")
    return DomainMetadata(
        name=expect_text(action.get("domain"), "domain"),
        configuration="" if configuration is None else expect_text(configuration, "configuration"),
        removed=bool(removed),
    )


def parse_transaction(value: object) -> AppTransaction:
    """A ``txn`` action. Its time is optional, and some writers leave it null."""
    action = expect_object(value, "txn")
    updated = action.get("lastUpdated")
    return AppTransaction(
        app_id=expect_text(action.get("appId"), "appId"),
        version=expect_integer(action.get("version"), "the txn's version"),
        last_updated=0 if updated is None else expect_integer(updated, "lastUpdated"),
    )


def parse_clustering(configuration: str) -> tuple[tuple[str, ...], ...]:
    """The physical column paths in the ``delta.clustering`` domain.

    Delta writes a list of name parts for each column; the protocol's text shows a flat string: both are taken
    (delta-4).
    """
    domain = expect_object(parse_json(configuration.encode()), "the clustering domain")
    columns = domain.get("clusteringColumns")
    if not isinstance(columns, list):
        raise ValueError("clusteringColumns is no list")
    parsed = tuple((col,) if isinstance(col, str) else expect_texts(col, "a clustering column") for col in columns)
    if not all(parsed):
        raise ValueError("a clustering column has no name")
    return parsed


def parse_file(kind: str, value: object) -> FileAction:
    """An ``add`` or ``remove`` action, as far as counting needs it. Each writer URL-encodes paths in its way."""
    action = expect_object(value, kind)
    size, vector = action.get("size"), action.get("deletionVector")
    return FileAction(
        key=(unquote(_path(action.get("path"))), vector_id(vector)),
        added=kind == "add",
        size=0 if size is None else expect_integer(size, "size"),
        partition=parse_partition(action.get("partitionValues")),
        cluster=cluster_mark(action.get("tags"), action.get("clusteringProvider")),
    )


def _path(value: object) -> str:
    path = expect_text(value, "path")
    if len(path) > PATH_LENGTH:
        raise ValueError(f"a path has {len(path):,} characters")
    return path


def parse_partition(value: object) -> Partition:
    """The partition of a file: nothing of a ``remove`` that does not say it. Parquet has a map as a list of pairs."""
    pairs = dict(value) if isinstance(value, list) else {} if value is None else expect_object(value, "partitionValues")
    return tuple(sorted((str(column), None if each is None else str(each)) for column, each in pairs.items()))


def cluster_mark(tags: object, provider: object) -> str:
    """What tells by which columns a file is clustered: Delta's tag, else whoever else clustered it.

    Tags are only hints, so those that are no map of texts count as none.
    """
    if isinstance(provider, str) and provider not in {"", _LIQUID}:
        return f"by {provider}"[:_MARK_LIMIT]
    known = tags if isinstance(tags, dict) else {}
    if isinstance(tags, list):  # Parquet's way to have a map
        known = dict(each for each in tags if isinstance(each, tuple))
    mark = known.get(_ZCUBE_COLUMNS)
    if isinstance(mark, str) and isinstance(known.get(_ZCUBE), str):
        return mark[:_MARK_LIMIT]
    return "[]" if provider == _LIQUID else ""


def vector_id(value: object) -> str:
    """The unique id of a deletion vector, "" for none (Delta protocol, "Deletion Vector Descriptor Schema")."""
    if value is None:
        return ""
    vector = expect_object(value, "deletionVector")
    place = expect_text(vector.get("pathOrInlineDv"), "pathOrInlineDv")
    offset = vector.get("offset")
    return f"{expect_text(vector.get('storageType'), 'storageType')}{place}" + ("" if offset is None else f"@{offset}")
