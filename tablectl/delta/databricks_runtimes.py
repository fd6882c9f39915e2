"""What each Databricks Runtime can do, as data: one record per feature and action, with its source. And who ran a form
of statement there.

A record says since which runtime a statement works. ``since`` is ``None`` if no source says so: the answer is then
"cannot tell", and nothing is derived from it. A later runtime can do what an earlier one can.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from tablectl.delta import keys

Version = tuple[int, int]
Evidence = Literal["", "third party"]

SERVERLESS = "serverless"
_VERSION = re.compile(r"([1-9][0-9]?)\.([0-9]{1,2})")
_DOCS = "https://docs.databricks.com/aws/en/"
_AZURE = "https://learn.microsoft.com/en-us/azure/databricks/"
_COMPATIBILITY = _DOCS + "delta/feature-compatibility"
_CATALOG_COMMITS = "https://docs.databricks.com/gcp/en/delta/catalog-managed-commits"
_SEEN = "2026-11-22"
ANY = ""
"""In ``Capability.properties``: every value."""
COLUMNS = "columns"
"""In ``Capability.values``: a list of columns."""
TRUNCATED = " with truncate_history"
"""In ``Capability.values``: after a value, if the policy accepts the loss of history."""
_ALL_WRITERS = "every concurrent write, and every stream (D15, D22)"
_UNSAID = "unknown: no source says what it does to concurrent writes"


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
    values: tuple[str, ...] = ()
    """The policy values of the attribute ``feature`` that need it."""
    properties: tuple[tuple[str, str], ...] = ()
    """The table properties whose values need it."""
    needs: str = ""
    forbids: str = ""
    protocol: str = ""
    """What it does to the protocol; empty if nothing."""
    knows: str = ""
    """The table feature that runtimes read and write since then; empty if it says nothing of that."""
    fails: str = _ALL_WRITERS
    """Which concurrent transactions fail."""
    source: str
    date: str = _SEEN
    """When a public copy of the source was read: its editions differ."""
    evidence: Evidence = ""
    """How it is known otherwise than by the documentation."""
    ran: str = ""
    """The form of statement that runs it, by its id; empty if it is one of many, such as SET TBLPROPERTIES."""

    @property
    def first(self) -> str:
        """The first runtime: ``15.4``; empty if no source tells."""
        return ".".join(map(str, self.since)) if self.since else ""

    @property
    def cited(self) -> str:
        """How it is known: ``documented only, seen on 2026-11-22: https://…``."""
        return f"{self.evidence or databricks_evidence(self.ran)}, seen on {self.date}: {self.source}"


