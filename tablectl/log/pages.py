"""What the pages of a Parquet column unpack to, told before any of them is decoded. Pure.

A reader that believes a file allocates what the file says: a page of 20 bytes can hold a value that unpacks to 200 MB,
and a dictionary with one value of 1 MB can stand behind a million rows. pyarrow unpacks each page into as many bytes as
the page's header says, and fails if it is not exactly that many. So the headers, not the footer, bound what a page
costs. How many of a column's values are not null, its definition levels tell.

Parquet format, ``parquet.thrift`` ("PageHeader"), "Encodings" and "Data Pages"; Thrift, "Thrift Compact protocol".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PAGE_BYTES = 32 << 20
"""Of one page, unpacked. Writers close a page at about 1 MB; one value can be larger than that."""
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_BY_DICTIONARY = frozenset({2, 8})
"""PLAIN_DICTIONARY and RLE_DICTIONARY."""
_OWN_SIZE = frozenset({0, 6, 9})
"""PLAIN, DELTA_LENGTH_BYTE_ARRAY and BYTE_STREAM_SPLIT: values take as many bytes as the page has. In all others few
bytes can stand for long values: those of a dictionary, or those of the value before."""
_RLE = 3
_TRUE, _BINARY, _LIST, _SET, _STRUCT = 1, 8, 9, 10, 12
_BOOLEANS, _INTEGERS = frozenset({1, 2}), frozenset({4, 5, 6})
_SIZES = {1: 1, 2: 1, 3: 1, 7: 8}
"""Bytes of booleans in a list, of a byte and of a floating-point number."""
_SHORT_FIELD, _LAST_BYTE = 15, 127
_DEEPEST = 16
_LONG_LIST, _LONGEST_SHIFT = 15, 63
_HEADER: Mapping[int, Mapping[int, Any]] = {5: {}, 7: {}, 8: {}}
"""The structures in a page header that say what the page holds."""
_HEADER_ENTRIES = 100
_KEPT = 8
"""How many entries one counts as that is kept."""
_SMALL = 1 << 17
"""Bytes that no budget asks after."""
_PACKED_MOST = 2_000_000
"""Levels that are packed one by one. In columns of the state nearly all are null, and runs of one level."""

Unpack = Callable[[bytes, int], bytes]
"""Bytes as they are stored, and how many they unpack to."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page, by its header."""

    kind: int
    size: int
    """Bytes unpacked."""
    values: int
    """The null ones included."""
    encoding: int
    levels: tuple[int, int] | None
    """Bytes of repetition and of definition levels, of a page whose levels are not compressed."""
    compressed: bool
    body: bytes


@dataclass(frozen=True, slots=True)
class Leaf:
    """What the schema and the footer say of a column."""

    max_definition: int
    max_repetition: int
    unpack: Unpack
    width: int = 0
    """Bytes of each value; 0 where values are texts, each behind its length."""

    def longest(self, dictionary: Page) -> int:
        """Bytes of the longest value in a dictionary."""
        return self.width or longest_value(dictionary, self.unpack)


@dataclass(frozen=True, slots=True)
class Cost:
    """What the pages of one column in one row group come to."""

    values: int = 0
    """Entries, the null ones included."""
    unpacked: int = 0
    """Bytes of all pages."""
    present: int = 0
    """Entries whose outermost structure is not null."""
    decoded: int = 0
    """Bytes of all values, at most."""


def walk_pages(chunk: bytes) -> Iterator[Page]:
    """The pages in the bytes of a column chunk, all of them. Raises ``ValueError`` where there is anything else."""
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
        return Page(kind, size, 0, 0, None, compressed=True, body=body)
    if not isinstance(about, dict):
        raise ValueError("a page has no header of its kind")
    values = _integer(about, 1)
    if values < 0:
        raise ValueError("a page has less than no values")
    if kind == _DATA_V2:
        levels = (_integer(about, 6), _integer(about, 5))
        if min(levels) < 0 or sum(levels) > len(body):
            raise ValueError("the levels of a page end behind it")
        return Page(kind, size, values, _integer(about, 4), levels, compressed=about.get(7) is not False, body=body)
    if kind == _DATA and _integer(about, 3) != _RLE:
        raise ValueError("the levels of a page are in an encoding that no writer of Delta uses")
    return Page(kind, size, values, _integer(about, 2), None, compressed=True, body=body)


