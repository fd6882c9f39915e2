"""What a policy may declare: one optional field per attribute. A field left out is not managed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tablectl.attributes.base import Attribute
from tablectl.attributes.clustering import Clustering
from tablectl.attributes.deletion_vectors import DeletionVectors, DeletionVectorsValue
from tablectl.attributes.isolation import Isolation, IsolationValue
from tablectl.attributes.partitioning import Partitioning
from tablectl.attributes.properties import Properties

Columns = tuple[Annotated[str, Field(min_length=1)], ...]


class Policy(BaseModel):
    """The declared attributes of one table. The fields are the registry: their order is the order of plans."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    isolation: IsolationValue | None = Field(
        None, description="Isolation level of writes, pinned as delta.isolationLevel; `default` leaves it unset."
    )
    deletion_vectors: DeletionVectorsValue | None = Field(
        None,
        description="`enabled`: new deletes may write deletion vectors. `disabled`: no new ones. "
        "`purged`: no new ones, and none left in the current version.",
    )
    clustering: Columns | Literal["none"] | None = Field(
        None, description="Liquid clustering columns, in order; nested as a.b, a literal dot in backticks."
    )
    partitioning: Columns | Literal["none"] | None = Field(
        None, description="Partition columns, in order. A difference from the live table is refused."
    )
    properties: Mapping[str, str | None] | None = Field(None, description="Any other table property; null unsets it.")


ATTRIBUTES: tuple[Attribute, ...] = (Isolation(), DeletionVectors(), Clustering(), Partitioning(), Properties())
"""One entry per field of ``Policy``, in the same order."""


def attribute(name: str) -> Attribute:
    """The attribute of a name; ``KeyError`` for a name that is none."""
    for entry in ATTRIBUTES:
        if entry.name == name:
            return entry
    raise KeyError(name)
