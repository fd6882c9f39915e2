"""Checkpoints of each kind, written with pyarrow."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablectl.model.errors import LiveError
from tablectl.model.table import LiveTable
from tests.builders import read_path
from tests.log.checkpoint_files import (
    DOMAIN,
    FEATURES,
    KINDS,
    METADATA,
    PROTOCOL,
    STATE,
    UUID,
    Row,
    adds,
    checkpoint,
    parquet,
    without_domains,
)

Put = Callable[..., None]
Read = Callable[..., LiveTable]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_checkpoint(put: Put, read: Read, kind: Callable[[Put], None]) -> None:
    kind(put)
    put(5, [{"commitInfo": {}}])
    table = read(look_back=0)
    assert (table.version, table.table_id, dict(table.properties)) == (5, "one", {"x": "1"})
    assert table.partition_columns == ("a",)
    assert table.clustering == (("a",),)
    assert table.protocol.writer_features == set(FEATURES)
    table = read(look_back=0, counts=True)
    assert (table.files, table.bytes, table.vectors) == (6, 60, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_commits_after_the_checkpoint_win(put: Put, read: Read, kind: Callable[[Put], None]) -> None:
    kind(put)
    put(5, [{"commitInfo": {}}])
    gone = {"path": "f0", "deletionVector": {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1}}
    domain = {"domainMetadata": {"domain": "delta.clustering", "configuration": "", "removed": True}}
    put(6, [domain, {"remove": gone}, {"add": {"path": "f1", "size": 11}}, {"remove": {"path": "f2"}}])
    table = read(counts=True)
    assert table.clustering == ()
    assert (table.files, table.bytes, table.vectors) == (5, 51, 2)


def test_old_checkpoints_have_no_domains(put: Put, read: Read) -> None:
    without_domains(put)
    put(5, [{"commitInfo": {}}])
    table = read(counts=True)
    assert (table.clustering, table.files, table.vectors) == (None, 6, 3)


def test_a_checkpoint_with_parts_missing_is_passed_over(put: Put, read: Read) -> None:
    put(0, [PROTOCOL, METADATA, DOMAIN])
    for version in range(1, 6):
        put(version, [{"commitInfo": {}}])
    put(checkpoint(5, 1, 2), b"half")
    assert read().clustering == (("a",),)


def test_only_what_is_needed_is_fetched(put: Put, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    content = parquet([*adds(120_000), *STATE], group=50_000)
    put(checkpoint(5), content)
    put(5, [{"commitInfo": {}}])
    fetched = 0
    original = obstore.get_range

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal fetched
        fetched += options["length"]
        return original(*args, **options)

    monkeypatch.setattr(obstore, "get_range", counted)
    assert read().table_id == "one"
    assert fetched < len(content) / 2
    assert fetched <= 5 * 65_536  # the footer, a look at each of three row groups, and the state in the last one


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("place", [0, 8_190, 8_500, 9_000])
def test_state_lies_anywhere_among_the_files(put: Put, read: Read, place: int, *, statistics: bool) -> None:
    other: Row = {"domainMetadata": {"domain": "owner.own", "configuration": "{}", "removed": False}}
    rows = [other, *adds(place), *STATE, *adds(9_000 - place, place)]
    for group in (20_000, 4_096, 97):
        put(checkpoint(5), parquet(rows, group=group, statistics=statistics))
        put(5, [{"commitInfo": {}}])
        table = read(look_back=0, counts=True)
        assert (table.table_id, table.clustering, dict(table.properties)) == ("one", (("a",),), {"x": "1"})
        assert table.protocol.writer_features == set(FEATURES)
        assert (table.files, table.vectors) == (9_000, 4_500)


def test_what_is_not_a_checkpoint(put: Put, read: Read) -> None:
    put(5, [{"commitInfo": {}}])
    for content in (b"PAR1", b"PAR1" + b"x" * 50 + b"PAR1", parquet(STATE)[:-9], parquet(STATE)[9:], b"\0" * 999):
        put(checkpoint(5), content)
        with pytest.raises(LiveError, match=r"0{19}5\.checkpoint\.parquet"):
            read()


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize(
    "empty",
    [
        [checkpoint(5)],
        [checkpoint(5, 1, 2)],
        [f"{5:020d}.checkpoint.{UUID}.parquet"],
        [f"{5:020d}.checkpoint.{UUID}.json"],
        [checkpoint(5), checkpoint(5, 1, 2), f"{5:020d}.checkpoint.{UUID}.parquet", "_last_checkpoint"],
    ],
)
def test_an_empty_checkpoint_is_not_read(
    put: Put, read: Read, store: Any, tmp_path: Path, empty: list[str], *, on_disk: bool
) -> None:
    """A killed writer leaves one. The checkpoint of version 3 and the commits since then have the state."""
    put(checkpoint(3), parquet([*adds(6), *STATE]))
    for version in (3, 4, 5, 6):
        put(version, [{"commitInfo": {}}, *adds(1, 10 + version)])
    put(checkpoint(5, 2, 2), parquet(adds(1)))
    put("_last_checkpoint", {"version": 5})
    for name in empty:
        put(name, b"")
    table = read(counts=True)
    if on_disk:
        for meta in (meta for page in obstore.list(store) for meta in page):
            file = tmp_path / meta["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(bytes(obstore.get(store, meta["path"]).bytes()))
        table = read_path(str(tmp_path / "lake/t"), counts=True)
    assert (table.version, table.table_id, table.files) == (6, "one", 9)


@pytest.mark.parametrize("damaged", [[checkpoint(5)], [checkpoint(5), checkpoint(4)], [checkpoint(5, 1, 2)]])
def test_a_damaged_checkpoint_is_not_needed_where_the_commits_before_it_are(
    put: Put, read: Read, caplog: pytest.LogCaptureFixture, damaged: list[str]
) -> None:
    """Delta takes the checkpoint before, too."""
    put(checkpoint(2), parquet([*adds(6), *STATE]))
    for version in (2, 3, 4, 5, 6):
        put(version, [{"commitInfo": {}}, *adds(1, 10 + version)])
    put(checkpoint(5, 2, 2), parquet(adds(1)))
    for name in damaged:
        put(name, b"PAR1")
    put("_last_checkpoint", {"version": 5})
    table = read(counts=True)
    assert (table.version, table.table_id, table.files) == (6, "one", 10)
    assert damaged[0] in caplog.text


def test_of_a_damaged_checkpoint_the_error_says_what_the_log_lacks_without_it(put: Put, read: Read) -> None:
    put(checkpoint(5), b"PAR1")
    for version in (2, 3, 4, 5, 6):
        put(version, [{"commitInfo": {}}])
    with pytest.raises(LiveError, match="the checkpoint cannot be read") as caught:
        read()
    assert "without this checkpoint the log is not complete (version 0 is missing" in caught.value.hint


def test_a_damaged_commit_behind_the_checkpoint_ends_the_history(put: Put, read: Read) -> None:
    put(checkpoint(3), parquet(STATE))
    for version in (1, 2, 3, 4, 5):
        put(version, [{"commitInfo": {"operation": "WRITE"}}])
    put(2, b'{"commitInfo": {"oper')
    assert [each.version for each in read(look_back=9).history] == [5, 4, 3]
    put(4, b'{"commitInfo": {"oper')
    with pytest.raises(LiveError, match=r"4\.json:1"):
        read(look_back=9)


def test_other_columns_than_a_checkpoint_has(put: Put, read: Read) -> None:
    put(5, [{"commitInfo": {}}])
    for columns in ({"protocol": [1, 2]}, {"metaData": ["x", None]}, {"nothing": [1]}, {"protocol": [{"x": 1}]}):
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        put(checkpoint(5), sink.getvalue())
        with pytest.raises(LiveError, match="memory:///lake/t"):
            read()


def test_sidecars_that_are_missing_or_hostile(put: Put, read: Read) -> None:
    put(5, [{"commitInfo": {}}])
    for path in ("gone.parquet", "../../../secret", "", "/", 5):
        put(f"{5:020d}.checkpoint.{UUID}.json", [*STATE, {"checkpointMetadata": {}}, {"sidecar": {"path": path}}])
        assert read().table_id == "one"
        with pytest.raises(LiveError, match="memory:///lake/t"):
            read(counts=True)


def test_a_json_checkpoint_that_is_cut(put: Put, read: Read) -> None:
    put(5, [{"commitInfo": {}}])
    text = "\n".join(map(json.dumps, [*STATE, {"checkpointMetadata": {"version": 5}}])).encode()
    for cut in range(0, len(text), 7):
        put(f"{5:020d}.checkpoint.{UUID}.json", text[:cut])
        with pytest.raises(LiveError, match=r"memory:///lake/t"):
            read()
