"""Determines what the pages of a Parquet column unpack to, before any of them is decoded. Pure.

A reader that trusts a file allocates what the file says. A page of 20 bytes can contain a value that unpacks to 200 MB,
and a dictionary with one value of 1 MB can serve a million rows. pyarrow unpacks each page into as many bytes as the
page header says, and fails if the size does not match exactly. Therefore the headers, not the footer, limit the cost of
a page. The definition levels show how many of a column's values are not null.

Parquet format, ``parquet.thrift`` ("PageHeader"), "Encodings" and "Data Pages"; Thrift, "Thrift Compact protocol".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

PAGE_BYTES = 32 << 20
"""The maximum size of one unpacked page. Writers close a page at about 1 MB, but one value can be larger."""
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_BY_DICTIONARY = frozenset({2, 8})
"""PLAIN_DICTIONARY and RLE_DICTIONARY."""
_OWN_SIZE = frozenset({0, 6, 9})
"""PLAIN, DELTA_LENGTH_BYTE_ARRAY and BYTE_STREAM_SPLIT: the values take as many bytes as the page. In all other
encodings a few bytes can stand for long values: those of a dictionary, or the preceding value.
"""
_RLE = 3
_TRUE, _BINARY, _LIST, _SET, _STRUCT = 1, 8, 9, 10, 12
_BOOLEANS, _INTEGERS = frozenset({1, 2}), frozenset({4, 5, 6})
_SIZES = {1: 1, 2: 1, 3: 1, 7: 8}
"""Size by type: booleans in a list, a byte, a floating-point number."""
_SHORT_FIELD, _LAST_BYTE = 15, 127
_DEEPEST = 16
_LONG_LIST, _LONGEST_SHIFT = 15, 63
_HEADER: Mapping[int, Mapping[int, Any]] = {5: {}, 7: {}, 8: {}}
"""The structures in a page header that describe the page's contents."""
_HEADER_ENTRIES = 100
_KEPT = 8
"""The number of entries that a kept entry counts as."""
_PACKED_MOST = 2_000_000
"""The maximum number of levels that are decoded one by one. In state columns nearly all values are null, and their
levels form runs.
"""

Unpack = Callable[[bytes, int], bytes]
"""Takes stored bytes and their unpacked size, returns the unpacked bytes."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page, from its header."""

    kind: int
    size: int
    """Bytes after unpacking."""
    values: int
    """The number of values, including nulls."""
    encoding: int
    levels: tuple[int, int] | None
    """The bytes of repetition and of definition levels, if the page stores levels without compression."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Leaf:
    """The facts about a column in the schema and the footer."""

    max_definition: int
    max_repetition: int
    unpack: Unpack
    width: int = 0
    """Bytes of each value; 0 for texts with a length prefix."""

    def longest(self, dictionary: Page) -> int:
        """The bytes of the longest value in a dictionary."""
        return self.width or longest_value(dictionary, self.unpack)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of the pages of one column in one row group."""

    values: int = 0
    """Entries, including nulls."""
    unpacked: int = 0
    """Unpacked bytes of all pages."""
    present: int = 0
    """Entries whose outermost structure is not null."""
    decoded: int = 0
    """The maximum number of bytes of all decoded values."""


def walk_pages(chunk: bytes) -> Iterator[Page]:
    """All pages in the bytes of a column chunk. Raises ``ValueError`` if the bytes contain anything else."""
    at = 0
    while at < len(chunk):
        reader = _Thrift(chunk, at, _HEADER_ENTRIES)
        header, start = reader.struct(_HEADER), reader.at
        size, stored = _integer(header, 2), _integer(header, 3)
        if not 0 <= size <= PAGE_BYTES:
            raise ValueError(f"a page unpacks to {size:,} bytes, more than any page of a checkpoint")
        if not 0 <= stored <= len(chunk) - start:
            raise ValueError("a page ends behind its column")
        if stored > 2 * size + 4096:
            raise ValueError(f"a page of {stored:,} bytes says that it unpacks to {size:,}")
        yield _page(header, size, chunk[start : start + stored])
        at = start + stored


