"""Sums over the rows of a table, the same for the same rows in any order: they compare two versions, or two parts."""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.delta.names import column_sql
from tablectl.delta.schema import columns_of
from tablectl.model.table import LiveTable
from tablectl.support.frozen import frozen

TEXTS = ("string", "char", "varchar")
_NO_HASH = ("map", "variant")
"""Types that ``xxhash64`` does not accept at any depth: such columns are compared as JSON."""


@frozen
class RowSum:
    """An aggregate that is the same for the same rows in any order."""

    label: str
    """What differs if it does."""
    sql: str
    refused: bool = False
    """Whether it counts rows that no copy can hold."""


def row_sums(schema: str, partitions: Sequence[str] = ()) -> tuple[RowSum, ...]:
    """The number of rows, a checksum of whole rows, and for each top-level column the number of its values and their
    checksum; before them, the empty texts in text columns of ``partitions``, which Delta would store as NULL.

    ``schema`` is the schema of the log as JSON. Raises ``ValueError`` for one that cannot be read.
    """
    columns = columns_of(schema)
    top = [column for column in columns if len(column.path) == 1]
    hashed = {
        column_sql(each.path): _hashable(
            column_sql(each.path), [column.type for column in columns if column.path[0] == each.path[0]]
        )
        for each in top
    }
    folded = {name.casefold() for name in partitions}
    texts = [each for each in top if each.path[0].casefold() in folded and each.type.startswith(TEXTS)]
    return (
        *(
            RowSum(
                f"empty texts in {name}, which a partition column cannot hold", f"count_if({name} = '')", refused=True
            )
            for name in (column_sql(each.path) for each in texts)
        ),
        RowSum("the number of rows", "count(*)"),
        RowSum("whole rows", _sum(", ".join(hashed.values()))),
        *(
            RowSum(f"values in {name}", sql)
            for name, expression in hashed.items()
            for sql in (f"count({name})", _sum(expression))
        ),
    )


def unlike(sums: Sequence[RowSum], sides: Sequence[Sequence[str]]) -> str:
    """What differs between two sides, in words; empty if nothing does."""
    pairs = zip(sums, *sides, strict=True)
    return ", ".join(dict.fromkeys(each.label for each, one, other in pairs if one != other))


def checksums(live: LiveTable, table: str) -> str:
    """The query of ``row_sums`` over one version of a table."""
    parts = ", ".join(each.sql for each in row_sums(live.schema.text))
    return f"SELECT {parts}\nFROM {table} VERSION AS OF {live.version}"


def _hashable(column: str, types: list[str]) -> str:
    return f"to_json(struct({column}))" if any(kind in _NO_HASH for kind in types) else column


def _sum(expressions: str) -> str:
    # A sum of hashes counts each row as often as it occurs; XOR would not.
    return f"sum(CAST(xxhash64({expressions}) AS DECIMAL(38, 0)))"
