"""Draws cells of the client data and tries them: a table whose protocol names one feature, which deltalake reads, or
appends to.

``python -m tools.client_cells 0.15.3 0.18.2 1.0.2 1.4.2 1.6.1`` installs each version in an environment of its own and
prints the cells that it contradicts. ``tests/delta/test_client_cells.py`` does it with the installed version.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tablectl.delta.clients import Access, ClientFeatures, ask, find_client, parse_version
from tablectl.delta.protocol import READER_FEATURES

CELLS = 20
_NAME = "deltalake-querybuilder"
_NEEDS = {"clustering": ["domainMetadata"], "rowTracking": ["domainMetadata"], "icebergCompatV2": ["columnMapping"]}
TRY = """
import inspect, json, sys
import deltalake, pyarrow
rust = {"engine": "rust"} if "engine" in inspect.signature(deltalake.write_deltalake).parameters else {}
for line in sys.stdin:
    path, access = json.loads(line)
    try:
        table = deltalake.DeltaTable(path)
        if access == "read":
            found = table.to_pyarrow_dataset() if not hasattr(deltalake, "QueryBuilder") else (
                deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t"))
            getattr(found, "fetchall", getattr(found, "read_all", lambda: None))()
        else:
            rows = pyarrow.table({"id": pyarrow.array([1], pyarrow.int64())})
            deltalake.write_deltalake(table, rows, mode="append", **rust)
        print(json.dumps(""), flush=True)
    except BaseException as error:
        print(json.dumps(f"{type(error).__name__}: {error}"[:300]), flush=True)
"""


@dataclass(frozen=True)
class Cell:
    """A feature, and whether the data says that the version reads or writes tables with it."""

    feature: str
    access: Access
    knows: ClientFeatures


def drawn(version: str, seed: int, most: int = CELLS) -> list[Cell]:
    """Cells of a version that say yes or no."""
    data = find_client(_NAME)
    assert data is not None
    found = []
    features = sorted(
        {*data.reads, *(data.writes or {}), *READER_FEATURES, "clustering", "rowTracking"} - {"table features"}
    )
    for feature in features:
        for access in ("read", "write") if feature in READER_FEATURES else ("write",):
            answer = ask(data, parse_version(version), feature, access)
            # Some versions read without a check: that an empty table raises no error says nothing.
            if answer.knows is ClientFeatures.YES or (answer.knows is ClientFeatures.NO and access == "write"):
                found.append(Cell(feature, access, answer.knows))
    return random.Random(seed).sample(found, min(most, len(found)))  # noqa: S311  # a draw, not a secret


def table(folder: Path, feature: str) -> Path:
    """An empty table whose protocol names a feature and what it needs."""
    place = folder / feature
    log = place / "_delta_log"
    if log.exists():
        return place
    log.mkdir(parents=True)
    names = [feature, *_NEEDS.get(feature, [])]
    readers = [each for each in names if each in READER_FEATURES]
    protocol = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7, "writerFeatures": names}
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    metadata = {
        "id": "1",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1,
    }
    protocol |= {"readerFeatures": readers} if readers else {}
    actions = [
        {"commitInfo": {"timestamp": 1, "operation": "CREATE TABLE"}},
        {"protocol": protocol},
        {"metaData": metadata},
    ]
    (log / f"{0:020d}.json").write_text("".join(json.dumps(each) + "\n" for each in actions), encoding="utf-8")
    return place


def contradicted(python: str, cells: Sequence[Cell]) -> list[str]:
    """The cells that a Python with deltalake contradicts, each with what it said."""
    with tempfile.TemporaryDirectory() as folder:
        asked = "".join(json.dumps([str(table(Path(folder), each.feature)), each.access]) + "\n" for each in cells)
        ran = subprocess.run([python, "-c", TRY], input=asked, capture_output=True, text=True, timeout=300, check=True)
        said = [json.loads(each) for each in ran.stdout.splitlines()]
    return [
        f"{cell.access} {cell.feature}: the data says {cell.knows}, it said {error or 'yes'}"
        for cell, error in zip(cells, said, strict=True)
        if (cell.knows is ClientFeatures.YES) is bool(error)
    ]


def main(versions: Sequence[str]) -> int:
    """Try cells of each version in an environment of its own."""
    wrong = 0
    for version in versions:
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, with_pip=True)
            python = f"{folder}/bin/python"
            install = [python, "-m", "pip", "install", "--quiet", f"deltalake=={version}", "pyarrow"]
            subprocess.run(install, check=True, timeout=600)
            cells = drawn(version, seed=1)
            found = contradicted(python, cells)
            wrong += len(found)
            sys.stdout.write(f"deltalake {version}: {len(cells)} cells, {len(found)} contradicted\n")
            sys.stdout.write("".join(f"  {each}\n" for each in found))
            sys.stdout.flush()
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
