"""Parses the JSON of a single action into a plain value. Pure, and strict: the log is written by other programs.

Every function takes a parser's output (JSON or Parquet). It raises ``ValueError`` if the value is not the action that
the Delta protocol describes ("Actions"). Unknown fields are ignored, as the protocol requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from tablectl.delta import keys
from tablectl.delta.protocol import Protocol
from tablectl.model.commit import AppTransaction
from tablectl.support.json_text import JsonBudgetError, check_json, read_json, write_json

CLUSTERING = keys.CLUSTERING_DOMAIN
ROW_TRACKING = keys.ROW_TRACKING_DOMAIN
_TABLE_FEATURES = (3, 7)
_LIQUID, _ZCUBE, _ZCUBE_COLUMNS = "liquid", "ZCUBE_ID", "ZCUBE_ZORDER_BY"
_MARK_LIMIT = 10_000
ACTION_BYTES = 32 << 20
"""The maximum size of all actions in one commit that do not concern files."""
DOMAINS = 10_000
"""The maximum number of domains of one table."""
FEATURES = 1_000
"""The maximum number of table features in a protocol, which reports list; Delta has about thirty."""
FEATURE_LENGTH = 200
"""The maximum length of a feature's name in characters."""
PATH_LENGTH = 1 << 16
"""The maximum length of a data file's path, in characters."""
HINT_BYTES = 1 << 20
"""The maximum size of ``_last_checkpoint``. A real one has at most a few kilobytes."""
STATE_BYTES = 32 << 20
"""The maximum size of the protocol, the metadata and the domains in a checkpoint, unpacked and decoded."""
STATE_VALUES = 500_000
"""The maximum number of values in each of their columns."""
PARTITIONS = ("add.partitionValues",)
MARKS = ("add.tags", "add.clusteringProvider")
STATISTICS = ("add.stats",)
"""The columns of a checkpoint with the partitions of files, their marks of clustering, and their statistics."""


class BudgetError(JsonBudgetError):
    """A part of a log exceeds a limit."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """A ``metaData`` action, with its schema still as text."""

    table_id: str
    schema: str | None
    """``None`` if the action has none, as in the first commit of some Databricks pipelines. A later commit sets it."""
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """A ``domainMetadata`` action: the configuration of a domain from this version on, or its removal."""

    name: str
    configuration: str
    removed: bool


Partition = tuple[tuple[str, str | None], ...]
"""The values of a file's partition columns, sorted by physical name."""


@dataclass(frozen=True, slots=True)
class FileAction:
    """An ``add`` or ``remove``. ``key`` is the path with the deletion vector: the identity that log replay uses."""

    key: tuple[str, str]
    added: bool
    size: int
    partition: Partition = ()
    cluster: str = ""
    """The text that says by which columns the file is clustered; "" if there is none."""
    data_change: bool = field(default=True, compare=False)
    """Whether the commit changes rows with it. Checkpoints do not tell it."""
    statistics: str = field(default="", compare=False)
    """Its statistics as JSON, if they were requested; "" if it has none."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The totals of a version's files."""

    files: int = 0
    bytes: int = 0
    vectors: int = 0

    def plus(self, other: Counts) -> Counts:
        """The sum of both."""
        return Counts(self.files + other.files, self.bytes + other.bytes, self.vectors + other.vectors)


def parse_json(raw: bytes) -> Any:
    """Parses one JSON value. Raises ``ValueError`` for other text, including JSON that Python can read but
    not encode.
    """
    check_json(raw)
    try:
        text = raw.decode()
        value = read_json(text)
        if "\\u" in text and ("\\ud" in text or "\\uD" in text):
            write_json(value, ascii=False).encode()
    except UnicodeError:
        raise ValueError("the text is not valid Unicode") from None
    return value


def expect_object(value: object, what: str) -> dict[str, Any]:
    """Returns a JSON object unchanged. Raises ``ValueError`` for other types."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not an object")
    return value


def expect_text(value: object, what: str) -> str:
    """Returns a string unchanged. Raises ``ValueError`` for other types."""
    if not isinstance(value, str):
        raise ValueError(f"{what} is not text")
    return value


def expect_integer(value: object, what: str) -> int:
    """Returns an integer unchanged. Raises ``ValueError`` for other types, including booleans."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{what} is not an integer")
    return value


