"""What holds for all winners and losers."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tablectl.conflicts.rules.decide import decide, decide_all
from tablectl.conflicts.rules.delta_spark import RELEASES
from tablectl.conflicts.transactions import NOTHING, ConflictResult, CurrentTransaction, Level, Reads
from tablectl.delta.protocol import Client
from tablectl.model.commits import CommittedTransaction, File, Kind, MetadataChange, ProtocolChange

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
winners = st.builds(
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
losers = st.builds(
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


@given(st.lists(winners, max_size=3), st.integers(0, 3), winners, losers)
def test_one_winner_more_never_saves_anybody(
    before: list[CommittedTransaction], at: int, more: CommittedTransaction, loser: CurrentTransaction
) -> None:
    outcome = decide_all(before, loser)
    worse = decide_all([*before[:at], more, *before[at:]], loser)
    assert outcome.survives or not worse.survives


@given(winners, losers)
def test_an_outcome_names_a_conflict_where_it_fails_and_none_where_it_commits(
    winner: CommittedTransaction, loser: CurrentTransaction
) -> None:
    outcome = decide(winner, loser)
    assert outcome.reason
    assert outcome.source
    if outcome.survives:
        assert outcome.conflict is None
    elif outcome.result is not ConflictResult.UNKNOWN:
        assert outcome.conflict is not None


@given(winners, losers)
def test_a_blind_append_loses_to_no_commit_of_data_alone(
    winner: CommittedTransaction, loser: CurrentTransaction
) -> None:
    data = replace(winner, metadata=None, protocol=None, domains=(), app_ids=())
    append = replace(
        loser,
        kind=Kind.APPEND,
        client=RELEASES[-1],
        reads=NOTHING,
        removes=(),
        drops=(),
        domains=(),
        metadata=False,
        protocol=False,
    )
    assert decide(data, append).survives


@given(winners, losers)
def test_reading_and_removing_less_is_never_worse(winner: CommittedTransaction, loser: CurrentTransaction) -> None:
    spark = replace(loser, client=RELEASES[-1])
    less = replace(spark, reads=NOTHING, removes=())
    assert decide(winner, less).survives or not decide(winner, spark).survives


@given(winners, losers)
def test_a_newer_delta_survives_what_an_older_one_does(winner: CommittedTransaction, loser: CurrentTransaction) -> None:
    survives = [decide(winner, replace(loser, client=release)).survives for release in RELEASES]
    assert survives == sorted(survives)


@given(st.lists(winners, max_size=2), losers)
def test_an_unknown_client_survives_nothing_that_a_known_one_may_not(
    before: list[CommittedTransaction], loser: CurrentTransaction
) -> None:
    unknown = decide_all(before, replace(loser, client=Client("unknown")))
    known = [decide_all(before, replace(loser, client=client)) for client in _CLIENTS]
    assert not unknown.survives or all(outcome.survives for outcome in known)


@given(losers)
def test_nothing_in_between_harms_nobody(loser: CurrentTransaction) -> None:
    assert decide_all([], loser).survives
