"""What holds for all winners and losers."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tablectl.conflicts.delta_spark_rules import RELEASES
from tablectl.conflicts.rules import decide, decide_all
from tablectl.conflicts.transactions import NOTHING, ConflictResult, CurrentTransaction, Level, Reads
from tablectl.delta.protocol import Client
from tablectl.model.commit_contents import CommittedTransaction, File, Kind, MetadataChange, ProtocolChange

_CLIENTS = [*RELEASES, *(Client(engine) for engine in ("delta-spark", "kernel", "delta-rs", "databricks", "unknown"))]
_PATHS = ("a0", "a1", "b0", "b1")
_FILES = st.sampled_from([File(path, (path[0],)) for path in _PATHS])
_KEYS = st.sampled_from(
    [
        ("delta.enableDeletionVectors", "true"),
        ("delta.enableDeletionVectors", "false"),
        ("delta.enableRowTracking", "true"),
        ("delta.checkpointPolicy", "v2"),
        ("owner.team", "x"),
    ]
)


def some(values: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(values, max_size=2, unique=True).map(tuple)


metadata = st.one_of(
    st.builds(
        MetadataChange,
        sets=st.lists(_KEYS, max_size=2).map(tuple),
        removes=some(st.just("owner.team")),
        schema=st.sampled_from(["same", "mapping", "other"]),
        beyond=st.booleans(),
    ),
    # Delta tags a commit only where it holds nothing else.
    st.just(MetadataChange(schema="other", tag="identity")),
    st.just(MetadataChange(sets=(("delta.enableRowTracking", "true"),), tag="row tracking")),
)
protocol = st.builds(ProtocolChange, adds=some(st.just("inCommitTimestamp")), removes=some(st.just("deletionVectors")))
all_committed = st.builds(
    CommittedTransaction,
    kind=st.sampled_from(Kind),
    metadata=st.none() | metadata,
    protocol=st.none() | st.none() | protocol,
    domains=some(st.sampled_from(["delta.clustering", "delta.rowTracking"])),
    app_ids=some(st.just("q")),
    added=st.lists(_FILES, max_size=2).map(tuple),
    removed=st.lists(_FILES, max_size=2).map(tuple),
    blind=st.booleans(),
    data_change=st.booleans(),
    traces=some(st.just("deletionVectors")),
    repartitions=st.booleans(),
)
reads = st.builds(
    Reads,
    partitions=st.none() | st.lists(st.sampled_from([("a",), ("b",)]), max_size=2, unique=True).map(tuple),
    files=some(st.sampled_from(_PATHS)),
    whole=st.booleans(),
)
all_current = st.builds(
    CurrentTransaction,
    kind=st.sampled_from(Kind),
    client=st.sampled_from(_CLIENTS),
    level=st.sampled_from([Level.SERIALIZABLE, Level.WRITE_SERIALIZABLE]),
    partitioned=st.booleans(),
    reads=reads,
    removes=some(st.sampled_from(_PATHS)),
    data_change=st.booleans(),
    metadata=st.booleans(),
    protocol=st.booleans(),
    drops=some(st.just("deletionVectors")),
    domains=some(st.sampled_from(["delta.clustering", "delta.rowTracking"])),
    app_ids=some(st.just("q")),
)


@given(st.lists(all_committed, max_size=3), st.integers(0, 3), all_committed, all_current)
def test_one_winner_more_never_saves_anybody(
    before: list[CommittedTransaction], at: int, more: CommittedTransaction, current: CurrentTransaction
) -> None:
    outcome = decide_all(before, current)
    worse = decide_all([*before[:at], more, *before[at:]], current)
    assert outcome.succeeds or not worse.succeeds


@given(all_committed, all_current)
def test_an_outcome_names_a_conflict_where_it_fails_and_none_where_it_commits(
    committed: CommittedTransaction, current: CurrentTransaction
) -> None:
    outcome = decide(committed, current)
    assert outcome.reason
    assert outcome.source
    if outcome.succeeds:
        assert outcome.conflict is None
    elif outcome.result is not ConflictResult.UNKNOWN:
        assert outcome.conflict is not None


@given(all_committed, all_current)
def test_a_blind_append_loses_to_no_commit_of_data_alone(
    committed: CommittedTransaction, current: CurrentTransaction
) -> None:
    data = replace(committed, metadata=None, protocol=None, domains=(), app_ids=())
    append = replace(
        current,
        kind=Kind.APPEND,
        client=RELEASES[-1],
        reads=NOTHING,
        removes=(),
        drops=(),
        domains=(),
        metadata=False,
        protocol=False,
    )
    assert decide(data, append).succeeds


@given(all_committed, all_current)
def test_reading_and_removing_less_is_never_worse(committed: CommittedTransaction, current: CurrentTransaction) -> None:
    spark = replace(current, client=RELEASES[-1])
    less = replace(spark, reads=NOTHING, removes=())
    assert decide(committed, less).succeeds or not decide(committed, spark).succeeds


@given(all_committed, all_current)
def test_a_newer_delta_commits_after_what_an_older_one_does(
    committed: CommittedTransaction, current: CurrentTransaction
) -> None:
    succeeds = [decide(committed, replace(current, client=release)).succeeds for release in RELEASES]
    assert succeeds == sorted(succeeds)


@given(st.lists(all_committed, max_size=2), all_current)
def test_an_unknown_client_commits_after_nothing_that_a_known_one_may_not(
    before: list[CommittedTransaction], current: CurrentTransaction
) -> None:
    unknown = decide_all(before, replace(current, client=Client("unknown")))
    known = [decide_all(before, replace(current, client=client)) for client in _CLIENTS]
    assert not unknown.succeeds or all(outcome.succeeds for outcome in known)


@given(all_current)
def test_nothing_in_between_fails_no_one(current: CurrentTransaction) -> None:
    assert decide_all([], current).succeeds
