"""Sums over the rows of a table, the same for the same rows in any order: they compare two versions, or two parts; and
the rows that no rewrite can keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablectl.delta import keys
from tablectl.delta.names import column_sql, quote_name, quote_text
from tablectl.delta.sql_tokens import SqlTextError, sql_tokens
from tablectl.model.table import LiveTable
from tablectl.support.json_text import read_json

_TEXTS = ("string", "char", "varchar")
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""The folder of NULL (``ExternalCatalogUtils`` of Spark 4)."""
_LONGEST_NAME = 255
"""Bytes of a folder's name, on a disk and in HDFS (``dfs.namenode.fs-limits.max-component-length``)."""
_DISKS = ("/", "file:", "hdfs:", "viewfs:")
_ESCAPED = "".join(map(chr, [*range(1, 0x20), 0x7F])) + "\"#%'*/:=?\\{[]^"
"""Characters that take three bytes in the name of a partition's folder (``escapePathName`` of Spark 4)."""
_NESTED = frozenset({"float", "double", "variant"})
"""Types of which more is hashed than the value."""
_FIRST = "-6148914691236517205L"
"""The first of the numbers next to the values of an array."""
_ELSEWHERE = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})


@dataclass(frozen=True, slots=True)
class RowSum:
    """An aggregate that is the same for the same rows in any order."""

    label: str
    """What differs if it does."""
    sql: str
    refused: bool = False
    """Whether it counts rows that no copy can hold."""


def row_sums(schema: str, partitions: Sequence[str] = ()) -> tuple[RowSum, ...]:
    """The number of rows, a sum of the hashes of whole rows, and for each top-level column that of its values; before
    them, the texts in ``partitions`` that Delta would store as NULL.

    What is hashed says of each value at any depth whether it is NULL, and of arrays and maps how long they are, because
    ``xxhash64`` leaves NULL out and joins nested values. It tells 0.0 from -0.0, which ``xxhash64`` takes for one.
    ``schema`` is the schema of the log as JSON. Raises ``ValueError`` for one that cannot be read.
    """
    hashes = {
        quote_name(name): f"xxhash64({_parts(quote_name(name), kind)})" for name, kind in _columns(schema).items()
    }
    return (
        *_lost_texts(schema, partitions),
        RowSum("the number of rows", "count(*)"),
        RowSum("whole rows", _sum(f"xxhash64({', '.join(hashes.values())})")),
        *(RowSum(f"values in {name}", _sum(sql)) for name, sql in hashes.items()),
    )


def unlike(sums: Sequence[RowSum], sides: Sequence[Sequence[str | None]]) -> str:
    """What differs between two sides, in words; empty if nothing does."""
    pairs = zip(sums, *sides, strict=True)
    return ", ".join(dict.fromkeys(each.label for each, one, other in pairs if one != other))


def checksums(live: LiveTable, table: str) -> str:
    """The query of ``row_sums`` over one version of a table."""
    parts = ", ".join(each.sql for each in row_sums(live.schema.text))
    return f"SELECT {parts}\nFROM {table} VERSION AS OF {live.version}"


def lost_rows(live: LiveTable, partitions: Sequence[str]) -> tuple[RowSum, ...]:
    """Counts of the rows that a rewrite of a table under other partition columns could not keep, or not write.

    Delta takes them where they are: an empty text becomes NULL, a folder's name has a greatest length where values are
    folders (not with column mapping or random prefixes, ``DelayedCommitProtocol`` of Delta 4.4.0), and a write checks
    each generated column, which may depend on the session's time zone.
    """
    schema, folders = live.schema.text, live.location.startswith(_DISKS)
    mapped = (live.property(keys.COLUMN_MAPPING) or "none").lower() != "none"
    if mapped or (live.property(_RANDOM) or "").lower() == "true":
        folders = False
    return (
        *_lost_texts(schema, partitions),
        *(_long_texts(name) for name in _texts(schema, partitions) if folders),
        *(
            RowSum(
                f"values in the generated column {quote_name(each.name)} other than its expression gives in this "
                "session's time zone, which Delta refuses",
                f"count_if(NOT ({quote_name(each.name)} <=> ({each.generated})))",
                refused=True,
            )
            for each in live.schema.fields
            if each.generated and _is_one_expression(each.generated)
        ),
    )


