"""Damage to checkpoints of every kind, to sidecars and checksums: an error, or the right answer.

Damaged commits and classic logs are in ``test_fuzz``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import obstore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from tablectl.model.errors import LiveError
from tablectl.model.table import LiveTable
from tablectl.storage.object_stores import StoreOptions
from tests.builders import read_path
from tests.log.checkpoint_files import KINDS, Put
from tests.log.log_actions import CLUSTERED, Action, checksum, clustering, crc, info, metadata, protocol

LOCATION = "memory:///t"
Logs = dict[str, bytes]


def text(content: Any) -> bytes:
    """Actions as lines, one object as JSON, bytes as they are."""
    if isinstance(content, list):
        return b"".join(json.dumps(action).encode() + b"\n" for action in content)
    return content if isinstance(content, bytes) else json.dumps(content).encode()


def files_of(kind: Callable[[Put], None]) -> Logs:
    """A log with a checkpoint of version 5, and two commits."""
    files: Logs = {}

    def put(name: str | int, content: Any) -> None:
        files[f"{name:020d}.json" if isinstance(name, int) else name] = text(content)

    kind(put)
    put(5, [info()])
    put(6, [info(), {"remove": {"path": "f1"}}])
    put("_last_checkpoint", {"version": 5})
    return files


def read(files: Logs, **choices: Any) -> LiveTable | LiveError:
    store = MemoryStore()
    for name, content in files.items():
        obstore.put(store, f"t/_delta_log/{name}", content)
    choices = {"look_back": 1, "counts": True, **choices}
    try:
        return read_path(LOCATION, options=StoreOptions(memory=store), **choices)
    except LiveError as error:
        return error


def facts(table: LiveTable | LiveError) -> tuple[Any, ...]:
    assert isinstance(table, LiveTable), table
    state = table.version, table.table_id, table.protocol, table.schema, table.clustering, dict(table.properties)
    return *state, table.files, table.bytes, table.vectors


def footer(content: bytes) -> int:
    """Where a Parquet file's footer begins, which no checksum guards."""
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


LOGS = {kind.__name__: files_of(kind) for kind in KINDS}
PARQUET = sorted((kind, name) for kind, files in LOGS.items() for name in files if name.endswith(".parquet"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_truncations(kind: Callable[[Put], None]) -> None:
    """A file of lines that is cut between two of them is a shorter one: nothing in the format tells. Of an empty
    checkpoint nothing is read, as by Delta.
    """
    files = files_of(kind)
    right = facts(read(files))
    for name, content in files.items():
        for cut in sorted({*range(0, len(content), max(len(content) // 40, 1)), len(content) - 1}):
            if name.endswith(".json") and (not cut or b"\n" in content[cut - 1 : cut + 1]):
                continue
            result = read({**files, name: content[:cut]})
            if isinstance(result, LiveError):
                assert name in result.message or (not cut and "no complete checkpoint" in result.message)
                assert LOCATION in result.message
            else:
                assert facts(result) == right, (name, cut)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_files_that_are_gone(kind: Callable[[Put], None]) -> None:
    """A checkpoint's parts and the commits after it are named when they are missing. Without the newest commit the
    version before it is the newest, which nothing in the format tells from a table that never went on.
    """
    files = files_of(kind)
    right = facts(read(files))
    for gone in files.keys() - {f"{6:020d}.json"}:
        result = read({name: content for name, content in files.items() if name != gone})
        if isinstance(result, LiveError):
            assert gone in result.message or "is missing" in result.message
        else:
            assert facts(result) == right


@pytest.mark.parametrize(("kind", "name"), PARQUET)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_pages_of_every_parquet_file(kind: str, name: str, data: st.DataObject) -> None:
    files = LOGS[kind]
    content = bytearray(files[name])
    content[data.draw(st.integers(4, footer(files[name]) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    result = read({**files, name: bytes(content)})
    if isinstance(result, LiveError):
        assert LOCATION in result.message
    else:
        assert facts(result) == facts(read(files))


@pytest.mark.parametrize(("kind", "name"), PARQUET)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_damaged_footer_is_an_error_and_never_the_end_of_the_process(
    kind: str, name: str, data: st.DataObject
) -> None:
    """No checksum guards it, so a column with another name is not read; all else is an error."""
    files = LOGS[kind]
    content = bytearray(files[name])
    content[data.draw(st.integers(footer(files[name]), len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    result = read({**files, name: bytes(content)})
    assert isinstance(result, LiveTable) or LOCATION in result.message


def with_checksum(wrong: Mapping[str, Any]) -> Logs:
    """Three commits that say all, and a checksum of the last one that says something else."""
    commits: list[list[Action]] = [
        [info("t0"), CLUSTERED, metadata(), clustering("a")],
        [info("t1"), metadata(x="1")],
        [info("t2")],
    ]
    files = {f"{version:020d}.json": text(actions) for version, actions in enumerate(commits)}
    return {**files, crc(2): text(wrong)}


BROKEN = {**metadata()["metaData"], "schemaString": '{"type":"struct","fields":[{'}


@pytest.mark.parametrize(
    "wrong",
    [
        {**checksum("t2", metadata(), [clustering("a")]), "metadata": BROKEN},
        checksum("t2", metadata(), [clustering("no such column")]),
        {**checksum("t2", metadata(), [clustering("a")]), **protocol(3, 7, "clustering", readers=("futureA",))},
        {**checksum("t2", metadata(), [clustering("a")]), **protocol(3, 7, readers=("catalogManaged",))},
        {**checksum("t2", metadata(**{"io.unitycatalog.tableId": "u"}), [clustering("a")])},
    ],
)
def test_a_checksum_that_makes_no_sense_is_not_believed_over_the_commits(wrong: Mapping[str, Any]) -> None:
    table = read(with_checksum(wrong), counts=False)
    assert isinstance(table, LiveTable)
    assert (dict(table.properties), table.clustering, table.files) == ({"x": "1"}, (("a",),), None)


def test_what_commits_and_checksum_both_refuse_is_refused() -> None:
    files = with_checksum({**checksum("t2", metadata(), []), **protocol(3, 7, readers=("futureA",))})
    files[f"{1:020d}.json"] = text([info("t1"), protocol(3, 7, readers=("futureA",))])
    result = read(files)
    assert isinstance(result, LiveError)
    assert "futureA" in result.message


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_checksum_with_a_damaged_bit(data: st.DataObject) -> None:
    """Nothing in the format tells one valid text from another; what is not valid is passed over."""
    files = with_checksum(checksum("t2", metadata(x="1"), [clustering("a")]))
    content = bytearray(files[crc(2)])
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    result = read({**files, crc(2): bytes(content)}, counts=False)
    assert isinstance(result, LiveTable)
    try:
        said = json.loads(bytes(content))
    except ValueError:
        said = None
    if said is None or said.get("txnId") != "t2":
        assert (dict(result.properties), result.files) == ({"x": "1"}, None)
