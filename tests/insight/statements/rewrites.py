"""Statements and their suggested rewrites on real Spark: the rows afterwards must be the same.

Again with ``python -m tests.insight.statements.rewrites``.

Each statement is full of what a parser's print changes: doubled quotes, escapes, collations, comments, casts and
calls. The other statement deletes partitions in which the first has no rows, so what a suggestion assumes is true.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.command_actions import StatementError
from tablectl.insight.statements.parse_writes import parse_statement
from tablectl.insight.statements.suggestions import suggest
from tablectl.insight.statements.target import StatementTable
from tablectl.log.reader import read_table

_DELTA = Client("delta-spark", (4, 4, 0))
_COLUMNS = "id BIGINT, p STRING, n INT, d DATE, name STRING, v DECIMAL(20,10)"
_LAYOUTS = ("p", "n", "d")
_TEXTS = (
    "'O''Brien'", '"say ""hi"""', '"it\'s"', r"'it\'s'", r"'a\\b\t'", r"r'C:\x'", "'x' 'y'", "'-- OR'", "' WHERE 1; '",
    "'é😀 '", "''", "NULL", "'A'", "'a'", "'%_'", r"'\u0041'",
)  # fmt: skip
_ROWS = ", ".join(
    f"({number}, {p}, {n}, {d}, {name}, {number}.5)"
    for number, (p, n, d, name) in enumerate(
        (
            ("NULL", "NULL", "NULL", "'A'") if number % 5 == 0 else
            (f"'{'abc'[number % 3]}'", str(number % 3), f"DATE '2026-01-0{number % 3 + 1}'", text)
            for number, text in enumerate(_TEXTS * 2)
        )
    )
)  # fmt: skip
_VALUES = {"p": "'a'", "n": "1", "d": "DATE '2026-01-01'"}
"""The value of a partition that is not taken."""
_BLANKS = {"'<its p>'": "'a'", "<its n>": "1", "DATE '<its d>'": "DATE '2026-01-01'"}
_TAKEN = {"p": "p = 'z'", "n": "n = 99", "d": "d = DATE '2030-01-01'"}
_TAKEN_ROW = "(1000, 'z', 99, DATE '2030-01-01', 'O''Brien', 0)"


def statement(chosen: random.Random, layout: str) -> str:
    """A statement on the table ``$t`` that touches no row with an id of 100 or more."""
    text = chosen.choice(_TEXTS)
    alias = chosen.choice(["", "x", "AS x"])
    where = _condition(chosen, "")
    value = _VALUES[layout]
    end = chosen.choice(["", "", ";", " -- WHERE it's OR", "\n/* it's */ ;"])
    match chosen.choice(["update", "delete", "merge", "merge", "merge", "insert", "by name"]):
        case "update":
            return f"UPDATE $t {alias} SET {_assignment(chosen, text)} -- OR 'this\nWHERE {where}{end}"
        case "delete":
            return f"DELETE FROM $t {alias}\n/* WHERE */ WHERE {where}{end}"
        case "insert":
            rows = f"(SELECT * FROM $s WHERE {layout} = {value})"
            columns = f"id, p, n, d, concat(coalesce(name, ''), {text}), v + CAST(1 AS INT)"
            order = chosen.choice(["", " ORDER BY id", " GROUP BY ALL HAVING count(*) > 0"])
            return f"INSERT INTO $t SELECT {columns} FROM {rows}{chosen.choice(['', f' WHERE {where}'])}{order}{end}"
        case "by name":
            both = f"{layout} = {value} AND ({where})"
            return f"INSERT INTO $t BY NAME SELECT {text} AS name, id, p, n, d, v FROM $s WHERE {both}{end}"
    source = chosen.choice(["$s s", "$s AS s", f"(SELECT * FROM $s WHERE {layout} = {value}) s"])
    source = source if chosen.random() < 0.5 else f"(SELECT * FROM $s WHERE {layout} = {value} AND name <> {text}) AS s"
    other = f"(t.{layout} = {value} AND t.name <> {text}) OR (t.{layout} = {value} AND {_condition(chosen, 't.')})"
    on = chosen.choice([f"t.id = s.id AND t.{layout} = s.{layout}", f"t.id = s.id AND ({other})"])
    same = f"t.{layout} <=> {value} AND t.name COLLATE UTF8_LCASE <> 'o''brien'"
    on = on if chosen.random() < 0.7 else f"t.id = s.id AND t.{layout} = {value} OR t.id = s.id AND {same}"
    matched = chosen.choice(
        [
            f"WHEN MATCHED THEN UPDATE SET name = concat(s.name, {text}), v = CASE WHEN s.id > 3 THEN 1 ELSE t.v END",
            f"WHEN MATCHED AND s.name IS NOT NULL OR t.name = {text} THEN DELETE",
            f"WHEN MATCHED AND t.name = {text} THEN DELETE WHEN MATCHED THEN UPDATE SET *",
        ]
    )
    insert = chosen.choice(["", f"\nWHEN NOT MATCHED AND s.{layout} = {value} THEN INSERT *"])
    clauses = f"{matched}{insert}" if chosen.random() < 0.8 else insert or matched
    return f"MERGE INTO $t t USING {source}\nON {on} {clauses}{end}"


