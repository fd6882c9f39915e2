"""What the statements do that change settings, files or the whole table, as far as their commits depend on it.

A statement that tablectl itself can send is the ``Operation`` of ``model.operations``; the others are listed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tablectl.delta.names import ColumnPath
from tablectl.model.commits import Kind
from tablectl.model.operations import Operation

ColumnAspect = Literal[
    "comment", "type", "not null", "nullable", "position", "default", "sync identity", "rename", "drop", "replace"
]


@dataclass(frozen=True, slots=True)
class Send:
    """A statement that tablectl can send, too."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Describe:
    """``COMMENT ON TABLE``."""


@dataclass(frozen=True, slots=True)
class AddColumns:
    """``ADD COLUMNS``."""


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """``ALTER``, ``RENAME`` and ``DROP COLUMN``, ``REPLACE COLUMNS``, ``COMMENT ON COLUMN``: one commit for all changes
    of one statement.
    """

    aspects: frozenset[ColumnAspect]


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """``ADD CONSTRAINT … CHECK``."""

    name: str


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """``DROP CONSTRAINT``."""

    name: str


@dataclass(frozen=True, slots=True)
class Rearrange:
    """``OPTIMIZE`` or ``REORG … APPLY (PURGE)``. The condition of WHERE is the statement's node."""

    kind: Kind
    zorder: bool = False


@dataclass(frozen=True, slots=True)
class Restore:
    """``RESTORE``."""


@dataclass(frozen=True, slots=True)
class Replace:
    """``CREATE OR REPLACE TABLE`` or ``REPLACE TABLE``."""

    partitions: tuple[str, ...] = ()
    clustering: tuple[ColumnPath, ...] | None = None
    query: bool = False
    """Whether the table is filled from a query, and not left empty."""


@dataclass(frozen=True, slots=True)
class Clone:
    """``CREATE OR REPLACE TABLE … CLONE``."""


@dataclass(frozen=True, slots=True)
class Vacuum:
    """``VACUUM`` that deletes files."""


@dataclass(frozen=True, slots=True)
class CopyInto:
    """``COPY INTO``, which only Databricks has."""


@dataclass(frozen=True, slots=True)
class NoCommit:
    """A statement that changes a catalog, or nothing: it makes no commit."""

    why: str


Action = (
    Send
    | Describe
    | AddColumns
    | ChangeColumns
    | AddConstraint
    | DropConstraint
    | Rearrange
    | Restore
    | Replace
    | Clone
    | Vacuum
    | CopyInto
    | NoCommit
)