CAPABILITIES: tuple[Capability, ...] = (
    Capability(
        feature="isolation",
        action="set",
        since=(9, 1),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable' | 'WriteSerializable')",
        properties=((keys.ISOLATION_LEVEL, ANY),),
        needs="the page names no runtime, and 9.1 is the oldest one in the documentation",
        source=_DOCS + "optimizations/isolation-level",
    ),
    Capability(
        feature="column_mapping",
        action="enable",
        since=(10, 4),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        properties=((keys.COLUMN_MAPPING, "name"),),
        protocol="(2,5), or the feature columnMapping",
        knows="columnMapping",
        source=_COMPATIBILITY,
    ),
    Capability(
        feature="deletion_vectors",
        action="enable",
        since=(12, 2),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)",
        properties=((keys.DELETION_VECTORS, "true"),),
        protocol="(3,7) with deletionVectors",
        knows="deletionVectors",
        source=_COMPATIBILITY,
    ),
    Capability(
        feature="features",
        action="drop with loss of history",
        since=(14, 3),
        form="ALTER TABLE t DROP FEATURE f TRUNCATE HISTORY",
        values=(f"dropped{TRUNCATED}",),
        needs="two runs, a day apart",
        protocol="the lowest one that fits",
        source=_DOCS + "archive/legacy/drop-feature-legacy",
    ),
    Capability(
        feature="features",
        action="drop without loss of history",
        since=(16, 3),
        form="ALTER TABLE t DROP FEATURE f",
        values=("dropped",),
        needs="one edition of the page says 16.4",
        protocol="the lowest one that fits, with checkpointProtection",
        source=_AZURE + "delta/drop-feature",
    ),
    Capability(
        feature="clustering",
        action="set",
        since=(13, 3),
        form="ALTER TABLE t CLUSTER BY (a, b)",
        ran="cluster by",
        values=(COLUMNS,),
        needs="statistics of the columns. A preview until 15.4 (one edition of the page: 15.2)",
        forbids="partition columns",
        protocol="writer 7 with clustering and domainMetadata",
        fails=_UNSAID,
        knows="clustering",
        source=_DOCS + "sql/language-manual/sql-ref-syntax-ddl-cluster-by",
    ),
    Capability(
        feature="clustering",
        action="auto",
        since=(15, 4),
        form="ALTER TABLE t CLUSTER BY AUTO",
        values=("auto",),
        needs="a managed table of Unity Catalog with predictive optimization",
        forbids="partition columns",
        protocol="as clustering",
        fails=_UNSAID,
        source=_DOCS + "sql/language-manual/sql-ref-syntax-ddl-cluster-by",
    ),
    Capability(
        feature="clustering",
        action="rewrite all data",
        since=(16, 0),
        form="OPTIMIZE t FULL",
        needs="one edition of the page of clustering says 16.4",
        fails="OPTIMIZE with ZORDER BY, and writes to the same files without deletion vectors (D34, D35)",
        source="https://docs.azure.cn/en-us/databricks/delta/optimize",
    ),
    Capability(
        feature="clustering",
        action="replace partitions in place",
        since=(18, 1),
        form="ALTER TABLE t REPLACE PARTITIONED BY WITH CLUSTER BY [(a, b) | AUTO]",
        needs="a partitioned table, and OPTIMIZE afterwards; with AUTO a managed table of Unity Catalog",
        forbids="streaming tables and materialized views of pipelines",
        protocol="writer 7 with clustering",
        fails=_UNSAID,
        source="notes of third parties that quote " + _DOCS + "tables/clustering",
        evidence="third party",
    ),
    Capability(
        feature="partitioning",
        action="rewrite",
        since=(9, 1),
        form="df.write.mode('overwrite').option('overwriteSchema', True).partitionBy(…).saveAsTable(t)",
        values=(COLUMNS, "none"),
        needs="a user who sees every row and value of the table. The page names no runtime, and 9.1 is the oldest one "
        "in the documentation",
        forbids="row filters, column masks, generated and identity columns",
        source=_DOCS + "error-messages/delta-metadata-mismatch-error-class",
    ),
    Capability(
        feature="row_tracking",
        action="enable",
        since=(14, 1),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = true)",
        properties=((keys.ROW_TRACKING, "true"),),
        protocol="writer 7 with rowTracking",
        knows="rowTracking",
        source=_DOCS + "delta/row-tracking",
    ),
    Capability(
        feature="type_widening",
        action="enable",
        since=(15, 2),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = true)",
        properties=((keys.TYPE_WIDENING, "true"),),
        protocol="(3,7) with typeWidening",
        needs="a preview until 15.4, says the page of the feature",
        knows="typeWidening",
        source=_AZURE + "delta/feature-compatibility",
    ),
    Capability(
        feature="in_commit_timestamps",
        action="enable",
        since=None,
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = true)",
        properties=((keys.IN_COMMIT_TIMESTAMPS, "true"),),
        protocol="writer 7 with inCommitTimestamp",
        source=_COMPATIBILITY,
    ),
    Capability(
        feature="uniform",
        action="enable V3",
        since=(18, 0),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.enableIcebergCompatV3' = true)",
        properties=((keys.iceberg_compat(3), "true"),),
        needs="a managed table of Unity Catalog for readers of Iceberg",
        protocol="(3,7) with columnMapping, rowTracking and icebergCompatV3",
        source=_DOCS + "iceberg/iceberg-v3",
    ),
    Capability(
        feature="variant_shredding",
        action="enable",
        since=(17, 2),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.enableVariantShredding' = true)",
        properties=(("delta.enableVariantShredding", "true"),),
        protocol="(3,7) with variantShredding",
        knows="variantShredding",
        source=_AZURE + "tables/features/variant-shredding",
    ),
    Capability(
        feature="catalog_commits",
        action="use",
        since=(16, 4),
        form="CREATE TABLE t … TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')",
        needs="a managed table of Unity Catalog",
        protocol="(3,7) with catalogManaged, inCommitTimestamp and vacuumProtocolCheck",
        knows="catalogManaged",
        source=_CATALOG_COMMITS,
    ),
    Capability(
        feature="catalog_commits",
        action="switch on an existing table",
        since=(18, 0),
        form="ALTER TABLE t SET TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')",
        properties=(("delta.feature.catalogManaged", "supported"),),
        needs="a managed table of Unity Catalog",
        protocol="(3,7) with catalogManaged, inCommitTimestamp and vacuumProtocolCheck",
        fails="concurrent writes may be retried or cancelled",
        source=_CATALOG_COMMITS,
    ),
    Capability(
        feature="managed",
        action="set",
        since=(17, 0),
        form="ALTER TABLE t SET MANAGED",
        values=("true",),
        needs="an external table of Unity Catalog; readers and writers of runtime 15.4 or newer that use its name. "
        "One edition of the page says 17.3",
        forbids="running OPTIMIZE jobs; protocol (2,7) with columnMapping (DELTA_TRUNCATED_TRANSACTION_LOG)",
        fails="jobs that use the path (a newer edition of the page: they are redirected), and those on runtime 14.3 or "
        "older; concurrent writes are handled",
        source=_AZURE + "tables/convert-external-managed",
    ),
    Capability(
        feature="managed",
        action="set with Iceberg reads",
        since=(17, 2),
        form="ALTER TABLE t SET MANAGED TRUNCATE UNIFORM HISTORY",
        values=(f"true{TRUNCATED}",),
        needs="an external table of Unity Catalog with UniForm",
        fails="as SET MANAGED; Iceberg readers lose the history",
        source=_AZURE + "tables/convert-external-managed",
        date="2026-11-23",
    ),
    Capability(
        feature="managed",
        action="unset",
        since=(17, 0),
        form="ALTER TABLE t UNSET MANAGED",
        values=("false",),
        needs="a table that SET MANAGED converted",
        fails=_UNSAID,
        source=_AZURE + "tables/convert-external-managed",
    ),
    Capability(
        feature="predictive_optimization",
        action="enable, disable or inherit",
        since=(12, 2),
        form="ALTER TABLE t ENABLE | DISABLE | INHERIT PREDICTIVE OPTIMIZATION",
        values=("enabled", "disabled", "inherit"),
        needs="a managed table of Unity Catalog. The runtime is documented for ALTER SCHEMA, which has the same clause",
        fails=_UNSAID,
        source=_DOCS + "sql/language-manual/sql-ref-syntax-ddl-alter-schema",
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


def for_property(key: str, value: str | None) -> Iterator[Capability]:
    """The capabilities that a value of a table property needs; none for an unset one."""
    return (
        each
        for each in CAPABILITIES
        for name, needed in each.properties
        if value is not None and name.lower() == key.lower() and needed.lower() in {ANY, value.lower()}
    )


def for_value(attribute: str, value: object) -> Iterator[Capability]:
    """The capabilities that a policy value of an attribute needs."""
    word = COLUMNS if isinstance(value, tuple) else value
    return (each for each in CAPABILITIES if each.feature == attribute and word in each.values)


def replaces_partitions(runtime: str) -> bool:
    """Whether a runtime turns partition columns into clustering columns without a rewrite. ``runtime`` as in
    ``Runtime.text``; empty if it is not known.
    """
    return (
        bool(runtime) and can(parse_runtime(runtime), capability("clustering", "replace partitions in place")) is True
    )


def known_features() -> Mapping[str, str]:
    """The table features of which a source says since which runtime they are read and written: ``15.2``."""
    return {each.knows: each.first for each in CAPABILITIES if each.knows and each.first}


def can(runtime: Runtime, known: Capability) -> bool | None:
    """Whether a runtime has a capability; ``None`` if no source tells."""
    if known.since is None:
        return None
    return True if runtime.version is None else runtime.version >= known.since


RUN_HERE = "run by tablectl on open source"
DOCUMENTED = "documented only"
_DBT = "run by dbt-databricks' functional tests in a workspace (tests/functional/adapter/{file}, 1.12.4)"
_DBT_TESTS: Mapping[str, str] = MappingProxyType(
    {
        "cluster by": "incremental/test_incremental_clustering.py",
        "cluster by none": "incremental/test_incremental_clustering.py",
        "set properties": "incremental/test_incremental_tblproperties.py",
        "add constraint": "incremental/test_incremental_constraints.py",
        "drop constraint": "incremental/test_incremental_constraints.py",
        "drop not null": "incremental/test_incremental_constraints.py",
        "optimize": "liquid_clustering/test_liquid_clustering_effects.py",
    }
)
"""By the form: the file in github.com/databricks/dbt-databricks, read on 2026-11-23."""
_RUN_IN_A_WORKSPACE: Mapping[str, str] = MappingProxyType({})
"""By the form: where and when it worked in a user's workspace, as a sheet of ``tools.workspace_trial`` shows:
``Runtime 17.3, 2026-12-01``.
"""


def databricks_evidence(form: str) -> str:
    """Who ran a form on Databricks, in words."""
    if form in _RUN_IN_A_WORKSPACE:
        return f"run by tablectl in a user's workspace ({_RUN_IN_A_WORKSPACE[form]})"
    return _DBT.format(file=_DBT_TESTS[form]) if form in _DBT_TESTS else DOCUMENTED
