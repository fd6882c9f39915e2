"""Reads the Parquet files of a log within a budget. Everything is checked before pyarrow unpacks it.

pyarrow requests the footer and then whole column chunks. ``_CheckedSource`` is between pyarrow and the file, so the
checked bytes are exactly the bytes that pyarrow receives: there is no second request, and the footer cannot refer to
another place.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tablectl.log.parquet_pages import Chunk, Leaf, Unpack, cost_of, cost_of_rows, read_footer
from tablectl.log.parse_action import STATE_BYTES, STATE_VALUES
from tablectl.storage.table_log import RangeFile

FOOTER_BYTES = 16 << 20
_FOOTER_ENTRIES = 1_500_000
"""Footer entries. A table with 10,000 columns whose statistics are columns of the checkpoint has half as many."""
_GROUPS = 2_000
"""Row groups of one file. Writers start a new one every 128 MB or every million rows."""
_CHUNK_BYTES = 512 << 20
"""Stored bytes of one column in one row group."""
_ENTRIES = 300_000_000
"""Entries of all columns that are read, including nulls: a page of 20 bytes can claim two billion."""
ROWS_AT_ONCE = 1 << 13
"""Rows of file actions that are decoded at a time."""
_LONGEST = 8 << 10
"""Bytes of one value in these rows, so that a batch stays below 64 MiB. Paths have at most 1,024 bytes on S3."""
_LISTS = 512 << 20
"""Decoded bytes of a list column in one row group."""
_UNPACKED, _RATIO = 256 << 20, 50
"""Limits for unpacking the columns of file actions: a fixed number of bytes, plus a multiple of the stored bytes."""
_TAIL = 8
"""Bytes at the end of a file: the length of its footer and the four magic bytes."""
_END = 1 << 16
"""The number of bytes that pyarrow reads from the end at once. It then needs no separate request for the footer."""
_WIDE = 1 << 10
"""Bytes of a value of a fixed-width type. A null takes as much memory as a value. Decimals have 16 at most."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_MAGIC = b"PAR1"
_UNCOMPRESSED, _LZ4 = 0, 5
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


@dataclass(slots=True)
class Spent:
    """The cost of one table's state so far, over all files of its checkpoint."""

    decoded: int = 0
    entries: int = 0
    domains: int = 0
    domain_text: int = 0


@dataclass(slots=True)
class _Rows:
    """The cost of the file action columns in one Parquet file so far."""

    stored: int = 0
    unpacked: int = 0
    entries: int = 0


_Check = Callable[[bytes], None]
_CheckChunk = Callable[[tuple[int, int, int], Leaf, bytes], None]
_Chunks = tuple[tuple[Chunk, ...], ...]
_Checks = Iterable[tuple[int, int, _Check | None]]
"""The start and the length of each column chunk, and what to check of it: of one without values, nothing. Chunks of
several columns may be at the same place, and then each check is made."""


class _CheckedSource(RangeFile):
    """A file that returns column chunks only after checking them. ``expect`` registers the checks.

    The end of the file is read once: pyarrow gets the same footer that was checked.
    """

    def __init__(self, source: io.RawIOBase | io.BufferedIOBase) -> None:
        super().__init__(source.seek(0, io.SEEK_END), self._checked)
        self._source = source
        self._end_at, self._end = self.size, b""
        self._checks: _Checks | None = None

    def last(self, count: int) -> bytes:
        """The last bytes of the file, kept for later reads."""
        if count > len(self._end):
            start = self.size - count
            self._end_at, self._end = start, self._stored(start, count)
        return self._end[-count:] if count else b""

    def expect(self, checks: _Checks) -> None:
        """Registers the chunks that the next reads may ask for, and their checks."""
        self._checks = list(checks)

    def release(self) -> None:
        """Ends the reference to the reader. The reader's C++ part refers to this file, which Python's collector cannot
        see: with both references, no file that was read would ever be freed.
        """
        self._checks = None

    def _checked(self, start: int, size: int) -> bytes:
        """The bytes of a read. Raises ``ValueError`` if they exceed the budget."""
        if self._checks is None:
            return self._stored(start, size)
        if size > _CHUNK_BYTES:
            raise ValueError(f"a column has more than {_CHUNK_BYTES >> 20} MiB")
        data = self._stored(start, size)
        _check(data, start, size, self._checks)
        return data

    def _stored(self, start: int, count: int) -> bytes:
        if start >= self._end_at:
            return self._end[start - self._end_at : start - self._end_at + count]
        self._source.seek(start)
        return self._source.read(count) or b""