_RANDOM = "delta.randomizeFilePrefixes"


def _columns(schema: str) -> Mapping[str, Any]:
    try:
        return {str(each["name"]): each["type"] for each in read_json(schema)["fields"]} if schema else {}
    except (KeyError, TypeError) as error:
        raise ValueError(f"the schema in the table's metaData cannot be read: {error}") from None


def _texts(schema: str, partitions: Sequence[str]) -> list[str]:
    folded = {name.lower() for name in partitions}
    found = ((name, kind) for name, kind in _columns(schema).items() if name.lower() in folded)
    return [name for name, kind in found if isinstance(kind, str) and kind.startswith(_TEXTS)]


def _lost_texts(schema: str, partitions: Sequence[str]) -> list[RowSum]:
    return [
        RowSum(
            f"{what} in {column_sql((name,))}, which Delta stores as NULL in a partition column",
            f"count_if({column_sql((name,))} = {quote_text(text)})",
            refused=True,
        )
        for name in _texts(schema, partitions)
        for what, text in (("empty texts", ""), (f"texts {_NULL_FOLDER}", _NULL_FOLDER))
    ]


def _long_texts(name: str) -> RowSum:
    column, left = column_sql((name,)), _LONGEST_NAME - len(name.encode()) - 1
    left -= 2 * sum(char in _ESCAPED for char in name)
    escaped = f"length({column}) - length(translate({column}, {quote_text(_ESCAPED)}, ''))"
    return RowSum(
        f"texts in {column} that are too long for the name of a folder",
        f"count_if(octet_length({column}) + 2 * ({escaped}) > {left})",
        refused=True,
    )


def _is_one_expression(text: str) -> bool:
    """Whether a text of the table can stand in parentheses: nothing in it ends them, or reads other tables."""
    depth = 0
    try:
        for token in sql_tokens(text):
            depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "mark" else 0
            if depth < 0 or token.text == ";" or token.word in _ELSEWHERE:
                return False
    except SqlTextError:
        return False
    return depth == 0 and "--" not in text and "/*" not in text


def _parts(value: str, kind: Any, depth: int = 0) -> str:
    """What is hashed of a value: expressions that differ where values, NULLs or places do."""
    parts, each = [f"{value} IS NULL"], f"e{depth}"
    match kind:
        case {"type": "struct", "fields": fields}:
            parts += [_parts(f"{value}.{quote_name(str(field['name']))}", field["type"], depth) for field in fields]
        case {"type": "array", "elementType": str(inner)} if inner not in _NESTED:
            parts += [f"size({value})", _numbered(value, value)]
        case {"type": "map", "keyType": str(key), "valueType": str(inner)} if not _NESTED & {key, inner}:
            parts += [f"size({value})", f"map_keys({value})", _numbered(f"map_values({value})", value)]
        case {"type": "array", "elementType": inner}:
            parts += [f"size({value})", f"transform({value}, {each} -> struct({_parts(each, inner, depth + 1)}))"]
        case {"type": "map", "keyType": key, "valueType": inner}:
            pair = f"{_parts(f'{each}.key', key, depth + 1)}, {_parts(f'{each}.value', inner, depth + 1)}"
            parts += [f"size({value})", f"transform(map_entries({value}), {each} -> struct({pair}))"]
        case "float" | "double":
            parts += [value, f"{value} = 0 AND CAST({value} AS STRING) = '-0.0'"]
        case "variant":
            parts += [f"schema_of_variant({value})", f"to_json({value})"]
        case _:
            parts.append(value)
    return ", ".join(parts)


def _numbered(values: str, of: str) -> str:
    """An array with a number next to each value, which tells the places of NULLs. Spark compiles this, and interprets a
    lambda. By chance, no value equals a number.
    """
    return f"arrays_zip({values}, sequence({_FIRST}, {_FIRST} + size({of})))"


def _sum(expression: str) -> str:
    # A sum of hashes counts each row as often as it occurs; XOR would not.
    return f"sum(CAST({expression} AS DECIMAL(38, 0)))"
