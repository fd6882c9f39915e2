"""What the statements do that change settings, files or the whole table, as far as their commits depend on it.

A statement that tablectl itself can send is the ``Operation`` of ``model.operations``; the others are listed here.
"""

from __future__ import annotations

from typing import Literal

from tablectl.delta.names import ColumnPath
from tablectl.model.commit_contents import Kind
from tablectl.model.errors import TablectlError
from tablectl.model.operations import Operation
from tablectl.model.safe_text import printable
from tablectl.support.frozen import frozen

_MOST_SHOWN = 50


class StatementError(TablectlError):
    """A text that is not a statement whose conflicts can be determined."""


def shown_start(sql: str) -> str:
    """The beginning of a statement, in quotes and on one line."""
    text = printable(" ".join(sql.split()))
    return f"'{text if len(text) <= _MOST_SHOWN else f'{text[: _MOST_SHOWN - 1]}…'}'"


ColumnAspect = Literal[
    "comment", "type", "not null", "nullable", "position", "default", "sync identity", "rename", "drop", "replace"
]


@frozen
class Send:
    """A statement that tablectl can send, too."""

    operation: Operation


@frozen
class Describe:
    """``COMMENT ON TABLE``."""


@frozen
class AddColumns:
    """``ADD COLUMNS``."""


@frozen
class ChangeColumns:
    """``ALTER``, ``RENAME`` and ``DROP COLUMN``, ``REPLACE COLUMNS``, ``COMMENT ON COLUMN``: one commit for all changes
    of one statement.
    """

    aspects: frozenset[ColumnAspect]


@frozen
class NewConstraint:
    """``ADD CONSTRAINT … CHECK``."""

    name: str


@frozen
class RemovedConstraint:
    """``DROP CONSTRAINT``."""

    name: str


@frozen
class Rearrange:
    """``OPTIMIZE`` or ``REORG … APPLY (PURGE)``. The condition of WHERE is the statement's node."""

    kind: Kind
    zorder: bool = False


@frozen
class Restore:
    """``RESTORE``."""


@frozen
class Replace:
    """``CREATE OR REPLACE TABLE`` or ``REPLACE TABLE``."""

    partitions: tuple[str, ...] = ()
    clustering: tuple[ColumnPath, ...] | None = None
    query: bool = False
    """Whether the table is filled from a query, and not left empty."""


@frozen
class Clone:
    """``CREATE OR REPLACE TABLE … CLONE``."""


@frozen
class Vacuum:
    """``VACUUM`` that deletes files."""


@frozen
class CopyInto:
    """``COPY INTO``, which only Databricks has."""


@frozen
class NoCommit:
    """A statement that changes a catalog, or nothing: it makes no commit."""

    why: str


Action = (
    Send
    | Describe
    | AddColumns
    | ChangeColumns
    | NewConstraint
    | RemovedConstraint
    | Rearrange
    | Restore
    | Replace
    | Clone
    | Vacuum
    | CopyInto
    | NoCommit
)
