"""The phase of a commit and the writers that it fails, from its contents and the writers; each reason says why."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.conflicts.statement_phases import depends_on_writers, forecast, phase_of
from tablectl.conflicts.transactions import Conflict
from tablectl.model.commit_contents import CommittedTransaction
from tablectl.model.operations import ClusterBy, Purge, SetProperties, UnsetProperties
from tablectl.model.plan import Basis, Phase, ProtocolFact
from tablectl.model.table_options import TableOptions
from tablectl.model.writers_in_history import WriterEvidence
from tests.builders import make_basis

Commits = tuple[CommittedTransaction, ...]

_SEEN = ProtocolFact(reader=1, writer=7, writer_features=("inCommitTimestamp",))
_CLUSTERED = ProtocolFact(reader=1, writer=7, writer_features=("clustering", "domainMetadata"))


def _set(*values: tuple[str, str], protocol: ProtocolFact | None = None) -> Commits:
    return SetProperties(values).commits(make_basis(**({"protocol": protocol} if protocol else {})))


def _unset(*keys: str) -> Commits:
    return UnsetProperties(keys).commits(make_basis())


_VECTORS = _set(("delta.enableDeletionVectors", "true"))
_CHECKPOINTS = _set(("delta.checkpointPolicy", "v2"))
_AGAIN_TIMESTAMPS = _set(("delta.enableInCommitTimestamps", "true"), protocol=_SEEN)
_ROW_TRACKING = _set(("delta.enableRowTracking", "true"))
_TIMESTAMPS = _set(("delta.enableInCommitTimestamps", "TRUE"))
_FIRST = ClusterBy(("id",)).commits(make_basis())
_AGAIN = ClusterBy(("id",)).commits(make_basis(protocol=_CLUSTERED))
_PURGE = Purge().commits(make_basis())
_UNSET = UnsetProperties(("a",)).commits(make_basis())


@pytest.mark.parametrize(
    ("made", "clients", "phase"),
    [
        (_VECTORS, ["delta-spark 4.4.0"], Phase.FREE),
        (_VECTORS, ["delta-spark 4.1.0"], Phase.FREE),
        (_VECTORS, ["delta-spark 4.0.1"], Phase.CLOSED),
        (_VECTORS, ["delta-spark 3.2.0"], Phase.CLOSED),
        (_VECTORS, ["delta-spark 4.4.0", "delta-spark 3.3.2"], Phase.CLOSED),
        (_VECTORS, ["delta-spark"], Phase.CLOSED),
        (_VECTORS, ["kernel 4.4.0"], Phase.CLOSED),
        (_VECTORS, ["delta-rs 1.6.6"], Phase.CLOSED),
        (_VECTORS, ["databricks 16.4"], Phase.CLOSED),
        (_VECTORS, ["unknown"], Phase.CLOSED),
        (_VECTORS, [], Phase.CLOSED),
        (_CHECKPOINTS, ["delta-spark 4.3.0"], Phase.FREE),
        (_CHECKPOINTS, ["delta-spark 4.2.0"], Phase.CLOSED),
        (_TIMESTAMPS, ["delta-spark 4.3.0"], Phase.FREE),
        (_TIMESTAMPS, ["delta-spark 4.1.0"], Phase.CLOSED),
        (_ROW_TRACKING, ["delta-spark 4.1.0"], Phase.FREE),
        (_ROW_TRACKING, ["delta-spark 3.3.0"], Phase.FREE),
        (_ROW_TRACKING, ["delta-spark 3.2.0"], Phase.CLOSED),
        (_ROW_TRACKING, ["kernel 4.4.0"], Phase.CLOSED),
        (_FIRST, ["delta-spark 4.1.0"], Phase.FREE),
        (_FIRST, ["delta-spark 4.0.0"], Phase.CLOSED),
        (_FIRST, ["kernel 4.4.0"], Phase.CLOSED),
        (_FIRST, [], Phase.CLOSED),
        (_AGAIN, ["delta-spark 3.2.0"], Phase.FREE),
        (_AGAIN, ["delta-spark 4.4.0", "kernel 4.4.0"], Phase.FREE),
        (_AGAIN, ["databricks 16.4"], Phase.CLOSED),
        (_AGAIN, ["delta-rs 1.6.6"], Phase.CLOSED),
        (_AGAIN, ["delta-spark 4.4.0", "unknown"], Phase.CLOSED),
        (_AGAIN, [], Phase.CLOSED),
        (_PURGE, ["delta-spark 4.4.0"], Phase.REWRITE),
        (_PURGE, [], Phase.REWRITE),
    ],
)
def test_the_phase_follows_from_the_writers(made: Commits, clients: list[str], phase: Phase) -> None:
    verdict = phase_of(made, make_basis(*clients), "oss")
    assert verdict.phase is phase
    assert bool(verdict.fails) is (phase is not Phase.FREE)


@pytest.mark.parametrize(
    "made",
    [
        _set(("delta.isolationLevel", "Serializable")),
        _set(("delta.enableDeletionVectors", "false")),
        _set(("delta.checkpointPolicy", "classic")),
        _set(("delta.enableTypeWidening", "true")),
        _set(("owner.team", "x")),
        _unset("delta.enableDeletionVectors"),
        _set(("delta.enableDeletionVectors", "true"), ("owner.team", "x")),
    ],
)
def test_what_fails_every_writer_is_closed(made: Commits) -> None:
    assert phase_of(made, make_basis("delta-spark 4.4.0"), "oss").phase is Phase.CLOSED


@pytest.mark.parametrize("made", [_VECTORS, _CHECKPOINTS, _FIRST])
@pytest.mark.parametrize("fact", ["identity", "schema_writers"])
def test_two_metadata_changes_never_merge(made: Commits, fact: str) -> None:
    verdict = phase_of(made, make_basis("delta-spark 4.4.0", **{fact: True}), "oss")
    assert verdict.phase is Phase.CLOSED
    assert "two metadata changes always conflict" in verdict.reason


def test_clustering_again_and_overwrites_fail_each_other() -> None:
    overwritten = make_basis("delta-spark 4.4.0", overwrites=True, clustered=True)
    verdict = phase_of(_AGAIN, overwritten, "oss")
    assert verdict.phase is Phase.CLOSED
    assert verdict.fails == "concurrent full overwrite fails once (ConcurrentTransactionException)"
    assert phase_of(_VECTORS, overwritten, "oss").phase is Phase.FREE
    # An overwrite writes clustering columns where the table has some, so a first clustering meets none.
    assert phase_of(_FIRST, make_basis("delta-spark 4.4.0", overwrites=True), "oss").phase is Phase.FREE


def test_on_databricks_a_table_with_identity_columns_takes_no_append_next_to_a_rewrite() -> None:
    assert phase_of(_PURGE, make_basis("databricks 16.4"), "databricks").phase is Phase.REWRITE
    verdict = phase_of(_PURGE, make_basis("databricks 16.4", identity=True), "databricks")
    assert verdict.phase is Phase.CLOSED
    assert "identity columns" in verdict.reason


def test_turning_timestamps_on_again_changes_what_delta_noted_the_first_time() -> None:
    """Turning them off leaves version and time of the first enablement in the metadata (measured)."""
    assert phase_of(_TIMESTAMPS, make_basis("delta-spark 4.4.0"), "oss").phase is Phase.FREE
    assert phase_of(_AGAIN_TIMESTAMPS, make_basis("delta-spark 4.4.0", protocol=_SEEN), "oss").phase is Phase.CLOSED


@pytest.mark.parametrize("made", [_VECTORS, _FIRST, _AGAIN])
def test_on_databricks_nothing_that_changes_metadata_is_free(made: Commits) -> None:
    verdict = phase_of(made, make_basis("delta-spark 4.4.0"), "databricks")
    assert verdict.phase is Phase.CLOSED
    assert "Databricks" in verdict.reason


@pytest.mark.parametrize(
    ("made", "basis", "why"),
    [
        (
            _VECTORS,
            make_basis("delta-spark 4.4.0"),
            "known writers adopt this change and continue: .*by Delta Spark 4.4.0$",
        ),
        (_VECTORS, make_basis("delta-spark 3.3.2"), "Delta Spark 3.3.2 writes this table: .* from Delta Spark 4.1 on"),
        (_CHECKPOINTS, make_basis("delta-spark 4.2.0"), "from Delta Spark 4.3 on"),
        (
            _VECTORS,
            make_basis("kernel 4.4.0"),
            "Delta Kernel 4.4.0 writes this table: it fails on every change of the protocol",
        ),
        (_VECTORS, make_basis("unknown"), "an unknown client writes this table"),
        (_VECTORS, make_basis(), "the table's history names no writer"),
        (_AGAIN, make_basis("delta-spark 4.4.0"), "only the clustering domain changes"),
        (_AGAIN, make_basis("delta-spark 4.4.0", overwrites=True, clustered=True), "the history has full overwrites"),
        (_AGAIN, make_basis("databricks 16.4"), "Databricks 16.4 writes this table: .* it may fail"),
        (_unset("a"), make_basis("delta-spark 4.4.0"), "removing a property conflicts"),
        (
            _set(("b", "1"), ("a", "1")),
            make_basis("delta-spark 4.4.0"),
            "changing a, b conflicts with every concurrent write",
        ),
        (_VECTORS, make_basis("delta-spark 4.4.0", identity=True), "identity columns"),
        (_VECTORS, make_basis("delta-spark 4.4.0", schema_writers=True), "recent writes changed the schema"),
        (_PURGE, make_basis(), "appends do not conflict"),
    ],
)
def test_the_reason_says_why(made: Commits, basis: Basis, why: str) -> None:
    assert re.search(why, phase_of(made, basis, "oss").reason)


@pytest.mark.parametrize(
    ("made", "basis", "fails"),
    [
        (
            _unset("a"),
            make_basis("delta-spark 4.4.0"),
            "all concurrent writes except OPTIMIZE fail once (MetadataChangedException)",
        ),
        (
            _PURGE,
            make_basis("delta-spark 4.4.0"),
            (
                "concurrent INSERT … SELECT from the table itself, UPDATE, DELETE and MERGE fail once "
                "(ConcurrentAppendException); concurrent OPTIMIZE fails once (ConcurrentDeleteReadException)"
            ),
        ),
        (
            _VECTORS,
            make_basis("kernel", "delta-spark 3.3.0"),
            (
                "all concurrent writes except OPTIMIZE fail once (ProtocolChangedException or "
                "MetadataChangedException); concurrent OPTIMIZE fails once (ProtocolChangedException)"
            ),
        ),
        (_AGAIN, make_basis("databricks 16.4"), "all concurrent writes fail once (an undocumented error)"),
        (_UNSET, make_basis("delta-rs 1.6.6"), "all concurrent writes fail once (CommitFailedError)"),
    ],
)
def test_the_writers_that_fail_are_named_with_their_exceptions(made: Commits, basis: Basis, fails: str) -> None:
    assert phase_of(made, basis, "oss").fails == fails


# Who may be in flight

_CUT = WriterEvidence(commits=2000, since=1_791_072_000_000, cut=True)


@pytest.mark.parametrize(
    ("made", "clients", "phase"),
    [
        (_VECTORS, {"spark": "4.0"}, Phase.CLOSED),
        (_VECTORS, {"spark": "4.1"}, Phase.FREE),
        (_VECTORS, {"deltalake": "1.6"}, Phase.CLOSED),
        (_VECTORS, {"kernel": "4.4"}, Phase.CLOSED),
        (_VECTORS, {"trino": "455"}, Phase.CLOSED),
        (_VECTORS, {"bigquery": "1"}, Phase.FREE),
        (_AGAIN, {"deltalake": "1.6"}, Phase.CLOSED),
        (_AGAIN, {"spark": "3.2"}, Phase.FREE),
    ],
)
def test_a_declared_client_counts_like_one_in_the_log(made: Commits, clients: dict[str, str], phase: Phase) -> None:
    basis = make_basis("delta-spark 4.4.0", options=TableOptions(clients=tuple(clients.items())))
    verdict = phase_of(made, basis, "oss")
    assert verdict.phase is phase
    assert phase is Phase.FREE or "may write this table by the policy's `clients`" in verdict.reason


def test_unread_commits_count_as_the_strictest_writers_unless_clients_are_declared() -> None:
    cut = make_basis("delta-spark 4.4.0", evidence=_CUT)
    verdict = phase_of(_VECTORS, cut, "oss")
    assert verdict.phase is Phase.CLOSED
    assert "not all commits of the last 30 days were read" in verdict.reason
    assert "declare its clients under `clients`" in verdict.reason
    declared = make_basis("delta-spark 4.4.0", evidence=_CUT, options=TableOptions(clients=(("spark", "4.4"),)))
    assert phase_of(_VECTORS, declared, "oss").phase is Phase.FREE
    clustered = {"clustered": True, "evidence": _CUT}
    assert phase_of(_AGAIN, make_basis("delta-spark 4.4.0", **clustered), "oss").phase is Phase.CLOSED


def test_a_safe_statement_says_what_the_judgement_rests_on() -> None:
    basis = make_basis(
        "delta-spark 4.1.0",
        "delta-spark 4.4.0",
        evidence=WriterEvidence(commits=412, since=1_791_417_600_000),
        options=TableOptions(clients=(("spark", "4.1"),)),
    )
    assert phase_of(_VECTORS, basis, "oss").reason == (
        "the known writers adopt this change and continue: 412 commits since 8 October 2026, by Delta Spark 4.1.0 and "
        "4.4.0; declared: spark 4.1"
    )


@pytest.mark.parametrize(
    ("made", "basis", "depends"),
    [
        (_VECTORS, make_basis("delta-spark 4.4.0"), True),
        (_VECTORS, make_basis("delta-spark 3.3.0"), False),
        (_AGAIN, make_basis("delta-spark 4.4.0", clustered=True), True),
        (_PURGE, make_basis("delta-spark 4.4.0"), False),
        (_unset("a"), make_basis("delta-spark 4.4.0"), False),
    ],
)
def test_only_some_phases_depend_on_who_else_writes(made: Commits, basis: Basis, *, depends: bool) -> None:
    assert depends_on_writers(made, basis, "oss") is depends


@given(
    known=st.sets(st.sampled_from(["delta-spark 4.4.0", "delta-spark 4.0.1", "kernel 4.4.0", "unknown"]), min_size=1),
    more=st.sets(st.sampled_from(["delta-spark 3.2.0", "delta-rs 1.6.6", "databricks 16.4", "kernel 4.4.0"])),
    flags=st.fixed_dictionaries({"overwrites": st.booleans(), "schema_writers": st.booleans()}),
    made=st.sampled_from([_VECTORS, _CHECKPOINTS, _ROW_TRACKING, _FIRST, _AGAIN, _PURGE]),
)
def test_more_writers_never_make_a_phase_milder(
    known: set[str], more: set[str], flags: dict[str, bool], made: Commits
) -> None:
    few = phase_of(made, make_basis(*sorted(known)), "oss").phase
    many = phase_of(made, make_basis(*sorted(known | more), **flags), "oss").phase
    assert many.rank >= few.rank
    if not depends_on_writers(made, make_basis(*sorted(known)), "oss"):
        assert many is few


def test_a_forecast_names_each_writer_of_each_client() -> None:
    basis = make_basis("delta-spark 4.4.0", "kernel 4.4.0", identity=True)
    found = {
        (each.writer.current.client.engine, each.writer.name): each.outcome for each in forecast(_VECTORS, basis, "oss")
    }
    assert found["delta-spark", "MERGE"].succeeds
    assert found["delta-spark", "INSERT that draws identity values"].conflict is Conflict.METADATA_CHANGED
    assert found["kernel", "MERGE"].conflict is Conflict.PROTOCOL_CHANGED
    assert all(outcome.reason and outcome.source for outcome in found.values())