def _assignment(chosen: random.Random, text: str) -> str:
    return chosen.choice(
        [
            f"name = {text}",
            f"name = CASE WHEN id > 3 OR name = {text} THEN {text} ELSE name END, v = v / 3",
            f"v = CAST(7 AS INT) DIV 2, name = concat_ws(',', name, {text})",
            f"name = coalesce(name, {text}), v = length({text})",
        ]
    )


def _condition(chosen: random.Random, prefix: str) -> str:
    text, other = chosen.choice(_TEXTS), chosen.choice(_TEXTS)
    name, number = f"{prefix}name", f"{prefix}id"
    part = chosen.choice(
        [
            f"{name} = {text}",
            f"{name} <=> {text}",
            f"{name} COLLATE UTF8_LCASE = 'o''BRIEN'",
            f"{name} LIKE '%''%' ESCAPE '/'",
            f"{name} IN ({text}, {other})",
            f"CASE WHEN {name} = {text} OR {number} = 2 THEN true END",
            f"NOT ({name} = {text} OR {name} = {other})",
            f"{number} BETWEEN 1 AND 20",
            f"length({name}) = length({text})",
        ]
    )
    return chosen.choice([f"{number} < 100 AND {part}", f"({number} < 100 AND {part}) OR {number} = CAST(7 AS INT)",
                          f"{number} < 100 AND {part} OR {number} < 5"])  # fmt: skip


def run(spark: Any, most: int, seed: int) -> tuple[Counter[str], list[tuple[str, str, str]]]:
    """Run statements and rewrites of them until so many pairs are compared.

    Returns the counts, and what was wrong, the statement and its rewrite for each wrong one.
    """
    chosen, found = random.Random(seed), Counter[str]()
    wrong: list[tuple[str, str, str]] = []
    with tempfile.TemporaryDirectory(prefix="tablectl-rewrites-", ignore_cleanup_errors=True) as folder:
        while found["compared"] < most:
            round_ = found["rounds"]
            layout = _LAYOUTS[round_ % len(_LAYOUTS)]
            one, two, source = (f"delta.`{folder}/{each}{round_}`" for each in ("one", "two", "source"))
            for table, rows in ((one, f"{_ROWS}, {_TAKEN_ROW}"), (two, f"{_ROWS}, {_TAKEN_ROW}"), (source, _ROWS)):
                spark.sql(f"CREATE TABLE {table} ({_COLUMNS}) USING delta PARTITIONED BY ({layout})")
                spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
            found["rounds"] += 1
            live = read_table(TableName("", (f"{folder}/one{round_}",)), f"{folder}/one{round_}")
            subject, setting = StatementTable.of(live), ConflictContext.of(live, _DELTA)
            for _ in range(40):
                sql = statement(chosen, layout).replace("$s", source)
                rewrite = _rewrite(
                    sql.replace("$t", one), f"DELETE FROM {one} WHERE {_TAKEN[layout]}", subject, setting, found
                )
                if rewrite is None:
                    continue
                said = _results(spark, sql.replace("$t", one), rewrite.replace(one, two), (one, two))
                found["compared"] += 1
                found["that failed alike"] += said == "alike"
                if said not in ("", "alike"):
                    wrong.append((said, sql, rewrite))
                    break
                if found["compared"] >= most:
                    break
    return found, wrong


def _rewrite(
    sql: str, other: str, subject: StatementTable, setting: ConflictContext, found: Counter[str]
) -> str | None:
    try:
        ways = suggest(parse_statement(sql), parse_statement(other), subject, setting)
    except StatementError:
        found["not read"] += 1
        return None
    mine = [each for each in ways.rewrites if each.statement == 0]
    if not mine or mine[0].only_if.endswith("of null") or ("<its" in mine[0].sql and "INSERT" not in sql[:6]):
        found["no rewrite"] += 1
        return None
    found["by hand" if mine[0].by_hand else mine[0].only_if or "same result"] += 1
    rewrite = mine[0].sql
    for blank, value in _BLANKS.items():
        rewrite = rewrite.replace(blank, value)
    return rewrite or None


def _results(spark: Any, sql: str, rewrite: str, tables: tuple[str, str]) -> str:
    """What differs after both; ``alike`` if Spark refuses both for the same reason."""
    errors = []
    for each in (sql, rewrite):
        try:
            spark.sql(each.rstrip("; \n"))
            errors.append("")
        except Exception as error:  # noqa: BLE001  # it must be the same of both
            errors.append(getattr(error, "getCondition", lambda: "")() or f"{error}"[:200])
    if errors[0] != errors[1]:
        return f"{errors[0] or 'ran'} and {errors[1] or 'ran'}"
    rows = [sorted(map(repr, spark.table(table).collect())) for table in tables]
    return "other rows" if rows[0] != rows[1] else "alike" if errors[0] else ""


def main() -> int:
    """Run them, and print what was found."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    from _results import small_spark  # of the benchmarks' folder

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with small_spark() as spark:
        found, wrong = run(spark, asked.pairs, asked.seed)
    sys.stdout.write(f"{dict(found)}\n")
    for said, sql, rewrite in wrong:
        sys.stdout.write(f"{said}\n  {sql}\n  {rewrite}\n")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
