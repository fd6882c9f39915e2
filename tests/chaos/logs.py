"""Small Delta logs made by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import parquet

from chaos.replay import COLUMNS, Log, Row, read_log

Action = Mapping[str, Any]


class HandMade:
    """A table whose commits are written one after the other."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.version = -1
        self.properties: dict[str, str] = {}
        self.partitions: list[str] = []
        (place / "_delta_log").mkdir(parents=True)

    def commit(self, *actions: Action, user: str = "", operation: str = "WRITE", at: int = 0) -> None:
        """One version, at so many seconds."""
        self.version += 1
        info = {"commitInfo": {"operation": operation, "timestamp": at * 1000, "txnId": f"txn-{self.version}"}}
        if user:
            info["commitInfo"]["userMetadata"] = user
        lines = "\n".join(json.dumps(each) for each in (info, *actions))
        path = self.place / "_delta_log" / f"{self.version:020d}.json"
        path.write_text(lines, encoding="utf-8")
        os.utime(path, (at, at))

    def metadata(self, **properties: str | None) -> Action:
        """A metaData action that changes properties; ``None`` takes one away. Dots are written as ``__``."""
        for key, value in properties.items():
            name = key.replace("__", ".")
            if value is None:
                self.properties.pop(name, None)
            else:
                self.properties[name] = value
        fields = [{"name": each, "type": "long", "nullable": True, "metadata": {}} for each in COLUMNS]
        return {
            "metaData": {
                "id": "one",
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": self.partitions,
                "configuration": dict(self.properties),
            }
        }

    def add(self, name: str, rows: Sequence[Row], **more: Any) -> Action:
        """An add action, and its file. Rows of one file have the same values in partition columns."""
        stored = [index for index, column in enumerate(COLUMNS) if column not in self.partitions]
        columns = {COLUMNS[index]: [row[index] for row in rows] for index in stored}
        parquet.write_table(pa.table(columns), self.place / name)
        values = {column: str(rows[0][COLUMNS.index(column)]) for column in self.partitions}
        return {"add": {"path": quote(name), "partitionValues": values, **more}}

    def log(self) -> Log:
        """All of it, read back."""
        return read_log(self.place)


def stamp(run: str, plan: str = "plan") -> str:
    """The user metadata of an apply's commit."""
    return json.dumps({"tablectl": {"run": run, "plan": plan}})


def rows(writer: int, keys: Iterable[int], value: int = 7) -> list[Row]:
    """Rows of a writer, all with one value."""
    return [(writer, key, value, key % 4) for key in keys]
