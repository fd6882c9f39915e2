"""``ALTER TABLE … SET TBLPROPERTIES``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from tablectl.delta import keys
from tablectl.delta.names import TableName
from tablectl.delta.properties import feature_of
from tablectl.delta.sql import quote_text
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.commits import LIVE, CommittedTransaction, Kind, MetadataChange, ProtocolChange
from tablectl.model.operations.base import Operation, TableState, alter, clauses
from tablectl.model.plan import Backfill, Basis, CommitEffect, Verb

_ROW_TRACKING_FEATURES = ("rowTracking", "domainMetadata")
_BACKFILL_FILES = 22_000
"""Files to which one commit gives row ids (``rowTracking.backfill.maxNumFiles``)."""
_MATERIALIZED = ((keys.MATERIALIZED_ROW_ID, ""), (keys.MATERIALIZED_ROW_VERSION, ""))
_TIMESTAMPS_SINCE = (keys.TIMESTAMPS_SINCE_VERSION, keys.TIMESTAMPS_SINCE_TIME)
"""The properties that remain after in-commit timestamps are disabled: since when they were enabled."""


@frozen
class SetProperties(Operation):
    """One commit for all keys (delta-1.0)."""

    values: tuple[tuple[str, str], ...]
    verb: ClassVar[Verb] = "SET TBLPROPERTIES"
    word: ClassVar[str] = "set"

    def code(self, table: TableName) -> Code:
        """One line for each key, if there are several."""
        return alter(table, *set_clause(self.values))

    def effect(self, basis: Basis) -> CommitEffect:
        """The values, and the features that they add."""
        return CommitEffect(sets=self.values, features=self._features(basis))

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """One commit. Enabling row tracking takes three: the protocol, the files committed again, the property."""
        features = self._features(basis)
        before: tuple[CommittedTransaction, ...] = ()
        if self._enables(keys.ROW_TRACKING):
            raised = tuple(feature for feature in features if feature in _ROW_TRACKING_FEATURES)
            features = tuple(feature for feature in features if feature not in raised)
            upgrade = CommittedTransaction(
                kind=Kind.UPGRADE_PROTOCOL, protocol=ProtocolChange(adds=raised), blind=True, data_change=False
            )
            backfill = CommittedTransaction(kind=Kind.BACKFILL, added=(LIVE,), data_change=False)
            before = (upgrade, backfill) if raised else (backfill,)
        last = CommittedTransaction(
            kind=Kind.SET_PROPERTIES,
            metadata=self._metadata(basis),
            protocol=ProtocolChange(adds=features) if features else None,
            # ALTERs read nothing and are recorded as blind appends (delta-2.4).
            blind=True,
            data_change=False,
        )
        return (*before, last)

    def applied(self, state: TableState) -> TableState:
        """The table with these values."""
        return state.with_properties(self.properties)

    @property
    def properties(self) -> Mapping[str, str | None]:
        """The values."""
        return dict(self.values)

    def backfill(self, basis: Basis) -> Backfill | None:
        """All files, in as many commits as that takes, if row tracking is enabled: only each file's log entry says
        whether the file has ids already. If the protocol has the feature, or a backfill was interrupted, Delta skips
        files with ids.
        """
        if not self._enables(keys.ROW_TRACKING) or not basis.files:
            return None
        return Backfill(
            files_at_most=basis.files, bytes_at_most=basis.bytes, commits_at_most=-(-basis.files // _BACKFILL_FILES)
        )

    def _features(self, basis: Basis) -> tuple[str, ...]:
        brought = {feature for key, value in self.values if (feature := feature_of(key, value))}
        if "rowTracking" in brought:
            brought |= set(_ROW_TRACKING_FEATURES)
        protocol = basis.protocol.protocol()
        return tuple(sorted(feature for feature in brought if not protocol.has(feature)))

    def _enables(self, wanted: str) -> bool:
        return any(key.lower() == wanted.lower() and value.lower() == "true" for key, value in self.values)

    def _metadata(self, basis: Basis) -> MetadataChange:
        sets = self.values
        renews: tuple[str, ...] = ()
        tag: Literal["", "row tracking"] = ""
        if self._enables(keys.ROW_TRACKING):
            sets = (*sets, *_MATERIALIZED)
            tag = "row tracking" if len(self.values) == 1 else ""
        if self._enables(keys.IN_COMMIT_TIMESTAMPS) and basis.protocol.protocol().has("inCommitTimestamp"):
            # Disabling in-commit timestamps keeps the record of when they were first enabled; enabling them again
            # changes it.
            sets = (*sets, *((key, "") for key in _TIMESTAMPS_SINCE))
            renews = _TIMESTAMPS_SINCE
        return MetadataChange(sets=sets, renews=renews, schema=mapped_schema(self.values, basis), tag=tag)


def set_clause(values: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """``SET TBLPROPERTIES (…)``."""
    return clauses("SET TBLPROPERTIES", [f"{quote_text(key)} = {quote_text(value)}" for key, value in values])


def mapped_schema(values: tuple[tuple[str, str], ...], basis: Basis) -> Literal["same", "mapping", "other"]:
    """How a change of the column mapping changes the schema. The ids of a struct's fields are stored in the type of its
    column, so the column's type changes (delta-1.7).
    """
    if not any(key.lower() == keys.COLUMN_MAPPING.lower() for key, _ in values):
        return "same"
    return "other" if basis.nested else "mapping"
