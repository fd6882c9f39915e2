"""What the statements do that change settings, files or the whole table, as far as their commits depend on it.

A statement that tablectl itself can send is the ``Operation`` of ``model.operations``; the others are listed here.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablectl.delta.names import ColumnPath
from tablectl.model.commit_contents import Kind, MetadataChange
from tablectl.model.errors import TablectlError
from tablectl.model.operations import Operation
from tablectl.model.safe_text import printable

_MOST_SHOWN = 50


class StatementError(TablectlError):
    """A text that is not a statement whose conflicts can be determined."""


def shown_start(sql: str) -> str:
    """The beginning of a statement, in quotes and on one line."""
    text = printable(" ".join(sql.split()))
    return f"'{text if len(text) <= _MOST_SHOWN else f'{text[: _MOST_SHOWN - 1]}…'}'"


@dataclass(frozen=True, slots=True)
class Send:
    """A statement that tablectl can send, too."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Alter:
    """One commit of metadata: ``COMMENT ON``, and those forms of ``ALTER TABLE`` that change columns or constraints."""

    kind: Kind
    change: MetadataChange
    """A constraint that it drops has its name in lower case."""
    scans: bool = False
    """Whether it reads all rows first."""


@dataclass(frozen=True, slots=True)
class Rearrange:
    """``OPTIMIZE`` or ``REORG … APPLY (PURGE)``. The condition of WHERE is the statement's node."""

    kind: Kind
    zorder: bool = False


@dataclass(frozen=True, slots=True)
class Replace:
    """``CREATE OR REPLACE TABLE`` or ``REPLACE TABLE``."""

    partitions: tuple[str, ...] = ()
    clustering: tuple[ColumnPath, ...] | None = None
    query: bool = False
    """Whether the table is filled from a query, and not left empty."""


@dataclass(frozen=True, slots=True)
class Whole:
    """``RESTORE``, ``CLONE``, ``COPY INTO``, which only Databricks has, or a ``VACUUM`` that deletes files."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class NoCommit:
    """A statement that changes a catalog, or nothing: it makes no commit."""

    why: str


@dataclass(frozen=True, slots=True)
class Undocumented:
    """A statement that only Databricks has, which does not say what it commits, if anything."""

    kind: Kind
    why: str


Action = Send | Alter | Rearrange | Replace | Whole | NoCommit | Undocumented
