"""Logs of a few kilobytes that take gigabytes to read, each next to a good table.

``python -m tests.log.bombs FOLDER --write`` writes all of them; ``python -m tests.log.bombs FOLDER/NAME`` reads one
in this process, whose memory and CPU its parent limits, and prints what came of it.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.log.checkpoint_files import COLUMNS, PROTOCOL, SCHEMA_TEXT
from tests.log.log_actions import PLAIN, add, info, metadata

_MEGABYTE = 1_000_000


def _meta(**changes: Any) -> dict[str, Any]:
    known = {"id": "one", "schemaString": SCHEMA_TEXT, "partitionColumns": [], "configuration": {"x": "1"}}
    value = {**known, **changes}
    return {"metaData": {**value, "configuration": list(value["configuration"].items())}}


def _checkpoint(rows: list[dict[str, Any]], **options: Any) -> bytes:
    columns = ("add", "metaData", "protocol", "domainMetadata")
    table = pa.Table.from_pylist([PROTOCOL, *rows], pa.schema([(name, COLUMNS[name]) for name in columns]))
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_statistics=False, **options)
    return sink.getvalue()


def _repeated(row: dict[str, Any], times: int) -> bytes:
    """Rows of one long value, which the dictionary holds once."""
    table = pa.Table.from_pylist([row], pa.schema([(name, COLUMNS[name]) for name in row]))
    indices = pa.array([0] * times)
    nested = _by_dictionary(table.column(0).combine_chunks(), indices)
    plain = pa.Table.from_arrays([nested], [next(iter(row))])
    sink = io.BytesIO()
    pq.write_table(plain, sink, compression="zstd", write_statistics=False, data_page_size=1 << 30)
    return sink.getvalue()


def _by_dictionary(array: Any, indices: Any) -> Any:
    """The first value of an array again and again, its texts by dictionary: memory for one of them."""
    names = [field.name for field in array.type]
    children = []
    for name in names:
        child = array.field(name)
        if pa.types.is_string(child.type) and child.null_count == 0:
            children.append(pa.DictionaryArray.from_arrays(indices.cast(pa.int32()), child))
        else:
            children.append(child.take(indices))
    return pa.StructArray.from_arrays(children, names)


def _with_checkpoint(log: Path, content: bytes) -> None:
    (log / f"{3:020d}.checkpoint.parquet").write_bytes(content)
    (log / f"{3:020d}.json").write_text(json.dumps(info()))


def _commit(log: Path, *lines: bytes) -> None:
    (log / f"{0:020d}.json").write_bytes(b"\n".join(lines))


def _equal_commits(log: Path, content: bytes) -> None:
    """18 commits, which take the room of one."""
    (log / f"{1:020d}.json").write_bytes(content)
    for version in range(2, 19):
        (log / f"{version:020d}.json").hardlink_to(log / f"{1:020d}.json")


def _line(action: dict[str, Any]) -> bytes:
    return json.dumps(action).encode()


def property_of_200_mb(log: Path) -> None:
    _with_checkpoint(log, _checkpoint([_meta(configuration={"x": "a" * (200 * _MEGABYTE)})]))


def schema_of_500_mb(log: Path) -> None:
    _with_checkpoint(log, _checkpoint([_meta(schemaString="[" * (500 * _MEGABYTE))]))


def metadata_of_1_mb_3000_times(log: Path) -> None:
    _with_checkpoint(log, _repeated(_meta(schemaString="s" * _MEGABYTE), 3000))


def domains_of_100_kb_20000_times(log: Path) -> None:
    row = {"domainMetadata": {"domain": "d", "configuration": "c" * 100_000, "removed": False}}
    _with_checkpoint(log, _repeated(row, 20_000))


def path_of_1_mb_100000_times(log: Path) -> None:
    _with_checkpoint(log, _repeated({"add": {"path": "p" * _MEGABYTE, "size": 1}}, 100_000))


def texts_by_their_prefixes(log: Path) -> None:
    """DELTA_BYTE_ARRAY: each value is the one before, of which the page holds only how much is the same."""
    row = {"id": "i" * _MEGABYTE, "schemaString": "s", "partitionColumns": [], "configuration": []}
    table = pa.Table.from_pylist([{"metaData": row}] * 500, pa.schema([("metaData", COLUMNS["metaData"])]))
    sink = io.BytesIO()
    encodings = {"metaData.id": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, sink, compression="zstd", use_dictionary=False, column_encoding=encodings)
    _with_checkpoint(log, sink.getvalue())


def a_list_of_30_million(log: Path) -> None:
    names = pa.DictionaryArray.from_arrays(pa.array([0] * 30_000_000, pa.int8()), pa.array(["f"]))
    features = pa.ListArray.from_arrays(pa.array([0, 30_000_000], pa.int32()), names)
    number = pa.array([7], pa.int32())
    protocol = pa.StructArray.from_arrays(
        [number, number, features, features],
        ["minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"],
    )
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([protocol], ["protocol"]), sink, compression="zstd")
    _with_checkpoint(log, sink.getvalue())


def footer_of_empty_columns(log: Path) -> None:
    """4 MB of row groups without columns, and columns without anything."""
    column = b"\x26\x00\x00"
    group = b"\x19\xfc" + b"\x80\x80\x08" + column * (1 << 17) + b"\x16\x00\x16\x00\x00"
    footer = b"\x15\x02\x19\x1c\x48\x01a\x15\x00\x00\x16\x00\x19\xac" + group * 10 + b"\x00"
    _with_checkpoint(log, b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def footer_that_claims_a_million_columns(log: Path) -> None:
    """28 bytes: a reader that believes them makes room for a million columns, 680 MB, before it reads the first."""
    column_list = b"\x19\x1c\x19\xfc\xc0\x84\x3d"
    footer = b"\x15\x02\x19\x1c\x48\x01a\x15\x00\x00\x16\x00" + column_list
    _with_checkpoint(log, b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def small_columns_that_add_up(log: Path) -> None:
    """Each column is 1,000 times one text of 100 bytes: 100 kB from 200 bytes. There are 1,500 of them."""
    texts = pa.array(["t" * 100] * 1000)
    names = ["domain", *(f"x{number}" for number in range(1500))]
    domains = pa.StructArray.from_arrays([texts] * len(names), names)
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([domains], ["domainMetadata"]), sink, write_statistics=False)
    _with_checkpoint(log, sink.getvalue())


def null_of_a_gigabyte(log: Path) -> None:
    """A null of a type with a fixed width takes its width in memory."""
    kind = pa.struct([("domain", pa.string()), ("wide", pa.binary(1 << 30))])
    sink = io.BytesIO()
    schema = pa.schema([("domainMetadata", kind)])
    with pq.ParquetWriter(sink, schema, store_schema=False, use_dictionary=False) as writer:
        row = pa.StructArray.from_arrays([pa.array(["d"]), pa.nulls(1, pa.binary(1 << 30))], fields=list(kind))
        writer.write_table(pa.Table.from_arrays([row], schema=schema))
    _with_checkpoint(log, sink.getvalue())


def commit_line_of_60_mb(log: Path) -> None:
    _commit(log, _line(PLAIN), b'{"commitInfo":{"operation":"WRITE","x":[' + b"{}," * (20 * _MEGABYTE) + b"{}]}}")


def commit_line_of_15_mb(log: Path) -> None:
    _commit(log, _line(PLAIN), b'{"commitInfo":{"operation":"WRITE","x":[' + b"{}," * (5 * _MEGABYTE) + b"{}]}}")


def schema_hidden_by_escapes(log: Path) -> None:
    text = _line(metadata())
    hidden = b"\\u005b\\u005d\\u002c" * 400_000
    start = text.index(b'"schemaString": "') + len(b'"schemaString": "')
    _commit(log, _line(PLAIN), text[:start] + b"[" + hidden + b"1]" + text[text.index(b'", "partitionColumns') :])


def two_hundred_domains_of_1_mb(log: Path) -> None:
    domain = {"domain": "d", "configuration": "c" * _MEGABYTE, "removed": False}
    lines = (_line({"domainMetadata": {**domain, "domain": f"d{number}"}}) for number in range(200))
    _commit(log, _line(PLAIN), *lines)


def commits_of_14_mb(log: Path) -> None:
    """None is above a limit of its own."""
    value = b'{"commitInfo":{"operation":"WRITE","x":"' + b"x" * (14 * _MEGABYTE) + b'"}}'
    _commit(log, _line(PLAIN), _line(metadata()))
    _equal_commits(log, value)


def metadata_of_7_mb_in_wide_text(log: Path) -> None:
    _commit(log, _line(PLAIN), _line(metadata()))
    wide = "x" * (7 * _MEGABYTE) + "\U0001f600"
    action = _meta(configuration={"x": wide})["metaData"] | {"configuration": {"x": wide}}
    _equal_commits(log, json.dumps({"metaData": action}, ensure_ascii=False).encode())


def small_lines_of_many_values(log: Path) -> None:
    """Each line is short, and no commit is above a limit of its own."""
    _commit(log, _line(PLAIN), _line(metadata()))
    line = b'{"txn":{"appId":"a","version":1,"x":[' + b"{}," * 20_000 + b"{}]}}"
    _equal_commits(log, b"\n".join([line] * 400))


def lines_of_files_with_many_values(log: Path) -> None:
    _commit(log, _line(PLAIN), _line(metadata()))
    line = b'{"add":{"path":"a","size":1,"x":[' + b"{}," * 200_000 + b"{}]}}"
    _equal_commits(log, b"\n".join([line] * 10))


def commits_of_3_gb_together(log: Path) -> None:
    """Files with holes, which take no room: none but the newest is read where all together are too large."""
    _commit(log, _line(PLAIN), _line(metadata()))
    (log / f"{18:020d}.json").write_bytes(_line(info()))
    for version in range(1, 18):
        with (log / f"{version:020d}.json").open("wb") as file:
            file.write(_line(info()) + b"\n")
            file.truncate(180 * _MEGABYTE)


def hint_is_a_fifo(log: Path) -> None:
    _good(log)
    os.mkfifo(log / "_last_checkpoint")


def hint_is_a_link_to_zeros(log: Path) -> None:
    _good(log)
    (log / "_last_checkpoint").symlink_to("/dev/zero")


def hint_is_a_link_to_the_terminal(log: Path) -> None:
    _good(log)
    (log / "_last_checkpoint").symlink_to("/dev/tty")


def hint_of_a_terabyte(log: Path) -> None:
    _good(log)
    with (log / "_last_checkpoint").open("wb") as file:
        file.truncate(1 << 40)


def commit_is_a_fifo(log: Path) -> None:
    _commit(log, _line(info()))
    os.mkfifo(log / f"{1:020d}.json")
    (log / f"{2:020d}.json").write_bytes(_line(info()))


def commit_is_a_link_to_zeros(log: Path) -> None:
    _commit(log, _line(info()))
    (log / f"{1:020d}.json").symlink_to("/dev/zero")
    (log / f"{2:020d}.json").write_bytes(_line(info()))


def commit_of_a_terabyte(log: Path) -> None:
    with (log / f"{0:020d}.json").open("wb") as file:
        file.truncate(1 << 40)


def checkpoint_of_a_terabyte(log: Path) -> None:
    _with_checkpoint(log, b"")
    with (log / f"{3:020d}.checkpoint.parquet").open("wb") as file:
        file.truncate(1 << 40)


def _good(log: Path) -> None:
    _commit(log, _line(PLAIN), _line(metadata()), _line(add("a", 1)))


BOMBS: dict[str, Callable[[Path], None]] = {
    each.__name__: each
    for each in (
        property_of_200_mb,
        schema_of_500_mb,
        metadata_of_1_mb_3000_times,
        domains_of_100_kb_20000_times,
        path_of_1_mb_100000_times,
        texts_by_their_prefixes,
        a_list_of_30_million,
        footer_of_empty_columns,
        footer_that_claims_a_million_columns,
        small_columns_that_add_up,
        null_of_a_gigabyte,
        commit_line_of_60_mb,
        commit_line_of_15_mb,
        schema_hidden_by_escapes,
        two_hundred_domains_of_1_mb,
        commits_of_14_mb,
        metadata_of_7_mb_in_wide_text,
        small_lines_of_many_values,
        lines_of_files_with_many_values,
        commits_of_3_gb_together,
        hint_is_a_fifo,
        hint_is_a_link_to_zeros,
        hint_is_a_link_to_the_terminal,
        hint_of_a_terabyte,
        commit_is_a_fifo,
        commit_is_a_link_to_zeros,
        commit_of_a_terabyte,
        checkpoint_of_a_terabyte,
    )
}


def write(folder: Path, name: str) -> None:
    """The bomb and the good table."""
    for table, fill in (("bomb", BOMBS[name]), ("good", _good)):
        log = folder / table / "_delta_log"
        log.mkdir(parents=True)
        fill(log)


def peak_kilobytes() -> int:
    """The most memory that this process has held.

    ``ru_maxrss`` of a child begins at what its parent held, so that a large parent hides what the child takes.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def main(folder: str) -> None:
    import pyarrow.compute  # noqa: F401  # the bomb does not pay for what reading a checkpoint imports

    from tablectl.delta.names import TableName
    from tablectl.log import checkpoint, file_facts  # noqa: F401
    from tablectl.log.reader import ReadRequest, read_many
    from tablectl.model.errors import LiveError
    from tablectl.model.table import Depth

    before = peak_kilobytes()
    started = time.process_time()
    asked = [
        ReadRequest(TableName("", (place,)), place, lambda _: Depth(look_back=20, counts=True))
        for place in (f"{folder}/bomb", f"{folder}/good")
    ]
    bomb, good = read_many(asked)
    told = {
        "error": bomb.message if isinstance(bomb, LiveError) else "",
        "good": not isinstance(good, LiveError),
        "seconds": time.process_time() - started,
        "megabytes": (peak_kilobytes() - before) / 1024,
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    if sys.argv[2:] == ["--write"]:
        for each in BOMBS:
            write(Path(sys.argv[1]) / each, each)
    else:
        main(sys.argv[1])
