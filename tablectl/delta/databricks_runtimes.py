"""What each Databricks Runtime can do, as data: one record per feature and action, with its source.

A record says since which runtime a statement works. ``since`` is ``None`` if no source says so: the answer is then
"cannot tell", and nothing is derived from it. A later runtime can do what an earlier one can.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Version = tuple[int, int]
Evidence = Literal["measured", "documented", "third party"]

SERVERLESS = "serverless"
_VERSION = re.compile(r"([1-9][0-9]?)\.([0-9]{1,2})")
_DOCS = "https://docs.databricks.com/aws/en/"
_READ = "2026-11"
_ALL_WRITERS = "every concurrent write, and every stream (D15, D22)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The runtime of an engine."""

    text: str
    """As in ``engine.runtime``: ``15.4``, ``serverless``."""
    version: Version | None
    """``None`` for serverless compute, which is always the newest runtime."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One statement on one feature."""

    feature: str
    action: str
    since: Version | None
    """The first runtime; ``None`` if no source tells."""
    form: str
    """The SQL, as in the source."""
    needs: str = ""
    forbids: str = ""
    protocol: str = ""
    """What it does to the protocol; empty if nothing."""
    fails: str = _ALL_WRITERS
    """Which concurrent transactions fail; empty if none."""
    source: str
    date: str = _READ
    """When the source was read: its editions differ."""
    evidence: Evidence = "documented"

    @property
    def id(self) -> str:
        """Identifies the record: ``clustering: set``."""
        return f"{self.feature}: {self.action}"


CAPABILITIES: tuple[Capability, ...] = (
    Capability(
        feature="isolation",
        action="set",
        since=(9, 1),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable' | 'WriteSerializable')",
        source=_DOCS + "optimizations/isolation-level",
    ),
    Capability(
        feature="column_mapping",
        action="enable",
        since=(10, 4),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        protocol="(2,5), or the feature columnMapping",
        source=_DOCS + "delta/column-mapping",
    ),
    Capability(
        feature="deletion_vectors",
        action="enable",
        since=(12, 2),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)",
        protocol="(3,7) with deletionVectors",
        source=_DOCS + "delta/feature-compatibility",
    ),
    Capability(
        feature="clustering",
        action="set",
        since=(15, 4),
        form="ALTER TABLE t CLUSTER BY (a, b)",
        forbids="partition columns",
        protocol="writer 7 with clustering and domainMetadata",
        source=_DOCS + "delta/clustering",
    ),
    Capability(
        feature="clustering",
        action="auto",
        since=(15, 4),
        form="ALTER TABLE t CLUSTER BY AUTO",
        needs="a managed table of Unity Catalog with predictive optimization",
        protocol="as clustering",
        source=_DOCS + "delta/clustering",
    ),
    Capability(
        feature="clustering",
        action="rewrite all data",
        since=(16, 0),
        form="OPTIMIZE t FULL",
        fails="",
        source="third-party notes about " + _DOCS + "delta/clustering",
        evidence="third party",
    ),
    Capability(
        feature="clustering",
        action="replace partitions in place",
        since=(18, 1),
        form="ALTER TABLE t REPLACE PARTITIONED BY WITH CLUSTER BY [(a, b) | AUTO]",
        needs="a partitioned table, and OPTIMIZE afterwards",
        protocol="writer 7 with clustering",
        fails="unknown: no source says what it does to writers",
        source="third-party notes about " + _DOCS + "delta/clustering",
        evidence="third party",
    ),
    Capability(
        feature="row_tracking",
        action="enable",
        since=(14, 1),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = true)",
        protocol="writer 7 with rowTracking",
        source=_DOCS + "delta/row-tracking",
    ),
    Capability(
        feature="type_widening",
        action="enable",
        since=(15, 2),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = true)",
        protocol="(3,7) with typeWidening",
        source=_DOCS + "delta/type-widening",
    ),
    Capability(
        feature="in_commit_timestamps",
        action="enable",
        since=None,
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = true)",
        protocol="writer 7 with inCommitTimestamp",
        source=_DOCS + "delta/feature-compatibility",
    ),
    Capability(
        feature="drop_feature",
        action="with loss of history",
        since=(14, 3),
        form="ALTER TABLE t DROP FEATURE f TRUNCATE HISTORY",
        needs="two runs, a day apart",
        protocol="the lowest one that fits",
        source=_DOCS + "delta/drop-feature",
    ),
    Capability(
        feature="drop_feature",
        action="without loss of history",
        since=(16, 3),
        form="ALTER TABLE t DROP FEATURE f",
        protocol="the lowest one that fits, with checkpointProtection",
        source=_DOCS + "delta/drop-feature",
    ),
    Capability(
        feature="catalog_commits",
        action="use",
        since=(16, 4),
        form="CREATE TABLE t … TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')",
        needs="a managed table of Unity Catalog",
        protocol="(3,7) with catalogManaged, inCommitTimestamp and vacuumProtocolCheck",
        source=_DOCS + "delta/catalog-commits",
    ),
    Capability(
        feature="catalog_commits",
        action="switch on an existing table",
        since=(18, 0),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')",
        needs="a managed table of Unity Catalog",
        protocol="(3,7) with catalogManaged, inCommitTimestamp and vacuumProtocolCheck",
        source=_DOCS + "delta/catalog-commits",
    ),
    Capability(
        feature="managed",
        action="set",
        since=(17, 0),
        form="ALTER TABLE t SET MANAGED [TRUNCATE UNIFORM HISTORY]",
        needs="an external table of Unity Catalog; readers and writers of runtime 15.4, by name and not by path",
        forbids="running OPTIMIZE jobs",
        source=_DOCS + "tables/convert-external-managed",
    ),
    Capability(
        feature="managed",
        action="unset",
        since=(17, 0),
        form="ALTER TABLE t UNSET MANAGED",
        source=_DOCS + "tables/convert-external-managed",
    ),
    Capability(
        feature="predictive_optimization",
        action="enable, disable or inherit",
        since=(12, 2),
        form="ALTER TABLE t ENABLE | DISABLE | INHERIT PREDICTIVE OPTIMIZATION",
        needs="a managed table of Unity Catalog",
        fails="",
        source=_DOCS + "optimizations/predictive-optimization",
    ),
    Capability(
        feature="row_level_concurrency",
        action="on tables with deletion vectors and without partitions",
        since=(14, 2),
        form="no statement: on by default (D41 to D51)",
        fails="",
        source=_DOCS + "optimizations/isolation-level",
    ),
)


def parse_runtime(text: str) -> Runtime:
    """The runtime that a configuration names. Raises ``ValueError`` that says what is needed."""
    if text == SERVERLESS:
        return Runtime(text=text, version=None)
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ValueError('needs a version of the Databricks Runtime, such as "15.4", or serverless')
    return Runtime(text=text, version=(int(found[1]), int(found[2])))


def capability(feature: str, action: str) -> Capability:
    """One record. Raises ``KeyError`` if there is none."""
    for each in CAPABILITIES:
        if (each.feature, each.action) == (feature, action):
            return each
    raise KeyError(f"{feature}: {action}")


def can(runtime: Runtime, known: Capability) -> bool | None:
    """Whether a runtime has a capability; ``None`` if no source tells."""
    if known.since is None:
        return None
    return True if runtime.version is None else runtime.version >= known.since


def lacking(runtime: Runtime) -> Iterator[Capability]:
    """The capabilities that a runtime does not have, and those of which nothing is known."""
    return (each for each in CAPABILITIES if can(runtime, each) is not True)
