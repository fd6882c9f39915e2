"""Reads and appends to one Delta table with one client, in that client's own virtual environment; prints JSON.

``python client_probe.py CLIENT LOCATION [ROWS]`` prints ``{"version": …, "reads": …, "writes": …}``: of each interface
the values of the column ``id`` that it returned with all other columns, or the error as text. With ROWS, a JSON object
of columns and their values, it also appends these. Started by ``probe_clients.py``; it imports nothing of tablectl.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

_LONGEST = 160
"""Characters of an error that are kept."""

Rows = Mapping[str, list[Any]]
Read = Callable[[str], Any]
Append = Callable[[str, Rows], None]


def _to_pyarrow_table(location: str) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(location).to_pyarrow_table().column("id").to_pylist()


def _query_builder(location: str) -> Any:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    reader = QueryBuilder().register("t", DeltaTable(location)).execute("SELECT * FROM t")
    return pa.table(reader.read_all()).column("id").to_pylist()


def _append_deltalake(location: str, rows: Rows) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(location, pa.table(dict(rows)), mode="append")


def _duckdb_scan(location: str) -> Any:
    import duckdb

    connection = duckdb.connect()
    _load_delta(connection)
    found = connection.execute("SELECT * FROM delta_scan(?)", [location])
    at = [column[0] for column in found.description or ()].index("id")
    return [row[at] for row in found.fetchall()]


def _append_duckdb(location: str, rows: Rows) -> None:
    import duckdb

    connection = duckdb.connect()
    _load_delta(connection)
    connection.execute(f"ATTACH '{location}' AS t (TYPE delta)")
    marks = ", ".join("?" for _ in rows)
    connection.executemany(
        f"INSERT INTO t ({', '.join(rows)}) VALUES ({marks})", list(zip(*rows.values(), strict=True))
    )


def _load_delta(connection: Any) -> None:
    """The extension of the package from PyPI: DuckDB's own server of extensions is not needed."""
    import duckdb_extension_delta

    (path,) = Path(str(duckdb_extension_delta.__file__)).parent.glob("extensions/*/delta.duckdb_extension")
    connection.execute(f"LOAD '{path}'")


def _polars_scan(location: str) -> Any:
    import polars

    return polars.scan_delta(location).collect()["id"].to_list()


def _append_polars(location: str, rows: Rows) -> None:
    import polars

    polars.DataFrame(dict(rows)).write_delta(location, mode="append")


def _daft_read(location: str) -> Any:
    import daft

    return daft.read_deltalake(location).to_pydict()["id"]


def _append_daft(location: str, rows: Rows) -> None:
    import daft

    daft.from_pydict(dict(rows)).write_deltalake(location, mode="append")


READS: Mapping[str, Mapping[str, Read]] = {
    "deltalake": {"to_pyarrow_table": _to_pyarrow_table, "QueryBuilder": _query_builder},
    "duckdb": {"delta_scan": _duckdb_scan},
    "polars": {"scan_delta": _polars_scan},
    "daft": {"read_deltalake": _daft_read},
}
APPENDS: Mapping[str, Mapping[str, Append]] = {
    "deltalake": {"write_deltalake": _append_deltalake},
    "duckdb": {"INSERT": _append_duckdb},
    "polars": {"write_delta": _append_polars},
    "daft": {"write_deltalake": _append_daft},
}


def _try(call: Callable[[Any], object], argument: Callable[..., object]) -> object:
    try:
        return call(argument)
    except BaseException as error:  # a panic of a Rust library is a BaseException
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        text = " ".join(str(error).partition("Stack Trace")[0].split())
        return f"{type(error).__name__}: {text}"[:_LONGEST]


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda value: (value is None, value or 0))


def main(client: str, location: str, rows: Rows) -> dict[str, object]:
    """What each interface of a client makes of a table."""
    reads = {name: _try(lambda read: _sorted(read(location)), read) for name, read in READS[client].items()}
    writes = {}
    if rows:
        writes = {name: _try(lambda append: append(location, rows), append) for name, append in APPENDS[client].items()}
    return {"version": metadata.version(client), "reads": reads, "writes": writes}


def _value(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


if __name__ == "__main__":
    given: dict[str, list[Any]] = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
    print(json.dumps(main(sys.argv[1], sys.argv[2], {name: [*map(_value, each)] for name, each in given.items()})))
