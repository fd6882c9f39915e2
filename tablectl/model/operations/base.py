"""What every operation answers about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from tablectl.delta.databricks_runtimes import DOCUMENTED, RUN_HERE, Capability, databricks_evidence
from tablectl.delta.dialects import DATABRICKS, OPEN_SOURCE
from tablectl.delta.names import TableName
from tablectl.model.catalog_answers import OWNERSHIP, Right
from tablectl.model.commit_contents import CommittedTransaction
from tablectl.model.plan import Backfill, Basis, CommitEffect, Rewrite, Verb

PARTITIONS = "(partitions)"
"""Stands for the partition columns in ``Operation.provides``. No property has this key."""
NOWHERE: frozenset[str] = frozenset()
"""No tests run the form."""
DATABRICKS_DOCS = "https://docs.databricks.com/aws/en/"
SQL_REFERENCE = DATABRICKS_DOCS + "sql/language-manual/"
NO_PROPERTIES: Mapping[str, str | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementForm:
    """A form of SQL that tablectl can send. tests/model/test_statement_forms.py checks that each statement has the form
    that its operation names, whatever the names in it.
    """

    id: str
    template: str
    """The SQL with slots. Between its words, any white space is equal."""
    source: str
    example: str
    run_on: frozenset[str] = frozenset({OPEN_SOURCE.name})
    """The dialects on which tests of this project run the form. No statement was ever run on Databricks here."""
    capability: Capability | None = None
    """What a Databricks Runtime needs for it; ``None`` if every supported one has it."""

    def evidence(self, dialect: str) -> str:
        """Who ran the form in a dialect, in words."""
        if dialect == DATABRICKS.name:
            return databricks_evidence(self.id)
        return RUN_HERE if dialect in self.run_on else DOCUMENTED


class Operation(ABC):
    """One change of a table that tablectl can send. Each subclass is an entry of ``OPERATIONS``."""

    verb: ClassVar[Verb]
    """The kind of statement, for people and plan files."""
    forms: ClassVar[tuple[StatementForm, ...]]
    """The forms of its SQL; none for a DataFrame write."""
    word: ClassVar[str]
    """The word for the ids of statements."""
    right: ClassVar[Right] = OWNERSHIP
    """What Databricks asks for: ownership, but for the clauses that the page of ``ALTER TABLE`` lists under MODIFY
    (docs.databricks.com, "ALTER TABLE", "Required permissions"), and for statements that write data.
    """
    turn: ClassVar[int] = 1
    """The run order within a phase: partitions are 0, operations that rewrite column names or formats 2, dropped
    features 3, statements that move the table 5.
    """

    @property
    def form(self) -> StatementForm | None:
        """The form of its SQL; ``None`` for a DataFrame write."""
        return self.forms[0]

    def evidence(self, dialect: str) -> str:
        """Who ran such a statement in a dialect, in words."""
        return self.form.evidence(dialect) if self.form else RUN_HERE

    @abstractmethod
    def lines(self, table: TableName) -> tuple[str, ...]:
        """The statement with the table on the first line and the change below it, for readable reviews."""

    def sql(self, table: TableName) -> str:
        """The statement as text. The engine runs this text, unless the operation is a DataFrame write."""
        return "\n".join(self.lines(table))

    def refused_by(self, dialect: str) -> str:
        """Why a dialect refuses it, where another one takes it; empty if it does not."""
        return ""

    @abstractmethod
    def effect(self, basis: Basis) -> CommitEffect:
        """The contents of its commits, as a plan shows them."""

    @abstractmethod
    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """Its commits in order, as concurrent writers see them (delta-1.1)."""

    @property
    def properties(self) -> Mapping[str, str | None]:
        """The properties that other attributes may depend on, with their values after it; ``None`` is not set."""
        return NO_PROPERTIES

    @property
    def provides(self) -> Iterable[str]:
        """What a step may need that runs after it: property keys, domains, ``PARTITIONS``."""
        return self.properties

    def rewrite(self, basis: Basis) -> Rewrite | None:
        """The data that it may rewrite; ``None`` if it rewrites none, or if a step knows it better."""
        del basis
        return None

    def backfill(self, basis: Basis) -> Backfill | None:
        """The files that it commits again; ``None`` if there are none or their number is unknown."""
        del basis
        return None

    def implied(self, basis: Basis) -> tuple[str, ...]:
        """The changes of other attributes that it causes, in policy syntax."""
        del basis
        return ()

    @property
    def partition_columns(self) -> tuple[str, ...] | None:
        """The partition columns of a DataFrame write; ``None`` for SQL."""
        return None


def clauses(verb: str, items: list[str]) -> tuple[str, ...]:
    """The lines of a clause with a list: one line if the list has one item."""
    if len(items) == 1:
        return (f"{verb} ({items[0]})",)
    return (f"{verb} (", *(f"  {item}," for item in items[:-1]), f"  {items[-1]}", ")")


def alter(table: TableName, *lines: str) -> tuple[str, ...]:
    """An ``ALTER TABLE``."""
    return (f"ALTER TABLE {table.sql}", *lines)
