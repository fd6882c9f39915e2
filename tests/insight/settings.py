"""Settings that the tests of the matrices share."""

from __future__ import annotations

from typing import Any

from tablectl.insight.conflict_context import ConflictContext
from tablectl.model.operations import ClusterBy, SetProperties
from tests.conflicts.examples import client


def setting(
    who: str = "delta-spark 4.4", *, properties: dict[str, str] | None = None, clustered: bool = False, **more: Any
) -> ConflictContext:
    """A table whose protocol supports what its properties and its clustering need."""
    operations = [SetProperties(((key, value),)) for key, value in (properties or {}).items()]
    return ConflictContext(client=client(who), **more).after(
        [*operations, *([ClusterBy(("id",))] if clustered else [])]
    )


VECTORS = {"delta.enableDeletionVectors": "true"}
EVERYWHERE = (
    setting(),
    setting(partitioned=True),
    setting(clustered=True),
    setting(identity=True),
    setting(properties={"delta.isolationLevel": "WriteSerializable", **VECTORS}),
    setting("delta-spark 3.2"),
    setting("kernel"),
    setting("delta-rs 1.6"),
    setting("unknown"),
    setting("databricks 14.3", properties=VECTORS),
    setting("databricks"),
)
