"""``ALTER TABLE … DROP FEATURE``."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.databricks_runtimes import capability
from tablectl.delta.names import TableName, quote_name
from tablectl.delta.protocol import PROTECTION, needs_protection
from tablectl.model.commits import CommittedTransaction, Kind, MetadataChange, ProtocolChange
from tablectl.model.operations.base import Operation, StatementForm, TableState, alter
from tablectl.model.plan import Basis, CommitEffect, Verb
from tablectl.support.frozen import frozen

_DROP = StatementForm(
    id="drop feature",
    template="ALTER TABLE {table} DROP FEATURE {feature}",
    source="https://docs.delta.io/delta-drop-feature/",
    example="ALTER TABLE `lake`.`sales`.`orders` DROP FEATURE `deletionVectors`",
    capability=capability("deletion_vectors", "drop without loss of history"),
)
_TRUNCATING = StatementForm(
    id="drop feature truncate history",
    template="ALTER TABLE {table} DROP FEATURE {feature} TRUNCATE HISTORY",
    source="https://docs.delta.io/delta-drop-feature/",
    example="ALTER TABLE `lake`.`sales`.`orders` DROP FEATURE `deletionVectors` TRUNCATE HISTORY",
    capability=capability("deletion_vectors", "drop with loss of history"),
)


@frozen
class DropFeature(Operation):
    """Removes a feature from the protocol (delta-1.3).

    With ``truncate_history`` it makes only empty commits, and fails, until the history that names the feature is a day
    old. Then it deletes that history.
    """

    name: str
    truncate_history: bool = False
    verb: ClassVar[Verb] = "DROP FEATURE"
    word: ClassVar[str] = "drop"
    forms: ClassVar[tuple[StatementForm, ...]] = (_DROP, _TRUNCATING)
    turn: ClassVar[int] = 3

    @property
    def form(self) -> StatementForm:
        return _TRUNCATING if self.truncate_history else _DROP

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"DROP FEATURE {quote_name(self.name)}{' TRUNCATE HISTORY' * self.truncate_history}")

    def effect(self, basis: Basis) -> CommitEffect:
        """The dropped feature, and the one that protects its history."""
        return CommitEffect(features=self._features(basis), drops=(self.name,), truncates_history=self.truncate_history)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """Several commits, of which the last one drops it. Checkpoints follow empty commits, three of them if they
        replace history (delta-1.3).
        """
        tombstones = CommittedTransaction(kind=Kind.TOMBSTONES, data_change=False)
        empty = CommittedTransaction(kind=Kind.EMPTY, blind=True, data_change=False)
        before: tuple[CommittedTransaction, ...]
        sets: tuple[tuple[str, str], ...] = ()
        if self.name == PROTECTION:
            unset = CommittedTransaction(
                kind=Kind.UNSET_PROPERTIES,
                metadata=MetadataChange(removes=(keys.PROTECTED_BEFORE,)),
                blind=True,
                data_change=False,
            )
            before = (empty, unset)
        elif self.truncate_history:
            before = (tombstones, empty)
        else:
            sets = ((keys.PROTECTED_BEFORE, ""),)
            before = (tombstones, empty, empty, empty)
        last = CommittedTransaction(
            kind=Kind.DROP_FEATURE,
            metadata=MetadataChange(sets=sets),
            protocol=ProtocolChange(adds=self._features(basis), removes=(self.name,)),
            blind=True,
            data_change=False,
        )
        return (*before, last)

    def applied(self, state: TableState) -> TableState:
        added = frozenset({PROTECTION} if self._protects(state) else ())
        return replace(state, protocol=state.protocol.raised(added).lowered(frozenset({self.name})))

    def _protects(self, state: TableState) -> bool:
        return needs_protection(self.name, truncate_history=self.truncate_history, protocol=state.protocol)

    def _features(self, basis: Basis) -> tuple[str, ...]:
        protocol = basis.protocol.protocol()
        protects = needs_protection(self.name, truncate_history=self.truncate_history, protocol=protocol)
        return (PROTECTION,) if protects else ()
