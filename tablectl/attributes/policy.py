"""The attributes that a policy may declare, one optional field each. An omitted field is not managed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tablectl.attributes.base import Attribute
from tablectl.attributes.clustering import DATA, Clustering
from tablectl.attributes.column_mapping import ColumnMapping, ColumnMappingValue
from tablectl.attributes.deletion_vectors import MANIFEST_KEY, DeletionVectors, DeletionVectorsValue
from tablectl.attributes.isolation import Isolation, IsolationValue
from tablectl.attributes.partitioning import Partitioning
from tablectl.attributes.properties import Properties
from tablectl.attributes.row_tracking import RowTracking, RowTrackingValue
from tablectl.attributes.uniform import Uniform, UniformValue
from tablectl.delta.properties import canonical_key, find_known, why_refused
from tablectl.model.plan import Change, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

Columns = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The declared attributes of one table. The field order is the order of attributes in plans.

    Raises ``ValueError`` for a value that an attribute's ``shape`` does not admit.
    """

    isolation: IsolationValue | None = None
    deletion_vectors: DeletionVectorsValue | None = None
    clustering: Columns | Literal["none"] | None = None
    partitioning: Columns | Literal["none"] | None = None
    row_tracking: RowTrackingValue | None = None
    column_mapping: ColumnMappingValue | None = None
    uniform: UniformValue | None = None
    properties: Mapping[str, str | None] | None = None

    def __post_init__(self) -> None:
        for name, value in self.declared().items():
            if not attribute(name).shape.admits(value):
                raise ValueError(f"no policy can declare {value!r} of {name}")

    def declared(self) -> dict[str, str | tuple[str, ...] | Mapping[str, str | None]]:
        """The managed attributes and their declared values."""
        values = ((entry.name, getattr(self, entry.name)) for entry in ATTRIBUTES)
        return {name: value for name, value in values if value is not None}

    def values(self) -> Iterator[tuple[str, str, Value]]:
        """Each managed value: attribute, property key (empty for other attributes), value. Each property is a separate
        item.
        """
        for name, value in self.declared().items():
            if isinstance(value, Mapping):
                yield from ((name, key, text) for key, text in value.items())
            else:
                yield name, "", value


ATTRIBUTES: tuple[Attribute, ...] = (
    Isolation(),
    DeletionVectors(),
    Clustering(),
    Partitioning(),
    RowTracking(),
    ColumnMapping(),
    Uniform(),
    Properties(),
)
"""One entry per field of ``Policy``, in the same order."""


_BY_SIZE = frozenset(
    {
        (RowTracking.name, "enabled"),
        (ColumnMapping.name, "none"),
        (Uniform.name, "iceberg_v2"),
        (Clustering.name, "clustered"),
    }
)
CLUSTERED_DATA = f"{Clustering.name}.{DATA}"
"""The id of the change that makes the data follow the clustering columns."""


def needs_vectors(name: str, key: str, declared: Value) -> bool:
    """Whether a declaration depends on the table's number of deletion vectors. If so, and no checksum has the number,
    the vectors are counted.
    """
    match name:
        case DeletionVectors.name:
            return declared in {"purged", "dropped"}
        case Uniform.name:
            return declared == "iceberg_v1"
        case Properties.name:
            return key == MANIFEST_KEY and str(declared).lower() == "true"
        case _:
            return False


def needs_size(change: Change) -> bool:
    """Whether the cost of a change depends on the table's files and bytes. If so, and no checksum has them, they are
    counted.
    """
    return rewrites(change) or (change.attribute, change.after) in _BY_SIZE


def rewrites(change: Change) -> bool:
    """Whether a change rewrites the whole table."""
    return change.attribute == Partitioning.name


def needs_marks(name: str, declared: Value, live: LiveTable, options: TableOptions) -> bool:
    """Whether a declaration depends on how the table's data is clustered: the data must follow, or the
    columns change.
    """
    if name != Clustering.name or not isinstance(declared, tuple):
        return False
    return options.optimize != "never" or not Clustering().agrees(Clustering().read(live, ""), declared, "")


def needs_truncation(name: str, declared: Value, options: TableOptions) -> bool:
    """Whether a declaration depends on the age of the history."""
    return name == DeletionVectors.name and declared == "dropped" and options.truncate_history


def check_declarable(change: Change, dialect: str) -> None:
    """Raises ``ValueError`` for a change that no policy can declare. A plan file must not contain one either."""
    if (change.attribute, change.key) == (Clustering.name, DATA):
        if (change.before, change.after) != ("outdated", "clustered"):
            raise ValueError(f"no policy can ask for {change.id}")
        return
    keyed = change.attribute == Properties.name
    declared = {change.key: change.after} if keyed else change.after
    if declared is None or bool(change.key) != keyed:
        raise ValueError(f"no policy can ask for {change.id}")
    if not any(entry.name == change.attribute and entry.shape.admits(declared) for entry in ATTRIBUTES):
        raise ValueError(f"no policy can declare {change.after!r} of {change.id}")
    if keyed:
        _check_property(change.key, change.after, dialect)


def _check_property(key: str, value: Value, dialect: str) -> None:
    refused = why_refused(key, dialect)
    if refused or canonical_key(key, dialect) != key:
        raise ValueError(refused[0] if refused else f"{key} is spelled {canonical_key(key, dialect)}")
    known = find_known(key, dialect)
    if known and isinstance(value, str):
        known.parse(value)


def attribute(name: str) -> Attribute:
    """The attribute with this name. Raises ``KeyError`` if there is none."""
    for entry in ATTRIBUTES:
        if entry.name == name:
            return entry
    raise KeyError(name)
