"""Small lakes as other projects have them, made by recipe with delta-rs, and read as delta-rs reads them.

A lake is a writer, what happened to the table afterwards, and the state of its log. Each combination is made in a few
milliseconds. Where the log is damaged, the answer is the one before.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from tablectl.log.find_tables import find_paths
from tablectl.model.patterns import ANY_DEPTH, PathPattern
from tests.builders import read_path

deltalake = pytest.importorskip("deltalake")
DeltaTable, write_deltalake = deltalake.DeltaTable, deltalake.write_deltalake
Table = Mapping[str, list[Any]]

TABLES: Mapping[str, tuple[Table, Mapping[str, Any]]] = MappingProxyType(
    {
        "plain": ({"id": [1, 2], "name": ["a", None]}, {}),
        "partitioned": ({"day": [date(2026, 1, 1), date(2026, 1, 2)], "id": [1, 2]}, {"partition_by": ["day"]}),
        "odd partitions": ({"p": ["a b/c", "ü=%41", None], "id": [1, 2, 3]}, {"partition_by": ["p"]}),
        "types": (
            {
                "d": [Decimal("1.50")],
                "t": [datetime(2026, 1, 1, tzinfo=UTC)],
                "b": [b"\\x00"],
                "l": [[1, None]],
                "s": [{"x": 1, "y": {"z": "a"}}],
                "f": [1.5],
                "flag": [True],
            },
            {},
        ),
        "names": ({"a b": [1], "Ünï": [2], "a.b": [3], "select": [4]}, {}),
        "no rows": ({"id": pa.array([], pa.int64()).to_pylist()}, {}),
        "settings": (
            {"id": [1]},
            {
                "configuration": {
                    "delta.appendOnly": "false",
                    "delta.logRetentionDuration": "interval 1 days",
                    "delta.checkpointInterval": "3",
                },
                "name": "orders",
                "description": "a 'table'",
            },
        ),
        "vectors": ({"id": [1]}, {"configuration": {"delta.enableDeletionVectors": "true"}}),
    }
)
"""The first write of a table: its columns, and the options of ``write_deltalake``."""


def _again(path: str, rows: Any, options: Mapping[str, Any]) -> None:
    write_deltalake(path, rows, mode="append", partition_by=options.get("partition_by"))


def _alone(_path: str, _rows: Any, _options: Mapping[str, Any]) -> None:
    """Nothing more happens."""


def _many(path: str, rows: Any, options: Mapping[str, Any]) -> None:
    for _ in range(7):
        _again(path, rows, options)
    DeltaTable(path).create_checkpoint()
    _again(path, rows, options)


def _overwritten(path: str, rows: Any, options: Mapping[str, Any]) -> None:
    _again(path, rows, options)
    write_deltalake(path, rows, mode="overwrite", partition_by=options.get("partition_by"))


def _evolved(path: str, rows: Any, options: Mapping[str, Any]) -> None:
    more = rows.append_column("later", pa.array([1] * rows.num_rows, pa.int32()))
    write_deltalake(path, more, mode="append", schema_mode="merge", partition_by=options.get("partition_by"))


def _optimized(path: str, rows: Any, options: Mapping[str, Any]) -> None:
    _again(path, rows, options)
    table = DeltaTable(path)
    table.optimize.compact()
    table.create_checkpoint()


def _restored(path: str, rows: Any, options: Mapping[str, Any]) -> None:
    _again(path, rows, options)
    DeltaTable(path).restore(0)


HISTORIES = (_alone, _many, _overwritten, _evolved, _optimized, _restored)


def newest(log: Path, ending: str) -> list[Path]:
    return sorted(log.glob(f"*{ending}"))[-1:]


def as_it_is(_log: Path) -> None:
    """Nothing happens to the log."""


def with_strangers(log: Path) -> None:
    """What tools, editors and systems leave in a folder."""
    for name in (".DS_Store", "_SUCCESS", "0.json", "00000000000000000000.json.tmp", "README.md", f"{7:020d}.txt"):
        (log / name).write_bytes(b"\\x00")
    (log / "_sidecars").mkdir(exist_ok=True)
    (log.parent / "part-0.parquet.crc").write_bytes(b"")


def without_hint(log: Path) -> None:
    (log / "_last_checkpoint").unlink(missing_ok=True)


def with_a_wrong_hint(log: Path) -> None:
    (log / "_last_checkpoint").write_text('{"version": 99999, "size": 1}')


def with_an_empty_checkpoint(log: Path) -> None:
    for file in newest(log, ".checkpoint.parquet"):
        file.write_bytes(b"")


def with_a_cut_checkpoint(log: Path) -> None:
    for file in newest(log, ".checkpoint.parquet"):
        file.write_bytes(file.read_bytes()[:100])


def cleaned_up(log: Path) -> None:
    """Commits before the last checkpoint are gone."""
    for checkpoint in newest(log, ".checkpoint.parquet"):
        for commit in log.glob("*.json"):
            if commit.name[:20] < checkpoint.name[:20]:
                commit.unlink()


STATES = (
    as_it_is,
    with_strangers,
    without_hint,
    with_a_wrong_hint,
    with_an_empty_checkpoint,
    with_a_cut_checkpoint,
    cleaned_up,
)


def facts(table: Any) -> tuple[Any, ...]:
    """What delta-rs says of a table: version, files, columns, partitions, settings."""
    data = table.metadata()
    names = [field.name for field in table.schema().fields]
    return table.version(), len(table.file_uris()), names, tuple(data.partition_columns), dict(data.configuration)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Any], Path]:
    """Each table with each history, made once."""
    folder, known = tmp_path_factory.mktemp("recipes"), dict[tuple[str, Any], Path]()

    def make(name: str, history: Any) -> Path:
        if (name, history) not in known:
            columns, options = TABLES[name]
            path = known[name, history] = folder / f"{len(known)}"
            types = {"id": pa.int64()}
            rows = pa.table({key: pa.array(value, types.get(key)) for key, value in columns.items()})
            write_deltalake(str(path), rows, **options)
            history(str(path), rows, options)
        return known[name, history]

    return make


@pytest.mark.parametrize(("name", "history"), list(product(TABLES, HISTORIES)))
def test_a_lake_is_read_as_its_writer_reads_it(
    made: Callable[[str, Any], Path], tmp_path: Path, name: str, history: Any
) -> None:
    whole = made(name, history)
    right = facts(DeltaTable(str(whole)))
    for state in STATES:
        path = tmp_path / "deep" / "er" / state.__name__
        shutil.copytree(whole, path)
        state(path / "_delta_log")
        table = read_path(str(path), counts=True, look_back=20)
        columns = [field.name for field in table.schema.fields]
        assert (table.version, table.files, columns, table.partition_columns, dict(table.properties)) == right, state
    found = find_paths([PathPattern(str(tmp_path), (ANY_DEPTH,))])
    assert (len(found.tables), found.failures) == (len(STATES), ())


def test_there_are_enough_lakes() -> None:
    assert len(TABLES) * len(HISTORIES) * len(STATES) > 300
