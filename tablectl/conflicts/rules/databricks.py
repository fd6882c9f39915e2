"""The rules of Databricks as documented: runtime, isolation level, row-level concurrency.

Sources are the ids of docs/reference/databricks.md. What they do not decide is ``cannot tell``. What they call "can"
depends on the rows or files that both touch, and is ``may fail``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto

from tablectl.conflicts.rules.client_rules import ClientRules, worst
from tablectl.conflicts.rules.delta_spark import RELEASES, decide_spark
from tablectl.conflicts.transactions import (
    Conflict,
    ConflictOutcome,
    ConflictResult,
    CurrentTransaction,
    Level,
    Platform,
    commits,
    fails,
)
from tablectl.delta.client_families import DATABRICKS
from tablectl.delta.keys import ROW_TRACKING_DOMAIN
from tablectl.delta.protocol import Client
from tablectl.model.commits import CommittedTransaction, Kind

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


def decide_databricks(winner: CommittedTransaction, loser: CurrentTransaction) -> ConflictOutcome:
    """The outcome of a Databricks transaction after one committed transaction."""
    return _metadata(winner, loser) or _streams(winner, loser) or _pair(winner, loser)


def _decide_all(winners: Sequence[CommittedTransaction], loser: CurrentTransaction) -> ConflictOutcome:
    return worst([decide_databricks(winner, loser) for winner in winners])


NEWEST_DOCUMENTED = Client(DATABRICKS.name, (14, 3))
"""Stands for the documented runtimes in examples."""
RULES = ClientRules(family=DATABRICKS, decide=_decide_all, strictest=Client(DATABRICKS.name))


def row_level(loser: CurrentTransaction) -> tuple[bool | None, str]:
    """Whether row-level concurrency applies to a transaction, and the facts that say so; ``None`` is unknown."""
    asked = _conditions(loser)
    sources = dict.fromkeys(source for _, source in asked if source)
    return _all(loser.platform.plain, *(answer for answer, _ in asked)), ", ".join(sources)


def row_level_limits(loser: CurrentTransaction) -> tuple[str, ...]:
    """The facts that prevent it, or that are not known to be fulfilled; empty if it applies."""
    asked = (*_conditions(loser), (loser.platform.plain, "D44"))
    return tuple(dict.fromkeys(source for answer, source in asked if answer is not True))


def _conditions(loser: CurrentTransaction) -> tuple[tuple[bool | None, str], ...]:
    """Each condition: whether it is met, and the fact that states it."""
    facts, runtime = loser.platform, loser.client.version[:2]
    if loser.partitioned:
        return ((False, "D42"),)
    if facts.vectors is False:
        return ((False, "D43"),)
    if facts.plain is False:
        return ((False, "D44"),)
    if not runtime:
        return ((None, "D41"),)
    return (_enabled(facts, runtime), _possible(loser, runtime))


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


def _possible(loser: CurrentTransaction, runtime: Version) -> tuple[bool | None, str]:
    """Whether this compute and this statement support it (D45, D50, D99)."""
    if runtime >= _WITHOUT_PHOTON:
        return True, ""
    if runtime >= _GENERAL:
        merge = loser.kind in (Kind.MERGE, Kind.READING_INSERT)  # it has the concurrency of MERGE (D36)
        return (_all(loser.platform.photon, loser.platform.filtered), "D45") if merge else (True, "")
    return (True, "") if loser.kind is Kind.DELETE else (loser.platform.photon, "D99")


def _all(*answers: bool | None) -> bool | None:
    """Whether all conditions are met, as far as known."""
    if False in answers:
        return False
    return None if None in answers else True


def _metadata(winner: CommittedTransaction, loser: CurrentTransaction) -> ConflictOutcome | None:
    if winner.protocol is not None and winner.metadata is None:
        return fails(
            Conflict.PROTOCOL_CHANGED, "on Databricks every protocol change fails all concurrent writes (D15)", "D15"
        )
    if winner.metadata is not None:
        reason = "on Databricks every metadata change fails all concurrent writes (D15)"
        return fails(Conflict.METADATA_CHANGED, reason, "D15, D67")
    if set(winner.domains) - {ROW_TRACKING_DOMAIN}:
        return ConflictOutcome(
            ConflictResult.UNKNOWN, "nothing is documented for CLUSTER BY on Databricks: it may fail", NOT_DOCUMENTED
        )
    if loser.platform.identity:
        return fails(Conflict.METADATA_CHANGED, "tables with identity columns take no concurrent transactions", "D23")
    return None


def _streams(winner: CommittedTransaction, loser: CurrentTransaction) -> ConflictOutcome | None:
    shared = sorted(set(winner.app_ids) & set(loser.app_ids))
    if not shared:
        return None
    return fails(Conflict.TRANSACTION, f"two runs of one stream at the same time: {', '.join(shared)}", "D68")


def _pair(winner: CommittedTransaction, loser: CurrentTransaction) -> ConflictOutcome:
    won, lost = _GROUPS.get(winner.kind, StatementGroup.OTHER), _GROUPS.get(loser.kind, StatementGroup.OTHER)
    if StatementGroup.OTHER in (won, lost):
        return _undocumented(winner, loser)
    if lost is StatementGroup.INSERT:
        return _insert(won)
    if won is StatementGroup.INSERT:
        return _beside_insert(winner, loser, lost)
    if StatementGroup.OPTIMIZE in (won, lost):
        return _beside_optimize(winner, loser, won, lost)
    return _changes(winner, loser)


def _insert(won: StatementGroup) -> ConflictOutcome:
    source = {
        StatementGroup.INSERT: "D24, D30",
        StatementGroup.OPTIMIZE: "D27, D33",
        StatementGroup.CHANGE: "D52, D64, D65, D66",
    }[won]
    return commits("it reads and removes nothing that a concurrent write could touch", source)


def _beside_insert(winner: CommittedTransaction, loser: CurrentTransaction, lost: StatementGroup) -> ConflictOutcome:
    if lost is StatementGroup.OPTIMIZE:
        return commits("OPTIMIZE and INSERT never conflict", "D27, D33")
    if loser.level is Level.WRITE_SERIALIZABLE and winner.blind and not loser.metadata:
        return commits("under WriteSerializable an INSERT conflicts with nothing (but see D57)", "D25, D31, D55")
    holds, source = row_level(loser)
    if holds:
        return _can(winner, loser, "rows that it would have matched were inserted", f"D25, D94, {source}")
    return _can(winner, loser, "rows were inserted in the range it reads", f"D31, {source}")


def _changes(winner: CommittedTransaction, loser: CurrentTransaction) -> ConflictOutcome:
    holds, source = row_level(loser)
    if holds:
        return _can(winner, loser, "both change a row", f"D26, {source}")
    return _can(winner, loser, "both touch the same files", f"D32, {source}")


def _beside_optimize(
    winner: CommittedTransaction, loser: CurrentTransaction, won: StatementGroup, lost: StatementGroup
) -> ConflictOutcome:
    both = won is lost
    if winner.zorder or loser.zorder:
        return _can(winner, loser, "ZORDER BY moves rows that both touch", "D29, D35" if both else "D28, D34")
    # Whether rows or files count depends on the statement that changes rows, whichever of the two it is.
    holds, source = row_level(replace(loser, kind=winner.kind) if won is StatementGroup.CHANGE else loser)
    if holds:
        return commits("with row-level concurrency OPTIMIZE conflicts with no other write", "D29" if both else "D28")
    if loser.platform.vectors:
        return commits("with deletion vectors OPTIMIZE conflicts with no other write", "D35" if both else "D34")
    return _can(winner, loser, "both touch the same files", f"{'D35' if both else 'D34'}, {source}")


def _can(winner: CommittedTransaction, loser: CurrentTransaction, reason: str, source: str) -> ConflictOutcome:
    """An outcome documented as "can": it commits if the two share no file (D39, D58), else it depends."""
    conflict = _shared(winner, loser)
    if conflict is None:
        return commits("they touch no common file", "D39, D58, D63")
    return ConflictOutcome(ConflictResult.MAY_FAIL, reason, source, conflict)


def _shared(winner: CommittedTransaction, loser: CurrentTransaction) -> Conflict | None:
    if any(loser.reads.admit(file, partitioned=loser.partitioned) for file in winner.added):
        return Conflict.APPEND
    removed = {file.path for file in winner.removed}
    if removed & set(loser.reads.files) or (removed and loser.reads.whole):
        return Conflict.DELETE_READ
    return Conflict.DELETE_DELETE if removed & set(loser.removes) else None


def _undocumented(winner: CommittedTransaction, loser: CurrentTransaction) -> ConflictOutcome:
    kind = loser.kind if winner.kind in _GROUPS else winner.kind
    # "The OSS rules, marked not documented" (D98): a failure under them is a warning, a commit is no promise.
    oss = decide_spark([winner], replace(loser, client=RELEASES[-1]))
    source = f"{NOT_DOCUMENTED}, {oss.source}"
    if oss.survives:
        reason = f"nothing is documented for {kind} on Databricks; open-source Delta lets it commit"
        return ConflictOutcome(ConflictResult.UNKNOWN, reason, source)
    reason = f"nothing is documented for {kind} on Databricks; in open-source Delta {oss.reason}"
    return ConflictOutcome(ConflictResult.MAY_FAIL, reason, source, oss.conflict)
