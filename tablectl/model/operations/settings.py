"""Settings of a table: ``SET`` and ``UNSET TBLPROPERTIES``, and statements of Databricks that change only what its
catalog stores, which the table's log does not have.

A SET of the mapping mode ``none`` is an operation of its own: it rewrites all files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from tablectl.delta import keys
from tablectl.delta.databricks_runtimes import capability
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import TableName, quote_text
from tablectl.delta.properties import feature_of
from tablectl.delta.protocol import supported_by, with_needed
from tablectl.model.catalog_answers import Right
from tablectl.model.commit_contents import (
    LIVE,
    CommittedTransaction,
    Kind,
    MetadataChange,
    rearranging_commit,
    settings_commit,
)
from tablectl.model.operations.base import (
    DATABRICKS_DOCS,
    NOWHERE,
    SQL_REFERENCE,
    Operation,
    StatementForm,
    alter,
    clauses,
)
from tablectl.model.plan import Backfill, Basis, CommitEffect, Rewrite, Verb

_ROW_TRACKING_FEATURES = ("rowTracking", "domainMetadata")
_BACKFILL_FILES = 22_000
"""Files to which one commit gives row ids (``rowTracking.backfill.maxNumFiles``)."""
_MATERIALIZED = ((keys.MATERIALIZED_ROW_ID, ""), (keys.MATERIALIZED_ROW_VERSION, ""))
_TIMESTAMPS_SINCE = (keys.TIMESTAMPS_SINCE_VERSION, keys.TIMESTAMPS_SINCE_TIME)
"""The properties that remain after in-commit timestamps are disabled: since when they were enabled."""
_NO_MAPPING = ((keys.COLUMN_MAPPING, "none"),)
_SET = StatementForm(
    id="set properties",
    template="ALTER TABLE {table} SET TBLPROPERTIES ({pairs})",
    source=SQL_REFERENCE + "sql-ref-syntax-ddl-tblproperties",
    example="ALTER TABLE `lake`.`sales`.`orders` SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')",
)
_UNSET = StatementForm(
    id="unset properties",
    template="ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({keys})",
    source=SQL_REFERENCE + "sql-ref-syntax-ddl-tblproperties",
    example="ALTER TABLE `lake`.`sales`.`orders` UNSET TBLPROPERTIES IF EXISTS ('owner.team')",
)


@dataclass(frozen=True, slots=True)
class SetProperties(Operation):
    """One commit for all keys (delta-1.0)."""

    values: tuple[tuple[str, str], ...]
    verb: ClassVar[Verb] = "SET TBLPROPERTIES"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "set"
    forms: ClassVar[tuple[StatementForm, ...]] = (_SET,)

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, *_set_clause(self.values))

    def refused_by(self, dialect: str) -> str:
        """Open-source Delta honours a stored WriteSerializable but rejects setting it (delta-1.2)."""
        level, known = dict(self.values).get(keys.ISOLATION_LEVEL), dialect_of(dialect)
        takes = level is None or level.lower() in {each.lower() for each in known.settable_levels}
        return "" if takes else f"{known.title} cannot set {level}"

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(sets=self.values, features=self._features(basis))

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """One commit. Enabling row tracking takes three: the protocol, the files committed again, the property."""
        features = self._features(basis)
        before: tuple[CommittedTransaction, ...] = ()
        if self._enables(keys.ROW_TRACKING):
            raised = tuple(feature for feature in features if feature in _ROW_TRACKING_FEATURES)
            features = tuple(feature for feature in features if feature not in raised)
            upgrade = settings_commit(Kind.UPGRADE_PROTOCOL, adds=raised)
            backfill = CommittedTransaction(kind=Kind.BACKFILL, added=(LIVE,), data_change=False)
            before = (upgrade, backfill) if raised else (backfill,)
        sets = tuple(pair for pair in self.values if not supported_by(*pair))  # such a key only adds a feature
        renews: tuple[str, ...] = ()
        tag: Literal["", "row tracking"] = ""
        if self._names_row_id_columns(basis):
            sets = (*sets, *_MATERIALIZED)
        if self._enables(keys.ROW_TRACKING) and len(self.values) == 1:
            tag = "row tracking"
        if self._enables(keys.IN_COMMIT_TIMESTAMPS) and basis.protocol.protocol().has("inCommitTimestamp"):
            # Disabling in-commit timestamps keeps the record of when they were first enabled; enabling them again
            # changes it.
            sets = (*sets, *((key, "") for key in _TIMESTAMPS_SINCE))
            renews = _TIMESTAMPS_SINCE
        return (
            *before,
            settings_commit(
                Kind.SET_PROPERTIES,
                MetadataChange(sets=sets, renews=renews, schema=mapped_schema(self.values, basis), tag=tag),
                features,
            ),
        )

    @property
    def properties(self) -> Mapping[str, str | None]:
        return {key: value for key, value in self.values if not supported_by(key, value)}

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
        brought = with_needed(feature for key, value in self.values if (feature := feature_of(key, value)))
        protocol = basis.protocol.protocol()
        return tuple(sorted(feature for feature in brought if not protocol.has(feature)))

    def _enables(self, wanted: str) -> bool:
        return any(key.lower() == wanted.lower() and value.lower() == "true" for key, value in self.values)

    def _names_row_id_columns(self, basis: Basis) -> bool:
        """Whether Delta adds the two properties that name the columns of row ids. Unlike other features, row tracking
        brings properties even if nothing enables it (delta-1.0).
        """
        supports = any(supported_by(key, value) == "rowTracking" for key, value in self.values)
        return self._enables(keys.ROW_TRACKING) or (supports and not basis.protocol.protocol().has("rowTracking"))


@dataclass(frozen=True, slots=True)
class UnsetProperties(Operation):
    """One commit for all keys, never the same as a SET (delta-1.0)."""

    keys: tuple[str, ...]
    verb: ClassVar[Verb] = "UNSET TBLPROPERTIES"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "unset"
    forms: ClassVar[tuple[StatementForm, ...]] = (_UNSET,)

    def lines(self, table: TableName) -> tuple[str, ...]:
        """Without an error for a key that is not set."""
        return alter(table, *clauses("UNSET TBLPROPERTIES IF EXISTS", [quote_text(key) for key in self.keys]))

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(removes=self.keys)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        return (settings_commit(Kind.UNSET_PROPERTIES, MetadataChange(removes=self.keys)),)

    @property
    def properties(self) -> Mapping[str, str | None]:
        return dict.fromkeys(self.keys)


@dataclass(frozen=True, slots=True)
class RemoveMapping(Operation):
    """Rewrites all data under the logical column names.

    Delta makes a second commit if the SET has any other key (delta-1.7), so it has none.
    """

    verb: ClassVar[Verb] = "REMOVE COLUMN MAPPING"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "mapping"
    forms: ClassVar[tuple[StatementForm, ...]] = (_SET,)
    turn: ClassVar[int] = 2

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, *_set_clause(_NO_MAPPING))

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(sets=_NO_MAPPING, rewrites_files=True)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        return (rearranging_commit(Kind.REMOVE_MAPPING, MetadataChange(sets=_NO_MAPPING, schema="other")),)

    @property
    def properties(self) -> Mapping[str, str | None]:
        return dict(_NO_MAPPING)

    def rewrite(self, basis: Basis) -> Rewrite | None:
        return Rewrite(vectors=basis.vectors, everything=True, files_at_most=basis.files, bytes_at_most=basis.bytes)


def _set_clause(values: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """``SET TBLPROPERTIES (…)``."""
    return clauses("SET TBLPROPERTIES", [f"{quote_text(key)} = {quote_text(value)}" for key, value in values])


def mapped_schema(values: tuple[tuple[str, str], ...], basis: Basis) -> Literal["same", "mapping", "other"]:
    """How a change of the column mapping changes the schema. The ids of a struct's fields are stored in the type of its
    column, so the column's type changes (delta-1.7).
    """
    if not any(key.lower() == keys.COLUMN_MAPPING.lower() for key, _ in values):
        return "same"
    return "other" if basis.nested else "mapping"


OptimizationWord = Literal["ENABLE", "DISABLE", "INHERIT"]


def _optimization_form(word: str) -> StatementForm:
    return StatementForm(
        id=f"{word.lower()} predictive optimization",
        template=f"ALTER TABLE {{table}} {word} PREDICTIVE OPTIMIZATION",
        source=DATABRICKS_DOCS + "optimizations/predictive-optimization",
        example=f"ALTER TABLE `lake`.`sales`.`orders` {word} PREDICTIVE OPTIMIZATION",
        run_on=NOWHERE,
        capability=capability("predictive_optimization", "enable, disable or inherit"),
    )


_OPTIMIZATION = {word: _optimization_form(word) for word in get_args(OptimizationWord)}
_SET_MANAGED = StatementForm(
    id="set managed",
    template="ALTER TABLE {table} SET MANAGED",
    source=DATABRICKS_DOCS + "tables/convert-external-managed",
    example="ALTER TABLE `lake`.`sales`.`orders` SET MANAGED",
    run_on=NOWHERE,
    capability=capability("managed", "set"),
)
_SET_MANAGED_TRUNCATING = StatementForm(
    id="set managed truncate uniform history",
    template="ALTER TABLE {table} SET MANAGED TRUNCATE UNIFORM HISTORY",
    source=DATABRICKS_DOCS + "tables/convert-external-managed",
    example="ALTER TABLE `lake`.`sales`.`orders` SET MANAGED TRUNCATE UNIFORM HISTORY",
    run_on=NOWHERE,
    capability=capability("managed", "set with Iceberg reads"),
)
_UNSET_MANAGED = StatementForm(
    id="unset managed",
    template="ALTER TABLE {table} UNSET MANAGED",
    source=DATABRICKS_DOCS + "tables/convert-external-managed",
    example="ALTER TABLE `lake`.`sales`.`orders` UNSET MANAGED",
    run_on=NOWHERE,
    capability=capability("managed", "unset"),
)


class _CatalogSetting:
    """Mixed into an operation that changes only what the catalog stores."""

    __slots__ = ()

    moves: ClassVar[bool] = False
    """Whether the table moves to another location."""

    def effect(self, basis: Basis) -> CommitEffect:
        del basis
        return CommitEffect(in_catalog=True, moves=self.moves)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """None that a source names."""
        del basis
        return ()


@dataclass(frozen=True, slots=True)
class SetOptimization(_CatalogSetting, Operation):
    """A setting in the catalog. The table's log does not have it."""

    setting: OptimizationWord
    verb: ClassVar[Verb] = "PREDICTIVE OPTIMIZATION"
    right: ClassVar[Right] = "MANAGE"
    word: ClassVar[str] = "predictive-optimization"
    forms: ClassVar[tuple[StatementForm, ...]] = tuple(_OPTIMIZATION.values())
    turn: ClassVar[int] = 0

    @property
    def form(self) -> StatementForm:
        return _OPTIMIZATION[self.setting]

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"{self.setting} PREDICTIVE OPTIMIZATION")


