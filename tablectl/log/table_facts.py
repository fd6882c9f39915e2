"""Interprets the state in a log as the facts of a live table. Rejects tables that must not be interpreted. Pure."""

from __future__ import annotations

from types import MappingProxyType

from tablectl.delta import keys
from tablectl.delta.names import ColumnPath
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import Schema, parse_schema
from tablectl.log.actions import DomainMetadata, Metadata, parse_clustering
from tablectl.model.errors import LiveError
from tablectl.model.managed_table import CATALOG_FEATURES
from tablectl.model.text import cut

_READER = 3
_KNOWN = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "geospatial",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Reader features that do not change where protocol, metadata and domains are stored (delta-1.13)."""
_CATALOG_PROPERTIES = (
    keys.UNITY_TABLE_ID,
    "ucTableId",
    "delta.coordinatedCommits.commitCoordinator",
    "delta.coordinatedCommits.commitCoordinator-preview",
)
_MAPPED = frozenset({"name", "id"})


def catalog_managed(location: str, why: str) -> LiveError:
    """The error for a table whose newest commits are known only to its catalog (delta-1.11)."""
    return LiveError(
        f"{location}: the table is managed by its catalog ({why}): its log alone does not say what it is now",
        "name it as catalog.schema.table, without `location`, with its catalog under `catalogs` in tablectl.yaml "
        "(docs/unity-catalog.md)",
    )


def check_protocol(protocol: Protocol, location: str, *, through_catalog: bool = False) -> None:
    """Rejects a table that this reader could misread. Raises ``LiveError`` with the name of the feature.

    ``through_catalog`` says that the catalog's answer was read, too.
    """
    managed = sorted((protocol.reader_features | protocol.writer_features) & CATALOG_FEATURES)
    if managed and not through_catalog:
        raise catalog_managed(location, f"feature {managed[0]}")
    if protocol.reader > _READER:
        raise LiveError(
            f"{location}: the table asks for reader version {protocol.reader}, known is up to {_READER}",
            "nothing of it is interpreted; a newer tablectl may know it",
        )
    unknown = sorted(protocol.reader_features - _KNOWN - CATALOG_FEATURES)
    if unknown:
        raise LiveError(
            f"{location}: the table asks for the reader feature{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}, "
            "unknown here",
            "nothing of it is interpreted; a newer tablectl may know it, or drop the feature",
        )


def check_properties(metadata: Metadata, location: str) -> None:
    """Rejects a table whose properties show that a catalog or coordinator has its newest commits. Raises
    ``LiveError``.
    """
    for key in _CATALOG_PROPERTIES:
        if metadata.properties.get(key):
            raise catalog_managed(location, f"property {key}")


def read_schema(metadata: Metadata, location: str) -> Schema:
    """The schema. It has physical names only if columns are mapped. Raises ``LiveError`` if it cannot be read."""
    if metadata.schema is None:
        raise LiveError(
            f"{location}: the table's metaData has no schemaString", "set a schema, or create the table again"
        )
    try:
        return parse_schema(metadata.schema)
    except (ValueError, RecursionError) as error:
        raise LiveError(f"{location}: the schema in the table's metaData cannot be read: {error}") from error


def read_clustering(
    protocol: Protocol, metadata: Metadata, domain: DomainMetadata | None, schema: Schema, location: str
) -> tuple[ColumnPath, ...] | None:
    """The clustering columns by logical name, as Delta derives them. The feature in the protocol enables clustering,
    the domain lists the columns, and without a domain there are no columns (delta-4).
    """
    if not protocol.has("clustering"):
        return None
    if domain is None or domain.removed:
        return ()
    try:
        physical = parse_clustering(domain.configuration)
    except ValueError as error:
        raise LiveError(f"{location}: the domain delta.clustering cannot be read: {error}") from error
    return logical_columns(physical, metadata, schema, location)


def logical_columns(
    physical: tuple[ColumnPath, ...], metadata: Metadata, schema: Schema, location: str
) -> tuple[ColumnPath, ...]:
    """The logical names of clustering columns. Raises ``LiveError`` for a column that the schema does not have."""
    mapped = metadata.properties.get(keys.COLUMN_MAPPING, "none").lower() in _MAPPED
    return tuple(_logical(schema, path, location, mapped=mapped) for path in physical)


def _logical(schema: Schema, path: tuple[str, ...], location: str, *, mapped: bool) -> ColumnPath:
    if mapped:
        logical = schema.logical(path)
    else:
        found = schema.find(path)
        logical = found[0] if found else None
    if logical is None:
        raise LiveError(f"{location}: the table is clustered by {'.'.join(path)}, a column its schema does not have")
    return logical


def frozen_properties(metadata: Metadata) -> MappingProxyType[str, str]:
    """The table's properties from ``metaData``. A long value is replaced by its beginning and digest."""
    return MappingProxyType({key: cut(value) for key, value in metadata.properties.items()})