def _page(header: dict[int, Any], size: int, body: bytes) -> Page:
    kind = _integer(header, 1)
    about = header.get({_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}.get(kind, 0))
    if kind not in {_DATA, _DICTIONARY, _DATA_V2}:
        return Page(kind, size, 0, 0, None, body)
    if not isinstance(about, dict):
        raise ValueError("a page has no header of its kind")
    values = _integer(about, 1)
    if values < 0:
        raise ValueError("a page has less than no values")
    if kind == _DATA_V2:
        levels = (_integer(about, 6), _integer(about, 5))
        if min(levels) < 0 or sum(levels) > len(body):
            raise ValueError("the levels of a page end behind it")
        return Page(kind, size, values, _integer(about, 4), levels, body)
    if kind == _DATA and _integer(about, 3) != _RLE:
        raise ValueError("the levels of a page are in an encoding that no writer of Delta uses")
    return Page(kind, size, values, _integer(about, 2), None, body)


def cost_of(chunk: bytes, leaf: Leaf, most: int) -> Cost:
    """The cost of a whole column, including its levels. Raises ``ValueError`` as soon as it exceeds ``most``."""
    values = unpacked = present = decoded = dictionary = 0
    dictionary_page: Page | None = None
    for page in walk_pages(chunk):
        unpacked += page.size
        if page.kind == _DICTIONARY:
            dictionary_page, dictionary = page, page.size
        elif page.kind in {_DATA, _DATA_V2}:
            there, full = _present(page, leaf)
            values, present = values + page.values, present + there
            if page.encoding in _BY_DICTIONARY and full * dictionary > most and dictionary_page is not None:
                dictionary = leaf.longest(dictionary_page)
            decoded += page.size if page.encoding in _OWN_SIZE else full * _each(page, dictionary, leaf)
        if max(unpacked, decoded) > most:
            raise ValueError(f"a column unpacks to more than {most >> 20} MiB, which the state of no table takes")
    return Cost(values, unpacked, present, decoded)


def cost_of_rows(chunk: bytes, leaf: Leaf, longest: int, most: int) -> Cost:
    """The cost of a column that almost every row has and that is read in small batches, from its headers alone.

    Raises ``ValueError`` if values have more than ``longest`` bytes, in a dictionary or on average in a page, and if a
    list column exceeds ``most``, because one row can contain all of it.
    """
    values = unpacked = decoded = dictionary = 0
    for page in walk_pages(chunk):
        unpacked += page.size
        if page.kind == _DICTIONARY:
            dictionary = page.size if page.size <= longest else leaf.longest(page)
        elif page.kind in {_DATA, _DATA_V2}:
            own = page.encoding in _OWN_SIZE
            each = page.size // max(page.values, 1) if own else _each(page, dictionary, leaf)
            values, decoded = values + page.values, decoded + each * page.values
            if each > longest and decoded > most >> 6:
                raise ValueError(f"values of {each:,} bytes, more than those of any data file")
            if leaf.max_repetition and decoded > most:
                raise ValueError(f"a column of lists unpacks to more than {most >> 20} MiB")
    return Cost(values, unpacked, values, decoded)


def _each(page: Page, dictionary: int, leaf: Leaf) -> int:
    """The maximum bytes of one decoded value, in a page whose values can be longer than their encoded bytes."""
    if leaf.width:
        return leaf.width
    return dictionary if page.encoding in _BY_DICTIONARY else page.size


def longest_value(page: Page, unpack: Unpack) -> int:
    """An upper bound for the longest value in a dictionary of texts."""
    data = unpack(page.body, page.size) if page.body else b""
    at = longest = 0
    for _ in range(page.values):
        if at + 4 > len(data):
            break
        length = int.from_bytes(data[at : at + 4], "little")
        longest, at = max(longest, length), at + 4 + length
    return min(longest, page.size)