def expect_texts(value: object, what: str) -> tuple[str, ...]:
    """Returns a list of strings as a tuple. Raises ``ValueError`` for other types."""
    if not isinstance(value, list):
        raise ValueError(f"{what} is not a list")
    return tuple(expect_text(item, f"an entry of {what}") for item in value)


def parse_protocol(value: object) -> Protocol:
    """Parses a ``protocol`` action. Feature lists are ignored below reader 3 and writer 7."""
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
    """A feature list. The protocol requires it even if it is empty."""
    names = expect_texts(action.get(key), key)
    if len(names) > FEATURES or any(len(name) > FEATURE_LENGTH for name in names):
        raise BudgetError(f"{key} has more than {FEATURES:,} names, or one of more than {FEATURE_LENGTH} characters")
    return frozenset(names)


def parse_metadata(value: object) -> Metadata:
    """Parses a ``metaData`` action. Properties without a value (older delta-rs wrote some) are dropped."""
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
    """Parses a ``domainMetadata`` action."""
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
    """Parses a ``txn`` action. Its time is optional, and some writers set it to null."""
    action = expect_object(value, "txn")
    updated = action.get("lastUpdated")
    return AppTransaction(
        app_id=expect_text(action.get("appId"), "appId"),
        version=expect_integer(action.get("version"), "the txn's version"),
        last_updated=0 if updated is None else expect_integer(updated, "lastUpdated"),
    )


def parse_clustering(configuration: str) -> tuple[tuple[str, ...], ...]:
    """The physical column paths in the ``delta.clustering`` domain.

    Delta writes a list of name parts for each column, while the protocol's text shows a flat string. Both are accepted
    (delta-4).
    """
    domain = expect_object(parse_json(configuration.encode()), "the clustering domain")
    columns = domain.get("clusteringColumns")
    if not isinstance(columns, list):
        raise ValueError("clusteringColumns is not a list")
    parsed = tuple((col,) if isinstance(col, str) else expect_texts(col, "a clustering column") for col in columns)
    if not all(parsed):
        raise ValueError("a clustering column has no name")
    return parsed


def parse_file(kind: str, value: object, *, statistics: bool = False) -> FileAction:
    """Parses the parts of an ``add`` or ``remove`` action that counting needs. Writers URL-encode paths differently.

    The statistics of a file are longer than all its other parts, so they are kept only if they are asked for.
    """
    action = expect_object(value, kind)
    size, vector = action.get("size"), action.get("deletionVector")
    stats = action.get("stats") if statistics else None
    path = expect_text(action.get("path"), "path")
    if len(path) > PATH_LENGTH:
        raise ValueError(f"a path has {len(path):,} characters")
    return FileAction(
        key=(unquote(path), vector_id(vector)),
        added=kind == "add",
        size=0 if size is None else expect_integer(size, "size"),
        partition=parse_partition(action.get("partitionValues")),
        cluster=cluster_mark(action.get("tags"), action.get("clusteringProvider")),
        data_change=action.get("dataChange") is not False,
        statistics=stats if isinstance(stats, str) else "",
    )


def parse_partition(value: object) -> Partition:
    """The partition values of a file; empty for a ``remove`` without them. Parquet represents a map as a list
    of pairs.
    """
    if isinstance(value, list) and all(isinstance(each, tuple) for each in value):
        value = dict(value)
    pairs = {} if value is None else expect_object(value, "partitionValues")
    return tuple(sorted((column, _partition_value(each)) for column, each in pairs.items()))


def _partition_value(value: object) -> str | None:
    """A number counts as its text, as in Delta's own parser (Jackson)."""
    text = write_json(value) if isinstance(value, int | float) else value
    return None if text is None else expect_text(text, "a partition value")


def cluster_mark(tags: object, provider: object) -> str:
    """The text that says by which columns a file is clustered: Delta's tag, otherwise another clustering provider.

    Tags are only hints, so tags that are not a map of texts are ignored.
    """
    if isinstance(provider, str) and provider not in {"", _LIQUID}:
        return f"by {provider}"[:_MARK_LIMIT]
    known = tags if isinstance(tags, dict) else {}
    if isinstance(tags, list):  # Parquet represents a map as a list of pairs
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
