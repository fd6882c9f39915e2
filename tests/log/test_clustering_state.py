"""By what data is clustered, by logs made by hand as Delta 4.4 writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.attributes.clustering import Clustering
from tablectl.delta.names import column_text
from tablectl.log.file_facts import mark_columns
from tablectl.model.file_layout import ClusteringState, FileGroup
from tablectl.model.table import LiveTable
from tests.builders import live_table
from tests.log.checkpoint_files import classic, v2_json, v2_json_inline
from tests.log.log_actions import CLUSTERED, add, clustering, info, metadata

Put = Callable[..., None]
Read = Callable[..., LiveTable]


def cube(path: str, size: int, *columns: str, **more: Any) -> dict[str, Any]:
    """A file that an OPTIMIZE clustered."""
    tags = {"ZCUBE_ID": "c1", "ZCUBE_ZORDER_BY": json.dumps(columns), "ZCUBE_ZORDER_CURVE": "hilbert"}
    return add(path, size, tags=tags, clusteringProvider="liquid", **more)


def removed(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": False, "size": 10}}


def marks(read: Read) -> ClusteringState:
    found = read(marks="full").marks
    assert found is not None
    return found


def test_files_are_told_apart_by_the_columns_they_say(put: Put, read: Read) -> None:
    put(0, [info(), CLUSTERED, metadata(), clustering("a"), add("x", 10)])
    put(1, [info(), cube("y", 20, "a"), cube("z", 5, "a"), cube("w", 7, "b", "s.c")])
    found = marks(read)
    assert set(found.parts) == {
        FileGroup(files=1, bytes=10),
        FileGroup(columns=("a",), files=2, bytes=25),
        FileGroup(columns=("b", "s.c"), files=1, bytes=7),
    }
    assert found.outside(("a",)) == FileGroup(files=2, bytes=17)


def test_only_what_was_there_with_the_columns_is_older(put: Put, read: Read) -> None:
    put(0, [info(), CLUSTERED, metadata(), add("x", 10), add("gone", 1)])
    put(1, [info(), clustering("a")])
    put(2, [info(), add("y", 20), removed("gone")])
    assert marks(read).older == FileGroup(files=1, bytes=10)


def test_an_old_file_that_gets_a_vector_stays_old(put: Put, read: Read) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    put(0, [info(), CLUSTERED, metadata(), add("x", 10)])
    put(1, [info(), clustering("a")])
    put(2, [info(), removed("x"), add("x", 10, deletionVector=vector), add("updated", 3)])
    assert marks(read).older == FileGroup(files=1, bytes=10)


def test_old_files_that_a_backfill_adds_again_stay_old(put: Put, read: Read) -> None:
    put(0, [info(), CLUSTERED, metadata(), add("x", 10)])
    put(1, [info(), clustering("a")])
    put(2, [info(), add("y", 20)])
    put(3, [info(), add("x", 10, dataChange=False, baseRowId=0), add("y", 20, dataChange=False, baseRowId=5)])
    assert marks(read).older == FileGroup(files=1, bytes=10)


def test_files_that_a_compaction_writes_count_as_new(put: Put, read: Read) -> None:
    put(0, [info(), CLUSTERED, metadata()])
    put(1, [info(), clustering("a")])
    put(2, [info(), add("y", 20), add("z", 20)])
    put(3, [info(), removed("y"), removed("z"), add("yz", 40, dataChange=False)])
    assert marks(read).older == FileGroup()


def quoted(name: str) -> str:
    """As Delta writes it into the tag (``quoteIfNeeded`` of Spark's ``package.scala`` in ``connector.catalog``)."""
    return name if re.fullmatch(r"[a-zA-Z0-9_]+", name) else f"`{name.replace('`', '``')}`"


odd_names = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
    | st.sampled_from(["odd-name", "sp ace", "Ünï", "a.b", "a,b", "x`y", "1st", '"q"', "a`.`b"]),
    min_size=1,
    max_size=3,
    unique_by=str.casefold,
)


@settings(max_examples=200, deadline=None)
@given(names=odd_names, nested=st.booleans())
def test_data_is_clustered_by_columns_of_any_name(names: list[str], nested: bool) -> None:
    paths = [("s", name) if nested else (name,) for name in names]
    tag = json.dumps([".".join(map(quoted, path)) for path in paths])
    state = ClusteringState(parts=(FileGroup(columns=mark_columns(tag), files=1, bytes=10),))
    for optimize in ("full", "incremental"):
        table = live_table(clustering=tuple(paths), marks=state, optimize=optimize)
        assert Clustering().read(table, "data") == "clustered"
    assert state.others(tuple(map(column_text, paths))) == FileGroup()


def test_a_column_with_a_hyphen_is_read_from_the_log(put: Put, read: Read) -> None:
    put(0, [info(), CLUSTERED, metadata("one", ("odd-name",)), clustering("odd-name")])
    put(1, [info(), cube("y", 20, "`odd-name`")])
    found = marks(read)
    assert found.outside(("odd-name",)) == found.others(("odd-name",)) == FileGroup()


def test_where_the_log_does_not_tell_since_when_nothing_is_older(put: Put, read: Read) -> None:
    put(0, [info(), CLUSTERED, metadata(), add("x", 10)])
    put(1, [info(), add("y", 20)])
    assert marks(read).older == FileGroup()


@pytest.mark.parametrize(
    ("more", "columns"),
    [
        ({}, None),
        ({"tags": {"ZCUBE_ZORDER_BY": '["a"]'}}, None),
        ({"tags": {"ZCUBE_ID": "1"}}, None),
        ({"tags": ["ZCUBE_ID"]}, None),
        ({"tags": {"ZCUBE_ID": "1", "ZCUBE_ZORDER_BY": "[a"}}, ("[a",)),
        ({"tags": {"ZCUBE_ID": "1", "ZCUBE_ZORDER_BY": "[" * 5000}}, ("[" * 5000,)),
        ({"tags": {"ZCUBE_ID": "1", "ZCUBE_ZORDER_BY": "[]"}}, ()),
        ({"clusteringProvider": "liquid"}, ()),
        ({"clusteringProvider": "other"}, ("by other",)),
        ({"clusteringProvider": 7}, None),
    ],
)
def test_what_writers_put_there(put: Put, read: Read, more: dict[str, Any], columns: tuple[str, ...] | None) -> None:
    put(0, [info(), CLUSTERED, metadata(), clustering("a"), add("x", 10, **more)])
    assert [part.columns for part in marks(read).parts] == [columns]


def test_what_is_not_asked_for_is_not_read(put: Put, read: Read) -> None:
    put(0, [info(), CLUSTERED, metadata(), clustering("a"), add("x", 10)])
    assert read().marks is None


@pytest.mark.parametrize("kind", [classic, v2_json, v2_json_inline])
def test_the_files_of_a_checkpoint_count_too(put: Put, read: Read, kind: Callable[[Put], None]) -> None:
    kind(put)
    put(5, [{"commitInfo": {}}])
    put(6, [{"commitInfo": {}}, cube("y", 20, "a")])
    found = marks(read)
    assert found.total() == FileGroup(files=7, bytes=80)
    assert found.outside(("a",)) == FileGroup(files=6, bytes=60)
