"""Orders of two statements, most of them MERGE, ALTER and pairs under WriteSerializable, raced on real Delta.

Each is compared with what ``between`` says.

Run it with ``python -m tests.insight.statements.orders --orders 400``. The statement that commits second is held at its
commit, the other one commits, then the first continues. Each order is raced in the state that the ones before left, and
predicted from it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from tablectl.conflicts.transactions import ConflictResult
from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.command_actions import StatementError
from tablectl.insight.statements.pair_outcomes import between
from tablectl.insight.statements.parse_writes import parse_statement
from tablectl.insight.statements.target import StatementTable
from tablectl.log.reader import read_table
from tests.insight.statements.races import Race, race

_DELTA = Client("delta-spark", (4, 4, 0))
_LETTERS = "abcd"
_ROUND = 12
"""Orders on one table."""


@dataclass
class Raced:
    """What was raced."""

    found: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[Race, str, str]] = field(default_factory=list)
    """The order, what was said and what happened."""


def statement(chosen: random.Random, table: str, layout: str, number: int) -> str:
    """A statement that changes rows or settings, whichever state the table is in."""
    kinds = ["merge"] * 5 + ["alter"] * 4 + ["update", "update", "delete", "insert", "select", "overwrite", "optimize"]
    letter, other = chosen.choice(_LETTERS), chosen.choice(_LETTERS)
    match chosen.choice(kinds):
        case "merge":
            return _merge(chosen, table, letter, number)
        case "alter":
            return _alter(chosen, table, layout, number)
        case "update":
            where = chosen.choice([f"p = '{letter}'", f"p IN ('{letter}', '{other}')", "v >= 0"])
            return f"UPDATE {table} SET v = v + 1 WHERE {where}"
        case "delete":
            return f"DELETE FROM {table} WHERE p = '{letter}' AND id % 7 = {number % 7}"
        case "insert":
            return f"INSERT INTO {table} (id, p, v) VALUES ({1000 + number}, '{letter}', 1)"
        case "select":
            return f"INSERT INTO {table} (id, p, v) SELECT id + 5000, p, v FROM {table} WHERE p = '{letter}'"
        case "overwrite":
            rows = f"SELECT {2000 + number} AS id, '{letter}' AS p, 1 AS v"
            return f"INSERT INTO {table} REPLACE WHERE p = '{letter}' {rows}"
    return f"OPTIMIZE {table}" + (f" WHERE p = '{letter}'" if layout.endswith("partitioned") else "")


def _merge(chosen: random.Random, table: str, letter: str, number: int) -> str:
    ids = chosen.choice([f"range({number % 9}, {number % 9 + 9})", "range(1, 9)"])
    source = f"(SELECT id, '{letter}' AS p, CAST({number} AS BIGINT) AS v FROM {ids})"
    on = chosen.choice(["t.id = s.id AND t.p = s.p", f"t.id = s.id AND t.p = '{letter}'", "t.id = s.id"])
    matched = chosen.choice(["UPDATE SET v = s.v", "UPDATE SET v = s.v", "DELETE"])
    missing = f" WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id + {3000 + number}, s.p, s.v)"
    insert = missing if chosen.random() < 0.6 or matched == "DELETE" else ""
    return f"MERGE INTO {table} t USING {source} s ON {on} WHEN MATCHED THEN {matched}{insert}"


def _alter(chosen: random.Random, table: str, layout: str, number: int) -> str:
    forms = [
        f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'team {number}')",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'team')",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '{10 + number % 50}')",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ('team')",
        f"ALTER TABLE {table} ADD COLUMNS (c{number} STRING)",
        f"ALTER TABLE {table} ALTER COLUMN v COMMENT 'value {number}'",
        f"ALTER TABLE {table} ADD CONSTRAINT k{number} CHECK (id > -{number + 1})",
        f"COMMENT ON TABLE {table} IS 'state {number}'",
    ]
    forms += [f"ALTER TABLE {table} CLUSTER BY ({chosen.choice(['id', 'p', 'v'])})"] * 3 * (layout == "clustered")
    return chosen.choice(forms)


def create(spark: Any, path: str, layout: str) -> None:
    """Spark refuses to set WriteSerializable, and honours it where another engine stored it (delta-1.2)."""
    ids = list(range(1, 33))
    rows = pa.table({"id": ids, "p": [_LETTERS[each % 4] for each in ids], "v": ids})
    if layout.startswith("weak"):
        by = ["p"] if layout.endswith("partitioned") else None
        level = {"delta.isolationLevel": "WriteSerializable"}
        write_deltalake(path, rows, mode="append", partition_by=by, configuration=level)
        return
    made = {"partitioned": " PARTITIONED BY (p)", "clustered": " CLUSTER BY (id)"}.get(layout, "")
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, p STRING, v BIGINT) USING delta{made}")
    write_deltalake(path, rows, mode="append") if layout != "clustered" else spark.sql(
        f"INSERT INTO delta.`{path}` SELECT id, substring('abcd', CAST(id % 4 + 1 AS INT), 1), id FROM range(1, 33)"
    )


_LAYOUTS = ("weak partitioned", "partitioned", "weak plain", "weak partitioned", "clustered", "plain")


def run(spark: Any, most: int, seed: int, raced: Raced, tell: Callable[[str], object]) -> None:
    """Race so many orders, and tell after each table what was found."""
    number = seed * 1000
    while raced.found["raced"] < most:
        layout = _LAYOUTS[number // _ROUND % len(_LAYOUTS)]
        with tempfile.TemporaryDirectory(prefix="tablectl-orders-", ignore_cleanup_errors=True) as folder:
            path = f"{folder}/t"
            create(spark, path, layout)
            chosen = random.Random(number)
            for _ in range(_ROUND):
                number += 1
                table = f"delta.`{path}`"
                one, other = statement(chosen, table, layout, number), statement(chosen, table, layout, number + 500)
                _order(spark, folder, Race(one, other), layout, raced)
                if raced.found["raced"] >= most:
                    break
            tell(f"{dict(raced.found)}\n")


def _order(spark: Any, folder: str, each: Race, layout: str, raced: Raced) -> None:
    live = read_table(TableName("", (f"{folder}/t",)), f"{folder}/t")
    subject, setting = StatementTable.of(live), ConflictContext.of(live, _DELTA)
    try:
        said = between(parse_statement(each.held), parse_statement(each.other), subject, setting).outcomes[0]
    except StatementError:
        raced.found["not read"] += 1
        return
    result = race(spark, folder, each)
    if result in {"no commit", "other ended"}:
        raced.found[result] += 1
        return
    raced.found["raced"] += 1
    raced.found[layout] += 1
    for word in ("MERGE", "ALTER"):
        raced.found[f"with {word}"] += word in each.held or word in each.other
    raced.found[f"said {said.result}, {'committed' if result == 'committed' else 'failed'}"] += 1
    raised = [str(conflict) for conflict in said.conflicts]
    if said.result is ConflictResult.COMMITS and result != "committed":
        raced.wrong.append((each, "commits", result))
    elif said.result is ConflictResult.FAILS and result == "committed":
        raced.wrong.append((each, "fails", result))
    elif result != "committed" and result not in raised:
        raced.wrong.append((each, f"{said.result} with {', '.join(raised)}", result))


def main() -> int:
    """Race them, and print what was found. 1 if a statement that was said to commit failed."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    from _results import small_spark  # of the benchmarks' folder

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()

    def tell(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    raced = Raced()
    with small_spark() as spark, suppress(KeyboardInterrupt):
        run(spark, asked.orders, asked.seed, raced, tell)
    may = sum(count for name, count in raced.found.items() if name.startswith(("said may", "said cannot")))
    tell(f"{raced.found['raced']} orders raced, 'may' {may / max(raced.found['raced'], 1):.1%}\n")
    for each, said, result in raced.wrong:
        tell(f"said {said}, it {result}\n  {each.held}\n  {each.other}\n")
    return int(any(said == "commits" for _, said, _ in raced.wrong))


if __name__ == "__main__":
    raise SystemExit(main())
