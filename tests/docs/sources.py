"""The sources of outcomes: rules in Delta's own code (``delta-2.2``) and facts documented by Databricks (``D37``).

``delta-2.2`` is section 2.2 of ``docs/reference/delta.md``, ``D37`` a row of ``docs/reference/databricks.md``. The
pages that are published from them name the public page behind each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_DELTA = "https://github.com/delta-io/delta/blob/v4.4.0"
_SPARK = f"{_DELTA}/spark/src/main/scala/org/apache/spark/sql/delta"
_PROTOCOL = f"{_DELTA}/PROTOCOL.md"
_CONFLICTS = "https://docs.databricks.com/aws/en/optimizations/isolation-level"
_ACID = "https://docs.databricks.com/aws/en/lakehouse/acid"


@dataclass(frozen=True, slots=True)
class ReferenceSection:
    """A section of ``docs/reference/delta.md``."""

    text: str
    """Its subject, as a phrase."""
    page: str
    """The file of Delta 4.4.0, or the page, that it is based on."""


FACTS: Mapping[str, str] = MappingProxyType(
    {
        "D3": "a reader keeps the consistent snapshot with which its job began, even if the table changes while",
        "D11": "reads always use snapshot isolation",
        "D16": "metadata changes are changes of the table protocol, of table properties and of the data schema",
        "D38": "rEORG that applies an upgrade changes the protocol and therefore conflicts with every operation",
        "D40": "row-level concurrency detects changes by row and resolves by itself conflicts of writes that upd",
        "D46": "detection by row can lengthen execution",
        "D53": "such a commit is still validated",
        "D71": "atomicity",
        "D72": "they rest on the open Delta protocol",
        "D73": "transactions are per table",
        "D74": "optimistic concurrency control",
        "D77": "no BEGIN/END",
        "D78": "mERGE INTO combines inserts, updates and deletes on one table in one write transaction",
        "D79": "no multi-table transactions",
        "D82": "a data file is not part of the table until a version records it",
        "D83": "vACUUM deletes files in the directory that the log does not track, the leftovers of failed trans",
        "D86": "a write runs in three phases",
        "D88": "validation compares the proposed changes with everything committed since the snapshot was read",
        "D6": "WriteSerializable is the default level on Databricks",
        "D7": "Serializable: writes and reads are as if one at a time, in the order of the history",
        "D8": "WriteSerializable guarantees that order for writes only",
        "D9": "under WriteSerializable the content may be as if Y had run before X although the history lists it after",
        "D12": "under Serializable a reader sees only states that agree with the history",
        "D14": "under WriteSerializable a long DELETE and an INSERT of rows that it covers both commit; the rows stay",
        "D15": "a metadata change makes all concurrent writes fail",
        "D22": "a streaming read fails at a commit that changes metadata, and goes on after a restart",
        "D23": "tables with identity columns support no concurrent transactions",
        "D24": "with row-level concurrency: INSERT and INSERT cannot conflict",
        "D25": "with it: UPDATE, DELETE or MERGE and INSERT can, under Serializable only",
        "D26": "with it: UPDATE, DELETE or MERGE and another can, where they modify the same row",
        "D27": "with it: OPTIMIZE and INSERT cannot",
        "D28": "with it: OPTIMIZE and UPDATE, DELETE or MERGE can only where ZORDER BY is used",
        "D29": "with it: OPTIMIZE and OPTIMIZE can only where ZORDER BY is used",
        "D30": "without row-level concurrency: INSERT and INSERT cannot conflict",
        "D31": "without it: UPDATE, DELETE or MERGE and INSERT can, under Serializable only",
        "D32": "without it: UPDATE, DELETE or MERGE and another can; partitions help",
        "D33": "without it: OPTIMIZE and INSERT cannot",
        "D34": "without it: OPTIMIZE and UPDATE, DELETE or MERGE can; with deletion vectors only for ZORDER BY",
        "D35": "without it: OPTIMIZE and OPTIMIZE can; with deletion vectors only for ZORDER BY",
        "D36": "an INSERT that reads its own table counts as a MERGE",
        "D37": "REORG that applies deletion vectors counts as OPTIMIZE",
        "D39": "what can conflict does so where both touch common files, with row-level concurrency common rows",
        "D41": "row-level concurrency: on by default from 14.2 for unpartitioned tables with deletion vectors and for "
        "clustered tables unless their vectors were disabled",
        "D42": "row-level concurrency is not supported on partitioned tables",
        "D43": "row-level concurrency always needs deletion vectors",
        "D44": "it falls back for conditions on structs, arrays, maps, with subqueries or what is not deterministic",
        "D45": "on 14.2 a MERGE needs an explicit filter on the target",
        "D47": "below 13.3 there is no row-level concurrency",
        "D48": "13.3: on clustered tables, as a preview",
        "D49": "14.0 and 14.1: on clustered tables, on others with vectors where a session opts in",
        "D50": "14.2: on tables with vectors and clustered ones; MERGE needs Photon",
        "D51": "from 14.3 on: the same without Photon",
        "D52": "an INSERT that refers to its target nowhere reads no state of it",
        "D55": "under WriteSerializable files of a blind INSERT conflict with no operation",
        "D56": "under Serializable blind appends may conflict",
        "D57": "but they can where several UPDATE, DELETE or MERGE may see the values (Japanese edition only)",
        "D58": "two operations that can conflict do so only where they touch common files",
        "D60": "partition by the columns that commands commonly filter on; many distinct values cost performance",
        "D63": "literal conditions on the partition columns of the target keep runs of MERGE apart",
        "D64": "ConcurrentAppendException: files were added in a partition that the operation reads",
        "D65": "ConcurrentDeleteReadException: a file was deleted that the operation read",
        "D66": "ConcurrentDeleteDeleteException: a file was deleted that the operation deletes too",
        "D67": "MetadataChangedException: the metadata was updated",
        "D68": "ConcurrentTransactionException: a second run of a streaming query on one checkpoint",
        "D69": "ProtocolChangedException: the protocol was changed or created",
        "D94": "under Serializable an operation whose condition may match inserted rows can conflict with the INSERT",
        "D97": "the property's current value says whether deletion vectors are enabled",
        "D98": "nothing is documented for overwrites, replaceWhere, RESTORE, CLONE, REPLACE and a change of clustering "
        "columns: tablectl applies the rules of open-source Delta, and never says more than that they may fail",
        "D99": "before 14.2 compute without Photon has row-level concurrency for DELETE only",
    }
)
"""What Databricks documents: source id → fact."""

SECTIONS: Mapping[str, ReferenceSection] = MappingProxyType(
    {
        "delta-0": ReferenceSection(
            "clients, sessions and error messages", f"{_DELTA}/python/delta/exceptions/base.py"
        ),
        "delta-1": ReferenceSection("what each statement commits", f"{_SPARK}/commands/alterDeltaTableCommands.scala"),
        "delta-1.0": ReferenceSection(
            "statements, transactions, keys and protocol upgrades", f"{_SPARK}/commands/alterDeltaTableCommands.scala"
        ),
        "delta-1.1": ReferenceSection(
            "each setting: its statement, its commits and what they do to concurrent writes",
            f"{_SPARK}/commands/alterDeltaTableCommands.scala",
        ),
        "delta-1.2": ReferenceSection(
            "the isolation level: what can be set, what is read", f"{_SPARK}/DeltaConfig.scala"
        ),
        "delta-1.3": ReferenceSection(
            "deletion vectors: on, off, purged, dropped", f"{_SPARK}/PreDowngradeTableFeatureCommand.scala"
        ),
        "delta-1.4": ReferenceSection(
            "liquid clustering: columns, statistics, what clears it", f"{_SPARK}/commands/alterDeltaTableCommands.scala"
        ),
        "delta-1.5": ReferenceSection(
            "partition columns: what changes them", f"{_SPARK}/schema/ImplicitMetadataOperation.scala"
        ),
        "delta-1.6": ReferenceSection(
            "row tracking and its backfill", f"{_SPARK}/commands/alterDeltaTableCommands.scala"
        ),
        "delta-1.7": ReferenceSection("column mapping", f"{_SPARK}/DeltaColumnMapping.scala"),
        "delta-1.8": ReferenceSection("single properties with rules of their own", f"{_SPARK}/DeltaConfig.scala"),
        "delta-1.9": ReferenceSection(
            "properties that only change metadata, with defaults and validations", f"{_SPARK}/DeltaConfig.scala"
        ),
        "delta-1.10": ReferenceSection(
            "UniForm (Iceberg)", f"{_SPARK}/commands/ReorgTableForUpgradeUniformHelper.scala"
        ),
        "delta-1.11": ReferenceSection("catalog-managed tables", f"{_SPARK}/catalog/AbstractDeltaCatalog.scala"),
        "delta-1.12": ReferenceSection(
            "constraints, NOT NULL and identity columns", f"{_SPARK}/commands/alterDeltaTableCommands.scala"
        ),
        "delta-1.13": ReferenceSection("features and the protocol that each needs", f"{_SPARK}/TableFeature.scala"),
        "delta-1.14": ReferenceSection("operation names in the history", f"{_SPARK}/DeltaOperations.scala"),
        "delta-1.15": ReferenceSection("features that DROP FEATURE can remove", f"{_SPARK}/TableFeature.scala"),
        "delta-1.16": ReferenceSection("what differs on Databricks", _CONFLICTS),
        "delta-1.17": ReferenceSection(
            "texts of values that other clients ignore",
            "https://github.com/delta-io/delta-kernel-rs/blob/main/kernel/src/table_properties/deserialize.rs",
        ),
        "delta-2": ReferenceSection("the order of the conflict checks", f"{_SPARK}/ConflictChecker.scala"),
        "delta-2.1": ReferenceSection(
            "protocol changes and the order of checks: `ConflictChecker.checkConflicts`",
            f"{_SPARK}/ConflictChecker.scala",
        ),
        "delta-2.2": ReferenceSection(
            "metadata changes: `ConflictChecker.attemptToResolveMetadataConflicts`; Kernel; delta-rs",
            f"{_SPARK}/ConflictChecker.scala",
        ),
        "delta-2.3": ReferenceSection(
            "domains, clustering: `ConflictChecker.checkIfDomainMetadataConflict`", f"{_SPARK}/ConflictChecker.scala"
        ),
        "delta-2.4": ReferenceSection(
            "the level that a commit is checked at: `OptimisticTransaction`, `TransactionHelper`",
            f"{_SPARK}/OptimisticTransaction.scala",
        ),
        "delta-2.5": ReferenceSection(
            "retries: `OptimizeTableCommand`, `commitLarge`", f"{_SPARK}/commands/OptimizeTableCommand.scala"
        ),
        "delta-2.6": ReferenceSection(
            "a statement of tablectl commits, then a write", f"{_SPARK}/ConflictChecker.scala"
        ),
        "delta-2.7": ReferenceSection(
            "a write commits, then a statement of tablectl", f"{_SPARK}/ConflictChecker.scala"
        ),
        "delta-3": ReferenceSection(
            "files added and removed: `checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn` and the checks after it",
            f"{_SPARK}/ConflictChecker.scala",
        ),
        "delta-4": ReferenceSection("the transaction log: what each file holds, which one to read", _PROTOCOL),
        "delta-5": ReferenceSection("REORG and OPTIMIZE", f"{_SPARK}/commands/OptimizeTableCommand.scala"),
        "delta-6": ReferenceSection(
            "streams that read: `DeltaSource.scala`, measured", f"{_SPARK}/sources/DeltaSource.scala"
        ),
    }
)
"""What open-source Delta does, read in its code or measured: source id → section."""


def page_of(fact: str) -> str:
    """The Databricks page that states a fact. Facts 71 to 92 come from the page on ACID guarantees."""
    return _ACID if 71 <= int(fact.removeprefix("D")) <= 92 else _CONFLICTS