def _check(data: bytes, start: int, size: int, checks: _Checks) -> None:
    found = False
    for first, length, check in checks:
        if check is None:
            found = found or start <= first <= first + length <= start + size
        elif first < start + size and start < first + length:
            if not start <= first <= first + length <= start + size:
                raise ValueError("columns overlap")
            check(data[first - start : first - start + length])
            found = True
    if not found:
        raise ValueError("a column is elsewhere than the footer says")


@dataclass(slots=True)
class CheckedParquet:
    """An open Parquet file, which is read only through ``state`` and ``rows``."""

    file: pq.ParquetFile
    spent: Spent
    _source: _CheckedSource
    _chunks: _Chunks
    """Where the footer places each column of each row group."""
    _paths: tuple[str, ...]
    _known: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """The known cost of each chunk, so that reading it twice counts once."""
    _rows: _Rows = field(default_factory=_Rows)

    @property
    def paths(self) -> frozenset[str]:
        """The paths of all columns with values."""
        return frozenset(self._paths)

    @property
    def columns(self) -> frozenset[str]:
        """The top-level names of the schema."""
        return frozenset(path.split(".", 1)[0] for path in self._paths)

    @property
    def groups(self) -> int:
        """The number of row groups."""
        count: int = self.file.num_row_groups
        return count

    def state(self, group: int, paths: Sequence[str], batch: int) -> Iterator[Any]:
        """Batches of columns that are null in almost all rows. Raises ``ValueError`` beyond the budget of a table."""
        self._source.expect(self._checks([group], paths, self._check_state))
        return self._batches([group], paths, batch)

    def rows(self, paths: Sequence[str]) -> Iterator[Any]:
        """Batches of columns that almost every row has. Raises ``ValueError`` if their values are too long."""
        groups = list(range(self.groups))
        self._source.expect(self._checks(groups, paths, self._check_rows))
        return self._batches(groups, paths, ROWS_AT_ONCE)

    def _batches(self, groups: list[int], paths: Sequence[str], batch: int) -> Iterator[Any]:
        threads = self._source.size > _END
        found: Iterator[Any] = self.file.iter_batches(batch, groups, list(paths), use_threads=threads)
        return found

    def _checks(self, groups: list[int], paths: Sequence[str], check: _CheckChunk) -> _Checks:
        described = self.file.schema
        for index, path in enumerate(self._paths):
            if not any(path == wanted or path.startswith(f"{wanted}.") for wanted in paths):
                continue
            column = described.column(index)
            for group in groups:
                chunk = self._chunks[group][index]
                if chunk.values <= 0:  # readers look at no page of it, and its place may be none
                    yield chunk.start, chunk.length, None
                    continue
                width = _WIDTHS.get(column.physical_type, 0) or max(column.length, 0)
                leaf = Leaf(column.max_definition_level, column.max_repetition_level, _unpack(chunk.codec), width)
                yield chunk.start, chunk.length, _bound(check, (index, chunk.start, chunk.length), leaf)

    def _check_state(self, key: tuple[int, int, int], leaf: Leaf, data: bytes) -> None:
        if key in self._known:
            return
        cost = cost_of(data, leaf, STATE_BYTES)
        self._known[key] = cost.decoded
        self.spent.decoded += cost.decoded
        self.spent.entries += cost.values
        if cost.present > STATE_VALUES:
            raise ValueError(f"a column has {cost.present:,} values, more than the state of any table")
        if self.spent.decoded > STATE_BYTES:
            raise ValueError(f"the state unpacks to more than {STATE_BYTES >> 20} MiB, which no table's does")
        _check_entries(self.spent.entries)

    def _check_rows(self, key: tuple[int, int, int], leaf: Leaf, data: bytes) -> None:
        if key in self._known:
            return
        cost, rows = cost_of_rows(data, leaf, _LONGEST, _LISTS), self._rows
        self._known[key] = cost.decoded
        rows.stored += len(data)
        rows.unpacked += cost.unpacked
        rows.entries += cost.values
        if rows.unpacked > _UNPACKED + _RATIO * rows.stored:
            raise ValueError(f"{rows.stored:,} bytes unpack to more than {_RATIO} times as many")
        _check_entries(rows.entries)