@dataclass(frozen=True, slots=True)
class SetManaged(_CatalogSetting, Operation):
    """The catalog takes over the storage of an external table, and the table moves there."""

    truncates: bool = False
    """Whether the history of Iceberg reads is given up, without which a table with UniForm is refused."""
    verb: ClassVar[Verb] = "SET MANAGED"
    word: ClassVar[str] = "set-managed"
    forms: ClassVar[tuple[StatementForm, ...]] = (_SET_MANAGED, _SET_MANAGED_TRUNCATING)
    turn: ClassVar[int] = 5
    moves: ClassVar[bool] = True

    @property
    def form(self) -> StatementForm:
        return _SET_MANAGED_TRUNCATING if self.truncates else _SET_MANAGED

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"{self.verb}{' TRUNCATE UNIFORM HISTORY' * self.truncates}")


@dataclass(frozen=True, slots=True)
class UnsetManaged(_CatalogSetting, Operation):
    """Back to an external table, where it was before ``SET MANAGED``."""

    verb: ClassVar[Verb] = "UNSET MANAGED"
    word: ClassVar[str] = "unset-managed"
    forms: ClassVar[tuple[StatementForm, ...]] = (_UNSET_MANAGED,)
    turn: ClassVar[int] = 5
    moves: ClassVar[bool] = True

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, self.verb)
