"""The sources that outcomes name: facts that Databricks documents, and where Delta's own code says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

FACTS: Mapping[str, str] = MappingProxyType(
    {
        "D6": "WriteSerializable is the default level on Databricks",
        "D7": "Serializable: writes and reads are as if one at a time, in the order of the history",
        "D8": "WriteSerializable guarantees that order for writes only",
        "D9": "under WriteSerializable the content may be as if Y had run before X although the history lists it after",
        "D12": "under Serializable a reader sees only states that agree with the history",
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
        "D57": "but they can where several UPDATE, DELETE or MERGE may see the values (Japanese edition only)",
        "D58": "two operations that can conflict do so only where they touch common files",
        "D63": "literal conditions on the partition columns of the target keep runs of MERGE apart",
        "D64": "ConcurrentAppendException: files were added in a partition that the operation reads",
        "D65": "ConcurrentDeleteReadException: a file was deleted that the operation read",
        "D66": "ConcurrentDeleteDeleteException: a file was deleted that the operation deletes too",
        "D67": "MetadataChangedException: the metadata was updated",
        "D68": "ConcurrentTransactionException: a second run of a streaming query on one checkpoint",
        "D69": "ProtocolChangedException: the protocol was changed or created",
        "D94": "under Serializable an operation whose condition may match inserted rows can conflict with the INSERT",
        "D97": "whether vectors are enabled is told by the property's current value",
        "D98": "nothing is documented for overwrites, replaceWhere, RESTORE, CLONE, REPLACE and clustering again",
        "D99": "before 14.2 compute without Photon has row-level concurrency for DELETE only",
    }
)
"""What Databricks documents, by the id that a source names."""

SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "delta.md 1": "what each statement commits: `alterDeltaTableCommands.scala`, `DeltaConfig.scala`, measured",
        "delta.md 2.1": "protocol changes and the order of checks: `ConflictChecker.checkConflicts`",
        "delta.md 2.2": "metadata changes: `ConflictChecker.attemptToResolveMetadataConflicts`; Kernel; delta-rs",
        "delta.md 2.3": "domains, clustering: `ConflictChecker.checkIfDomainMetadataConflict`",
        "delta.md 2.4": "the level that a commit is checked at: `OptimisticTransaction`, `TransactionHelper`",
        "delta.md 2.5": "retries: `OptimizeTableCommand`, `commitLarge`",
        "delta.md 3": "files added and removed: `checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn` and its like",
        "delta.md 6": "streams that read: `DeltaSource.scala`, measured",
    }
)
"""What open-source Delta does, by the section that a source names: read in its code, or measured."""
_FACT = re.compile(r"\bD\d+\b")


def facts_in(source: str) -> tuple[str, ...]:
    """The ids of facts that a source names."""
    return tuple(_FACT.findall(source))
