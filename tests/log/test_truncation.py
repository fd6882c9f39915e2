"""When history may be given up, by logs made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablectl.model.table import HistoryTruncation, LiveTable
from tests.log.log_actions import PLAIN, add, info, metadata, protocol

Put = Callable[..., None]
Read = Callable[..., LiveTable]

HOUR = 60 * 60 * 1000
DAY = 24 * HOUR
START = 1_795_000_020_000
"""A full minute."""
VECTORS = protocol(3, 7, readers=("deletionVectors",))
PROTECTED = protocol(1, 7, "checkpointProtection")
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
ENABLED = metadata(**{"delta.enableDeletionVectors": "true"})
OFF = metadata(**{"delta.enableDeletionVectors": "false"})


def at(hours: float, operation: str = "WRITE") -> dict[str, Any]:
    return info(operation=operation, timestamp=START + round(hours * HOUR))


def removed(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": False, "size": 10, **more}}


def truncation(read: Read) -> HistoryTruncation | None:
    return read(truncation=frozenset({"deletionVectors", "checkpointProtection"})).truncation


def test_a_table_without_either_feature_has_nothing_to_wait_for(put: Put, read: Read) -> None:
    put(0, [at(0), PLAIN, metadata()])
    assert truncation(read) is None


def test_what_is_not_asked_for_is_not_read(put: Put, read: Read) -> None:
    put(0, [at(0), VECTORS, ENABLED])
    assert read().truncation is None


def checkpoint(put: Put, version: int) -> None:
    put(f"{version:020d}.checkpoint.parquet", b"only its name is looked at")


@pytest.mark.parametrize(
    "last", [[removed("a", deletionVector=VECTOR)], [add("a", 10, deletionVector=VECTOR)], [ENABLED]], ids=str
)
def test_a_day_after_the_first_checkpoint_behind_the_last_commit_that_names_a_vector_or_has_them_on(
    put: Put, read: Read, last: list[dict[str, Any]]
) -> None:
    put(0, [at(0), VECTORS, ENABLED])
    put(1, [at(1), *last])
    checkpoint(put, 1)
    put(2, [at(2), VECTORS, OFF])
    for version in (3, 4):
        put(version, [at(version), VECTORS, OFF])
        checkpoint(put, version)
    put(5, [at(5), VECTORS, OFF])
    # Delta cuts to the minute, and files are a little younger than what their commits say.
    assert truncation(read) == HistoryTruncation(START + 3 * HOUR + DAY + 2 * 60_000)


def test_without_a_checkpoint_nothing_is_waited_for_since_the_drop_makes_one(put: Put, read: Read) -> None:
    put(0, [at(0), VECTORS, ENABLED])
    put(1, [at(1), OFF])
    assert truncation(read) == HistoryTruncation()


def test_the_tables_own_retention_counts_and_one_that_is_none_is_a_day(put: Put, read: Read) -> None:
    for text, span in (("interval 2 hours", 2 * HOUR), ("soon", DAY)):
        put(0, [at(0), VECTORS, ENABLED])
        put(1, [at(1), VECTORS, metadata(**{"delta.dropFeatureTruncateHistory.retentionDuration": text})])
        checkpoint(put, 1)
        put(2, [at(2), VECTORS, metadata(**{"delta.dropFeatureTruncateHistory.retentionDuration": text})])
        assert truncation(read) == HistoryTruncation(START + HOUR + span + 2 * 60_000)


def test_protected_checkpoints_wait_for_the_first_that_needs_no_protection(put: Put, read: Read) -> None:
    protected = metadata(**{"delta.requireCheckpointProtectionBeforeVersion": "1"})
    put(0, [at(0), VECTORS, metadata()])
    put(1, [at(1), PROTECTED, protected])
    checkpoint(put, 1)
    put(2, [at(2), PROTECTED, protected])
    assert truncation(read) == HistoryTruncation(START + HOUR + DAY + 2 * 60_000)


@pytest.mark.parametrize("version", ["0x1", "", "-1", "²"])
def test_an_invalid_version_protects_no_history(put: Put, read: Read, version: str) -> None:
    put(0, [at(0), PROTECTED, metadata(**{"delta.requireCheckpointProtectionBeforeVersion": version})])
    assert truncation(read) == HistoryTruncation(0)
