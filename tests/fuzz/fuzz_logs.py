"""Logs and checkpoints that others wrote."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.store import MemoryStore

from tablectl.log.checked_parquet import Spent, open_checked
from tablectl.log.parquet_pages import read_footer, walk_pages
from tablectl.model.errors import LiveError
from tablectl.model.table import LiveTable
from tablectl.storage.object_stores import StoreOptions
from tests.builders import read_path
from tests.fuzz.damage import damaged_bytes, damaged_json
from tests.fuzz.subject import Subject
from tests.log.checkpoint_files import STATE, adds, parquet
from tests.log.log_actions import CLUSTERED, LOCATION, add, checksum, clustering, info, metadata

_ACTIONS = [
    [info("x-0"), CLUSTERED, metadata(x="1"), clustering("a"), add("f", 5)],
    [info("x-1", operationParameters={"mode": "Append"}), metadata(x="2"), {"txn": {"appId": "s", "version": 3}}],
    [info("x-2"), add("g", 7), {"remove": {"path": "f", "dataChange": True}}],
]
_CHECKSUM = json.dumps(checksum("x-2", metadata(x="2"), [clustering("a")])).encode()
_CHECKPOINT = parquet([*STATE, *adds(40)], group=20)
_CODECS = ("none", "snappy", "gzip", "zstd", "brotli", "lz4")


def _read(files: dict[str, bytes]) -> str:
    store = MemoryStore()
    for name, content in files.items():
        obstore.put(store, f"lake/t/_delta_log/{name}", content)
    try:
        table = read_path(LOCATION, counts=True, options=StoreOptions(memory=store))
    except LiveError as error:
        assert LOCATION in error.message
        return "refused"
    assert isinstance(table, LiveTable)
    return "read"


def _lines(actions: list[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(action).encode() for action in actions)


def damaged_commits(random: Random) -> str:
    files = {f"{version:020d}.json": _lines(actions) for version, actions in enumerate(_ACTIONS)}
    files[f"{2:020d}.crc"] = _CHECKSUM
    name = random.choice(sorted(files))
    if name.endswith(".crc") or random.random() < 0.5:
        files[name] = damaged_bytes(random, files[name])
    else:
        changed = damaged_json(random, _ACTIONS[int(name[:20])])
        files[name] = _lines(changed)
    return _read(files)


def damaged_checkpoint(random: Random) -> str:
    files = {f"{9:020d}.checkpoint.parquet": damaged_bytes(random, _CHECKPOINT), f"{9:020d}.json": _lines([info()])}
    if random.random() < 0.5:
        files["_last_checkpoint"] = damaged_bytes(random, b'{"version":9,"size":44}')
    return _read(files)


def any_column(random: Random) -> str:
    """Whatever pyarrow writes: what the pages are said to cost is what their values come to, at least."""
    count = random.choice((0, 1, 7, 8, 9, 100, 3000))
    texts = [None if random.random() < 0.3 else "x" * random.choice((0, 1, 30)) for _ in range(count)]
    lists = [None if random.random() < 0.3 else texts[: random.randint(0, 5)] for _ in range(count)]
    maps = [None if each is None else [(str(at), text) for at, text in enumerate(each)] for each in lists]
    table = pa.table(
        {
            "a": pa.array(
                [{"t": text} if random.random() < 0.8 else None for text in texts], pa.struct({"t": pa.string()})
            ),
            "b": pa.array(lists, pa.list_(pa.string())),
            "c": pa.array(maps, pa.map_(pa.string(), pa.string())),
            "d": pa.array([random.choice((None, True, False)) for _ in range(count)], pa.bool_()),
            "e": pa.array([random.choice((None, 5, 2**40)) for _ in range(count)], pa.int64()),
        }
    )
    sink = io.BytesIO()
    codec = random.choice(_CODECS)
    pq.write_table(
        table,
        sink,
        compression=codec,
        use_dictionary=random.random() < 0.5,
        data_page_version=random.choice(("1.0", "2.0")),
        data_page_size=random.choice((100, 1 << 20)),
        row_group_size=random.choice((50, 5000)),
        write_statistics=random.random() < 0.5,
    )
    spent = Spent()
    with open_checked(io.BytesIO(sink.getvalue()), spent) as file:
        back = [batch for group in range(file.groups) for batch in file.state(group, ["a", "b", "c", "d", "e"], 64)]
    found = pa.Table.from_batches(back, table.schema) if back else table.slice(0, 0)
    assert found.to_pylist() == table.to_pylist()
    value_bytes = sum(len(text) for each in lists if each for text in each if text)
    assert spent.decoded >= value_bytes
    return codec


def any_bytes(random: Random) -> str:
    """The reader of Thrift by itself: of any bytes it makes pages, or a ``ValueError``."""
    data = random.randbytes(random.choice((0, 1, 5, 50, 500)))
    endings = []
    for parse in (lambda: list(walk_pages(data)), lambda: read_footer(data, 1000)):
        try:
            parse()
        except ValueError:
            endings.append("refused")
        else:
            endings.append("read")
    return " and ".join(endings)


SUBJECTS = (
    Subject("logs", "a log of any commits and checksums is read or refused with a LiveError", damaged_commits),
    Subject("checkpoints", "a damaged checkpoint is read or refused with a LiveError", damaged_checkpoint),
    Subject("columns", "a checked column is read as it was written, and costs at least its values", any_column, 30),
    Subject("thrift", "headers of any bytes are read or refused with a ValueError", any_bytes, 500),
)
