"""What a policy may declare: one optional field per attribute. A field left out is not managed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tablectl.attributes.base import Attribute
from tablectl.attributes.catalogue import canonical_key, find_known, why_refused
from tablectl.attributes.clustering import Clustering
from tablectl.attributes.deletion_vectors import DeletionVectors, DeletionVectorsValue
from tablectl.attributes.isolation import Isolation, IsolationValue
from tablectl.attributes.partitioning import Partitioning
from tablectl.attributes.properties import Properties
from tablectl.model.plan import Change, Value

Columns = tuple[Annotated[str, Field(min_length=1)], ...]


class Policy(BaseModel):
    """The declared attributes of one table. The fields are the registry: their order is the order of plans."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    isolation: IsolationValue | None = Field(
        default=None,
        description="Isolation level of writes, pinned as delta.isolationLevel; `default` leaves it unset.",
    )
    deletion_vectors: DeletionVectorsValue | None = Field(
        default=None,
        description="`enabled`: new deletes may write deletion vectors. `disabled`: no new ones. "
        "`purged`: no new ones, and none left in the current version.",
    )
    clustering: Columns | Literal["none"] | None = Field(
        default=None, description="Liquid clustering columns, in order; nested as a.b, a literal dot in backticks."
    )
    partitioning: Columns | Literal["none"] | None = Field(
        default=None, description="Partition columns, in order. A difference from the live table is refused."
    )
    properties: Mapping[str, str | None] | None = Field(
        default=None, description="Any other table property; null unsets it."
    )


ATTRIBUTES: tuple[Attribute, ...] = (Isolation(), DeletionVectors(), Clustering(), Partitioning(), Properties())
"""One entry per field of ``Policy``, in the same order."""


def check_declarable(change: Change, dialect: str) -> None:
    """Raises ``ValueError`` for a change that no policy can ask for, so that no plan file can ask for it either."""
    keyed = change.attribute == Properties.name
    declared = {change.key: change.after} if keyed else change.after
    if declared is None or bool(change.key) != keyed:
        raise ValueError(f"no policy can ask for {change.id}")
    try:
        Policy.model_validate({change.attribute: declared})
    except ValidationError:
        raise ValueError(f"no policy can declare {change.after!r} of {change.id}") from None
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
    """The attribute of a name; ``KeyError`` for a name that is none."""
    for entry in ATTRIBUTES:
        if entry.name == name:
            return entry
    raise KeyError(name)