def _present(page: Page, leaf: Leaf) -> tuple[int, int]:
    """The number of entries with a definition level above 0, and the number with the highest level, which are
    values.
    """
    if leaf.max_definition == 0:
        return page.values, page.values
    if page.levels is not None:
        data, start, length = page.body, page.levels[0], page.levels[1]
    else:
        data, start = leaf.unpack(page.body, page.size), 0
        if leaf.max_repetition:
            start = 4 + int.from_bytes(data[:4], "little")
        length = int.from_bytes(data[start : start + 4], "little")
        start += 4
    return _count_levels(data[start : start + length], leaf.max_definition, page.values)


def _count_levels(data: bytes, highest: int, values: int) -> tuple[int, int]:
    """Counts levels as in ``_present``. Parquet format, "Run Length Encoding / Bit-Packing Hybrid"."""
    width = highest.bit_length()
    at = present = full = packed = 0
    while values > 0 and at < len(data):
        header, at = _level_run(data, at)
        if header & 1:
            count = min((header >> 1) * 8, values)
            size = (header >> 1) * width
            packed += count
            if packed > _PACKED_MOST:
                raise ValueError("more entries than the state of any table has")
            there, whole = _count_packed(data[at : at + size], width, highest, count)
            present, full = present + there, full + whole
        else:
            count, size = min(header >> 1, values), 1
            present += count if data[at : at + 1] != b"\0" else 0
            full += count if data[at : at + 1] == bytes((highest,)) else 0
            if count == 0:
                raise ValueError("a run of no levels")
        at += size
        values -= count
    return present, full


def _level_run(data: bytes, at: int) -> tuple[int, int]:
    try:
        return _varint(data, at)
    except IndexError:
        raise ValueError("the levels of a page are cut off") from None


def _count_packed(data: bytes, width: int, highest: int, count: int) -> tuple[int, int]:
    present = full = 0
    mask = (1 << width) - 1
    for start in range(0, len(data), width):  # eight levels each
        group = int.from_bytes(data[start : start + width], "little")
        for _ in range(min(8, count)):
            present += group & mask != 0
            full += group & mask == highest
            group >>= width
        count -= 8
        if count <= 0:
            break
    return present, full


@dataclass(frozen=True, slots=True)
class Chunk:
    """The position of a column's bytes in a row group, from the footer."""

    start: int
    length: int
    codec: int
    values: int
    """Readers stop after this many values. In an empty row group the position can be invalid."""


def read_footer(footer: bytes, most: int) -> tuple[tuple[Chunk, ...], ...]:
    """The chunks of each row group, in the order of the schema's columns.

    Raises ``ValueError`` for a malformed footer, and beyond ``most`` entries: one megabyte can describe hundreds of
    thousands of columns, and each takes a kilobyte of memory. (pyarrow could return the same after reading the footer,
    but it ends the process if the footer is damaged.)
    """
    groups = _Thrift(footer, 0, most).struct({4: {1: {3: {}}}}).get(4, [])
    return tuple(tuple(map(_chunk, _expect_structs(group.get(1)))) for group in _expect_structs(groups))


