"""Databricks as the loser: the documented matrices, row-level concurrency by runtime, and what no one documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tablectl.conflicts.databricks_rules import row_level
from tablectl.conflicts.rules import decide
from tablectl.conflicts.transactions import Conflict, ConflictResult, CurrentTransaction, Level, Platform
from tablectl.model.commit_contents import CommittedTransaction, Kind, ProtocolChange
from tests.conflicts.examples import (
    IDENTITY_DRAWN,
    RECLUSTER,
    VECTORS_ON,
    A,
    B,
    alter,
    append,
    appended,
    client,
    in_partition,
    reader,
    rewritten,
)

WS, S = Level.WRITE_SERIALIZABLE, Level.SERIALIZABLE
CANNOT, CAN = ConflictResult.COMMITS, ConflictResult.MAY_FAIL
ROWS = Platform(vectors=True, clustered=False, photon=True, plain=True, filtered=True)
"""A table and statement for which row-level concurrency holds from 14.2 on."""
FILES = Platform(vectors=False)
VECTORS = Platform(vectors=True, plain=False)
"""Deletion vectors, and a condition that row-level concurrency cannot take."""


def on(
    current: CurrentTransaction, level: Level = WS, platform: Platform = ROWS, runtime: str = "16.4", **more: Any
) -> CurrentTransaction:
    return replace(current, client=client(f"databricks {runtime}".strip()), level=level, platform=platform, **more)


INSERT, CHANGE, SELECTING = append(), reader(Kind.UPDATE), reader(Kind.READING_INSERT)
OPTIMIZE = reader(Kind.OPTIMIZE, data_change=False)
WON_INSERT, WON_CHANGE, WON_OPTIMIZE = appended(), rewritten(A), rewritten(A, Kind.OPTIMIZE)
WON_ZORDER = replace(WON_OPTIMIZE, zorder=True)


@pytest.mark.parametrize(
    ("committed", "current", "weak", "strong", "fact"),
    [
        (WON_INSERT, INSERT, CANNOT, CANNOT, "D24"),
        (WON_INSERT, CHANGE, CANNOT, CAN, "D25"),
        (WON_INSERT, SELECTING, CANNOT, CAN, "D25"),
        (WON_CHANGE, INSERT, CANNOT, CANNOT, "D52"),
        (WON_CHANGE, CHANGE, CAN, CAN, "D26"),
        (WON_OPTIMIZE, INSERT, CANNOT, CANNOT, "D27"),
        (WON_INSERT, OPTIMIZE, CANNOT, CANNOT, "D27"),
        (WON_OPTIMIZE, CHANGE, CANNOT, CANNOT, "D28"),
        (WON_ZORDER, CHANGE, CAN, CAN, "D28"),
        (WON_CHANGE, replace(OPTIMIZE, zorder=True), CAN, CAN, "D28"),
        (WON_OPTIMIZE, OPTIMIZE, CANNOT, CANNOT, "D29"),
        (WON_ZORDER, OPTIMIZE, CAN, CAN, "D29"),
    ],
)
def test_the_matrix_with_row_level_concurrency(
    committed: CommittedTransaction,
    current: CurrentTransaction,
    weak: ConflictResult,
    strong: ConflictResult,
    fact: str,
) -> None:
    for level, result in ((WS, weak), (S, strong)):
        outcome = decide(committed, on(current, level))
        assert outcome.result is result, level
        assert fact in outcome.source.split(", ")


@pytest.mark.parametrize(
    ("committed", "current", "weak", "strong", "vectors", "fact"),
    [
        (WON_INSERT, INSERT, CANNOT, CANNOT, CANNOT, "D30"),
        (WON_INSERT, CHANGE, CANNOT, CAN, CAN, "D31"),
        (WON_CHANGE, CHANGE, CAN, CAN, CAN, "D32"),
        (WON_OPTIMIZE, INSERT, CANNOT, CANNOT, CANNOT, "D33"),
        (WON_OPTIMIZE, CHANGE, CAN, CAN, CANNOT, "D34"),
        (WON_ZORDER, CHANGE, CAN, CAN, CAN, "D34"),
        (WON_OPTIMIZE, OPTIMIZE, CAN, CAN, CANNOT, "D35"),
        (WON_ZORDER, OPTIMIZE, CAN, CAN, CAN, "D35"),
        (replace(WON_OPTIMIZE, kind=Kind.REORG), CHANGE, CAN, CAN, CANNOT, "D34"),
    ],
)
def test_the_matrix_without_row_level_concurrency(
    committed: CommittedTransaction,
    current: CurrentTransaction,
    weak: ConflictResult,
    strong: ConflictResult,
    vectors: ConflictResult,
    fact: str,
) -> None:
    for level, platform, result in ((WS, FILES, weak), (S, FILES, strong), (S, VECTORS, vectors)):
        outcome = decide(committed, on(current, level, platform))
        assert outcome.result is result, (level, platform)
        assert fact in outcome.source.split(", ")


def test_partitions_that_do_not_meet_never_conflict() -> None:
    current = on(in_partition("a"), S, FILES)
    assert decide(rewritten(A), current).conflict is Conflict.APPEND
    outcome = decide(rewritten(B), current)
    assert outcome.succeeds
    assert outcome.source == "D39, D58, D63"


@pytest.mark.parametrize(
    ("committed", "conflict", "fact"),
    [
        (VECTORS_ON, Conflict.METADATA_CHANGED, "D15"),
        (alter(), Conflict.METADATA_CHANGED, "D15"),
        (IDENTITY_DRAWN, Conflict.METADATA_CHANGED, "D15"),
        (CommittedTransaction(kind=Kind.UPGRADE_PROTOCOL, protocol=ProtocolChange()), Conflict.PROTOCOL_CHANGED, "D15"),
    ],
)
def test_every_metadata_change_fails_every_write(
    committed: CommittedTransaction, conflict: Conflict, fact: str
) -> None:
    for current in (INSERT, CHANGE, OPTIMIZE):
        outcome = decide(committed, on(current))
        assert outcome.result is ConflictResult.FAILS
        assert outcome.conflict is conflict
        assert fact in outcome.source


def test_tables_with_identity_columns_take_one_transaction_at_a_time() -> None:
    outcome = decide(WON_INSERT, on(INSERT, platform=replace(ROWS, identity=True)))
    assert outcome.conflict is Conflict.METADATA_CHANGED
    assert outcome.source == "D23"


def test_one_stream_twice_at_once() -> None:
    stream = append(kind=Kind.STREAMING_APPEND, app_ids=("q",))
    outcome = decide(replace(appended(), app_ids=("q",)), on(stream))
    assert (outcome.conflict, outcome.source) == (Conflict.TRANSACTION, "D68")


@pytest.mark.parametrize(
    ("committed", "current", "in_open_source"),
    [
        (RECLUSTER, INSERT, None),
        (rewritten(A, Kind.OVERWRITE), INSERT, None),
        (WON_INSERT, append(kind=Kind.RESTORE), Conflict.WRITE),
        (WON_CHANGE, reader(Kind.REPLACE_WHERE), Conflict.APPEND),
        (rewritten(A, Kind.OVERWRITE), CHANGE, Conflict.APPEND),
    ],
)
def test_what_no_one_documents_may_fail_as_open_source_delta_does(
    committed: CommittedTransaction, current: CurrentTransaction, in_open_source: Conflict | None
) -> None:
    outcome = decide(committed, on(current))
    assert outcome.conflict is in_open_source
    assert outcome.result is (ConflictResult.MAY_FAIL if in_open_source else ConflictResult.UNKNOWN)
    assert not outcome.succeeds
    assert outcome.source.split(", ")[0] == "D98"


def test_an_optimize_next_to_a_merge_counts_files_where_that_merge_has_no_row_level_concurrency() -> None:
    liquid = Platform(clustered=True, plain=True, photon=True, filtered=True)
    merge = replace(WON_CHANGE, kind=Kind.MERGE)
    assert decide(merge, on(OPTIMIZE, platform=liquid, runtime="14.2")).result is CANNOT
    for unknown in (replace(liquid, photon=None), replace(liquid, filtered=None), replace(liquid, photon=False)):
        assert decide(merge, on(OPTIMIZE, platform=unknown, runtime="14.2")).result is CAN


LIQUID = Platform(clustered=True, photon=True, plain=True, filtered=True)


@pytest.mark.parametrize(
    ("runtime", "platform", "merge", "delete", "fact"),
    [
        ("12.2", ROWS, False, False, "D47"),
        ("13.3", ROWS, False, False, "D48"),
        ("13.3", LIQUID, True, True, "D48"),
        ("13.3", replace(LIQUID, photon=False), False, True, "D48"),
        ("14.1", ROWS, False, False, "D49"),
        ("14.1", replace(ROWS, preview=True), True, True, "D49"),
        ("13.3", replace(ROWS, preview=True), False, False, "D48"),
        ("14.0", LIQUID, True, True, "D49"),
        ("14.2", ROWS, True, True, "D50"),
        ("14.2", replace(ROWS, photon=False), False, True, "D50"),
        ("14.2", replace(ROWS, filtered=False), False, True, "D50"),
        ("14.2", replace(ROWS, filtered=None), None, True, "D50"),
        ("14.3", replace(ROWS, photon=False, filtered=False), True, True, "D51"),
        ("16.4", LIQUID, True, True, "D51"),
        ("16.4", replace(LIQUID, vectors=False), False, False, "D43"),
        ("16.4", replace(ROWS, plain=False), False, False, "D44"),
        ("16.4", replace(ROWS, plain=None), None, None, "D51"),
        ("16.4", replace(ROWS, vectors=None), None, None, "D51"),
        ("", ROWS, None, None, "D41"),
    ],
)
def test_where_row_level_concurrency_holds(
    runtime: str, platform: Platform, merge: bool | None, delete: bool | None, fact: str
) -> None:
    for kind, expected in ((Kind.MERGE, merge), (Kind.DELETE, delete)):
        holds, sources = row_level(on(reader(kind), platform=platform, runtime=runtime))
        assert holds is expected, kind
        assert fact in sources.split(", ")


def test_row_level_concurrency_needs_a_table_without_partitions() -> None:
    assert row_level(on(in_partition("a"))) == (False, "D42")


def test_a_blind_insert_is_in_the_way_of_a_write_that_evolves_the_schema() -> None:
    """D55 speaks of plain operations; open-source Delta checks such a write as under Serializable (delta-3)."""
    assert decide(WON_INSERT, on(CHANGE, WS)).result is ConflictResult.COMMITS
    assert decide(WON_INSERT, on(CHANGE, WS, metadata=True)).result is ConflictResult.MAY_FAIL


def test_an_insert_that_reads_its_own_table_has_the_concurrency_of_merge() -> None:
    for kind in (Kind.MERGE, Kind.READING_INSERT):
        assert row_level(on(reader(kind), WS, replace(ROWS, photon=False), "14.2"))[0] is False


def test_an_optimize_is_reported_for_removed_files_not_for_added_rows() -> None:
    """It changes no row, so D65 and D66 name ConcurrentDeleteRead and ConcurrentDeleteDelete for it."""
    outcome = decide(WON_CHANGE, on(OPTIMIZE, platform=FILES))
    assert outcome.conflict is Conflict.DELETE_READ


def test_two_replacements_of_a_table_at_once_fail_on_the_protocol() -> None:
    replaced = replace(WON_CHANGE, kind=Kind.REPLACE_TABLE, metadata=alter().metadata)
    outcome = decide(replaced, on(reader(Kind.REPLACE_TABLE)))
    assert (outcome.conflict, outcome.source) == (Conflict.PROTOCOL_CHANGED, "D69")
    assert decide(replaced, on(CHANGE)).conflict is Conflict.METADATA_CHANGED


def test_two_compactions_end_as_a_real_runtime_does() -> None:
    """Both read the file that they remove; the Runtime names the removal, open-source Delta the read."""
    loser = on(replace(OPTIMIZE, removes=("a0",)), platform=FILES, runtime="13.3")
    assert decide(WON_OPTIMIZE, loser).conflict is Conflict.DELETE_DELETE
    assert decide(WON_CHANGE, loser).conflict is Conflict.DELETE_READ, "no trace of this pair is known"


def test_a_zorder_with_an_insert_that_reads_its_table_is_not_documented() -> None:
    won = replace(WON_INSERT, kind=Kind.READING_INSERT)
    for platform in (ROWS, FILES, VECTORS):
        outcome = decide(won, on(replace(OPTIMIZE, zorder=True), platform=platform))
        assert outcome.result is ConflictResult.UNKNOWN, platform
