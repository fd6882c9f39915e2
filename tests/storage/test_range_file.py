"""A file over ranged reads behaves as a file in memory."""

from __future__ import annotations

import io

import obstore
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from tablectl.log.checked_parquet import _CheckedSource
from tablectl.storage.object_log import _Blocks
from tablectl.storage.table_log import RangeFile

DATA = bytes(range(256)) * 1_000
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(-1, 300_000), st.just(0)),
        st.tuples(st.just("seek"), st.integers(-300_000, 600_000), st.sampled_from([0, 1, 2])),
    ),
    max_size=20,
)


@given(steps=STEPS)
def test_reads_and_seeks_are_those_of_a_file(steps: list[tuple[str, int, int]]) -> None:
    store = MemoryStore()
    obstore.put(store, "f", DATA)
    files = [RangeFile(len(DATA), _Blocks(store, "f", len(DATA), None)), _CheckedSource(io.BytesIO(DATA))]
    plain = io.BytesIO(DATA)
    for what, number, whence in steps:
        if what == "read":
            wanted = plain.read(number)
            assert [file.read(number) for file in files] == [wanted, wanted]
        else:
            start = {0: 0, 1: plain.tell(), 2: len(DATA)}[whence]
            plain.seek(max(start + number, 0))
            for file in files:
                file.seek(number, whence)
        assert {file.tell() for file in files} == {plain.tell()}


def test_nothing_outside_of_the_file_is_asked_for() -> None:
    asked: list[tuple[int, int]] = []

    def fetch(start: int, size: int) -> bytes:
        asked.append((start, size))
        return b"x" * size

    file = RangeFile(100, fetch)
    file.seek(90)
    assert len(file.read(50)) == 10
    assert file.read(50) == b""
    file.seek(1_000)
    assert file.read() == b""
    assert asked == [(90, 10)]
