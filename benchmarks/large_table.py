"""A table with 10,000 columns and 1,000,000 files: what its checkpoint costs to read, and whether its budget holds.

python benchmarks/large_table.py
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tablectl.delta.names import TableName
from tablectl.log.reader import read_table
from tablectl.model.table import LOOK_BACK, Depth

COLUMNS, FILES = 10_000, 1_000_000


def write(log: Path, *, state_first: bool) -> None:
    """A checkpoint as Delta writes it, with the state before the files, or as delta-rs does, behind them."""
    fields = [
        {
            "name": f"column_{number}",
            "type": "decimal(38,18)",
            "nullable": True,
            "metadata": {"comment": f"what column {number} is about", "delta.columnMapping.id": number},
        }
        for number in range(COLUMNS)
    ]
    features = pa.list_(pa.string())
    types = {
        "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
        "metaData": pa.struct(
            [
                ("id", pa.string()),
                ("schemaString", pa.string()),
                ("partitionColumns", features),
                ("configuration", pa.map_(pa.string(), pa.string())),
            ]
        ),
        "add": pa.struct([("path", pa.string()), ("size", pa.int64()), ("stats", pa.string())]),
    }
    schema = pa.schema(list(types.items()))
    metadata = {
        "id": "one",
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": [(f"owner.key{number}", "v" * 100) for number in range(200)],
    }
    state = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
    adds = pa.StructArray.from_arrays(
        [
            pa.array([f"part-{number:05d}-7e3f0a{number:010x}-c000.snappy.parquet" for number in range(FILES)]),
            pa.array(range(FILES), pa.int64()),
            pa.array(['{"numRecords":1000}'] * FILES),
        ],
        names=["path", "size", "stats"],
    )
    rows = pa.Table.from_arrays(
        [pa.nulls(FILES, types["protocol"]), pa.nulls(FILES, types["metaData"]), adds], schema=schema
    )
    first = pa.Table.from_pylist(state, schema)
    table = pa.concat_tables([first, rows] if state_first else [rows, first])
    pq.write_table(table, log / f"{9:020d}.checkpoint.parquet", compression="snappy")
    (log / f"{9:020d}.json").write_text('{"commitInfo":{"operation":"WRITE"}}')


def peak_kilobytes() -> int:
    """The most memory that this process has held.

    ``ru_maxrss`` of a child begins at what its parent held, so that a large parent hides what the child takes.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def read(place: str, *, counts: bool) -> str:
    """Read the table in this process, which did nothing else: what that cost."""
    import pyarrow.compute  # noqa: F401, PLC0415  # the table does not pay for an import

    before, started = peak_kilobytes(), time.process_time()
    table = read_table(TableName("", (place,)), place, Depth(LOOK_BACK, counts))
    took = time.process_time() - started
    grown = (peak_kilobytes() - before) / 1024
    counted = f"{table.files:,}" if counts else "no"
    return f"{len(table.schema.fields):,} columns, {counted} files counted: {took:.2f} s of CPU, {grown:.0f} MB"


def main() -> None:
    if len(sys.argv) > 2:
        print(read(sys.argv[1], counts=sys.argv[2] == "counts"))
        return
    with tempfile.TemporaryDirectory() as folder:
        for state_first in (True, False):
            place = Path(folder, str(state_first))
            log = place / "_delta_log"
            log.mkdir(parents=True)
            write(log, state_first=state_first)
            size = (log / f"{9:020d}.checkpoint.parquet").stat().st_size
            print(f"checkpoint of {size / 1e6:.1f} MB, the state {'before' if state_first else 'behind'} the files")
            for counts in ("state", "counts"):
                command = [sys.executable, __file__, str(place), counts]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                print(f"  {done.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
