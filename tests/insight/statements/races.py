"""Random pairs of statements that ``between`` calls safe, raced on real Delta.

Again with ``python -m tests.insight.statements.races``.

The tables have what makes a name or a value ambiguous: structs with fields of the same names as columns, sources whose
columns have other types, renamed columns, text that looks like numbers, Hive's name for null, and odd spellings of the
table's path. The statement that commits second is held at its commit, the other one commits, then the first continues.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablectl.conflicts.transactions import ConflictResult
from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.command_actions import StatementError
from tablectl.insight.statements.pair_outcomes import between
from tablectl.insight.statements.parse_writes import parse_statement
from tablectl.insight.statements.target import StatementTable
from tablectl.log.reader import read_table
from tests.interleaving import Hold, Writer

_DELTA = Client("delta-spark", (4, 4, 0))
_PAIRS = 300
_TEXTS = ("'a'", "'b'", "'01'", "'1'", "'abc'", "'__HIVE_DEFAULT_PARTITION__'", "''")
_LAYOUTS = (("p",), ("k",), ("d",), ("p", "k"))
_COLUMNS = "id BIGINT, p STRING, k INT, d DATE, v BIGINT, info STRUCT<p: STRING, k: INT, d: DATE>"
_SOURCES = {
    "same": "id, p, k, d, v, info",
    "numbers": "id, CAST(k AS INT) AS p, CAST(k AS STRING) AS k, CAST(d AS STRING) AS d, v, info",
    "doubles": "id, CAST(k AS DOUBLE) AS p, CAST(k AS DOUBLE) AS k, CAST(d AS TIMESTAMP) AS d, v, info",
}
_ROWS = ", ".join(
    f"({number}, {p}, {k}, DATE '2026-01-0{k}', {number}, struct({q}, {k}, DATE '2026-01-0{4 - k}'))"
    for number, (p, k, q) in enumerate(
        [
            ("'a'", 1, "'abc'"),
            ("'b'", 2, "'a'"),
            ("'01'", 1, "'b'"),
            ("'1'", 3, "'1'"),
            ("'abc'", 2, "'01'"),
            ("NULL", 3, "NULL"),
        ]
    )
)


@dataclass(frozen=True)
class Race:
    """A pair, with the statement that commits second first."""

    held: str
    other: str


def pairs(seed: int, table: str, folder: str, names: dict[str, str]) -> Iterator[Race]:
    """Random pairs on a table. ``names`` are its columns under other names."""
    chosen = random.Random(seed)
    while True:
        first, second = (_statement(chosen, table, folder, names) for _ in range(2))
        yield Race(first, second)


def _statement(chosen: random.Random, table: str, folder: str, names: dict[str, str]) -> str:
    odd = chosen.choice([table, table, table.replace("/t`", "/./t`"), table.replace("/t`", "/t/../t`")])
    source = f"delta.`{folder}/{chosen.choice(list(_SOURCES))}`"

    def cond(prefix: str = "", count: int = 2) -> str:
        parts = [
            _condition(chosen, prefix, names if prefix in {"", "t."} else {}) for _ in range(chosen.randint(1, count))
        ]
        return f" {chosen.choice(['AND', 'AND', 'OR'])} ".join(parts)

    match chosen.choice(["update", "move", "delete", "values", "select", "by name", "merge", "merge", "merge literal"]):
        case "update":
            return f"UPDATE {odd} SET v = 9 WHERE {cond()}"
        case "move":
            column = chosen.choice(["p", "k"])
            value = chosen.choice(_TEXTS) if column == "p" else chosen.choice("123")
            return f"UPDATE {odd} SET {names.get(column, column)} = {value} WHERE {cond()}"
        case "delete":
            return f"DELETE FROM {odd} WHERE {cond()}"
        case "values":
            row = f"{chosen.choice(_TEXTS)}, {chosen.choice('123')}, DATE '2026-01-0{chosen.choice('123')}', 8, NULL"
            return f"INSERT INTO {odd} VALUES (8, {row})"
        case "select" | "by name" as form:
            columns = "id, p, k, d, v, info"
            by = " BY NAME" if form == "by name" and not names else ""
            where = " AND ".join(_condition(chosen, "", {}) for _ in range(chosen.randint(1, 2)))
            return f"INSERT INTO {odd}{by} SELECT {columns} FROM {source} WHERE {where}"
        case "merge literal":
            column = chosen.choice(["p", "k"])
            value = chosen.choice([*_TEXTS, "1", "2"])
            using = f"(SELECT {value} AS {column}, 9L AS v)"
            on = f"t.{names.get(column, column)} = s.{column}"
            return f"MERGE INTO {odd} t USING {using} s ON {on} WHEN MATCHED THEN UPDATE SET v = s.v"
    column = chosen.choice(["p", "k", "d"])
    where = f" WHERE {_condition(chosen, '', {})}" if chosen.random() < 0.5 else ""
    joined = [f"t.{names.get(column, column)} = {chosen.choice(['s', 's', 's', 'info'])}.{column}"]
    joined += [cond("t.", 1)] if chosen.random() < 0.7 else []
    joined += [_condition(chosen, "s.", {})] if chosen.random() < 0.3 else []
    source = f"(SELECT * FROM {source}{where}{' LIMIT 1' if chosen.random() < 0.3 else ''})"
    star = "SET *" if not names else "SET v = s.v"
    matched = f"WHEN MATCHED THEN UPDATE {star}"
    insert = matched if names else "WHEN NOT MATCHED THEN INSERT *"
    clauses = chosen.choice([matched, "WHEN MATCHED THEN DELETE", insert])
    return f"MERGE INTO {odd} t USING {source} s ON {' AND '.join(joined)} {clauses}"


def _condition(chosen: random.Random, prefix: str, names: dict[str, str]) -> str:
    column = chosen.choice("ppkkd")
    inside = not prefix and chosen.random() < 0.25
    name = f"info.{column}" if inside else f"{prefix}{names.get(column, column)}"
    if column == "p":
        value = chosen.choice(_TEXTS)
        return chosen.choice(
            [
                f"{name} = {value}",
                f"{name} IN ({value}, {chosen.choice(_TEXTS)})",
                f"{name} IS NULL",
                f"{name} > {value}",
            ]
        )
    value = chosen.choice("123") if column == "k" else f"DATE '2026-01-0{chosen.choice('123')}'"
    return f"{name} {chosen.choice(['=', '=', '>=', '<', '<>'])} {value}"


def create(spark: Any, folder: str, layout: Sequence[str], *, renamed: bool) -> dict[str, str]:
    """The table and its sources. Returns the new names of renamed columns."""
    mapping = " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" if renamed else ""
    spark.sql(f"CREATE TABLE delta.`{folder}/t` ({_COLUMNS}) USING delta PARTITIONED BY ({', '.join(layout)}){mapping}")
    fill(spark, folder)
    for name, columns in _SOURCES.items():
        spark.sql(f"CREATE TABLE delta.`{folder}/{name}` USING delta AS SELECT {columns} FROM delta.`{folder}/t`")
    if not renamed:
        return {}
    spark.sql(f"ALTER TABLE delta.`{folder}/t` RENAME COLUMN p TO country")
    return {"p": "country"}


def fill(spark: Any, folder: str) -> None:
    """Rows in each partition."""
    spark.sql(f"INSERT INTO delta.`{folder}/t` SELECT /*+ COALESCE(1) */ * FROM VALUES {_ROWS}")


def race(spark: Any, folder: str, each: Race) -> str:
    """``committed``, Delta's error class, or why nothing was raced."""
    writer = Writer(spark, each.held, Hold.AT_COMMIT)
    with writer:
        try:
            writer.wait_inside()
        except AssertionError:
            return "no commit"
        try:
            spark.sql(each.other)
        except Exception:  # noqa: BLE001  # these types do not allow the other one
            return "other ended"
        return writer.release().condition.partition(".")[0] or "committed"


