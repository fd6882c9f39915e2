"""Tables whose logs are just within the limits for one table: the most time and memory that a log can cost.

python benchmarks/log_budget.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from large_table import peak_kilobytes

from tablectl.delta.names import TableName
from tablectl.log.reader import read_table
from tablectl.model.table import LOOK_BACK, Depth

_PROTOCOL = b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'
_SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]})


def _metadata(**properties: str) -> bytes:
    value = {"id": "one", "schemaString": _SCHEMA, "partitionColumns": [], "configuration": properties}
    return json.dumps({"metaData": value}, ensure_ascii=False).encode()


def long_actions(log: Path) -> None:
    """64 MiB of actions that are not about files."""
    for version in range(1, 19):
        _commit(log, version, b'{"commitInfo":{"operation":"WRITE","x":"' + b"x" * 3_600_000 + b'"}}')


def many_values(log: Path) -> None:
    """4.9 million values in such actions."""
    for version in range(1, 11):
        _commit(log, version, b'{"commitInfo":{"operation":"WRITE","x":[' + b"{}," * 245_000 + b"{}]}}")


def many_files(log: Path) -> None:
    """Two million files in commits of 2 GB, and no checkpoint."""
    line = b'{"add":{"path":"' + b"p" * 900 + b'","size":1,"partitionValues":{},"dataChange":true}}'
    body = b"\n".join([line] * 108_000)
    for version in range(1, 20):
        _commit(log, version, b'{"commitInfo":{"operation":"WRITE"}}', body)


SHAPES: tuple[Callable[[Path], None], ...] = (long_actions, many_values, many_files)


def _commit(log: Path, version: int, *lines: bytes) -> None:
    (log / f"{version:020d}.json").write_bytes(b"\n".join(lines))


def read(place: str, *, counts: bool) -> str:
    """Read the table in this process: what that cost."""
    before, started = peak_kilobytes(), time.process_time()
    read_table(TableName("", (place,)), place, Depth(LOOK_BACK, counts))
    return f"{time.process_time() - started:.2f} s of CPU, {(peak_kilobytes() - before) / 1024:.0f} MB"


def main() -> None:
    if len(sys.argv) > 2:
        print(read(sys.argv[1], counts=sys.argv[2] == "counts"))
        return
    for shape in SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "_delta_log")
            log.mkdir()
            _commit(log, 0, _PROTOCOL, _metadata())
            shape(log)
            command = [sys.executable, __file__, folder, "state"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(f"{shape.__doc__} {done.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
