"""Reads the Parquet files of a log within a budget. Everything is checked before pyarrow unpacks it.

pyarrow requests the footer and then whole column chunks. ``_CheckedSource`` is between pyarrow and the file, so the
checked bytes are exactly the bytes that pyarrow receives: there is no second request, and the footer cannot refer to
another place.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tablectl.log.budget import STATE_BYTES, STATE_VALUES
from tablectl.log.pages import Chunk, Leaf, Unpack, cost_of, cost_of_rows, read_footer

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


class _CheckedSource(io.RawIOBase):
    """A file that returns column chunks only after checking them. ``expect`` registers the checks."""

    def __init__(self, source: io.RawIOBase | io.BufferedIOBase) -> None:
        super().__init__()
        self._source = source
        self._checks: dict[tuple[int, int], _Check] | None = None

    def seekable(self) -> bool:
        """Always true."""
        return True

    def readable(self) -> bool:
        """Always true."""
        return True

    def tell(self) -> int:
        """The position of the next read."""
        return self._source.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As in ``io.RawIOBase``."""
        return self._source.seek(offset, whence)

    def expect(self, checks: dict[tuple[int, int], _Check]) -> None:
        """Registers the checks for all further reads, by start and length of each chunk. Other chunks are not
        expected.
        """
        self._checks = checks

    def read(self, size: int = -1, /) -> bytes:
        """As in ``io.RawIOBase``. Raises ``ValueError`` if the bytes exceed the budget."""
        if self._checks is None:
            return self._source.read(size) or b""
        start = self._source.tell()
        if size < 0 or size > _CHUNK_BYTES:
            raise ValueError(f"a column has more than {_CHUNK_BYTES >> 20} MiB")
        data = self._source.read(size) or b""
        for (first, length), check in self._checks.items():
            if first < start + size and start < first + length:
                if not start <= first <= first + length <= start + size:
                    raise ValueError("columns overlap")
                check(data[first - start : first - start + length])
        return data


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with values, from the schema."""

    path: str
    max_definition: int
    max_repetition: int
    width: int


@dataclass(frozen=True, slots=True)
class CheckedParquet:
    """An open Parquet file, which is read only through ``state`` and ``rows``."""

    file: pq.ParquetFile
    spent: Spent
    _source: _CheckedSource
    _chunks: tuple[tuple[Chunk, ...], ...]
    _columns: tuple[_Column, ...]
    _known: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """The known cost of each chunk, so that reading it twice counts once."""
    _rows: _Rows = field(default_factory=_Rows)

    @property
    def paths(self) -> frozenset[str]:
        """The paths of all columns with values."""
        return frozenset(column.path for column in self._columns)

    @property
    def columns(self) -> Sequence[str]:
        """The top-level names of the schema."""
        names: list[str] = self.file.schema_arrow.names
        return names

    @property
    def groups(self) -> int:
        """The number of row groups."""
        return len(self._chunks)

    def state(self, group: int, paths: Sequence[str], batch: int) -> Iterator[Any]:
        """Batches of columns that are null in almost all rows. Raises ``ValueError`` beyond the budget of a table."""
        self._source.expect(dict(self._checks([group], paths, self._check_state)))
        return self._batches([group], paths, batch)

    def rows(self, paths: Sequence[str]) -> Iterator[Any]:
        """Batches of columns that almost every row has. Raises ``ValueError`` if their values are too long."""
        groups = list(range(self.groups))
        self._source.expect(dict(self._checks(groups, paths, self._check_rows)))
        return self._batches(groups, paths, ROWS_AT_ONCE)

    def _batches(self, groups: list[int], paths: Sequence[str], batch: int) -> Iterator[Any]:
        found: Iterator[Any] = self.file.iter_batches(batch_size=batch, row_groups=groups, columns=list(paths))
        return found

    def _checks(
        self, groups: list[int], paths: Sequence[str], check: Callable[[tuple[int, int, int], Leaf, bytes], None]
    ) -> Iterator[tuple[tuple[int, int], _Check]]:
        for index, column in enumerate(self._columns):
            if not any(column.path == path or column.path.startswith(f"{path}.") for path in paths):
                continue
            for group in groups:
                chunk = self._chunks[group][index]
                if chunk.values <= 0:
                    continue
                leaf = Leaf(column.max_definition, column.max_repetition, _unpack(chunk.codec), column.width)
                yield (chunk.start, chunk.length), _bound(check, (index, chunk.start, chunk.length), leaf)

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


def _bound(check: Callable[[tuple[int, int, int], Leaf, bytes], None], key: tuple[int, int, int], leaf: Leaf) -> _Check:
    return lambda data: check(key, leaf, data)


def _check_entries(count: int) -> None:
    if count > _ENTRIES:
        raise ValueError(f"{count:,} entries, more than any checkpoint has")


@contextmanager
def open_checked(source: io.RawIOBase | io.BufferedIOBase, spent: Spent) -> Iterator[CheckedParquet]:
    """Opens a Parquet file and checks every read of it.

    Raises ``ValueError`` for a footer that exceeds the budget, and any error of pyarrow. Page checksums are verified:
    parquet-mr writes them, and nothing else detects a damaged page.
    """
    with closing(source):
        chunks = read_footer(_footer(source), _FOOTER_ENTRIES)
        if len(chunks) > _GROUPS:
            raise ValueError(f"{len(chunks):,} row groups, more than any checkpoint has")
        checked = _CheckedSource(source)
        with pq.ParquetFile(checked, page_checksum_verification=True) as file:
            schema = file.schema
            columns = tuple(_column(schema.column(index)) for index in range(len(schema)))
            if [len(each) for each in chunks] != [len(columns)] * file.num_row_groups:
                raise ValueError("the footer does not say where each column is")
            checked.expect({})
            yield CheckedParquet(file, spent, checked, chunks, columns)


def _footer(source: io.RawIOBase | io.BufferedIOBase) -> bytes:
    size = source.seek(0, io.SEEK_END)
    end = _last(source, size, min(size, _END))
    length = int.from_bytes(end[-_TAIL:-4], "little")
    if end[-4:] != _MAGIC or length > size - _TAIL:
        raise ValueError("no Parquet file, or cut off")
    if length > FOOTER_BYTES:
        raise ValueError(f"the footer has {length:,} bytes, more than that of any checkpoint")
    if length > len(end) - _TAIL:
        end = _last(source, size, length + _TAIL)
    source.seek(0)
    return end[-_TAIL - length : -_TAIL]


def _last(source: io.RawIOBase | io.BufferedIOBase, size: int, count: int) -> bytes:
    source.seek(size - count)
    return source.read(count) or b""


def _column(column: Any) -> _Column:
    width = _WIDTHS.get(column.physical_type, 0) or max(column.length, 0)
    return _Column(column.path, column.max_definition_level, column.max_repetition_level, width)


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
