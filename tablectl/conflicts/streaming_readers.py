"""Which commits stop a streaming reader of the table (delta-6; Databricks: D22), and which break handles of readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tablectl.delta import keys
from tablectl.delta.dialects import DIALECTS, OPEN_SOURCE, dialect_of
from tablectl.model.commit_contents import CommittedTransaction, Kind
from tablectl.model.plan import ReaderKind

_EVOLVES = frozenset({Kind.ADD_COLUMNS, Kind.APPEND, Kind.MERGE, Kind.WIDEN_COLUMN})
"""Kinds whose schema change only adds columns or widens their types."""


class ReaderEffect(StrEnum):
    """The outcome of the stream, from best to worst."""

    GOES_ON = "goes on"
    RESTARTS = "stops once: a restart from its checkpoint goes on"
    STOPS = "stops: a restart from its checkpoint stops again"

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return list(ReaderEffect).index(self)


@dataclass(frozen=True, slots=True)
class ReaderStop:
    """The effect of a commit on a stream that reads the table."""

    effect: ReaderEffect
    reason: str
    source: str
    condition: str = ""
    """Delta's error class, if known."""
    fix: str = ""


def stream_reader(made: Sequence[CommittedTransaction], dialect: str, *, tracked: bool = False) -> ReaderStop:
    """The worst effect of a statement's commits on a stream that started before them.

    ``tracked``: the stream has a ``schemaTrackingLocation``.
    """
    effects = [_one(committed, dialect, tracked=tracked) for committed in made]
    return max(effects, key=lambda stop: stop.effect.rank, default=_UNTOUCHED)


def stopped_readers(made: Sequence[CommittedTransaction], dialect: str) -> tuple[ReaderKind, ...]:
    """The streams that stop at the commits of one statement: ``every`` stream, or kinds of them that can restart. Where
    the dialect itself stops streams, its own kind says enough.
    """
    own = dialect_of(dialect).streams_stopped_by_metadata
    plain = OPEN_SOURCE.name
    if stream_reader(made, plain).effect is not ReaderEffect.GOES_ON:
        return ("every",)
    stopped: list[ReaderKind] = []
    if stream_reader(made, plain, tracked=True).effect is not ReaderEffect.GOES_ON:
        stopped.append("with schema tracking")
    for each in DIALECTS:
        kind = each.streams_stopped_by_metadata
        if kind and stream_reader(made, each.name).effect is not ReaderEffect.GOES_ON:
            stopped.append(kind)
    return (own,) if own and own in stopped else tuple(stopped)


_UNTOUCHED = ReaderStop(ReaderEffect.GOES_ON, "it reads only rows, and no row changed", "delta-6")


def _one(committed: CommittedTransaction, dialect: str, *, tracked: bool) -> ReaderStop:
    return max((_settings(committed, dialect, tracked=tracked), _rows(committed)), key=lambda stop: stop.effect.rank)


def _settings(committed: CommittedTransaction, dialect: str, *, tracked: bool) -> ReaderStop:
    change = committed.metadata
    if committed.kind is Kind.REPLACE_TABLE:
        condition = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
        return ReaderStop(
            ReaderEffect.STOPS, "the table has a new id", "delta-6", condition, "start with a new checkpoint"
        )
    if change is not None and change.beyond:
        condition = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
        reason = "the partition columns or the table itself changed"
        if committed.kind is Kind.OVERWRITE:
            condition = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
        return ReaderStop(ReaderEffect.STOPS, reason, "delta-6", condition, "start with a new checkpoint")
    if committed.kind is Kind.CHANGE_COLUMN:
        condition = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
        reason = "a column was renamed, dropped or given another type"
        return ReaderStop(ReaderEffect.STOPS, reason, "delta-6", condition, "read with a schemaTrackingLocation")
    if change is not None and change.schema == "other" and not change.tag and committed.kind in _EVOLVES:
        condition = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
        return ReaderStop(ReaderEffect.RESTARTS, _evolved(committed), "delta-6", condition, "let it restart by itself")
    kind = dialect_of(dialect).streams_stopped_by_metadata
    if kind and (change is not None or committed.protocol is not None):
        reason = f"{kind} every change of metadata stops a streaming read"
        return ReaderStop(ReaderEffect.RESTARTS, reason, "D22", "", "let it restart by itself")
    if tracked and _tracked(committed):
        condition = "DELTA_STREAMING_METADATA_EVOLUTION"
        reason = "with schema tracking every change of protocol, schema or delta.* property stops it once"
        return ReaderStop(ReaderEffect.RESTARTS, reason, "delta-6", condition, "let it restart by itself")
    return _UNTOUCHED


def _evolved(committed: CommittedTransaction) -> str:
    return "a column has a wider type" if committed.kind is Kind.WIDEN_COLUMN else "columns were added"


def _tracked(committed: CommittedTransaction) -> bool:
    change = committed.metadata
    if committed.protocol is not None:
        return True
    if change is None:
        return False
    keys = (*(key for key, _ in change.sets), *change.removes)
    return change.schema != "same" or any(key.lower().startswith("delta.") for key in keys)


def _rows(committed: CommittedTransaction) -> ReaderStop:
    if not committed.data_change or not committed.removed:
        return _UNTOUCHED
    fix = "read with skipChangeCommits, or read the change data feed"
    if committed.added:
        reason = "rows that it may have read were rewritten or removed"
        return ReaderStop(ReaderEffect.STOPS, reason, "delta-6", "DELTA_SOURCE_TABLE_IGNORE_CHANGES", fix)
    reason = "rows that it may have read were removed"
    return ReaderStop(ReaderEffect.STOPS, reason, "delta-6", "DELTA_SOURCE_IGNORE_DELETE", fix)


_BREAKS = frozenset({(keys.DELETION_VECTORS.lower(), "true"), (keys.ROW_TRACKING.lower(), "true")})
"""Properties that add hidden columns to a scan. A scan that was analysed before the change lacks them. Measured with
Delta Spark 4.4; all other safe changes leave older handles intact."""


def stale_handles(made: Sequence[CommittedTransaction]) -> str:
    """Which operations of an old ``DeltaTable`` object fail after a statement with these commits, or nothing.

    Such an object, and a DataFrame, keeps the table's metadata of the time when it was created (delta-0).
    """
    if any(each.repartitions for each in made):
        return "re-create `DeltaTable` and DataFrame objects after this change, inside the guard; old ones fail"
    sets = (pair for each in made if each.metadata for pair in each.metadata.sets)
    if not any((key.lower(), value.lower()) in _BREAKS for key, value in sets):
        return ""
    return "re-create `DeltaTable` objects after this change, inside the guard; old ones fail on merge/update/delete"
