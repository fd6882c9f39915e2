"""The keys of the table properties and metadata domains of Delta that several modules use, in Delta's spelling.

Engines look keys up exactly as they are spelled here (``DeltaConfig.fromMetaData`` in ``DeltaConfig.scala`` of Delta
4.4.0): ``delta.appendonly`` in a log has no effect. Only ``SET`` and ``UNSET TBLPROPERTIES`` ignore their letter case,
and mean this spelling (``validateConfigurations``, ``normalizeConfigKeys``). A key that only the catalogue of
``properties.py`` lists is spelled there.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

NOTHING_SET: Mapping[str, str] = MappingProxyType({})
"""No property is set."""
APPEND_ONLY = "delta.appendOnly"
AUTO_COMPACT = "delta.autoOptimize.autoCompact"
CHANGE_DATA_FEED = "delta.enableChangeDataFeed"
OLD_CHANGE_DATA_FEED = "delta.enableChangeDataCapture"
"""Delta reads it where the key above is not set (``alternateConfs`` in ``DeltaConfig.scala``)."""
CHECKPOINT_POLICY = "delta.checkpointPolicy"
CLUSTERING_COLUMNS = "clusteringColumns"
"""Not a property of the log: how Spark shows and takes clustering columns among the properties."""
CLUSTER_BY_AUTO = "clusterByAuto"
"""Set by Databricks' ``CLUSTER BY AUTO``. Without the prefix of Delta's own properties."""
COLUMN_MAPPING = "delta.columnMapping.mode"
CONSTRAINTS = "delta.constraints."
"""How the properties begin that hold CHECK constraints."""
DELETED_FILE_RETENTION = "delta.deletedFileRetentionDuration"
DELETION_VECTORS = "delta.enableDeletionVectors"
IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"
ISOLATION_LEVEL = "delta.isolationLevel"
LOG_CLEANUP = "delta.enableExpiredLogCleanup"
LOG_RETENTION = "delta.logRetentionDuration"
MANIFEST = "delta.compatibility.symlinkFormatManifest.enabled"
MATERIALIZE_PARTITIONS = "delta.enableMaterializePartitionColumnsFeature"
MATERIALIZED_ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
MATERIALIZED_ROW_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"
MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
ROW_TRACKING = "delta.enableRowTracking"
ROW_TRACKING_SUSPENDED = "delta.rowTrackingSuspended"
STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"
TIMESTAMPS_SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"
TIMESTAMPS_SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"
TRUNCATION_RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"
TYPE_WIDENING = "delta.enableTypeWidening"
UNIFORM_ATOMIC = "delta.universalFormat.iceberg.atomicConversion.supported"
UNIFORM_FORMATS = "delta.universalFormat.enabledFormats"
UNITY_TABLE_ID = "io.unitycatalog.tableId"


def iceberg_compat(version: int) -> str:
    """The property of a version of Delta's Iceberg compatibility."""
    return f"delta.enableIcebergCompatV{version}"


ICEBERG_COMPATS = tuple(map(iceberg_compat, (1, 2, 3)))
"""The properties of all versions, V1 first."""

CLUSTERING_DOMAIN = "delta.clustering"
ROW_TRACKING_DOMAIN = "delta.rowTracking"