def _expect_structs(value: object) -> list[dict[int, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("the footer lacks a list")
    return value


def _chunk(column: dict[int, Any]) -> Chunk:
    about = column.get(3)
    if not isinstance(about, dict):
        raise ValueError("the footer does not say where a column is")
    start, dictionary = _integer(about, 9), about.get(11)
    if dictionary is not None and 0 < _integer(about, 11) < start:
        start = _integer(about, 11)
    return Chunk(start, _integer(about, 7), _integer(about, 4), _integer(about, 5))


_Keep = Mapping[int, Any]
"""The structures, and lists of structures, to keep from a structure, by field. All its numbers are kept."""


class _Thrift:
    """A reader of Thrift's compact protocol. Raises ``ValueError`` for malformed input and for too many entries.

    Every checkpoint read runs this code, so skipped parts are handled by plain loops over the bytes.
    """

    def __init__(self, data: bytes, at: int, most: int) -> None:
        self._data = data
        self.at = at
        self._left = most

    def struct(self, keep: _Keep) -> dict[int, Any]:
        """The numbers and booleans of a structure, and the parts in ``keep``, by field."""
        try:
            found, self.at = self._struct(self.at, keep, 0)
        except IndexError:
            raise ValueError("cut off") from None
        return found

    def _struct(self, at: int, keep: _Keep, depth: int) -> tuple[dict[int, Any], int]:
        data = self._data
        found: dict[int, Any] = {}
        field = 0
        while head := data[at]:
            kind, delta = head & 15, head >> 4
            at += 1
            self._count(1)
            if delta:
                field += delta
            else:
                number, at = _varint(data, at)
                field = (number >> 1) ^ -(number & 1)
            if kind in _INTEGERS:
                number, at = _varint(data, at)
                found[field] = (number >> 1) ^ -(number & 1)
            elif kind in _BOOLEANS:
                found[field] = kind == _TRUE
            elif field in keep and kind == _STRUCT:
                found[field], at = self._struct(at, keep[field], depth + 1)
            elif field in keep and kind == _LIST:
                found[field], at = self._kept_list(at, keep[field], depth)
            else:
                at = self._skip(at, kind, depth)
        return found, at + 1

    def _kept_list(self, at: int, keep: _Keep, depth: int) -> tuple[list[Any], int]:
        count, kind, at = self._list_head(at)
        self._count(_KEPT * count)
        if kind != _STRUCT:
            raise ValueError("a list of something else")
        found: list[Any] = []
        for _ in range(count):
            one, at = self._struct(at, keep, depth + 1)
            found.append(one)
        return found, at

    def _skip(self, at: int, kind: int, depth: int) -> int:
        """The end position of a value of this kind."""
        data = self._data
        if kind == _BINARY:
            length, at = _varint(data, at)
            return at + length
        if kind in _INTEGERS:
            while data[at] > _LAST_BYTE:
                at += 1
            return at + 1
        if kind in _SIZES:
            return at + _SIZES[kind]
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        if kind == _STRUCT:
            return self._skip_struct(at, depth + 1)
        if kind not in {_LIST, _SET}:
            raise ValueError("a map, or what Thrift does not have")
        count, kind, at = self._list_head(at)
        self._count(count)
        if kind in _BOOLEANS:
            return at + count
        for _ in range(count):
            at = self._skip(at, kind, depth + 1)
        return at

    def _skip_struct(self, at: int, depth: int) -> int:
        data = self._data
        while head := data[at]:
            at += 1
            self._count(1)
            if head <= _SHORT_FIELD:
                _, at = _varint(data, at)
            kind = head & 15
            if kind not in _BOOLEANS:
                at = self._skip(at, kind, depth)
        return at + 1

    def _list_head(self, at: int) -> tuple[int, int, int]:
        head, at = self._data[at], at + 1
        count = head >> 4
        if count == _LONG_LIST:
            count, at = _varint(self._data, at)
        return count, head & 15, at

    def _count(self, more: int) -> None:
        self._left -= more
        if self._left < 0:
            raise ValueError("more entries than any writer makes")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte <= _LAST_BYTE:
        return byte, at + 1
    number = shift = 0
    while byte > _LAST_BYTE:
        number |= (byte & _LAST_BYTE) << shift
        shift += 7
        at += 1
        byte = data[at]
        if shift > _LONGEST_SHIFT:
            raise ValueError("a number is too long")
    return number | byte << shift, at + 1


def _integer(header: dict[int, Any], field: int) -> int:
    value = header.get(field)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("a header lacks a number")
    return value