def cost_of(chunk: bytes, leaf: Leaf, most: int) -> Cost:
    """What a column costs whole, looking into its levels. Raises ``ValueError`` as soon as it is more than ``most``."""
    pages = tuple(walk_pages(chunk))
    values = unpacked = present = decoded = dictionary = 0
    dictionary_page: Page | None = None
    if _is_small(pages, leaf):
        values, unpacked = sum(page.values for page in pages), sum(page.size for page in pages)
        return Cost(values, unpacked, values, unpacked)
    for page in pages:
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


def _is_small(pages: Sequence[Page], leaf: Leaf) -> bool:
    """Whether the headers alone say that a column is cheap, as they do of most: its levels need no look then."""
    values = sum(page.values for page in pages if page.kind in {_DATA, _DATA_V2})
    return max(values, 1) * max((leaf.width, *(page.size for page in pages))) <= _SMALL


def cost_of_rows(chunk: bytes, leaf: Leaf, longest: int, most: int) -> Cost:
    """What a column costs that nearly every row has, and that is read a few rows at a time, by its headers alone.

    Raises ``ValueError`` where values have more than ``longest`` bytes, in a dictionary or on the average of a page;
    and where a column of lists comes to more than ``most``, since one row may hold all of it.
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
    """Bytes that one value may decode to, in a page whose values can be longer than what the page has of them."""
    if leaf.width:
        return leaf.width
    return dictionary if page.encoding in _BY_DICTIONARY else page.size


def longest_value(page: Page, unpack: Unpack) -> int:
    """The longest value in a dictionary of texts, at most."""
    data = unpack(page.body, page.size) if page.body else b""
    at = longest = 0
    for _ in range(page.values):
        if at + 4 > len(data):
            break
        length = int.from_bytes(data[at : at + 4], "little")
        longest, at = max(longest, length), at + 4 + length
    return min(longest, page.size)


def _present(page: Page, leaf: Leaf) -> tuple[int, int]:
    """How many entries have a definition level above 0, and how many the highest, which is a value."""
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
    """Parquet format, "Run Length Encoding / Bit-Packing Hybrid"."""
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
    """Where the bytes of a column in a row group are, as the footer says."""

    start: int
    length: int
    codec: int
    values: int
    """Readers look at no page once they have so many: of an empty row group the place may be none."""


def read_footer(footer: bytes, most: int) -> tuple[tuple[Chunk, ...], ...]:
    """The chunks of each row group, in the order of the schema's columns.

    Raises ``ValueError`` for what is no footer, and beyond ``most`` entries: in a megabyte it can describe hundreds of
    thousands of columns, each of which takes a kilobyte in memory. (pyarrow could be asked for the same once it has
    read the footer, but ends the process where one is damaged.)
    """
    groups = _Thrift(footer, 0, most).struct({4: {1: {3: {}}}}).get(4, [])
    return tuple(tuple(map(_chunk, _entries(group, 1))) for group in _expect_structs(groups))


def _entries(structure: dict[int, Any], key: int) -> list[dict[int, Any]]:
    return _expect_structs(structure.get(key))


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
"""The structures, and lists of such, that are kept of a structure, by field. All of its numbers are."""


class _Thrift:
    """A reader of Thrift's compact protocol. Raises ``ValueError`` for what is none, or has too many entries.

    It is on the way to every checkpoint, so what is not kept is skipped by plain loops over the bytes.
    """

    def __init__(self, data: bytes, at: int, most: int) -> None:
        self._data = data
        self.at = at
        self._left = most

    def struct(self, keep: _Keep) -> dict[int, Any]:
        """The numbers and booleans of a structure, and what is to be kept, by field."""
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
        """Where a value of a kind ends."""
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