def run(spark: Any, seconds: float, seed: int, most: int = 10**6) -> tuple[Counter[str], list[tuple[Race, str]]]:
    """Race pairs that are said to commit, for some seconds, at most ``most``.

    Returns the results, and the answers that were wrong.
    """
    found: Counter[str] = Counter()
    wrong: list[tuple[Race, str]] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until and found["raced"] < most:
        layout, renamed = _LAYOUTS[seed % len(_LAYOUTS)], seed % 3 == 2
        with tempfile.TemporaryDirectory(prefix="tablectl-races-", ignore_cleanup_errors=True) as folder:
            names = create(spark, folder, layout, renamed=renamed)
            live = read_table(TableName("", (f"{folder}/t",)), f"{folder}/t")
            subject, setting = StatementTable.of(live), ConflictContext.of(live, _DELTA)
            for number, each in enumerate(pairs(seed, f"delta.`{folder}/t`", folder, names)):
                if time.monotonic() > until or found["raced"] >= most or number > _PAIRS:
                    break
                found["pairs"] += 1
                try:
                    said = between(parse_statement(each.held), parse_statement(each.other), subject, setting).outcomes[
                        0
                    ]
                except StatementError:
                    found["refused"] += 1
                    continue
                if said.result is not ConflictResult.COMMITS or _trivial(each):
                    found[str(said.result)] += 1
                    continue
                result = race(spark, folder, each)
                found[result] += 1
                if result in {"no commit", "other ended"}:
                    with suppress(Exception):
                        fill(spark, folder)
                    continue
                found["raced"] += 1
                if result != "committed":
                    wrong.append((each, result))
            seed += 1
    return found, wrong


def _trivial(each: Race) -> bool:
    """Whether the held statement is an append of another table's rows, which nothing fails."""
    return each.held.startswith("INSERT")


def main() -> int:
    """Race for some seconds, and print what was found."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    from _results import small_spark  # of the benchmarks' folder

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with small_spark() as spark:
        found, wrong = run(spark, asked.seconds, asked.seed)
    sys.stdout.write(f"{dict(found)}\n")
    for each, result in wrong:
        sys.stdout.write(f"{result}\n  {each.held}\n  {each.other}\n")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
