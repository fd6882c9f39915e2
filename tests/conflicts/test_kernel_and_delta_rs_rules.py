"""Delta Kernel, delta-rs and clients of unknown kind as current transactions. test_delta_rs_races.py races delta-rs."""

from __future__ import annotations

from typing import Any

import pytest

from tablectl.conflicts.rules import decide
from tablectl.conflicts.transactions import Conflict, ConflictResult, CurrentTransaction
from tablectl.model.commit_contents import CommittedTransaction, Kind, ProtocolChange
from tests.conflicts.examples import (
    PROPERTY,
    RECLUSTER,
    A,
    alter,
    append,
    appended,
    client,
    reader,
    rewritten,
)

KERNEL: dict[str, Any] = {"client": client("kernel 4.4.0")}
DELTA_RS: dict[str, Any] = {"client": client("delta-rs 1.6.6")}
RAISED = CommittedTransaction(kind=Kind.UPGRADE_PROTOCOL, protocol=ProtocolChange(adds=("x",)))


@pytest.mark.parametrize(
    ("committed", "current", "conflict"),
    [
        (alter(), append(**KERNEL), Conflict.METADATA_CHANGED),
        (RAISED, append(**KERNEL), Conflict.PROTOCOL_CHANGED),
        (alter(protocol=ProtocolChange()), append(**KERNEL), Conflict.PROTOCOL_CHANGED),
        (RECLUSTER, append(**KERNEL), None),
        (RECLUSTER, append(domains=("delta.clustering",), **KERNEL), Conflict.WRITE),
        (appended(), reader(**KERNEL), None),
        (rewritten(A), append(**KERNEL), None),
        (rewritten(A), reader(**KERNEL), Conflict.WRITE),
        (
            CommittedTransaction(kind=Kind.APPEND, app_ids=("q",)),
            append(app_ids=("q",), **KERNEL),
            Conflict.TRANSACTION,
        ),
        (CommittedTransaction(kind=Kind.APPEND, app_ids=("q",)), append(**KERNEL), None),
    ],
)
def test_kernel_merges_no_metadata_and_looks_at_no_added_file(
    committed: CommittedTransaction, current: CurrentTransaction, conflict: Conflict | None
) -> None:
    assert decide(committed, current).conflict is conflict


def test_delta_rs_knows_no_domains() -> None:
    outcome = decide(RECLUSTER, append(**DELTA_RS))
    assert outcome.result is ConflictResult.UNKNOWN
    assert not outcome.succeeds


def test_delta_rs_may_be_lucky_with_added_files_and_never_with_removed_ones() -> None:
    assert decide(appended(), reader(**DELTA_RS)).result is ConflictResult.MAY_FAIL
    assert decide(rewritten(A, Kind.OPTIMIZE), reader(**DELTA_RS)).result is ConflictResult.MAY_FAIL
    assert decide(rewritten(A), reader(**DELTA_RS)).result is ConflictResult.FAILS
    assert decide(rewritten(A), append(**DELTA_RS)).conflict is Conflict.DELETE_READ
    assert decide(rewritten(A, Kind.OPTIMIZE), append(**DELTA_RS)).succeeds


@pytest.mark.parametrize(
    ("committed", "current", "succeeds"),
    [
        (rewritten(A, Kind.OPTIMIZE), append(client=client("unknown")), True),
        (rewritten(A, Kind.UPDATE), append(client=client("unknown")), False),
        (RECLUSTER, append(client=client("unknown")), False),
        (PROPERTY, append(client=client("unknown")), False),
        (appended(), append(client=client("unknown")), True),
        (appended(), reader(client=client("unknown")), False),
    ],
)
def test_an_unknown_client_gets_the_worst_outcome_of_the_known(
    committed: CommittedTransaction, current: CurrentTransaction, succeeds: bool
) -> None:
    assert decide(committed, current).succeeds is succeeds


def test_an_optimize_of_delta_rs_fails_after_removed_rows_only() -> None:
    compaction = reader(kind=Kind.OPTIMIZE, data_change=False, **DELTA_RS)
    assert decide(appended(), compaction).succeeds
    assert decide(rewritten(A), compaction).conflict is Conflict.DELETE_READ


def test_delta_rs_has_one_exception_with_a_text_for_each_conflict() -> None:
    deltalake = DELTA_RS["client"]
    assert Conflict.DELETE_READ.raised_by(deltalake) == "CommitFailedError"
    assert Conflict.DELETE_READ.message_of(deltalake) == (
        "Failed to commit transaction: Commit failed: a concurrent transaction deleted data this operation read."
    )
    assert Conflict.DELETE_READ.message_of(client("delta-spark 4.4.0")) == ""