def _bound(check: _CheckChunk, key: tuple[int, int, int], leaf: Leaf) -> _Check:
    return lambda data: check(key, leaf, data)


def _check_entries(count: int) -> None:
    if count > _ENTRIES:
        raise ValueError(f"{count:,} entries, more than any checkpoint has")


@contextmanager
def open_checked(
    source: io.RawIOBase | io.BufferedIOBase, spent: Spent, *, prefetch: bool = False
) -> Iterator[CheckedParquet]:
    """Opens a Parquet file and checks every read of it.

    Raises ``ValueError`` for a footer that exceeds the budget, and any error of pyarrow. Page checksums are verified:
    parquet-mr writes them, and nothing else detects a damaged page.

    With ``prefetch``, neighbouring chunks of a large file are fetched together, which suits columns that every row has.
    """
    with closing(source):
        checked = _CheckedSource(source)
        end = checked.last(min(checked.size, _END))
        length = int.from_bytes(end[-_TAIL:-4], "little")
        if end[-4:] != _MAGIC or length > checked.size - _TAIL:
            raise ValueError("no Parquet file, or cut off")
        if length > FOOTER_BYTES:
            raise ValueError(f"the footer has {length:,} bytes, more than that of any checkpoint")
        footer = checked.last(max(length + _TAIL, len(end)))[-_TAIL - length : -_TAIL]
        chunks = read_footer(footer, _FOOTER_ENTRIES)
        if len(chunks) > _GROUPS:
            raise ValueError(f"{len(chunks):,} row groups, more than any checkpoint has")
        # pyarrow makes room for as many structures as a list claims. No list has more than the footer has bytes.
        with pq.ParquetFile(
            checked,
            pre_buffer=prefetch and checked.size > _END,
            page_checksum_verification=True,
            thrift_container_size_limit=max(len(footer), 1),
        ) as file:
            # The paths of all columns with values
            described = file.schema
            columns = [described.column(index) for index in range(len(described))]
            widest = max((column.length for column in columns), default=0)
            if widest > _WIDE:
                raise ValueError(f"a column has values of {widest:,} bytes each, more than any checkpoint has")
            paths = tuple(column.path for column in columns)
            if [len(each) for each in chunks] != [len(paths)] * file.num_row_groups:
                raise ValueError("the footer does not say where each column is")
            try:
                yield CheckedParquet(file, spent, checked, chunks, paths)
            finally:
                checked.release()


def _unpack(codec: int) -> Unpack:
    if codec == _UNCOMPRESSED:
        return lambda data, _size: data
    if codec == _LZ4:
        return _unpack_lz4
    if codec not in _CODECS:
        raise ValueError(f"compressed by codec {codec}, which no writer of Delta uses")
    return lambda data, size: bytes(pa.Codec(_CODECS[codec]).decompress(data, decompressed_size=size, asbytes=True))


def _unpack_lz4(data: bytes, size: int) -> bytes:
    """Hadoop's framing of LZ4: each block follows its sizes. Some writers omit the framing."""
    codec = pa.Codec("lz4_raw")
    inner, stored = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
    if inner == size and stored == len(data) - 8:
        data = data[8:]
    return bytes(codec.decompress(data, decompressed_size=size, asbytes=True))
