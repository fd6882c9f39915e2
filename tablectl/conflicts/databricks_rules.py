"""The rules of Databricks as documented: runtime, isolation level, row-level concurrency.

Sources are the ids of docs/reference/databricks.md. What they do not decide is ``cannot tell``. What they call "can"
depends on the rows or files that both touch, and is ``may fail``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto

from tablectl.conflicts.delta_spark_rules import RELEASES, decide_spark
from tablectl.conflicts.transactions import (
    ClientRules,
    Conflict,
    ConflictOutcome,
    ConflictResult,
    CurrentTransaction,
    Level,
    Platform,
    commits,
    fails,
    worst,
)
from tablectl.delta.client_families import DATABRICKS
from tablectl.delta.keys import ROW_TRACKING_DOMAIN
from tablectl.delta.protocol import Client
from tablectl.model.commit_contents import CommittedTransaction, Kind

Version = tuple[int, ...]

NOT_DOCUMENTED = "D98"
"""The fact about everything that is not documented."""
_AUTOMATIC_ON_LIQUID: Version = (13, 3)
_PREVIEW: Version = (14, 0)
_GENERAL: Version = (14, 2)
_WITHOUT_PHOTON: Version = (14, 3)


class StatementGroup(Enum):
    """A row of the documented matrices."""

    INSERT = auto()
    CHANGE = auto()
    """UPDATE, DELETE, MERGE, and an INSERT that reads its own target (D36)."""
    OPTIMIZE = auto()
    """OPTIMIZE, and a REORG that applies deletion vectors (D37)."""
    OTHER = auto()
    """Not documented (D98)."""


_GROUPS = {
    Kind.APPEND: StatementGroup.INSERT,
    Kind.STREAMING_APPEND: StatementGroup.INSERT,
    Kind.READING_INSERT: StatementGroup.CHANGE,
    Kind.UPDATE: StatementGroup.CHANGE,
    Kind.DELETE: StatementGroup.CHANGE,
    Kind.MERGE: StatementGroup.CHANGE,
    Kind.OPTIMIZE: StatementGroup.OPTIMIZE,
    Kind.REORG: StatementGroup.OPTIMIZE,
}


def decide_databricks(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome:
    """The outcome of a Databricks transaction after one committed transaction."""
    return _metadata(committed, current) or _streams(committed, current) or _pair(committed, current)


def _decide_all(all_committed: Sequence[CommittedTransaction], current: CurrentTransaction) -> ConflictOutcome:
    return worst([decide_databricks(committed, current) for committed in all_committed])


NEWEST_DOCUMENTED = Client(DATABRICKS.name, (14, 3))
"""Stands for the documented runtimes in examples."""
RULES = ClientRules(family=DATABRICKS, decide=_decide_all, strictest=Client(DATABRICKS.name))


def row_level(current: CurrentTransaction) -> tuple[bool | None, str]:
    """Whether row-level concurrency applies to a transaction, and the facts that say so; ``None`` is unknown."""
    asked = _conditions(current)
    sources = dict.fromkeys(source for _, source in asked if source)
    return _all(current.platform.plain, *(answer for answer, _ in asked)), ", ".join(sources)


def row_level_limits(current: CurrentTransaction) -> tuple[str, ...]:
    """The facts that prevent it, or that are not known to be fulfilled; empty if it applies."""
    asked = (*_conditions(current), (current.platform.plain, "D44"))
    return tuple(dict.fromkeys(source for answer, source in asked if answer is not True))


def _conditions(current: CurrentTransaction) -> tuple[tuple[bool | None, str], ...]:
    """Each condition: whether it is met, and the fact that states it."""
    facts, runtime = current.platform, current.client.version[:2]
    if current.partitioned:
        return ((False, "D42"),)
    if facts.vectors is False:
        return ((False, "D43"),)
    if facts.plain is False:
        return ((False, "D44"),)
    if not runtime:
        return ((None, "D41"),)
    return (_enabled(facts, runtime), _possible(current, runtime))


def _enabled(facts: Platform, runtime: Version) -> tuple[bool | None, str]:
    """Whether the table has it: liquid tables by themselves, others if deletion vectors are enabled (D41, D47-D51)."""
    if runtime < _AUTOMATIC_ON_LIQUID:
        return False, "D47"
    source = "D48" if runtime < _PREVIEW else "D49" if runtime < _GENERAL else "D50"
    source = "D51" if runtime >= _WITHOUT_PHOTON else source
    if facts.clustered:
        return True, source
    if runtime < _GENERAL and not (facts.preview and runtime >= _PREVIEW):
        return (False if facts.clustered is False else None), source
    return facts.vectors, source


def _possible(current: CurrentTransaction, runtime: Version) -> tuple[bool | None, str]:
    """Whether this compute and this statement support it (D45, D50, D99)."""
    if runtime >= _WITHOUT_PHOTON:
        return True, ""
    if runtime >= _GENERAL:
        merge = current.kind in (Kind.MERGE, Kind.READING_INSERT)  # it has the concurrency of MERGE (D36)
        return (_all(current.platform.photon, current.platform.filtered), "D45") if merge else (True, "")
    return (True, "") if current.kind is Kind.DELETE else (current.platform.photon, "D99")


def _all(*answers: bool | None) -> bool | None:
    """Whether all conditions are met, as far as known."""
    if False in answers:
        return False
    return None if None in answers else True


def _metadata(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    if committed.kind is Kind.REPLACE_TABLE and current.kind is Kind.REPLACE_TABLE:
        return fails(Conflict.PROTOCOL_CHANGED, "several transactions replace the table at the same time", "D69")
    if committed.protocol is not None and committed.metadata is None:
        return fails(
            Conflict.PROTOCOL_CHANGED, "on Databricks every protocol change fails all concurrent writes (D15)", "D15"
        )
    if committed.metadata is not None:
        reason = "on Databricks every metadata change fails all concurrent writes (D15)"
        return fails(Conflict.METADATA_CHANGED, reason, "D15, D67")
    if set(committed.domains) - {ROW_TRACKING_DOMAIN}:
        return ConflictOutcome(
            ConflictResult.UNKNOWN, "nothing is documented for CLUSTER BY on Databricks: it may fail", NOT_DOCUMENTED
        )
    if current.platform.identity:
        return fails(Conflict.METADATA_CHANGED, "tables with identity columns take no concurrent transactions", "D23")
    return None


def _streams(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    shared = sorted(set(committed.app_ids) & set(current.app_ids))
    if not shared:
        return None
    return fails(Conflict.TRANSACTION, f"two runs of one stream at the same time: {', '.join(shared)}", "D68")


def _pair(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome:
    won, lost = _GROUPS.get(committed.kind, StatementGroup.OTHER), _GROUPS.get(current.kind, StatementGroup.OTHER)
    if StatementGroup.OTHER in (won, lost):
        kind = current.kind if committed.kind in _GROUPS else committed.kind
        # "The OSS rules, marked not documented" (D98): a failure under them is a warning, a commit promises nothing.
        oss = decide_spark([committed], replace(current, client=RELEASES[-1]))
        source = f"{NOT_DOCUMENTED}, {oss.source}"
        if oss.succeeds:
            reason = f"nothing is documented for {kind} on Databricks; open-source Delta lets it commit"
            return ConflictOutcome(ConflictResult.UNKNOWN, reason, source)
        reason = f"nothing is documented for {kind} on Databricks; in open-source Delta {oss.reason}"
        return ConflictOutcome(ConflictResult.MAY_FAIL, reason, source, oss.conflict)
    if lost is StatementGroup.INSERT:
        source = {
            StatementGroup.INSERT: "D24, D30",
            StatementGroup.OPTIMIZE: "D27, D33",
            StatementGroup.CHANGE: "D52, D64, D65, D66",
        }[won]
        return commits("it reads and removes nothing that a concurrent write could touch", source)
    if won is StatementGroup.INSERT:
        if lost is StatementGroup.OPTIMIZE:
            return commits("OPTIMIZE and INSERT never conflict", "D27, D33")
        if current.level is Level.WRITE_SERIALIZABLE and committed.blind and not current.metadata:
            return commits("under WriteSerializable an INSERT conflicts with nothing (but see D57)", "D25, D31, D55")
        holds, source = row_level(current)
        if holds:
            return _can(committed, current, "rows that it would have matched were inserted", f"D25, D94, {source}")
        return _can(committed, current, "rows were inserted in the range it reads", f"D31, {source}")
    if StatementGroup.OPTIMIZE in (won, lost):
        both = won is lost
        moves = committed.zorder or current.zorder
        # Whether rows or files count depends on the statement that changes rows, whichever of the two it is.
        holds, source = row_level(replace(current, kind=committed.kind) if won is StatementGroup.CHANGE else current)
        if holds and not moves:
            return commits(
                "with row-level concurrency OPTIMIZE conflicts with no other write", "D29" if both else "D28"
            )
        if current.platform.vectors and not moves:
            return commits("with deletion vectors OPTIMIZE conflicts with no other write", "D35" if both else "D34")
        if committed.kind is Kind.READING_INSERT:
            reason = "such an INSERT counts as a MERGE, and nothing says what a MERGE that only adds does to OPTIMIZE"
            return ConflictOutcome(ConflictResult.UNKNOWN, reason, f"D34, D36, {NOT_DOCUMENTED}")
        if moves:
            return _can(committed, current, "ZORDER BY moves rows that both touch", "D29, D35" if both else "D28, D34")
        return _can(committed, current, "both touch the same files", f"{'D35' if both else 'D34'}, {source}")
    holds, source = row_level(current)
    if holds:
        return _can(committed, current, "both change a row", f"D26, {source}")
    return _can(committed, current, "both touch the same files", f"D32, {source}")


def _can(committed: CommittedTransaction, current: CurrentTransaction, reason: str, source: str) -> ConflictOutcome:
    """An outcome documented as "can": it commits if the two share no file (D39, D58), else it depends."""
    conflict = _shared(committed, current)
    if conflict is None:
        return commits("they touch no common file", "D39, D58, D63")
    return ConflictOutcome(ConflictResult.MAY_FAIL, reason, source, conflict)


def _shared(committed: CommittedTransaction, current: CurrentTransaction) -> Conflict | None:
    # An OPTIMIZE or REORG changes no row, so added rows do not concern it (D65, D66).
    adds = committed.added if current.data_change else ()
    if any(current.reads.admit(file, partitioned=current.partitioned) for file in adds):
        return Conflict.APPEND
    removed = {file.path for file in committed.removed}
    # Two OPTIMIZE on Runtime 13.3 end with it (github.com/databrickslabs/overwatch/issues/1166).
    if removed & set(current.removes) and not (committed.data_change or current.data_change):
        return Conflict.DELETE_DELETE
    if removed & set(current.reads.files) or (removed and current.reads.whole):
        return Conflict.DELETE_READ
    return Conflict.DELETE_DELETE if removed & set(current.removes) else None
