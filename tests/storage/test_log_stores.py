"""Locations on a real file system."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from obstore.store import LocalStore

from tablectl.delta.names import TableName
from tablectl.log.reader import read_table
from tablectl.model.errors import LiveError
from tablectl.storage.disk_log import DiskLog
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_log import LogBucket, ObjectLog
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.table_log import VanishedError
from tests.unreadable import unreadable

SCHEMA = '{"type":"struct","fields":[]}'
FIRST = "\n".join(
    json.dumps(action)
    for action in (
        {"commitInfo": {"operation": "CREATE TABLE"}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "one", "schemaString": SCHEMA, "partitionColumns": [], "configuration": {}}},
    )
)


def make(folder: Path) -> Path:
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text(FIRST)
    return folder


@pytest.mark.parametrize("name", ["a b", "a%20b", "100%", 'it\'s "q"', "ünï", "a#b?c", "a+b&c=d", "日本", "~", "[x]*"])
def test_directories_of_any_name(tmp_path: Path, name: str) -> None:
    location = str(make(tmp_path / name))
    for spelled in (location, f"file:{location}", f"file://{location}", f"{location}/"):
        table = read_table(TableName("", (spelled,)), spelled)
        assert table.table_id == "one"
        assert table.location == location


def test_links_above_a_table_are_followed(tmp_path: Path) -> None:
    make(tmp_path / "disk" / "lake" / "t")
    (tmp_path / "lake").symlink_to(tmp_path / "disk" / "lake")
    assert read_table(TableName("", ("t",)), f"{tmp_path}/lake/t").version == 0


@pytest.mark.parametrize("closed", ["", "t", "t/_delta_log", f"t/_delta_log/{0:020d}.json"])
def test_a_table_that_may_not_be_read_says_so(tmp_path: Path, closed: str) -> None:
    make(tmp_path / "lake" / "t")
    with unreadable(tmp_path / "lake" / closed), pytest.raises(LiveError, match=r"[Pp]ermission denied"):
        read_table(TableName("", ("t",)), str(tmp_path / "lake" / "t"))


def test_each_way_not_to_be_a_table(tmp_path: Path) -> None:
    def message(path: Path) -> str:
        with pytest.raises(LiveError) as caught:
            read_table(TableName("", ("x",)), str(path))
        return caught.value.message

    assert "no such directory" in message(tmp_path / "nope")
    (tmp_path / "file").write_text("")
    assert "no such directory" in message(tmp_path / "file")
    (tmp_path / "plain").mkdir()
    assert "not a Delta table" in message(tmp_path / "plain")
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    assert "is empty" in message(tmp_path / "empty")
    with pytest.raises(LiveError) as caught:
        read_table(TableName("", ("x",)), str(tmp_path / "emptie" / "deeper"))
    assert caught.value.hint == f"did you mean {tmp_path}/empty?"
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "_delta_log").write_text("")
    assert str(tmp_path / "odd") in message(tmp_path / "odd")
    (make(tmp_path / "directory") / "_delta_log" / f"{1:020d}.json").mkdir()
    assert read_table(TableName("", ("x",)), str(tmp_path / "directory")).version == 0


def test_names_that_are_not_deltas_are_left_alone(tmp_path: Path) -> None:
    log = make(tmp_path / "t") / "_delta_log"
    for name in ("\udcff.json", f"{2:020d}.json.tmp", f".{1:020d}.json.crc"):
        (log / name).touch()
    (log / "old").symlink_to(log / "gone")
    assert read_table(TableName("", ("x",)), str(log.parent)).version == 0


def test_a_disk_is_listed_as_a_store_is(tmp_path: Path) -> None:
    log = make(tmp_path / "t") / "_delta_log"
    staged = f"_staged_commits/{0:020d}.x.json"
    (log / "_staged_commits").mkdir()
    for name in (staged, f"{1:020d}.json", f"{1:020d}.crc", "_last_checkpoint"):
        (log / name).touch()
    disk = DiskLog(str(log.parent))
    bucket = LogBucket(LocalStore(str(log.parent)), "", ThreadPoolExecutor(1))
    for after in ("", f"{0:020d}", f"{0:020d}.json", f"{1:020d}"):
        assert set(disk.names(after)) == set(ObjectLog(bucket, "", "").names(after))
    assert disk.read(f"{0:020d}.json") == FIRST.encode()
    assert list(disk.lines(f"{0:020d}.json")) == FIRST.encode().split(b"\n")
    with pytest.raises(VanishedError, match="gone when it was opened"):
        disk.read("gone")


def test_a_forked_process_reads_too(tmp_path: Path) -> None:
    location = str(make(tmp_path / "t"))
    code = (
        "import os, sys\n"
        "from tablectl.log.reader import read_table\n"
        "from tablectl.delta.names import TableName\n"
        "read = lambda: read_table(TableName('', ('x',)), sys.argv[1])\n"
        "read()\n"
        "child = os.fork()\n"
        "if child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "os._exit(7 if read().version == 0 else 1)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, location], timeout=60, check=False).returncode == 7


def test_wrong_options_name_the_store() -> None:
    options = StoreOptions(families={"s3": {"no_such_key": "x"}})
    with pytest.raises(LiveError, match="s3://bucket"):
        Stores(options).open("s3a://bucket/t")


def test_tables_of_a_bucket_share_its_store() -> None:
    stores = Stores(StoreOptions(families={"s3": {"region": "eu-west-1"}}))
    one, two = stores.open("s3a://bucket/a b/%20"), stores.open("s3://bucket/other")
    assert isinstance(one, ObjectLog)
    assert isinstance(two, ObjectLog)
    assert one._bucket is two._bucket
    assert one.file("x") == "s3://bucket/a b/%20/_delta_log/x"
